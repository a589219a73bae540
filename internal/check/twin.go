// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// twin is the first program of a run whose code is equal to a program's. Programs explore their twin instead of themselves, with
// their own records and externs, so that variants of one source share explorations. A program without an earlier one is its own
// twin.
type twin struct {
	o      *bpfobj.Object
	pr     *bpfobj.Program
	theirs map[int]int // functions of the twin by those of the program; nil where they are the same
	ours   map[int]int

	externs map[string]*bpfobj.Extern // of the program's object
}

// findTwins returns the twin of each program that has another one.
func findTwins(objects []*Object) map[*bpfobj.Program]*twin {
	first, twins := make(map[[sha256.Size]byte]*twin), make(map[*bpfobj.Program]*twin)
	for _, o := range objects {
		c := newContents(o.Object)
		externs := make(map[string]*bpfobj.Extern)
		for i := range o.Externs {
			externs[o.Externs[i].Name] = &o.Externs[i]
		}
		for i := range o.Programs {
			pr := &o.Programs[i]
			hash, ok := c.of(pr)
			t := first[hash]
			switch {
			case !ok || t != nil && t.pr == pr:
				continue
			case t == nil:
				first[hash] = &twin{o: o.Object, pr: pr}
				continue
			}
			w := &twin{t.o, t.pr, make(map[int]int), make(map[int]int), externs}
			for i, fn := range pr.Funcs {
				w.theirs[fn], w.ours[t.pr.Funcs[i]] = t.pr.Funcs[i], fn
			}
			twins[pr] = w
		}
	}
	return twins
}

// contents are hashes of what explorations depend on, besides what a kernel answers.
type contents struct {
	o     *bpfobj.Object
	funcs map[int]*content
	data  map[int][sha256.Size]byte
}

// content is a function: a hash of all but what it refers to, and what it refers to where that matters.
type content struct {
	hash [sha256.Size]byte
	refs []bpfobj.Ref
}

func newContents(o *bpfobj.Object) *contents {
	return &contents{o, make(map[int]*content), make(map[int][sha256.Size]byte)}
}

// of returns a hash of a program's code; false if it refers to a function that is not one of the program's.
func (c *contents) of(pr *bpfobj.Program) (sum [sha256.Size]byte, ok bool) {
	at, sections := make(map[int]int), make(map[int]int) // in pr.Funcs, and by the first reference
	for i, fn := range pr.Funcs {
		at[fn] = i
	}
	b := fmt.Append(nil, c.o.Order)
	for _, fn := range pr.Funcs {
		f := c.function(fn)
		b = append(b, f.hash[:]...)
		for _, r := range f.refs {
			switch n := r.N(); r.Kind() {
			case bpfobj.RefData:
				place, again := sections[n]
				if !again {
					place = len(sections)
					sections[n] = place
				}
				hash := c.section(n)
				b = append(binary.AppendUvarint(b, uint64(place)), hash[:]...)
			case bpfobj.RefExtern:
				x := &c.o.Externs[n]
				b = fmt.Appendf(b, "%q %d %d ", x.Name, x.Kind, x.Size)
			default:
				place, ok := at[n]
				if !ok {
					return sum, false
				}
				b = binary.AppendUvarint(b, uint64(place))
			}
		}
	}
	return sha256.Sum256(b), true
}

func (c *contents) function(fn int) *content {
	if f := c.funcs[fn]; f != nil {
		return f
	}
	f := new(content)
	b := fmt.Append(nil, c.o.Funcs[fn].Global)
	for i := range c.o.Funcs[fn].Insns {
		in := &c.o.Funcs[fn].Insns[i]
		known := in.Ref.N() >= 0
		b = append(b, byte(in.Op), byte(in.Dst), byte(in.Src), byte(in.Ref.Kind()), byte(min(in.Record, 1)))
		b = strconv.AppendBool(b, known)
		b = binary.AppendVarint(binary.AppendVarint(b, int64(in.Off)), in.Imm)
		if k := in.Ref.Kind(); known && (in.IsFuncCall() || k != bpfobj.RefNone && k != bpfobj.RefMap) {
			f.refs = append(f.refs, in.Ref)
		}
	}
	f.hash = sha256.Sum256(b)
	c.funcs[fn] = f
	return f
}

// section returns a hash of a data section with its variables.
func (c *contents) section(n int) [sha256.Size]byte {
	hash, ok := c.data[n]
	if !ok {
		d := c.o.Data[n]
		bytes := sha256.Sum256(d.Bytes)
		d.Bytes = nil
		hash = sha256.Sum256(fmt.Appendf(bytes[:], "%v", d))
		c.data[n] = hash
	}
	return hash
}

// exploration is the result for a program, found for its twin. Sites, functions and records are those of the program.
type exploration struct {
	*interp.Result
	o *bpfobj.Object
	*twin
}

// mapped returns a site in the counterpart of its function.
func mapped(funcs map[int]int, at bpfobj.Site) bpfobj.Site {
	if funcs != nil {
		at.Fn = funcs[at.Fn]
	}
	return at
}

// record returns the program's record for a record of the twin.
func (t *twin) record(o *bpfobj.Object, n int) int {
	if t.ours == nil {
		return n
	}
	at := mapped(t.ours, t.o.Sites[n])
	return int(o.Funcs[at.Fn].Insns[at.Insn].Record) - 1
}

// extern returns the program's extern for one of the twin.
func (t *twin) extern(x *bpfobj.Extern) *bpfobj.Extern {
	if t.ours == nil {
		return x
	}
	return t.externs[x.Name]
}

func (x *exploration) reached(at bpfobj.Site) interp.Level { return x.Reached(mapped(x.theirs, at)) }

func (x *exploration) moved(at bpfobj.Site) interp.Level { return x.Moved(mapped(x.theirs, at)) }

func (x *exploration) guard(at bpfobj.Site) (interp.Guard, bool) {
	g, ok := x.Guard(mapped(x.theirs, at))
	if g.Branch = mapped(x.ours, g.Branch); g.Fact != nil && g.Fact.Record >= 0 {
		f := *g.Fact
		f.Record = x.record(x.o, f.Record)
		g.Fact = &f
	}
	return g, ok
}

// relevant returns the parts of a kernel that the result depends on.
func (x *exploration) relevant() interp.Relevant {
	r := x.Relevant()
	for i, n := range r.Records {
		r.Records[i] = int32(x.record(x.o, int(n)))
	}
	return r
}
