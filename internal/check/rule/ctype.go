// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
)

// prototype writes a type as in C, functions without names of parameters.
func prototype(b *btf.BTF, id btf.TypeID) string {
	w := cWriter{b, maxTypes}
	return w.name(id, 0)
}

// cWriter writes types as in C, maxTypes of them.
type cWriter struct {
	b    *btf.BTF
	left int
}

const maxTypes = 200

func (w *cWriter) name(id btf.TypeID, depth int) string {
	t := w.b.Type(id)
	if w.left--; w.left < 0 || depth > 8 {
		return "…"
	}
	switch k := t.Kind(); {
	case k == btf.KindVoid:
		return "void"
	case k == btf.KindPtr:
		to := w.name(t.Ref(), depth+1)
		if strings.HasSuffix(to, "*") {
			return to + "*"
		}
		return to + " *"
	case k == btf.KindConst:
		return "const " + w.name(t.Ref(), depth+1)
	case k.IsMod():
		return w.name(t.Ref(), depth+1)
	case k.IsComposite() || k.IsAnyEnum() || k == btf.KindFwd:
		word := "struct "
		if k == btf.KindUnion || k == btf.KindFwd && t.KindFlag() {
			word = "union "
		} else if k.IsAnyEnum() {
			word = "enum "
		}
		if t.NameOff == 0 {
			return word + "{…}"
		}
		return word + string(t.Name())
	case k == btf.KindArray:
		return fmt.Sprintf("%s[%d]", w.name(t.Array().Elem, depth+1), t.Array().Nelems)
	case k == btf.KindFuncProto:
		var l []string
		for i := range min(t.Vlen(), maxTypes) {
			if p := t.Param(i); p.Type == 0 {
				l = append(l, "...")
			} else {
				l = append(l, w.name(p.Type, depth+1))
			}
		}
		if len(l) == 0 {
			l = []string{"void"}
		}
		return w.name(t.Ref(), depth+1) + " (" + strings.Join(l, ", ") + ")"
	}
	return string(t.Name())
}
