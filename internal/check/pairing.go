// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/btfgen/btfgen/internal/bpfprog"
)

// pairing is one object on one kernel: what its programs have in common there.
// It is for one goroutine at a time.
type pairing struct {
	o        *Object
	k        *inventory
	loader   decisions
	settable func(variable string) bool

	whole []Finding // on what the object needs, whichever program is loaded

	keys     map[int][sha256.Size]byte // of functions
	externs  map[*bpfprog.Extern]lack
	work     int // of the explorations of its programs so far
	findings int // on their code so far
}

// lack is why an extern cannot be used; why is empty if it can.
type lack struct {
	topic Topic
	why   string
	needs string // what has to be there so that it can
}

// missing looks for a kfunc or a typed ksym, once.
func (p *pairing) missing(x *bpfprog.Extern) lack {
	l, ok := p.externs[x]
	if !ok {
		l = p.k.missing(p.o, x)
		if p.externs == nil {
			p.externs = make(map[*bpfprog.Extern]lack)
		}
		p.externs[x] = l
	}
	return l
}

// hasKsym reports whether the kernel has what an extern asks for. An untyped
// one may be any symbol, which BTF does not list.
func (p *pairing) hasKsym(x *bpfprog.Extern) bool { return x.Type == 0 || p.missing(x).why == "" }

// codeKey identifies all that the findings on a program's code depend on, but for
// the values of the records that an exploration finds relevant, so that kernels
// share explorations. It is a hash, because the whole takes more memory than the
// findings.
func (e *evaluation) codeKey() [sha256.Size]byte {
	b := fmt.Appendf(nil, "%v%v", e.k.features, e.kind)
	for _, fn := range e.pr.Funcs {
		key := e.funcKey(fn)
		b = append(b, key[:]...)
	}
	return sha256.Sum256(b)
}

// funcKey is codeKey for one function, which several programs may have.
func (p *pairing) funcKey(fn int) [sha256.Size]byte {
	if key, ok := p.keys[fn]; ok {
		return key
	}
	var b []byte
	for _, r := range p.o.recordsOf[fn] {
		b = p.loader.appendKey(b, int(r))
	}
	flag := func(yes bool) { b = strconv.AppendBool(append(b, ' '), yes) }
	var groups [bpfprog.NumGroups]bool
	for i := range p.o.uses[fn] {
		u := &p.o.uses[fn][i]
		x := p.o.extern(u.in)
		switch {
		case u.newer != nil:
			groups[u.newer.Group] = true
			groups[bpfprog.GroupAtomics] = groups[bpfprog.GroupAtomics] || u.newer.Group == bpfprog.GroupAcqRel
		case u.in.IsHelper():
			flag(p.k.lacksHelper(u.in.Imm))
			if isAttachCookie(u.in) {
				flag(p.k.lacks(enumLink, linkPerf))
			}
		case x.Kind == bpfprog.ExternKconfig:
			b = fmt.Appendf(b, " %v", p.k.kconfig(x.Name))
		case x.Kind == bpfprog.ExternKsym:
			if x.Type != 0 { // an untyped one may be any symbol
				b = fmt.Appendf(b, " %s", p.missing(x).why)
			}
		}
	}
	for g := range bpfprog.NumGroups {
		if groups[g] {
			b = append(b, ' ', byte('0'+p.k.knows(g)))
		}
	}
	if p.keys == nil {
		p.keys = make(map[int][sha256.Size]byte)
	}
	key := sha256.Sum256(b)
	p.keys[fn] = key
	return key
}
