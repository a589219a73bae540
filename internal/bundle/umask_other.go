//go:build !unix

package bundle

import "os"

func umask() os.FileMode { return 0 }
