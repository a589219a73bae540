// SPDX-License-Identifier: Apache-2.0

package testbtf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// Object returns a BPF object with local types and the relocations in asks, one per line
// in the format of logs ("byte_off struct foo.a[2]"). A line "program NAME" begins the
// next program, "function NAME" begins a function in .text, and "call NAME" calls such a
// function. Offsets belong to loads of 4 bytes, and other values to loads of 64-bit
// immediates. Instructions have the operands, one for each relocation, or 0; loaders
// check that they have the local value. Names include their flavors.
func Object(tb testing.TB, order binary.ByteOrder, types, asks string, operands ...uint64) []byte {
	tb.Helper()
	o := &object{sketcher: sketch(tb, order, types), order: order, operands: operands}
	local, err := btf.New(o.builder.Bytes(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	o.local = local
	o.file = testelf.File{Order: order, Type: elf.ET_REL, Machine: elf.EM_BPF, Tail: true}
	o.next++
	o.proto = o.builder.Type("", btf.KindFuncProto, false, 0, uint32(o.ids["int"]))
	for line := range strings.Lines(asks) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "program "); ok {
			o.program(name, "kprobe/"+name)
		} else if name, ok := strings.CutPrefix(line, "function "); ok {
			o.program(name, ".text")
		} else if name, ok := strings.CutPrefix(line, "call "); ok {
			o.call(name)
		} else if line != "" {
			o.ask(line)
		}
	}
	return o.build()
}

// object builds an object.
type object struct {
	*sketcher
	order    binary.ByteOrder
	local    *btf.BTF
	file     testelf.File
	proto    btf.TypeID
	operands []uint64 // unused ones
	programs []program
}

// program is a function in its own section or in .text.
type program struct {
	name    string
	section string
	id      btf.TypeID
	code    []byte
	relos   []uint32 // four words each, as in .BTF.ext
	calls   []call
}

// call is an instruction, by its offset in the code, that calls a function.
type call struct {
	at   uint32
	name string
}

func (o *object) program(name, section string) {
	id := o.builder.Type(name, btf.KindFunc, false, 1, uint32(o.proto))
	o.programs = append(o.programs, program{name: name, section: section, id: id})
}

// call adds a call of a function.
func (o *object) call(name string) {
	p := &o.programs[len(o.programs)-1]
	p.calls = append(p.calls, call{uint32(len(p.code)), name})
	p.code = append(p.code, 0x85, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff) // call -1
	if o.order == binary.BigEndian {
		p.code[len(p.code)-7] = 0x01
	}
}

// ask adds a relocation and its instruction.
func (o *object) ask(line string) {
	if len(o.programs) == 0 {
		o.program("main", "kprobe/main")
	}
	kind, rest, _ := strings.Cut(line, " ")
	n, ok := kinds[kind]
	if !ok {
		o.Fatalf("no kind of relocation: %s", line)
	}
	id, access := o.access(rest, strings.HasPrefix(kind, "enumval"))
	p := &o.programs[len(o.programs)-1]
	p.relos = append(p.relos, uint32(len(p.code)), uint32(id), o.builder.String(access), n)
	var v uint64
	if len(o.operands) > 0 {
		v, o.operands = o.operands[0], o.operands[1:]
	}
	var code [16]byte
	if kind == "byte_off" {
		code[0] = 0x61 // r0 = *(u32 *)(r0 + off)
		o.order.PutUint16(code[2:], uint16(v))
		p.code = append(p.code, code[:8]...)
		return
	}
	code[0] = 0x18 // r0 = imm64
	o.order.PutUint32(code[4:], uint32(v))
	o.order.PutUint32(code[12:], uint32(v>>32))
	p.code = append(p.code, code[:]...)
}

var kinds = map[string]uint32{
	"byte_off": 0, "byte_sz": 1, "field_exists": 2, "signed": 3, "lshift_u64": 4, "rshift_u64": 5, "local_type_id": 6,
	"target_type_id": 7, "type_exists": 8, "type_size": 9, "enumval_exists": 10, "enumval_value": 11, "type_matches": 12,
}

var step = regexp.MustCompile(`\.\w+|\[\d+\]`)

// access returns the type and the access string of "struct foo.a[2]".
func (o *object) access(text string, enumerator bool) (btf.TypeID, string) {
	typ := text[strings.LastIndexByte(text, ' ')+1:]
	if name, value, ok := strings.Cut(typ, "::"); ok && enumerator {
		id := o.id(name)
		t := o.local.Type(id)
		for i := range t.Vlen() {
			if o.local.NameIs(t.Enumerator(i).NameOff, value) {
				return id, strconv.Itoa(int(i))
			}
		}
		o.Fatalf("no enumerator in %s", text)
	}
	name := typ
	if i := strings.IndexAny(typ, ".["); i >= 0 {
		name = typ[:i]
	}
	id := o.id(name)
	steps, access := step.FindAllString(typ[len(name):], -1), "0"
	if len(steps) > 0 && steps[0][0] == '[' {
		access, steps = strings.Trim(steps[0], "[]"), steps[1:]
	}
	t, _ := o.local.SkipMods(id)
	for _, s := range steps {
		if s[0] == '[' {
			access += ":" + strings.Trim(s, "[]")
			t, _ = o.local.SkipMods(t.Array().Elem)
			continue
		}
		more, next, ok := o.member(t, s[1:])
		if !ok {
			o.Fatalf("no member %s: %s", s, text)
		}
		access, t = access+more, next
	}
	return id, access
}

// member finds a member, also inside anonymous members.
func (o *object) member(t btf.Type, name string) (access string, next btf.Type, ok bool) {
	for i := range t.Vlen() {
		m := t.Member(i)
		next, _ = o.local.SkipMods(m.Type)
		if o.local.NameIs(m.NameOff, name) {
			return fmt.Sprintf(":%d", i), next, true
		}
		if o.local.NameIs(m.NameOff, "") && next.Kind().IsComposite() {
			if more, in, ok := o.member(next, name); ok {
				return fmt.Sprintf(":%d%s", i, more), in, true
			}
		}
	}
	return "", t, false
}

// build writes sections, symbols, .BTF and .BTF.ext.
func (o *object) build() []byte {
	word := func(b []byte, vs ...uint32) []byte {
		for _, v := range vs {
			b, _ = binary.Append(b, o.order, v) // cannot fail for a number
		}
		return b
	}
	funcs, lines, relos := word(nil, 8), word(nil, 16), word(nil, 16) // sizes of records
	global := func(t elf.SymType) byte { return elf.ST_INFO(elf.STB_GLOBAL, t) }
	symbols := make(map[string]uint64) // numbers, by name
	for i, p := range o.programs {
		symbols[p.name] = uint64(i) + 1
	}
	var calls []testelf.Section
	for first := 0; first < len(o.programs); {
		section := o.programs[first].section
		end := first + 1
		for end < len(o.programs) && o.programs[end].section == section {
			end++
		}
		n := uint32(end - first)
		number := len(o.file.Sections)
		name := o.builder.String(section)
		funcs, lines = word(funcs, name, n), word(lines, name, n)
		var code, rels []byte
		var all []uint32
		for i, p := range o.programs[first:end] {
			at := uint32(len(code))
			code = append(append(code, p.code...), 0x95, 0, 0, 0, 0, 0, 0, 0) // exit
			o.file.Symbols = append(o.file.Symbols, testelf.Symbol{Name: p.name, Section: number, At: uint64(at), Size: uint64(len(code)) - uint64(at), Info: global(elf.STT_FUNC)})
			funcs = word(funcs, at, uint32(p.id))
			lines = word(lines, at, o.builder.String("test.bpf.c"), 0, uint32(first+i+1)<<10)
			for k := 0; k < len(p.relos); k += 4 {
				all = append(all, p.relos[k]+at, p.relos[k+1], p.relos[k+2], p.relos[k+3])
			}
			for _, c := range p.calls {
				if symbols[c.name] == 0 {
					o.Fatalf("no function %s", c.name)
				}
				rels, _ = binary.Append(rels, o.order, []uint64{uint64(at + c.at), symbols[c.name]<<32 | 10})
			}
		}
		o.file.Sections = append(o.file.Sections, testelf.Section{Name: section, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code})
		if rels != nil {
			calls = append(calls, testelf.Section{Name: ".rel" + section, Type: elf.SHT_REL, Info: uint32(number) + 1, Data: rels})
		}
		relos = word(word(relos, name, uint32(len(all)/4)), all...)
		first = end
	}
	license := []byte("GPL\x00")
	o.file.Symbols = append(o.file.Symbols, testelf.Symbol{Name: "_license", Section: len(o.file.Sections), Size: uint64(len(license)), Info: global(elf.STT_OBJECT)})
	o.file.Sections = append(o.file.Sections, testelf.Section{Name: "license", Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Data: license})

	ext, _ := binary.Append(nil, o.order, []uint16{0xeb9f, 1})
	if o.order == binary.BigEndian {
		ext[2], ext[3] = 1, 0 // version and flags are bytes
	}
	nf, nl, nr := uint32(len(funcs)), uint32(len(lines)), uint32(len(relos))
	ext = word(ext, 32, 0, nf, nf, nl, nf+nl, nr)
	ext = append(append(append(ext, funcs...), lines...), relos...)
	o.file.Sections = append(o.file.Sections, calls...)
	o.file.Sections = append(o.file.Sections, testelf.Section{Name: ".BTF", Data: o.builder.Bytes()}, testelf.Section{Name: ".BTF.ext", Data: ext})
	data, _ := o.file.Build()
	return data
}
