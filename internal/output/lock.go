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

// held is the context key of a lock, the path of its file.
type held string

// Lock locks the output at path: no other process that locks it reads or replaces it until unlock is called. It is for outputs that
// are read before they are replaced. If another process has the lock, Lock calls waiting once, unless it is nil, and waits until
// the lock is free or ctx ends. Lock does not wait for locks that the context was returned with.
//
// The lock is on a temporary file beside the output, or inside a directory. It ends with the process. On systems without locks,
// and for devices and pipes, Lock does nothing.
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
		if errors.Is(err, fs.ErrNotExist) { // the output's directory does not exist
			return ctx, func() {}, nil
		}
		if err != nil && err == ctx.Err() {
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, named(path, err)
		}
		if now, err := lockPath(path); err == nil && now == at {
			return context.WithValue(ctx, held(at), true), t.remove, nil
		}
		t.remove() // the output has become a directory, or a link has changed
	}
}

// lockPath returns the path of the lock file of an output, or "" if it needs none.
func lockPath(path string) (string, error) {
	p, err := find(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	dir := p.old != nil && p.old.IsDir()
	if p.special() && !dir {
		return "", nil
	}
	real := Real(path)
	sum := sha256.Sum256([]byte(filepath.Base(real)))
	beside := filepath.Join(filepath.Dir(real), fmt.Sprintf("%slock-%x%s", prefix, sum[:8], making))
	if !dir {
		return beside, nil
	}
	if f := openDead(beside); f != nil { // of a run that was killed after creating the directory
		os.Remove(beside)
		f.Close()
	}
	return filepath.Join(real, prefix+"lock"+making), nil
}

// acquire creates and locks a lock file. It waits while another process has locked it.
func acquire(ctx context.Context, path string, waiting *func()) (*temporary, error) {
	try := func() (*temporary, error) {
		gate.RLock()
		defer gate.RUnlock()
		f, err := openLock(path)
		if err != nil {
			return nil, err
		}
		return own(f, path), nil
	}
	for tries := 0; ; tries++ {
		t, err := try()
		if t != nil || err != nil {
			return t, err
		}
		if *waiting != nil && tries > 0 { // at first it may be a process that looks for leftovers
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
