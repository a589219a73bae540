// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Scenes are an object on a kernel with each of some loaders, in one state of the kernel's modules. All depend on the
// same exploration of code, so they are merged before code is explored.
type Scenes []*Scene

// NewScenes judges what the object needs for any of its programs. d are nil if the object is not for the kernel. There
// is at least one loader.
func NewScenes(o *Object, k *Inventory, d Decisions, l Loading, loaders []Loader) (c Scenes) {
	externs := make(map[*bpfobj.Extern]Finding)
	for _, loader := range loaders {
		s := &Scene{Loading: l, loader: loader, o: o, k: k, decisions: d, externs: externs}
		if c = append(c, s); !s.forKernel() {
			continue
		}
		// The scene keeps what missing finds before several goroutines look for it.
		for i := range o.Externs {
			if x := &o.Externs[i]; x.Kind == bpfobj.ExternKsym && x.Type != 0 {
				s.missing(x)
			}
		}
		s.findNeeds()
	}
	return c
}

// ForKernel reports whether the object is for the kernel.
func (c Scenes) ForKernel() bool { return c[0].forKernel() }

// Needs returns findings on what the object needs, whichever of its programs are loaded.
func (c Scenes) Needs() []Finding {
	if !c.ForKernel() {
		return []Finding{c[0].o.otherMachine()}
	}
	lists := make([][]Finding, len(c))
	for i, s := range c {
		for _, w := range s.needed {
			lists[i] = append(lists[i], w.f)
		}
	}
	return merge(c, lists, (*Finding).unstopped)
}

// Program is what rules find of a program in all scenes.
type Program struct {
	Findings []Finding // without those on the code
	Shape    *Shape    // the context's shape; nil if it is not known or not read

	scenes Scenes
	pr     *bpfobj.Program
	kind   []absence // see Evaluation
	may    *returned // see Evaluation
}

// Evaluate judges program j of the object without its code.
func (c Scenes) Evaluate(j int) *Program {
	return c.merged(j, func(s *Scene) *Evaluation { return s.evaluate(j) })
}

// merged merges the evaluations of program j. What the program is given and may return does not depend on the loader.
func (c Scenes) merged(j int, evaluate func(*Scene) *Evaluation) *Program {
	p := &Program{scenes: c, pr: &c[0].o.Programs[j]}
	findings, kinds := make([][]Finding, len(c)), make([][]absence, len(c))
	for i, s := range c {
		e := evaluate(s)
		findings[i], kinds[i] = e.Findings, e.kind
		p.Shape, p.may = e.shape, e.may
	}
	p.Findings, p.kind = merge(c, findings, (*Finding).unstopped), merge(c, kinds, (*absence).unstopped)
	return p
}

// absences calls f for the instructions of a function that a loader or the kernel does not take, whatever the program
// is. They are merged one instruction at a time, as there may be many.
func (c Scenes) absences(fn int, f func(absence)) {
	lists, add := make([][]absence, len(c)), make([]func(absence), len(c))
	for i := range c {
		add[i] = func(a absence) { lists[i] = append(lists[i], a) }
	}
	emit := func() {
		for _, a := range merge(c, lists, (*absence).unstopped) {
			f(a)
		}
		for i := range lists {
			lists[i] = lists[i][:0]
		}
	}
	o := c[0].o
	for _, r := range o.recordsOf[fn] {
		for i, s := range c {
			s.atRecord(int(r), add[i])
		}
		emit()
	}
	for u := range o.uses[fn] {
		for i, s := range c {
			s.atUse(fn, &o.uses[fn][u], add[i])
		}
		emit()
	}
}

// MergeStates merges findings on a program in two states of the kernel: with modules loaded, and with none, the state
// of the scenes. names are the modules with targets of the program's records. A failure in only one of the two states
// may fail. MergeStates returns the findings of the first state, and those that the second one adds.
func (c Scenes) MergeStates(names Names, loaded, bare []Finding) (merged, more []Finding) {
	for _, f := range loaded {
		if f.Status == Fails && !c.fails(bare, f.Loader) {
			f.Status, f.Names, f.When = MayFail, names, Loaded
		}
		merged = append(merged, f)
	}
	for _, f := range bare {
		switch {
		case f.Code == ModuleNeeded && f.Status != Guarded:
			f.Status = min(f.Status, MayFail)
		case f.Status == Fails && !c.fails(loaded, f.Loader):
			f.Status, f.Names, f.When = MayFail, names, NotLoaded
		default:
			continue
		}
		more = append(more, f)
	}
	return merged, more
}

// fails reports whether a program fails by the findings with a loader, or with all if it is "".
func (c Scenes) fails(findings []Finding, l Loader) bool {
	return !slices.ContainsFunc(c, func(s *Scene) bool {
		counts := l == "" || l == s.loader
		return counts && !slices.ContainsFunc(findings, func(f Finding) bool {
			return f.Status == Fails && f.Concerns(s.loader)
		})
	})
}

// merge returns everything that the lists of the scenes have, without what an earlier scene has as well. What not all
// scenes have is for the loader of its scene alone. Loaders may stop at different things for the same reason: those of
// the first count. key returns what makes things equal, and the finding to change.
func merge[T any](c Scenes, lists [][]T, key func(*T) (absence, *Finding)) []T {
	same := func(l []T) bool {
		for i := range l {
			a, _ := key(&l[i])
			if b, _ := key(&lists[0][i]); a != b {
				return false
			}
		}
		return true
	}
	if !slices.ContainsFunc(lists[1:], func(l []T) bool { return len(l) != len(lists[0]) || !same(l) }) {
		return lists[0]
	}
	in := make(map[absence]uint) // scenes as bits
	for i, l := range lists {
		for j := range l {
			a, _ := key(&l[j])
			in[a] |= 1 << i
		}
	}
	var all []T
	for i, l := range lists {
		for j := range l {
			a, f := key(&l[j])
			switch n := in[a]; {
			case n&(1<<i-1) != 0:
				continue
			case n != 1<<len(lists)-1 && f.Loader == "":
				f.Loader = c[i].loader
			}
			all = append(all, l[j])
		}
	}
	return all
}

// unstopped returns a finding that is not on code, without what the loader stops at because of it.
func (f *Finding) unstopped() (absence, *Finding) {
	a := absence{f: *f}
	a.f.Stops = NothingStops
	return a, f
}

// unstopped returns an absence without what the loader stops at because of it.
func (a *absence) unstopped() (absence, *Finding) {
	b := *a
	b.f.Stops = NothingStops
	return b, &a.f
}
