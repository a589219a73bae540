// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
)

// trust is how far the verifier trusts a pointer to a struct of the kernel: the flags PTR_TRUSTED, MEM_RCU and PTR_UNTRUSTED of a
// PTR_TO_BTF_ID in kernel/bpf/verifier.c.
type trust uint8

const (
	plain     trust = iota // none of the flags: helpers take it
	trusted                // valid as long as the program runs
	guarded                // valid as long as an RCU section lasts
	untrusted              // only reads through it are possible
)

// pointer is what the verifier knows of a pointer to a struct of the kernel.
type pointer struct {
	to     btf.Type
	known  bool // if not, the other fields are not valid
	trust  trust
	null   bool   // it may be null, until it is compared with 0
	tag    string // the tag of its memory, "user" or "percpu"; "" for the kernel's memory
	member string // in words: the member that it was loaded from, or an earlier one that made it untrusted
}

// The verifier lists members of structs as members of other structs, which are in the BTF. For example, struct file__safe_trusted has the
// members of struct file whose pointers are trusted (type_is_trusted in kernel/bpf/verifier.c).
const (
	safe              = "__safe_"
	safeTrusted       = "__safe_trusted"
	safeTrustedOrNull = "__safe_trusted_or_null"
	safeRCU           = "__safe_rcu"
	safeRCUOrNull     = "__safe_rcu_or_null"
)

// readSafe keeps a struct that is one of the verifier's lists.
func (k *Inventory) readSafe(b *btf.BTF, t *btf.Type) {
	if name := t.Name(); bytes.Contains(name, []byte(safe)) {
		if k.safe == nil {
			k.safe = make(map[string]symbol)
		}
		k.safe[string(name)] = symbol{view: b, id: t.ID}
	}
}

// lists reports whether the verifier's list with a suffix has a member of a struct (btf_nested_type_is_trusted in kernel/bpf/btf.c).
func (k *Inventory) lists(suffix string, of btf.Type, w *loaded) bool {
	y, ok := k.safe[string(of.Name())+suffix]
	if !ok {
		return false
	}
	t := y.typ()
	for i := range t.Vlen() {
		m := t.Member(i)
		of := t.BTF().Type(m.Type)
		if of.Kind() == btf.KindPtr && t.BTF().NameIs(m.NameOff, w.member) {
			to, ok := t.BTF().SkipMods(of.Ref())
			return ok && to.ID == w.to.ID
		}
	}
	return false
}

// loaded is a pointer to a struct that a struct has.
type loaded struct {
	to     btf.Type
	member string
	tag    string
	union  bool // the member is in a union with other members
}

// walk returns the pointer at an offset of a struct, false if there is none, or it is not known: btf_struct_walk in kernel/bpf/btf.c.
func walk(t btf.Type, off, size uint64) (w loaded, ok bool) {
	const deepest = 32 // nesting of structs
	for range deepest {
		w.union = w.union || t.Kind() == btf.KindUnion && t.Vlen() != 1
		if off+size > uint64(t.Size()) {
			return w, false
		}
		m, at, ok := memberAt(t, off, size)
		if !ok {
			return w, false
		}
		b := t.BTF()
		of, each, ok := elementOf(b, m.Type)
		if !ok {
			return w, false
		}
		off = (off - at) % each
		switch {
		case of.Kind().IsComposite():
			t = of
			continue
		case of.Kind() != btf.KindPtr || off != 0 || each != size || of.Ref() == 0:
			return w, false
		}
		if tag := b.Type(of.Ref()); tag.Kind() == btf.KindTypeTag {
			w.tag = string(tag.Name())
		}
		w.to, ok = b.SkipMods(of.Ref())
		w.member = string(b.Name(m.NameOff))
		return w, ok && w.to.Kind().IsComposite()
	}
	return w, false
}

// memberAt returns the first member of a struct that has some bytes, and where it begins.
func memberAt(t btf.Type, off, size uint64) (m btf.Member, at uint64, ok bool) {
	for i := range t.Vlen() {
		m = t.Member(i)
		at = uint64(m.BitOffset / 8)
		if off < at {
			return m, at, false
		}
		if m.BitSize != 0 {
			if end := (uint64(m.BitOffset) + uint64(m.BitSize) + 7) / 8; off == at && end <= off+size {
				return m, at, false
			}
			continue
		}
		whole, err := t.BTF().SizeOf(m.Type)
		if err != nil {
			return m, at, false
		}
		if off < at+uint64(whole) {
			return m, at, true
		}
	}
	return m, at, false
}

// walker follows the pointers that a program loads from structs of the kernel.
type walker struct {
	*Evaluation
	walks   *flow.Walks
	checks  bool      // the verifier distinguishes whether it trusts pointers
	section bool      // the program is always in an RCU section, or may be
	steps   []pointer // by the index in walks.Steps
}

// protectors are kfuncs that begin a section without sleep in programs that may sleep.
var protectors = []string{
	"bpf_rcu_read_lock", "bpf_preempt_disable", "bpf_local_irq_save", "bpf_res_spin_lock", "bpf_res_spin_lock_irqsave",
}

// walks judges what program number n of the object does with pointers that it loads from structs of the kernel: check_ptr_to_btf_access and
// check_reg_type in kernel/bpf/verifier.c.
func (e *Evaluation) walks(n int) (l []absence) {
	walks := &e.o.walks[n]
	if len(walks.Uses) == 0 || e.pr.Attach == nil {
		return nil
	}
	w := walker{Evaluation: e, walks: walks, checks: e.k.has(facts.TrustedPointers), section: !maySleep(e.pr.Attach)}
	w.section = w.section || e.o.called[n].has(int64(asm.FnSpinLock)) ||
		slices.ContainsFunc(protectors, func(name string) bool { return e.o.refers[n][name] })
	w.follow()
	for i := range walks.Uses {
		u := &walks.Uses[i]
		p := &w.steps[u.From]
		if !p.known {
			continue
		}
		f := Finding{}
		if u.Given != 0 {
			f = w.given(u, p)
		} else {
			f = w.access(u, p)
		}
		if f.Status != OK {
			f.Source = e.o.Source(u.At)
			l = append(l, absence{at: u.At, f: f})
		}
	}
	return l
}

// access judges an access through a pointer.
func (w *walker) access(u *flow.WalkUse, p *pointer) (f Finding) {
	switch off, ok := w.offset(&u.Place); {
	case !ok:
	case p.tag != "":
		f = Finding{
			Status: Fails, Code: ContextTagged,
			Args: Args{Name: p.tag, Decided: ByWitness, Witness: "!type tag " + p.tag},
		}
	case u.Write && w.hook != nil:
		f = Finding{Status: Fails, Code: ContextWrite}
	case p.null && !u.Checked:
		f = w.mayBeNull()
	default:
		size := u.Size
		if u.Record[1] != 0 { // the loader may change the width
			size = 0
		}
		if f = w.unlicensed(); f.Status == OK {
			f = w.member(p.to, new(flow.Access), off, size)
		}
	}
	f.Subject = p.member
	return f
}

// given judges a pointer that a helper is given.
func (w *walker) given(u *flow.WalkUse, p *pointer) (f Finding) {
	id := w.o.Funcs[u.At.Fn].Insns[u.At.Insn].Imm
	switch {
	case w.k.lacksHelper(id):
	case p.trust == untrusted:
		f = Finding{
			Status: Fails, Code: ContextUntrusted, Subject: facts.HelperName(id),
			Args: Args{Name: p.member, Decided: ByWitness, Witness: "!" + trustWitness},
		}
	case p.null && !u.Checked && !facts.HelperNumbered(id).MayBeNull(facts.CallersName(w.pr.Attach.ProgType, w.pr.Attach.Type)):
		f = w.mayBeNull()
		f.Subject = p.member
	}
	return f
}

// trustWitness is in the BTF of kernels that distinguish trusted pointers.
const trustWitness = "struct task_struct" + safeRCU

// mayBeNull is the finding on a pointer that may be null.
func (w *walker) mayBeNull() Finding {
	return Finding{Status: Fails, Code: ContextNull, Args: Args{Decided: ByWitness, Witness: "!" + trustWitness}}
}

// offset returns the offset of a place on the kernel.
func (w *walker) offset(p *flow.Place) (off int64, ok bool) {
	off = p.Off
	for _, r := range p.Records() {
		v, ok := w.decisions.value(r)
		if !ok {
			return 0, false
		}
		off += int64(v)
	}
	return off, off >= 0
}

// follow finds what the verifier knows of all pointers.
func (w *walker) follow() {
	w.steps = make([]pointer, len(w.walks.Steps))
	for i := range w.walks.Steps {
		s := &w.walks.Steps[i].Place
		from := w.start(s)
		if s.From >= 0 {
			from = w.steps[s.From]
		}
		off, ok := w.offset(s)
		if !ok || !from.known || from.tag != "" {
			continue
		}
		size := uint64(8)
		if len(s.Records()) > 0 { // the loader changes the width
			size = uint64(w.k.pointer)
		}
		if to, ok := walk(from.to, uint64(off), size); ok {
			w.steps[i] = w.next(&from, &to)
		}
	}
}

// start returns the pointer that is an argument of the program or the result of a helper.
func (w *walker) start(s *flow.Place) (p pointer) {
	if s.From >= 0 {
		return p
	}
	if s.Helper != 0 {
		if y, ok := w.k.find(facts.HelperNumbered(int64(s.Helper)).Result, btf.KindStruct); ok && y.module == "" {
			p = pointer{to: y.typ(), known: true}
		}
		if s.Helper == int32(asm.FnGetCurrentTaskBtf) {
			p.trust = trusted
		}
		return p
	}
	if w.hook == nil || w.hook.wide(int(s.Arg)) {
		return p
	}
	t, refused := w.hook.slot(int(s.Arg))
	if refused.Status != OK || t.Kind() != btf.KindPtr || t.Ref() == 0 || w.hook.tagOf(t) != "" {
		return p
	}
	p.to, p.known = w.hook.view.SkipMods(t.Ref())
	p.known = p.known && p.to.Kind().IsComposite()
	switch w.pr.Attach.Kind { // prog_args_trusted in kernel/bpf/btf.c
	case bpfobj.AttachBTFTP:
		p.trust = trusted
	case bpfobj.AttachLSM:
		if !facts.HookNamed(w.hook.lsm()).Untrusted {
			p.trust = trusted
		}
	}
	return p
}

// next returns what the verifier knows of a pointer that is loaded through another one.
func (w *walker) next(from *pointer, to *loaded) pointer {
	p := pointer{to: to.to, known: true, member: fmt.Sprintf("%s of struct %s", to.member, from.to.Name())}
	if to.tag == "user" || to.tag == "percpu" {
		p.tag = to.tag
	}
	if !w.checks {
		return p
	}
	if to.union {
		p.trust = untrusted
	}
	in := func(suffix string) bool { return w.k.lists(suffix, from.to, to) }
	switch {
	case from.trust == untrusted:
		p.trust, p.member = untrusted, from.member
	case from.trust == plain || to.union:
	case in(safeTrusted):
		p.trust = trusted
	case in(safeTrustedOrNull):
		p.trust, p.null = trusted, true
	case !w.section:
		p.trust = untrusted
	case in(safeRCU):
		p.trust = guarded
	case in(safeRCUOrNull), to.tag == "rcu":
		p.trust, p.null = guarded, true
	}
	return p
}
