// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The prefix and the suffixes of the names of temporaries.
const (
	prefix = ".btfgen."
	making = ".tmp"
	moving = ".moving" // a directory whose files are being moved
)

// temporary is a file or directory that is being made.
type temporary struct {
	path string
	file *os.File // has the lock while it is open
}

// gate lets files be created and moved until [Abandon].
var gate sync.RWMutex

// unfinished are the temporaries of this process.
var unfinished = struct {
	sync.Mutex
	set map[*temporary]bool
}{set: make(map[*temporary]bool)}

// Abandon removes all temporaries of this process, after files that are being moved. Then it blocks all creating and moving of
// files forever. It is for a process that exits at once.
func Abandon() {
	gate.Lock() // never unlocked
	unfinished.Lock()
	defer unfinished.Unlock()
	for t := range unfinished.set {
		os.RemoveAll(t.path)
	}
}

// createFile creates a temporary file in dir.
func createFile(dir string, perm fs.FileMode) (*temporary, error) {
	gate.RLock()
	defer gate.RUnlock()
	return create(dir, func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	})
}

// createDir creates a temporary directory in dir.
func createDir(dir string) (*temporary, error) {
	gate.RLock()
	defer gate.RUnlock()
	return create(dir, func(path string) (*os.File, error) {
		if err := os.Mkdir(path, 0o777); err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) { // another run removed it before it was locked
			err = fs.ErrExist
		} else if err != nil {
			os.Remove(path)
		} else if !locks {
			f.Close()
		}
		return f, err
	})
}

// create creates and locks a temporary. It tries other names while open fails with ErrExist.
func create(dir string, open func(path string) (*os.File, error)) (*temporary, error) {
	for {
		path := filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64(), 36)+making)
		f, err := open(path)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if t := own(f, path); t != nil {
			return t, nil
		}
	}
}

// The results of locking a file.
type locked int

const (
	lockTaken locked = iota
	lockHeld         // by another process
	lockNone         // the file system has no locks
)

// own locks f, which was created at path. If another run has the lock or has removed the file, it closes f and returns nil.
func own(f *os.File, path string) *temporary {
	if locks {
		held := lock(f) == lockHeld
		at, err1 := os.Lstat(path)
		is, err2 := f.Stat()
		if held || err1 != nil || err2 != nil || !os.SameFile(at, is) {
			f.Close()
			return nil
		}
	}
	t := &temporary{path, f}
	unfinished.Lock()
	defer unfinished.Unlock()
	unfinished.set[t] = true
	return t
}

// remove removes a temporary that was not moved, and unlocks it.
func (t *temporary) remove() {
	unfinished.Lock()
	delete(unfinished.set, t)
	unfinished.Unlock()
	os.RemoveAll(t.path)
	t.file.Close()
}

// leftovers returns the paths of the temporaries in a directory that have a suffix.
func leftovers(dir, suffix string) (paths []string) {
	d, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// clean finishes the moves of killed runs in dir, and removes their other temporaries.
func clean(dir string) {
	for _, path := range append(leftovers(dir, moving), leftovers(dir, making)...) {
		if f := openDead(path); f != nil {
			if strings.HasSuffix(path, making) || moveAll(path, dir) == nil {
				os.RemoveAll(path)
			}
			f.Close()
		}
	}
}

// syncDir syncs the names in a directory, if the file system can do that.
func syncDir(dir string) error {
	d, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return nil // writable, but not readable
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// syncDirs syncs several directories. Errors name them.
func syncDirs(dirs map[string]bool) error {
	for dir := range dirs {
		if err := syncDir(dir); err != nil {
			return named(dir, err)
		}
	}
	return nil
}
