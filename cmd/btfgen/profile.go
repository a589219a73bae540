// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"runtime/pprof"

	"github.com/btfgen/btfgen/internal/output"
)

// startProfile takes a CPU profile until stop is called, which writes it to path. Without a
// path it does nothing.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	profile := new(bytes.Buffer)
	if err := pprof.StartCPUProfile(profile); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return output.WriteFile(path, func(w io.Writer) error {
			_, err := profile.WriteTo(w)
			return err
		})
	}, nil
}
