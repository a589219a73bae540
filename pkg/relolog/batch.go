package relolog

import "github.com/btfgen/btfgen/internal/rawbtf"

// Batch runs the same objects against many kernels, looking for the names that
// all of them ask for at once. It is immutable and safe for many goroutines.
type Batch struct {
	objects []*Object
	names   *rawbtf.Names
	index   map[string]int
}

// NewBatch returns a batch of objects of any byte order.
func NewBatch(objects ...*Object) *Batch {
	b := &Batch{objects: objects, index: make(map[string]int)}
	var names []string
	for _, o := range objects {
		for _, s := range o.specs {
			n := s.name()
			if _, ok := b.index[n]; !ok && n != "" {
				b.index[n] = len(names)
				names = append(names, n)
			}
		}
	}
	b.names = rawbtf.NewNames(names)
	return b
}

// Run is [Run] for each object of the batch. The log of an object of another
// byte order than the kernel's is nil.
func (b *Batch) Run(t *Target) []*Log {
	all, _ := t.find(b.names, len(b.index), nil, nil)
	logs := make([]*Log, len(b.objects))
	for i, o := range b.objects {
		if o.btf != nil && o.order != t.Order() {
			continue
		}
		l := &Log{Object: o.name, Kernel: t.name, Entries: make([]Entry, len(o.relos))}
		r := &runner{o: o, t: t, cands: make(map[rawbtf.TypeID]*candList), done: make(map[doneKey]*outcome)}
		for _, s := range o.specs {
			if r.cands[s.root] == nil {
				cl := new(candList)
				if j, ok := b.index[s.name()]; ok {
					cl.list = candidates(all[j], s.rootKind(), nil)
				}
				r.cands[s.root] = cl
			}
		}
		for j := range o.relos {
			r.entry(&o.relos[j], &l.Entries[j])
		}
		logs[i] = l
	}
	return logs
}

// Views gives yield the types of vmlinux, whose module name is empty, and then
// those of each module.
func (t *Target) Views(yield func(module string, b *rawbtf.BTF) bool) {
	for _, v := range t.views {
		if !yield(v.module, &v.BTF) {
			return
		}
	}
}

// String names what the relocation asks for: "byte_off struct task_struct.mm.pgd".
func (r *Relo) String() string { return r.spec.String() }

// BTF returns the object's types, or nil if it has none.
func (o *Object) BTF() *rawbtf.BTF { return o.btf }
