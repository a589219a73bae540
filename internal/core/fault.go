// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// fault is an error that ends a relocation or a load: a reason without a code.
type fault relo.Reason

// Error returns the cause with its arguments.
func (f fault) Error() string {
	f.Code = relo.Code(f.Cause)
	f.Cause = ""
	return relo.Reason(f).String()
}

// faultOf returns the first fault of an error, without the text that wraps it.
func faultOf(err error) (f fault) {
	switch {
	case errors.As(err, &f):
	case errors.Is(err, btf.ErrDepth):
		f.Cause = relo.CauseEndless
	case errors.Is(err, btf.ErrNoSize):
		f.Cause = relo.CauseNoSize
	case errors.Is(err, btf.ErrTooBig):
		f.Cause = relo.CauseTooBig
	}
	return f
}

// ReasonOf returns the reason for an error that a decision ends with.
func ReasonOf(code relo.Code, err error) relo.Reason {
	r := relo.Reason(faultOf(err))
	r.Code = code
	return r
}

// reasonOf returns a pointer to a reason, nil for none.
func reasonOf(r relo.Reason) *relo.Reason {
	if r.Code == "" {
		return nil
	}
	return &r
}
