// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// TestSameName places records in static functions of one name, as a linked object
// has them whose sources include the same header.
func TestSameName(t *testing.T) {
	le := binary.LittleEndian
	b := btf.NewBuilder(le)
	root := b.Type("s", btf.KindStruct, false, 0, 8)
	proto := b.Type("", btf.KindFuncProto, false, 0, 0)
	fn := b.Type("helper", btf.KindFunc, false, 0, uint32(proto))
	access, text := b.String("0"), b.String(".text")
	ext := le.AppendUint32(nil, btf.Version<<16|btf.Magic)
	for _, v := range []uint32{
		32, 0, 4 + 8 + 2*8, 28, 0, 28, 4 + 8 + 2*16,
		8, text, 2, 0, uint32(fn), 16, uint32(fn),
		16, text, 2, 0, uint32(root), access, 8, 16, uint32(root), access, 8,
	} {
		ext = le.AppendUint32(ext, v)
	}
	mov, exit := []byte{0xb7, 0, 0, 0, 1, 0, 0, 0}, []byte{byte(bpfobj.OpExit), 0, 0, 0, 0, 0, 0, 0}
	static := elf.ST_INFO(elf.STB_LOCAL, elf.STT_FUNC)
	file := testelf.File{
		Order: le, Type: elf.ET_REL, Machine: elf.EM_BPF,
		Sections: []testelf.Section{
			{Name: ".text", Flags: elf.SHF_EXECINSTR, Data: slices.Concat(mov, exit, mov, exit)},
			{Name: "kprobe/f", Flags: elf.SHF_EXECINSTR, Data: exit},
			{Name: ".BTF", Data: b.Bytes()},
			{Name: ".BTF.ext", Data: ext},
		},
		Symbols: []testelf.Symbol{
			{Name: "helper", Info: static},
			{Name: "helper", At: 16, Info: static},
			{Name: "f", Section: 1, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)},
		},
	}
	data, _ := file.Build()
	o, err := Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	if want := []bpfobj.Site{{Fn: 0}, {Fn: 1}}; !slices.Equal(o.Sites, want) {
		t.Errorf("records at %+v, want %+v", o.Sites, want)
	}
}
