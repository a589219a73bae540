package check

import "github.com/btfgen/btfgen/internal/rawbtf"

// compatible reports whether a type of an object may stand for a kernel's, by
// libbpf's rules for externs: the kinds agree all along, names do not count.
func compatible(l *rawbtf.BTF, lid rawbtf.TypeID, k *rawbtf.BTF, kid rawbtf.TypeID) bool {
	c := comparison{local: l, kernel: k, left: maxPairs}
	return c.compatible(lid, kid, 0)
}

// comparison is of two types in depth. maxPairs bounds how many pairs it looks
// at: a prototype can have itself for each of its parameters.
type comparison struct {
	local, kernel *rawbtf.BTF
	left          int
}

const maxPairs = 10_000

func (c *comparison) compatible(lid, kid rawbtf.TypeID, depth int) bool {
	a, ok1 := c.local.SkipMods(lid)
	b, ok2 := c.kernel.SkipMods(kid)
	if c.left--; c.left < 0 || depth > 32 || !ok1 || !ok2 {
		return false
	}
	if !a.Kind().Compat(b.Kind()) {
		return false
	}
	switch a.Kind() {
	case rawbtf.KindPtr:
		return c.compatible(a.Ref(), b.Ref(), depth+1)
	case rawbtf.KindArray:
		return c.compatible(a.Array().Elem, b.Array().Elem, depth+1)
	case rawbtf.KindFuncProto:
		if a.Vlen() != b.Vlen() {
			return false
		}
		for i := range a.Vlen() {
			if !c.compatible(a.Param(i).Type, b.Param(i).Type, depth+1) {
				return false
			}
		}
		return c.compatible(a.Ref(), b.Ref(), depth+1)
	}
	return true
}
