// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// held is the key of a lock in the context of what has it: the path of its file.
type held string

// Lock makes the output at path this process's own: no other one that locks it reads, changes or replaces it until unlock. It is for
// outputs that are read before they are replaced. If another process has the output, Lock calls waiting, which may be nil,
// once, and waits until that is done or ctx ends. Who has the returned context need not wait for the same output again.
//
// The lock is on a temporary file beside the output, or inside it if it is a directory. It ends with the process, and the
// file is removed like other temporaries. Where there are no locks, and for devices and pipes, Lock does nothing.
func Lock(ctx context.Context, path string, waiting func()) (mine context.Context, unlock func(), err error) {
	for {
		at, err := lockPath(path)
		if err != nil {
			return nil, nil, err
		}
		if at == "" || !locks || ctx.Value(held(at)) != nil {
			return ctx, func() {}, nil
		}
		t, err := acquire(ctx, at, &waiting)
		if errors.Is(err, fs.ErrNotExist) { // the directory for it: nothing is there to be changed
			return ctx, func() {}, nil
		}
		if err != nil && err == ctx.Err() {
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, named(path, err)
		}
		if now, err := lockPath(path); err != nil || now != at { // it has become a directory, or another link
			t.remove()
			continue
		}
		return context.WithValue(ctx, held(at), true), t.remove, nil
	}
}

// lockPath returns the path of the file whose lock is that of an output, "" if it needs none.
func lockPath(path string) (string, error) {
	p, err := find(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	if p.through || p.old != nil && !p.old.IsDir() && !p.old.Mode().IsRegular() {
		return "", nil
	}
	real := Real(path)
	sum := sha256.Sum256([]byte(filepath.Base(real)))
	beside := filepath.Join(filepath.Dir(real), fmt.Sprintf("%slock-%x%s", prefix, sum[:8], making))
	if p.old == nil || !p.old.IsDir() {
		return beside, nil
	}
	if f := openDead(beside); f != nil { // of a run that was killed when it had made the directory
		os.Remove(beside)
		f.Close()
	}
	return filepath.Join(real, prefix+"lock"+making), nil
}

// acquire makes a file and locks it. It waits while another process has it locked.
func acquire(ctx context.Context, path string, waiting *func()) (*temporary, error) {
	for tries := 0; ; tries++ {
		t, err := tryLock(path)
		if t != nil || err != nil {
			return t, err
		}
		if *waiting != nil && tries > 0 { // the first time it may be one that looks for what dead runs have left
			(*waiting)()
			*waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tryLock is acquire without waiting: it returns nil if the lock is another process's.
func tryLock(path string) (*temporary, error) {
	gate.RLock()
	defer gate.RUnlock()
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if !own(f, path) {
		f.Close()
		return nil, nil
	}
	return newTemporary(path, f), nil
}
