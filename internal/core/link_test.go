// SPDX-License-Identifier: Apache-2.0

package core

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// TestLink has functions that refer to each other in a circle, and one without a
// caller.
func TestLink(t *testing.T) {
	o, err := ParseObject("o", testbtf.Object(t, binary.BigEndian, "struct s 8: a int 0", `
		program p
		byte_off struct s.a
		call f
		program q
		byte_off struct s.a
		call g
		call p
		function f
		byte_off struct s.a
		call g
		function g
		byte_off struct s.a
		call f
		function h
		byte_off struct s.a`))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := o.LinkedPrograms()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(programs), "[{kprobe/p p [0 2 3]} {kprobe/q q [1 3 0 2]}]"; got != want {
		t.Errorf("programs %s, want %s", got, want)
	}
}

// TestLinkBounded has the name of a function without end.
func TestLinkBounded(t *testing.T) {
	file := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF, Sections: []testelf.Section{
		{Name: "kprobe/f", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: make([]byte, insnSize)},
	}}
	file.Symbols = []testelf.Symbol{{Name: fmt.Sprintf("%0*d", limits.NameBytes+1, 0), Size: insnSize, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}}
	data, _ := file.Build()
	o, err := ParseObject("o", data)
	if err != nil {
		t.Fatal(err)
	}
	var x *limits.Exceeded
	if programs, err := o.LinkedPrograms(); !errors.As(err, &x) || programs != nil {
		t.Errorf("%d programs, error %v", len(programs), err)
	}
}
