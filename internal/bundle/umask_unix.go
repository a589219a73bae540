//go:build unix

package bundle

import (
	"os"
	"sync"
	"syscall"
)

// umask returns the permission bits that new files must not have. It can only
// be read by setting it, which is done once.
var umask = sync.OnceValue(func() os.FileMode {
	m := syscall.Umask(0)
	syscall.Umask(m)
	return os.FileMode(m)
})
