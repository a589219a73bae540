// SPDX-License-Identifier: Apache-2.0

// Package testbtf builds BTF and BPF objects from a short notation. It is for tests only.
//
// Each line is a type:
//
//	int NAME SIZE [signed|bool]
//	struct NAME SIZE: MEMBER TYPE BYTE, MEMBER TYPE @BIT:WIDTH, …      union likewise
//	enum NAME SIZE: ENUMERATOR VALUE, …     enum64 likewise; signed after the size sets kind_flag
//	fwd NAME struct|union
//	typedef NAME TYPE
//	proto NAME TYPE: TYPE, …                the return type, then the parameters as TYPE or NAME TYPE
//	func NAME TYPE                          var, const and tag likewise; only other lines see the name of a const
//
// TYPE is a name, void, *TYPE, TYPE[N], or TYPE[N of INDEX TYPE]. The text after a #
// distinguishes types of one name; a name that begins with # is an anonymous type. int,
// u8, u32 and u64 are predefined. IDs are in the order of the lines.
package testbtf

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
)

// Types returns the BTF of types.
func Types(tb testing.TB, order binary.ByteOrder, types string) []byte {
	tb.Helper()
	return sketch(tb, order, types).builder.Bytes()
}

// Module returns the split BTF of a module on top of the BTF of vmlinux, whose types it can refer to.
func Module(tb testing.TB, order binary.ByteOrder, vmlinux, types string) []byte {
	tb.Helper()
	s := sketch(tb, order, vmlinux)
	base := s.builder.Bytes()
	s.add(types)
	all := s.builder.Bytes()
	const header = 24
	head := func(b []byte) (typeLen, strLen int) { return int(order.Uint32(b[12:])), int(order.Uint32(b[20:])) }
	baseTypes, baseStrs := head(base)
	typeLen, strLen := head(all)
	out := slices.Clone(all[:header])
	order.PutUint32(out[12:], uint32(typeLen-baseTypes))
	order.PutUint32(out[16:], uint32(typeLen-baseTypes))
	order.PutUint32(out[20:], uint32(strLen-baseStrs))
	out = append(out, all[header+baseTypes:header+typeLen]...)
	return append(out, all[header+typeLen+baseStrs:]...)
}

const ints = "int int 4 signed\nint u8 1\nint u32 4\nint u64 8\n"

// sketcher builds the types.
type sketcher struct {
	testing.TB
	builder *btf.Builder
	ids     map[string]btf.TypeID
	extra   []func() // the types of *TYPE and TYPE[N], which follow the named types
	next    btf.TypeID
}

func sketch(tb testing.TB, order binary.ByteOrder, types string) *sketcher {
	tb.Helper()
	s := &sketcher{TB: tb, builder: btf.NewBuilder(order), ids: map[string]btf.TypeID{"void": 0}}
	s.add(ints + types)
	return s
}

// add adds types to those that are there.
func (s *sketcher) add(types string) {
	s.Helper()
	s.extra = nil
	var lines [][]string // the part before the colon, then fields
	for line := range strings.Lines(types) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		head, fields, _ := strings.Cut(line, ": ")
		l := []string{strings.TrimSuffix(head, ":")}
		if fields != "" {
			l = append(l, strings.Split(fields, ", ")...)
		}
		lines = append(lines, l)
		s.next++
		s.ids[strings.Fields(l[0])[1]] = s.next
	}
	for _, l := range lines {
		s.line(strings.Fields(l[0]), l[1:])
	}
	for i := 0; i < len(s.extra); i++ { // each may add another
		s.extra[i]()
	}
}

func (s *sketcher) line(head, fields []string) {
	name, _, _ := strings.Cut(head[1], "#")
	arg := func(i int) string {
		if i < len(head) {
			return head[i]
		}
		return ""
	}
	switch head[0] {
	case "int":
		size := s.num(arg(2))
		s.builder.Type(name, btf.KindInt, false, 0, size)
		s.builder.Word(map[string]uint32{"signed": btf.IntSigned, "bool": btf.IntBool}[arg(3)]<<24 | size*8)
	case "struct", "union":
		kind := map[string]btf.Kind{"struct": btf.KindStruct, "union": btf.KindUnion}[head[0]]
		flag := slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, "@") })
		s.builder.Type(name, kind, flag, len(fields), s.num(arg(2)))
		for _, f := range fields {
			w := strings.Fields(f)
			member, _, _ := strings.Cut(w[0], "#")
			at, typ := w[len(w)-1], strings.Join(w[1:len(w)-1], " ")
			word := uint32(0)
			if bit, width, ok := strings.Cut(strings.TrimPrefix(at, "@"), ":"); ok {
				word = s.num(width)<<24 | s.num(bit)
			} else {
				word = s.num(at) * 8
			}
			s.builder.Word(s.builder.String(member), uint32(s.id(typ)), word)
		}
	case "enum", "enum64":
		kind := map[string]btf.Kind{"enum": btf.KindEnum, "enum64": btf.KindEnum64}[head[0]]
		s.builder.Type(name, kind, arg(3) == "signed", len(fields), s.num(arg(2)))
		for _, f := range fields {
			w := strings.Fields(f)
			v, err := strconv.ParseUint(w[1], 0, 64)
			if err != nil {
				s.Fatal(err)
			}
			if s.builder.Word(s.builder.String(w[0]), uint32(v)); kind == btf.KindEnum64 {
				s.builder.Word(uint32(v >> 32))
			}
		}
	case "fwd":
		s.builder.Type(name, btf.KindFwd, arg(2) == "union", 0, 0)
	case "typedef":
		s.builder.Type(name, btf.KindTypedef, false, 0, uint32(s.id(strings.Join(head[2:], " "))))
	case "proto":
		s.builder.Type("", btf.KindFuncProto, false, len(fields), uint32(s.id(arg(2))))
		for _, f := range fields {
			param := ""
			if before, typ, ok := strings.Cut(f, " "); ok && !strings.Contains(f, " of ") {
				param, f = before, typ
			}
			s.builder.Word(s.builder.String(param), uint32(s.id(f)))
		}
	case "func", "const", "tag":
		kind := map[string]btf.Kind{"func": btf.KindFunc, "const": btf.KindConst, "tag": btf.KindTypeTag}[head[0]]
		if kind == btf.KindConst {
			name = ""
		}
		s.builder.Type(name, kind, false, 0, uint32(s.id(arg(2))))
	case "var":
		s.builder.Type(name, btf.KindVar, false, 0, uint32(s.id(arg(2))))
		s.builder.Word(1) // global
	default:
		s.Fatalf("no such line: %s", head)
	}
}

// id returns the ID of a TYPE.
func (s *sketcher) id(typ string) btf.TypeID {
	if id, ok := s.ids[typ]; ok {
		return id
	}
	s.next++
	id := s.next
	s.ids[typ] = id
	if to, ok := strings.CutPrefix(typ, "*"); ok {
		s.extra = append(s.extra, func() { s.builder.Type("", btf.KindPtr, false, 0, uint32(s.id(to))) })
		return id
	}
	open := strings.LastIndexByte(typ, '[')
	if open < 0 {
		s.Fatalf("no type %s", typ)
	}
	n, index, ok := strings.Cut(strings.TrimSuffix(typ[open+1:], "]"), " of ")
	if !ok {
		index = "u64"
	}
	s.extra = append(s.extra, func() {
		s.builder.Type("", btf.KindArray, false, 0, 0)
		s.builder.Word(uint32(s.id(typ[:open])), uint32(s.id(index)), s.num(n))
	})
	return id
}

func (s *sketcher) num(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		s.Fatal(err)
	}
	return uint32(n)
}
