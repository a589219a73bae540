// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/limits"
)

// objectCode is the code of an object on a kernel: what its explorations share, and what they cost. It is for one goroutine at a time. Only
// explore may be called by several, after key was called for each of the programs, which fills functions.
type objectCode struct {
	scenes    rule.Scenes
	object    *rule.Object
	settable  func(variable string) bool
	results   *results
	found     *ledger
	input     *memoInput
	functions []functionNumbers // filled in by codeOf

	work     int           // work of exploring its programs so far
	ahead    *atomic.Int64 // work of exploring its programs, judged or not
	findings int           // number of findings on their code so far
}

// programCode is the code of a program on a kernel.
type programCode struct {
	*objectCode
	program *rule.Program
	pr      *bpfobj.Program
	own     list // findings on the program, except on its code

	exploration *interp.Result // nil before the first exploration
}

// code explores the program's code and judges it, a second time with a precise exploration where the first was not precise enough. It
// returns the explorations that the findings depend on, nil if exploring the program would take too long.
func (c *programCode) code(ctx context.Context) (list, []*interp.Result) {
	r := new(interp.Result)
	switch {
	case !c.dependsOnCode():
	case c.work > limits.ObjectWork:
		r.GaveUp = true
		l, _ := c.judge(r)
		return l, nil
	case c.exploration != nil:
		r = c.exploration
	default:
		r = c.explore(ctx, false)
	}
	l, doubted := c.judge(r)
	if !doubted {
		return l, []*interp.Result{r}
	}
	precise := c.explore(ctx, true)
	if precise.GaveUp {
		return l, []*interp.Result{r}
	}
	l, _ = c.judge(precise)
	return l, []*interp.Result{r, precise}
}

// dependsOnCode reports whether findings depend on what an exploration finds.
func (c *programCode) dependsOnCode() bool {
	return c.program.NeedsExploration() || slices.ContainsFunc(c.pr.Funcs, func(fn int) bool { return c.codeOf(fn).lacks })
}

func (c *programCode) explore(ctx context.Context, precise bool) *interp.Result {
	in := c.scenes.Input()
	in.Settable, in.Precise, in.Summaries = c.settable, precise, c.sharedSummaries(precise)
	return interp.Explore(ctx, c.object.Code, c.pr, &in)
}

// judge returns the findings on the program's code that follow from an exploration, and whether it was not precise enough for one.
func (c *programCode) judge(r *interp.Result) (l list, doubted bool) {
	n := notes{found: c.found, seen: make(map[int32]bool)}
	doubted = c.program.JudgeCode(r, n.add)
	return n.list(), doubted
}

// notes collects the findings on a program's code.
type notes struct {
	found *ledger
	insns []rule.Finding // findings on instructions and features
	noted []int32        // the other findings, which may be many, as numbers in the ledger
	seen  map[int32]bool // set of noted
}

// list returns the findings.
func (n *notes) list() list {
	for _, f := range n.insns {
		n.addNumber(n.found.number(f))
	}
	return n.found.keep(n.noted)
}

// add adds a finding on code, once. A program may have many instructions of one kind: the first that is worst is enough.
func (n *notes) add(f rule.Finding) {
	if !f.OfInsn() {
		n.addNumber(n.found.number(f))
		return
	}
	for i := range n.insns {
		if o := &n.insns[i]; o.Subject == f.Subject {
			if f.Status > o.Status {
				*o = f
			}
			return
		}
	}
	n.insns = append(n.insns, f)
}

func (n *notes) addNumber(number int32) {
	if !n.seen[number] {
		n.seen[number] = true
		n.noted = append(n.noted, number)
	}
}

// key returns the key of the program's code.
func (c *programCode) key() programKey {
	key := programKey{object: c.object.Code, fn: c.pr.Fn}
	if b := c.program.Key(c.found.number); b != nil {
		key.kind = c.results.number(b)
	}
	b := make([]byte, 0, 4*len(c.pr.Funcs))
	for _, fn := range c.pr.Funcs {
		b = binary.NativeEndian.AppendUint32(b, c.codeOf(fn).key)
	}
	key.funcs = string(b)
	return key
}

// functionNumbers are the numbers of the keys of a function on a kernel.
type functionNumbers struct {
	key   uint32 // number of the key of its code, without the relevant input; 0 before it is made
	calls uint32 // number of the key for exploring it and its callees; 0 if calls nest too deeply
	lacks bool   // the function has absences
}

// codeOf returns the keys of a function, which several programs may share.
func (c *objectCode) codeOf(fn int) *functionNumbers {
	if c.functions == nil {
		c.functions = make([]functionNumbers, len(c.object.Funcs))
	}
	f := &c.functions[fn]
	if f.key != 0 {
		return f
	}
	explored, absences := c.scenes.FunctionKeys(fn, c.found.number)
	f.lacks = absences != nil
	f.key = c.results.number(slices.Concat(explored, []byte{0}, absences))
	if callees, shared := c.object.Callees(fn); shared {
		for _, fn := range callees {
			explored = binary.NativeEndian.AppendUint32(explored, c.codeOf(fn).calls)
		}
		f.calls = c.results.number(explored)
	}
	return f
}
