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
)

// The names of what is not in its place yet.
const (
	prefix = ".btfgen."
	making = ".tmp"
	moving = ".moving" // a directory whose files all get to their places
)

// temporary is a file or directory that is being made.
type temporary struct {
	path string
	file *os.File // holds the lock as long as it is open; a file is written through it
}

// gate lets files be made and moved until [Abandon].
var gate sync.RWMutex

// unfinished are the temporaries of this process.
var unfinished struct {
	sync.Mutex
	set map[*temporary]bool
}

// Abandon removes everything of this process that is not in its place yet, and lets nothing be made or put in
// its place any more: who tries waits for ever. It is for a process that ends at once. What is being moved is moved first.
func Abandon() {
	gate.Lock() // for good
	unfinished.Lock()
	defer unfinished.Unlock()
	for t := range unfinished.set {
		os.RemoveAll(t.path)
	}
}

// createFile makes a temporary file in dir.
func createFile(dir string, perm fs.FileMode) (*temporary, error) {
	gate.RLock()
	defer gate.RUnlock()
	return newFile(dir, perm)
}

// newFile is createFile for those who have passed the gate.
func newFile(dir string, perm fs.FileMode) (*temporary, error) {
	return create(dir, func(path string) (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	})
}

// createDir makes a temporary directory in dir.
func createDir(dir string) (*temporary, error) {
	gate.RLock()
	defer gate.RUnlock()
	return create(dir, func(path string) (*os.File, error) {
		if err := os.Mkdir(path, 0o777); err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = errRemoved
		} else if err != nil {
			os.Remove(path)
		} else if !locks {
			f.Close()
		}
		return f, err
	})
}

// errRemoved says that another run took something for a dead one's in the moment before it was locked.
var errRemoved = errors.New("removed")

func create(dir string, open func(path string) (*os.File, error)) (*temporary, error) {
	for {
		path := filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64(), 36)+making)
		f, err := open(path)
		if errors.Is(err, fs.ErrExist) || err == errRemoved {
			continue
		}
		if err != nil {
			return nil, err
		}
		if own(f, path) {
			return newTemporary(path, f), nil
		}
		f.Close()
	}
}

// newTemporary notes a temporary that has been made and locked.
func newTemporary(path string, f *os.File) *temporary {
	t := &temporary{path, f}
	unfinished.Lock()
	defer unfinished.Unlock()
	if unfinished.set == nil {
		unfinished.set = make(map[*temporary]bool)
	}
	unfinished.set[t] = true
	return t
}

// What came of locking a file.
type locked int

const (
	lockTaken locked = iota // nobody else has it
	lockHeld                // another process has
	lockNone                // the file system has no locks
)

// own locks f, which has been made at path. It fails if another run is about to remove it or has done so.
func own(f *os.File, path string) bool {
	if !locks {
		return true
	}
	if lock(f) == lockHeld {
		return false
	}
	at, err := os.Lstat(path)
	if err != nil {
		return false
	}
	is, err := f.Stat()
	return err == nil && os.SameFile(at, is)
}

// put moves a temporary file to its place.
func (t *temporary) put(p *place) error {
	gate.RLock()
	defer gate.RUnlock()
	return p.take(t.path)
}

// remove removes a temporary, unless it has got to its place, and gives up the lock.
func (t *temporary) remove() {
	unfinished.Lock()
	delete(unfinished.set, t)
	unfinished.Unlock()
	os.RemoveAll(t.path)
	t.file.Close()
}

// leftovers returns the paths of what is in a directory for now only, by its suffix.
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

// clean removes from dir what dead runs have left, and moves what they were moving.
func clean(dir string) {
	for _, path := range leftovers(dir, moving) {
		if f := openDead(path); f != nil {
			if moveAll(path, dir) == nil {
				os.RemoveAll(path)
			}
			f.Close()
		}
	}
	for _, path := range leftovers(dir, making) {
		if f := openDead(path); f != nil {
			os.RemoveAll(path)
			f.Close()
		}
	}
}
