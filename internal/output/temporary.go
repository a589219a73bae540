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

// The prefix and the suffix of the names of temporaries.
const (
	prefix = ".btfgen."
	suffix = ".tmp"
)

// temporary is a file or directory that is being made.
type temporary struct {
	path string
	file *os.File // has the lock while it is open
}

// at is called at moments in which a signal may end the process. Tests replace it.
var at = func(moment string) {}

// gate lets files be created and moved until [Abandon].
var gate sync.RWMutex

// pass lets the caller create or move files until it calls done, for which Abandon waits. After Abandon it blocks forever.
func pass() (done func()) {
	if !gate.TryRLock() {
		at("waits")
		gate.RLock()
	}
	return gate.RUnlock
}

// unfinished are the temporaries of this process, and the directories that it made and that may be empty.
var unfinished = struct {
	sync.Mutex
	set  map[*temporary]bool
	made map[*Dir]bool
}{set: make(map[*temporary]bool), made: make(map[*Dir]bool)}

// Abandon removes all temporaries of this process, and directories that it made and that are empty, after files that are being created or
// moved. Then it blocks all creating and moving of files forever. It is for a process that exits at once.
func Abandon() {
	gate.Lock() // never unlocked
	unfinished.Lock()
	defer unfinished.Unlock()
	for t := range unfinished.set {
		os.RemoveAll(t.path)
	}
	for d := range unfinished.made {
		os.Remove(d.path)
	}
}

// Nameless creates a temporary file in a directory, or in that of the system if dir is empty. It has no name, so it is gone when it is
// closed or the process ends. Where systems need a name, the caller removes it.
func Nameless(dir string) (*os.File, error) {
	at("create")
	defer pass()()
	f, err := os.CreateTemp(dir, prefix+"*"+suffix)
	if err == nil {
		os.Remove(f.Name())
	}
	return f, err
}

// create creates and locks a temporary file or directory in dir.
func create(dir string, perm fs.FileMode) (*temporary, error) {
	at("create")
	defer pass()()
	for {
		path := filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64(), 36)+suffix)
		var f *os.File
		var err error
		if !perm.IsDir() {
			f, err = open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		} else if err = os.Mkdir(path, perm.Perm()); err == nil {
			if f, err = open(path, os.O_RDONLY, 0); errors.Is(err, fs.ErrNotExist) {
				continue // another run removed it before it was locked
			}
		}
		if err != nil {
			return nil, err
		}
		if t := own(f, path); t != nil {
			return t, nil
		}
	}
}

// owns locks a file or directory that was opened at path. It reports false if another run has the lock or has removed the file.
// File systems without locks do not matter.
func owns(f *os.File, path string) bool {
	if errors.Is(lock(f), errLocked) {
		return false
	}
	at, err1 := os.Stat(path)
	is, err2 := f.Stat()
	return err1 == nil && err2 == nil && os.SameFile(at, is)
}

// own returns the temporary f, which was created at path. If owns reports false, it closes f and returns nil.
func own(f *os.File, path string) *temporary {
	if !owns(f, path) {
		f.Close()
		return nil
	}
	t := &temporary{path, f}
	unfinished.Lock()
	defer unfinished.Unlock()
	unfinished.set[t] = true
	return t
}

// remove removes a temporary that was not moved, and unlocks it. Meanwhile it stays among the unfinished ones, as a directory is not
// removed at once.
func (t *temporary) remove() {
	at("remove")
	discard(t.file, t.path)
	unfinished.Lock()
	defer unfinished.Unlock()
	delete(unfinished.set, t)
}

// clean removes the temporaries of killed runs in dir.
func clean(dir string) {
	d, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
			continue
		}
		path := filepath.Join(dir, name)
		f, err := open(path, os.O_RDONLY|noFollow, 0)
		if err != nil {
			continue
		}
		if lock(f) == nil {
			discard(f, path)
		} else {
			f.Close()
		}
	}
}
