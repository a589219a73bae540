// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/limits"
)

// parallel is how many blobs are downloaded at once.
const parallel = 3

// get downloads blobs of an artifact to a folder. A file gets its name when it is complete and has its digest; until then it ends in
// .part, and the next run continues it.
func get(ctx context.Context, out *printer, ref string, plain bool, dir string, digests []string) error {
	repo, err := open(ref, plain)
	if err != nil {
		return err
	}
	text, err := fetchManifest(ctx, repo, repo.Reference.Reference)
	if err != nil {
		return err
	}
	blobs, err := artifact.Blobs(text)
	if err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	var files []*file
	for _, d := range digests {
		i := slices.IndexFunc(blobs, func(b artifact.Blob) bool { return b.Digest == d })
		if i < 0 {
			return fmt.Errorf("%q is not in the manifest", d)
		}
		files = append(files, &file{out: out, repo: repo, path: filepath.Join(dir, artifact.File(d)), blob: blobs[i]})
		out.size += blobs[i].Size
	}
	stop := out.watch()
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, f := range files {
		g.Go(func() error {
			err := f.get(ctx)
			if f.moved > 0 {
				out.print(&artifact.Event{Moved: f.moved})
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.blob.Digest, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// file is a file that is downloaded.
type file struct {
	out  *printer
	repo *remote.Repository
	path string
	blob artifact.Blob

	part  *os.File
	hash  hash.Hash // hash of the bytes in part
	have  int64     // bytes in part
	moved int64     // bytes from the registry
}

// get downloads the file unless it exists. A partial file that is not the beginning of the blob is downloaded again.
func (f *file) get(ctx context.Context) (err error) {
	if done, err := f.exists(); done || err != nil {
		return err
	}
	if f.part, err = os.OpenFile(f.path+".part", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer f.part.Close()
	if err := f.read(); err != nil {
		return err
	}
	begun := f.have // bytes left by an earlier run
	if f.have > f.blob.Size {
		err = f.reset()
	}
	if err == nil {
		err = f.complete(ctx)
	}
	if err == nil && !f.right() && begun > 0 { // the earlier run may have seen another file
		err = f.again(ctx)
	}
	if err != nil {
		return err
	}
	if !f.right() {
		f.reset()
		os.Remove(f.part.Name())
		return fmt.Errorf("%w: other content of that size", errWrong)
	}
	if err := f.part.Sync(); err != nil {
		return err
	}
	return os.Rename(f.part.Name(), f.path)
}

// exists reports whether the file exists and has its digest.
func (f *file) exists() (bool, error) {
	part, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer part.Close()
	f.part = part
	right := f.read() == nil && f.right()
	if !right {
		f.forget()
	}
	return right, nil
}

// complete downloads the rest of the file, if any, in as many requests as it takes while each brings enough bytes.
func (f *file) complete(ctx context.Context) error {
	for tries := 1; f.have < f.blob.Size; tries++ {
		before := f.have
		err := f.more(ctx)
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		enough := int64(1)
		if errors.Is(err, errSlow) {
			enough = limits.RegistryBytes
		}
		if tries >= limits.RegistryTries || f.have-before < enough {
			return err
		}
	}
	return nil
}

// again downloads the whole file.
func (f *file) again(ctx context.Context) error {
	if err := f.reset(); err != nil {
		return err
	}
	return f.more(ctx)
}

// transient reports whether a request for the rest may succeed after an error.
func transient(err error) bool {
	return !errors.Is(err, errWrong) && !errors.Is(err, fs.ErrPermission) && !isPathError(err)
}

func isPathError(err error) bool {
	var p *fs.PathError
	return errors.As(err, &p)
}

// read reads the bytes that exist.
func (f *file) read() (err error) {
	f.hash = sha256.New()
	f.have, err = io.Copy(f.hash, io.LimitReader(f.part, f.blob.Size+1))
	f.out.add(f.have)
	return err
}

// forget drops the bytes that were read.
func (f *file) forget() {
	f.out.add(-f.have)
	f.hash, f.have = sha256.New(), 0
}

// reset drops the bytes that were read, and empties the partial file.
func (f *file) reset() error {
	f.forget()
	if _, err := f.part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return f.part.Truncate(0)
}

// right reports whether the file is complete and has its digest.
func (f *file) right() bool {
	return f.have == f.blob.Size && artifact.DigestSum(f.hash.Sum(nil)) == f.blob.Digest
}

// more downloads the rest of the file.
func (f *file) more(ctx context.Context) error {
	fetching, alive, stop := patience(ctx)
	defer stop()
	layer := ocispec.Descriptor{MediaType: f.blob.MediaType, Digest: digest.Digest(f.blob.Digest), Size: f.blob.Size}
	body, err := f.repo.Blobs().Fetch(fetching, layer)
	if errors.Is(err, errdef.ErrNotFound) {
		return fmt.Errorf("%w: the registry does not have it", errWrong)
	}
	if err != nil {
		return slowOr(fetching, err)
	}
	defer body.Close()
	if f.have > 0 {
		s, ok := body.(io.Seeker) // the body seeks only if the registry supports ranges
		if ok {
			_, err = s.Seek(f.have, io.SeekStart)
		}
		if err != nil {
			return f.again(ctx)
		}
		if !ok {
			if err := f.reset(); err != nil {
				return err
			}
		}
	}
	n, err := io.Copy(io.MultiWriter(f.part, f.hash, &progress{f}), io.LimitReader(alive(body), f.blob.Size-f.have+1))
	switch {
	case err != nil:
		return err
	case f.have > f.blob.Size:
		f.reset()
		return fmt.Errorf("%w: more than %d bytes", errWrong, f.blob.Size)
	case f.have < f.blob.Size:
		return fmt.Errorf("%d bytes: %w", n, io.ErrUnexpectedEOF)
	}
	return nil
}

// progress counts the bytes that arrive.
type progress struct{ f *file }

func (p *progress) Write(b []byte) (int, error) {
	n := int64(len(b))
	p.f.have += n
	p.f.moved += n
	p.f.out.add(n)
	return len(b), nil
}
