// SPDX-License-Identifier: Apache-2.0

package testinput

import (
	"bytes"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Frame is a frame of a chunk of a .btfc file.
type Frame struct {
	Kernel kernel.Key
	Middle int // the place of a byte in the file
}

// Frames returns the frames of all chunks of a file, of which there must be some.
func Frames(tb testing.TB, file []byte) (all []Frame) {
	tb.Helper()
	f, err := btfc.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		tb.Fatal(err)
	}
	at := len(btfc.Magic) + 1
	for _, e := range f.Entries() {
		for _, c := range e.Chunks {
			for _, n := range []int64{c.Packed, c.Back.Packed} {
				if n > 0 {
					all = append(all, Frame{e.Key, at + int(n)/2})
				}
				at += int(n)
			}
		}
	}
	if len(all) == 0 {
		tb.Fatal("no frames")
	}
	return all
}
