package check

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// helperName is a helper's name in C.
func helperName(id int32) string {
	s := asm.BuiltinFunc(id).String()
	if !strings.HasPrefix(s, "Fn") {
		return fmt.Sprintf("#%d", id)
	}
	return fmt.Sprintf("bpf_%s", snake(s[2:]))
}

// snake turns MapLookupElem into map_lookup_elem.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func mapTypeName(kind uint32) string {
	if s := ebpf.MapType(kind).String(); !strings.Contains(s, "(") {
		return "BPF_MAP_TYPE_" + strings.ToUpper(snake(s))
	}
	return fmt.Sprintf("map type %d", kind)
}

// interfaces judges the types of maps, programs, attachments and links. Enums
// that a kernel's BTF does not have tell nothing.
func (e *evaluation) interfaces(prog int) {
	for i := range e.o.maps {
		m := &e.o.maps[i]
		if e.k.enums[enumMap] == nil || !contains(m.used, prog) && (len(m.used) > 0 || prog > 0) {
			continue
		}
		if !hasValue(e.k.enums[enumMap], uint64(m.kind)) {
			e.add(Finding{Status: Fails, Kind: KindMap, Subject: mapTypeName(m.kind), Reason: "the kernel has no such maps; used by " + m.name})
		}
	}
	if e.k.enums[enumHelper] == nil {
		e.add(Finding{Status: Unknown, Kind: KindAnalysis, Subject: "helpers", Reason: "the kernel's BTF does not list its helpers"})
	}
	s := sectionOf(e.pr.section)
	if s == nil {
		e.add(Finding{Status: Unknown, Kind: KindAnalysis, Subject: e.pr.section, Reason: "no program type goes by this section name"})
		return
	}
	if name := "BPF_PROG_TYPE_" + s.progType; e.lacks(enumProg, name) {
		e.add(Finding{Status: Fails, Kind: KindProg, Subject: name, Reason: "the kernel has no such programs"})
	}
	if s.attach != "" && e.lacks(enumAttach, s.attach) && !s.optional {
		e.add(Finding{Status: Fails, Kind: KindAttach, Subject: s.attach, Reason: "the kernel has no such attachment"})
	}
	e.links(s)
}

// links judges the types of links that attaching takes.
func (e *evaluation) links(s *section) {
	if s.kind == attachOps {
		e.opsLinks()
		return
	}
	l := linkTypes[s.attach]
	if l == "" || !e.lacks(enumLink, l) {
		return
	}
	f := Finding{Status: Fails, Kind: KindLink, Subject: l, Reason: "the kernel has no such links"}
	if l == linkTCX {
		f.Status, f.Reason = MayFail, f.Reason+"; the loader may know another way, such as a filter of tc"
	}
	e.add(f)
}

// opsLinks judges the maps of .struct_ops.link. The type of links is older
// than the way to make one, which came with a type of attachment.
func (e *evaluation) opsLinks() {
	const name, attach = "BPF_LINK_TYPE_STRUCT_OPS", "BPF_STRUCT_OPS"
	if !e.o.ops.link || !e.lacks(enumLink, name) && !e.lacks(enumAttach, attach) {
		return
	}
	f := Finding{Status: Fails, Kind: KindLink, Subject: name, Reason: "the kernel cannot link maps of .struct_ops.link"}
	if e.o.ops.plain {
		f.Status, f.Reason = MayFail, f.Reason+"; the program may be of one that is not linked"
	}
	e.add(f)
}

// cookieLink reports whether the program is of a kind that gets its cookie
// from the perf link that attaches it.
func (e *evaluation) cookieLink() bool {
	s := sectionOf(e.pr.section)
	if s == nil || linkTypes[s.attach] != "" {
		return false
	}
	return s.progType == "KPROBE" || s.progType == "TRACEPOINT" || s.progType == "PERF_EVENT"
}

const (
	linkPerf = "BPF_LINK_TYPE_PERF_EVENT"
	linkTCX  = "BPF_LINK_TYPE_TCX"
)

// linkTypes are the types of links that attachments cannot do without.
var linkTypes = map[string]string{
	"BPF_TRACE_KPROBE_MULTI":   "BPF_LINK_TYPE_KPROBE_MULTI",
	"BPF_TRACE_KPROBE_SESSION": "BPF_LINK_TYPE_KPROBE_MULTI",
	"BPF_TRACE_UPROBE_MULTI":   "BPF_LINK_TYPE_UPROBE_MULTI",
	"BPF_TRACE_UPROBE_SESSION": "BPF_LINK_TYPE_UPROBE_MULTI",
	"BPF_NETFILTER":            "BPF_LINK_TYPE_NETFILTER",
	"BPF_TCX_INGRESS":          linkTCX,
	"BPF_TCX_EGRESS":           linkTCX,
	"BPF_NETKIT_PRIMARY":       "BPF_LINK_TYPE_NETKIT",
	"BPF_NETKIT_PEER":          "BPF_LINK_TYPE_NETKIT",
}

// lacks reports that an enum is there and has no such name.
func (e *evaluation) lacks(enum int, name string) bool {
	m := e.k.enums[enum]
	_, ok := m[name]
	return m != nil && !ok
}

func (e *evaluation) add(f Finding) { e.out = append(e.out, f) }

func hasValue(m map[string]uint64, v uint64) bool {
	for n, x := range m {
		if x == v && !strings.HasPrefix(n, "__MAX") {
			return true
		}
	}
	return false
}

func contains(l []int, x int) bool {
	for _, y := range l {
		if x == y {
			return true
		}
	}
	return false
}

// externs judges what the loader looks for before it loads the program.
func (e *evaluation) externs() {
	seen := make(map[string]bool)
	e.eachUse(func(_ site, in *insn) {
		if in.ref.kind != refExtern || seen[in.ref.name] {
			return
		}
		seen[in.ref.name] = true
		x, ok := e.o.externs[in.ref.name]
		switch {
		case !ok:
			e.add(Finding{Status: Unknown, Kind: KindKsym, Subject: in.ref.name, Reason: "nothing says what it is"})
		case x.kconfig:
			if strings.HasPrefix(x.name, "CONFIG_") && !x.weak {
				e.add(Finding{Status: MayFail, Kind: KindKconfig, Subject: x.name, Reason: "must be set in the kernel's configuration, which BTF does not tell"})
			}
		case x.id == 0:
			if !x.weak {
				e.add(Finding{Status: MayFail, Kind: KindKsym, Subject: x.name, Reason: "must be in /proc/kallsyms, which BTF does not list"})
			}
		case !x.weak:
			if kind, why := e.k.resolve(e.o, &x); why != "" {
				e.add(Finding{Status: Fails, Kind: kind, Subject: x.name, Reason: why + "; loaders refuse the whole object"})
			}
		}
	})
}

// resolve looks for a kfunc or a typed ksym, and says why it cannot be used.
func (k *kernel) resolve(o *Object, x *extern) (Kind, string) {
	local := o.btf.Type(x.id)
	kind, what := KindKsym, local.Kind()
	if what == rawbtf.KindFunc {
		kind = KindKfunc
	}
	y, ok := k.find(string(rawbtf.Essential(x.name)), what)
	if !ok {
		if k.funcs == 0 && kind == KindKfunc {
			return kind, "the kernel's BTF has no functions at all"
		}
		return kind, fmt.Sprintf("the kernel's BTF has no %s of this name", map[Kind]string{KindKfunc: "function", KindKsym: "variable"}[kind])
	}
	t := y.typ()
	if !compatible(o.btf, local.Ref(), y.view, t.Ref()) {
		return kind, "the kernel has it as " + prototype(y.view, t.Ref())
	}
	return kind, ""
}

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

// prototype writes a type as in C, functions without names of parameters.
func prototype(b *rawbtf.BTF, id rawbtf.TypeID) string {
	w := cWriter{b, maxTypes}
	return w.name(id, 0)
}

// cWriter writes types as in C, maxTypes of them.
type cWriter struct {
	b    *rawbtf.BTF
	left int
}

const maxTypes = 200

func (w *cWriter) name(id rawbtf.TypeID, depth int) string {
	t := w.b.Type(id)
	if w.left--; w.left < 0 || depth > 8 {
		return "…"
	}
	switch k := t.Kind(); {
	case k == rawbtf.KindVoid:
		return "void"
	case k == rawbtf.KindPtr:
		to := w.name(t.Ref(), depth+1)
		if strings.HasSuffix(to, "*") {
			return to + "*"
		}
		return to + " *"
	case k == rawbtf.KindConst:
		return "const " + w.name(t.Ref(), depth+1)
	case k.IsMod():
		return w.name(t.Ref(), depth+1)
	case k.IsComposite() || k.IsAnyEnum() || k == rawbtf.KindFwd:
		word := "struct "
		if k == rawbtf.KindUnion || k == rawbtf.KindFwd && t.KindFlag() {
			word = "union "
		} else if k.IsAnyEnum() {
			word = "enum "
		}
		if t.NameOff == 0 {
			return word + "{…}"
		}
		return word + string(t.Name())
	case k == rawbtf.KindArray:
		return fmt.Sprintf("%s[%d]", w.name(t.Array().Elem, depth+1), t.Array().Nelems)
	case k == rawbtf.KindFuncProto:
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
