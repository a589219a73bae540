// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// maxSpec is BPF_CORE_SPEC_MAX_LEN: how many levels a relocation may go down.
const maxSpec = 64

// Errors that end a relocation, as they end a load in libbpf.
var (
	errSpec    error = fault{Cause: relo.CauseAccess}
	errTooDeep error = fault{Cause: relo.CauseLevels, LocalNumber: maxSpec}
	errNesting error = fault{Cause: relo.CauseEndless}
	errAnon    error = fault{Cause: relo.CauseAnonymous}
	errKind    error = fault{Cause: relo.CauseRelocation}
)

// spec is a parsed relocation, on the local or on the target side. Raw has
// every level of nesting, acc the turning points only: named members and array
// elements (see the example in the package documentation).
type spec struct {
	btf    *btf.BTF
	root   btf.TypeID
	kind   relo.Kind
	access string // access string of the record
	acc    []accessor
	raw    []level
	bitOff uint32 // bits from the start of the root to the field, wraps like libbpf's
	err    error  // why it could not be parsed
}

// accessor is a turning point: member idx of a struct or union, element idx of
// an array (name is empty), or enumerator idx.
type accessor struct {
	typeID btf.TypeID // struct or union; for arrays the element type
	idx    uint32
	name   string
}

// level is one level of the raw spec. member says that idx is a member of
// typeID; otherwise it counts elements.
type level struct {
	typeID btf.TypeID
	idx    uint32
	member bool
}

// parseSpec follows the access string through the local types
// (bpf_core_parse_spec of libbpf). Errors are kept in the spec, because one bad
// record must not hide the others.
func parseSpec(btf *btf.BTF, kind relo.Kind, root btf.TypeID, access string) *spec {
	s := &spec{btf: btf, root: root, kind: kind, access: access}
	s.err = s.parse()
	return s
}

func (s *spec) parse() error {
	if s.root == 0 || int(s.root) >= s.btf.NumTypes() {
		return fault{Cause: relo.CauseNoType, LocalNumber: uint64(s.root)}
	}
	if s.kind >= relo.TypeMatches+1 {
		return errKind
	}
	if t := s.btf.Type(s.root); s.kind != relo.LocalTypeID && !t.Kind().Shape().Named && len(t.Name()) > 0 {
		// No compiler makes these. libbpf finds type tags by name; cilium/ebpf
		// fails on functions and variables if the kernel has them.
		return fault{Cause: relo.CauseTypeKind, Name: t.Kind().String()}
	}
	if s.kind.IsType() {
		if s.access != "0" {
			return errSpec
		}
		return nil
	}
	idx, err := parseAccess(s.access)
	if err != nil {
		return err
	}
	t, ok := s.btf.SkipMods(s.root)
	if !ok {
		return errNesting
	}
	if s.kind.IsEnumval() {
		if !t.Kind().IsAnyEnum() || len(idx) > 1 || idx[0] >= t.Vlen() {
			return errSpec
		}
		s.acc = []accessor{{t.ID, idx[0], string(s.btf.Name(t.Enumerator(idx[0]).NameOff))}}
		s.raw = []level{{t.ID, idx[0], true}}
		return nil
	}
	return s.parseField(idx, t)
}

func (s *spec) parseField(idx []uint32, t btf.Type) error {
	if err := s.element(t.ID, idx[0]); err != nil {
		return err
	}
	for _, i := range idx[1:] {
		switch k := t.Kind(); {
		case k.IsComposite():
			if i >= t.Vlen() {
				return errSpec
			}
			m := t.Member(i)
			s.bitOff += m.BitOffset
			s.raw = append(s.raw, level{t.ID, i, true})
			if name := s.btf.Name(m.NameOff); len(name) > 0 {
				s.acc = append(s.acc, accessor{t.ID, i, string(name)})
			}
			var ok bool
			if t, ok = s.btf.SkipMods(m.Type); !ok {
				return errNesting
			}
		case k == btf.KindArray:
			a := t.Array()
			if i >= a.Nelems && !s.flexible(a) {
				return fault{Cause: relo.CauseBound, Name: s.access, LocalNumber: uint64(a.Nelems)}
			}
			var ok bool
			if t, ok = s.btf.SkipMods(a.Elem); !ok {
				return errNesting
			}
			if err := s.element(t.ID, i); err != nil {
				return err
			}
		default:
			return fault{Cause: relo.CauseAccessKind, LocalNumber: uint64(len(s.raw)), Name: k.String()}
		}
	}
	return nil
}

// element adds the access to element i of an array of typeID.
func (s *spec) element(typeID btf.TypeID, i uint32) error {
	size, err := s.btf.SizeOf(typeID)
	if err != nil {
		return err
	}
	s.acc = append(s.acc, accessor{typeID, i, ""})
	s.raw = append(s.raw, level{typeID, i, false})
	s.bitOff += i * size * 8
	return nil
}

// flexible reports whether the array that the last accessor led to is a
// flexible one: without elements, and the last member of its struct
// (is_flex_arr of libbpf).
func (s *spec) flexible(a btf.Array) bool {
	last := &s.acc[len(s.acc)-1]
	if last.name == "" || a.Nelems > 0 {
		return false
	}
	return last.idx == s.btf.Type(last.typeID).Vlen()-1
}

// parseAccess splits "0:1:2".
func parseAccess(access string) ([]uint32, error) {
	parts := strings.Split(access, ":")
	if len(parts) > maxSpec {
		return nil, errTooDeep
	}
	idx := make([]uint32, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return nil, errSpec
		}
		idx[i] = uint32(n)
	}
	return idx, nil
}

// size returns the bytes of s's strings.
func (s *spec) size() int {
	n := len(s.access)
	for i := range s.acc {
		n += len(s.acc[i].name)
	}
	return n
}

// rawString returns the raw spec as in the access string: "0:1:2".
func (s *spec) rawString() string {
	if s.kind.IsType() {
		return "0"
	}
	var b strings.Builder
	for i, st := range s.raw {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(strconv.FormatUint(uint64(st.idx), 10))
	}
	return b.String()
}

// path returns the spec in names: "mm.pgd", "[2].comm[3]", or an enumerator.
func (s *spec) path() string {
	var b strings.Builder
	for i, a := range s.acc {
		switch {
		case a.name != "":
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(a.name)
		case i > 0 || a.idx > 0:
			fmt.Fprintf(&b, "[%d]", a.idx)
		}
	}
	return b.String()
}

// String returns kind and path: "byte_off struct task_struct.mm.pgd".
func (s *spec) String() string {
	return s.kind.String() + " " + s.localName()
}

func (s *spec) localName() string { return relo.Name(s.kind, typeName(s.btf.Type(s.root)), s.path()) }

// name returns the name that candidates need, in any flavor.
func (s *spec) name() string { return btf.Agreed(s.rootName()) }

func (s *spec) rootName() string {
	return string(s.btf.Type(s.root).Name())
}

func (s *spec) rootKind() btf.Kind {
	return s.btf.Type(s.root).Kind()
}

// dependsOnKernel reports whether loaders accept s and its result depends on the kernel.
func (s *spec) dependsOnKernel() bool {
	return s.err == nil && s.kind != relo.LocalTypeID && s.name() != ""
}
