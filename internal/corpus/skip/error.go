// SPDX-License-Identifier: Apache-2.0

// Package skip says why files, or parts of them, are left out of a corpus.
package skip

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
)

// Error says why a file, or a part of one, was left out. Reading a file returns it, and reports list it as skipped. In JSON it is an
// object with the path and the reason.
type Error struct {
	Path string // the file, followed by "!member" for each container
	What string // what was being read, as "xz" or "elf: .BTF"; empty if the cause needs no such word
	Err  error  // the cause, which does not repeat the path

	// Shared is set for a kernel of a corpus in one file, whose path is FILE!KEY. Kernels that depend on one damaged part have the same reason.
	Shared bool
}

// Error returns path, what and cause on one line.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason()
	}
	return e.Path + ": " + e.Reason()
}

// Reason is Error without the path.
func (e *Error) Reason() string {
	text := strings.ReplaceAll(e.Err.Error(), "\n", " ")
	if e.What == "" {
		return text
	}
	return e.What + ": " + strings.TrimPrefix(text, e.What+": ") // decoders name themselves
}

func (e *Error) Unwrap() error { return e.Err }

// Compare orders errors by path, and those of one path by reason.
func (e *Error) Compare(o *Error) int {
	return cmp.Or(cmp.Compare(e.Path, o.Path), cmp.Compare(e.Reason(), o.Reason()))
}

// Append appends an error about a part of the file at path, up to limits.Errors.
func Append(errs []error, path string, err error) []error {
	switch n := len(errs); {
	case n < limits.Errors:
		return append(errs, Wrap(path, "", err))
	case n == limits.Errors:
		return append(errs, Wrap(path, "", errors.New("more errors like these")))
	}
	return errs
}

// Errors splits the joined errors of a file. An error of another type than Error becomes the cause of one without a path.
func Errors(err error) []*Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, err := range e.Unwrap() {
			all = append(all, Errors(err)...)
		}
		return all
	}
	return []*Error{{Err: err}}
}

// Wrap makes an error an Error. One that wraps an Error already becomes that, and nil stays nil.
func Wrap(path, what string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Path: path, What: what, Err: Cause(err)}
}

// Cause takes the operation and the path off an error of package os, since messages name the file
// already.
func Cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
