// SPDX-License-Identifier: Apache-2.0

package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// files are ELF files of both classes and byte orders.
func files() (all [][]byte) {
	for _, f := range []testelf.File{
		{Order: binary.LittleEndian}, {Order: binary.BigEndian}, {Order: binary.LittleEndian, Class32: true},
		{Order: binary.BigEndian, Class32: true}, {Order: binary.LittleEndian, Extended: true}, {Order: binary.BigEndian, Tail: true},
	} {
		f.Sections = []testelf.Section{{Name: ".text", Data: make([]byte, 8)}, {Name: strings.Repeat("x", 100)}}
		data, _ := f.Build()
		all = append(all, data)
	}
	return all
}

// TestNew opens what debug/elf opens, and refuses more sections than it may have.
func TestNew(t *testing.T) {
	for i, data := range files() {
		want, wantErr := elf.NewFile(bytes.NewReader(data))
		got, err := New(bytes.NewReader(data), 10)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("file %d: %v, debug/elf: %v", i, err, wantErr)
		}
		if err == nil && len(got.Sections) != len(want.Sections) {
			t.Errorf("file %d: %d sections, debug/elf: %d", i, len(got.Sections), len(want.Sections))
		}
		over := new(limits.Exceeded)
		if _, err := New(bytes.NewReader(data), 2); !errors.As(err, &over) || over.Max != 2 {
			t.Errorf("file %d: %v, want at most 2 sections", i, err)
		}
	}
}

// FuzzNew checks that what it opens is within limits.
func FuzzNew(f *testing.F) {
	for _, data := range files() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 100
		got, err := New(bytes.NewReader(data), most)
		if err != nil {
			return
		}
		sum := 0
		for _, s := range got.Sections {
			sum += len(s.Name)
		}
		if len(got.Sections) > most || sum > limits.SectionNames {
			t.Errorf("%d sections, %d bytes of names", len(got.Sections), sum)
		}
	})
}
