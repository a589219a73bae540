// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// manyNames is an object of n relocations. Each is in another function and of
// another line, or of another section, and all have one name of some bytes.
func manyNames(n, size int, functions, lines, sections bool) []byte {
	b := btf.NewBuilder(binary.LittleEndian)
	root := b.Type("s", btf.KindStruct, false, 0, 8)
	proto := b.Type("", btf.KindFuncProto, false, 0, 0)
	long := strings.Repeat("x", size)
	fn := b.Type(long, btf.KindFunc, false, 0, uint32(proto))
	name, access, text := b.String(long), b.String("0"), b.String(".text")
	le := binary.LittleEndian
	words := func(out []byte, vs ...uint32) []byte {
		for _, v := range vs {
			out = le.AppendUint32(out, v)
		}
		return out
	}
	part := func(record uint32, add func(out []byte, i uint32) []byte) []byte {
		out := words(nil, record)
		if !sections {
			out = words(out, text, uint32(n))
		}
		for i := range uint32(n) {
			if sections {
				out = words(out, name+i%uint32(size/2), 1)
			}
			out = add(out, i)
		}
		return out
	}
	relos := part(16, func(out []byte, i uint32) []byte { return words(out, 8*i, uint32(root), access, 8) })
	var funcInfo, lineInfo []byte
	if functions {
		funcInfo = part(8, func(out []byte, i uint32) []byte { return words(out, 8*i, uint32(fn)) })
	}
	if lines {
		lineInfo = part(16, func(out []byte, i uint32) []byte { return words(out, 8*i, name, 0, i<<10) })
	}
	f, l := uint32(len(funcInfo)), uint32(len(lineInfo))
	ext := words(le.AppendUint32(nil, btf.Version<<16|btf.Magic), 32, 0, f, f, l, f+l, uint32(len(relos)))
	file := testelf.File{Order: le, Type: elf.ET_REL, Machine: elf.EM_BPF, Sections: []testelf.Section{
		{Name: ".text", Flags: elf.SHF_EXECINSTR, Data: make([]byte, 8*n)},
		{Name: ".BTF", Data: b.Bytes()},
		{Name: ".BTF.ext", Data: append(append(append(ext, funcInfo...), lineInfo...), relos...)},
	}}
	data, _ := file.Build()
	return data
}

// TestManyNames bounds the memory that names in .BTF.ext take, which can share
// their bytes in the file.
func TestManyNames(t *testing.T) {
	slow.Skip(t)
	const n = 50_000
	for name, data := range map[string][]byte{
		"functions": manyNames(n, 4000, true, false, false),
		"lines":     manyNames(n, 4000, false, true, false),
		"sections":  manyNames(n, 4000, false, false, true),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := core.ParseObject("o", data)
		runtime.ReadMemStats(&after)
		var over *limits.Exceeded
		if !errors.As(err, &over) || !strings.HasPrefix(err.Error(), "o: .BTF.ext: ") {
			t.Errorf("%s: %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 3*limits.ObjectNames {
			t.Errorf("%s: %d MiB allocated", name, got>>20)
		}
	}
	if o, err := core.ParseObject("o", manyNames(n, 20, true, true, false)); err != nil || o.Len() != n {
		t.Error(err)
	}
}
