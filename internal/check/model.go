package check

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// model is what a program sees of the function or tracepoint that it is
// attached to: the kernel hands it an array of the arguments and, after the
// function returned, of its result.
type model struct {
	text  string   // as in C
	slots []string // by position: what a program that reads it depends upon
}

// modelOf makes the model of a FUNC_PROTO. A tracepoint's first parameter is
// not shown to programs.
func modelOf(b *rawbtf.BTF, id btfenc.TypeID, kind bpfprog.AttachKind, section string) *model {
	m := &model{text: prototype(b, id)}
	t := b.Type(id)
	if t.Kind() != btfenc.KindFuncProto {
		return m
	}
	first := uint32(0)
	if kind == bpfprog.AttachBTFTP {
		first = 1
	}
	for i := first; i < t.Vlen(); i++ {
		m.slots = append(m.slots, abi(b, t.Param(i).Type))
	}
	if kind != bpfprog.AttachBTFTP && !strings.HasPrefix(section, "fentry") {
		m.slots = append(m.slots, "result "+abi(b, t.Ref()))
	}
	return m
}

// abi is a type as far as a program notices: numbers by size and sign,
// pointers by what they point to.
func abi(b *rawbtf.BTF, id btfenc.TypeID) string {
	t, ok := b.SkipMods(id)
	if !ok {
		return "?"
	}
	switch k := t.Kind(); {
	case k == btfenc.KindInt:
		return fmt.Sprintf("int %d %d", t.Size(), t.IntEncoding()&btfenc.IntSigned)
	case k.IsAnyEnum():
		return fmt.Sprintf("int %d", t.Size())
	case k == btfenc.KindPtr:
		p, _ := b.SkipMods(t.Ref())
		if p.Kind().IsComposite() || p.Kind() == btfenc.KindFwd {
			return "ptr " + string(p.Name())
		}
		return "ptr"
	case k.IsComposite():
		return fmt.Sprintf("struct %s %d", t.Name(), t.Size())
	}
	return t.Kind().String()
}

// differs reports whether a program that reads the slots in mask can tell the
// models apart.
func (m *model) differs(o *model, mask uint64) bool {
	for i := range max(len(m.slots), len(o.slots)) {
		if mask&(1<<min(i, 63)) == 0 {
			continue
		}
		if i >= len(m.slots) || i >= len(o.slots) || m.slots[i] != o.slots[i] {
			return true
		}
	}
	return false
}
