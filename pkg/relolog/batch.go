package relolog

import "github.com/btfgen/btfgen/internal/rawbtf"

// Batch runs the same objects against many kernels, looking for the names that
// all of them ask for at once. It is immutable and safe for many goroutines.
type Batch struct {
	objects []*Object
	names   nameIndex
}

// NewBatch returns a batch of objects of any byte order.
func NewBatch(objects ...*Object) *Batch { return &Batch{objects, indexNames(objects...)} }

// Run is [Run] for each object of the batch. The log of an object of another
// byte order than the kernel's is nil.
func (b *Batch) Run(t *Target) []*Log {
	all := b.names.find(t)
	logs := make([]*Log, len(b.objects))
	for i, o := range b.objects {
		if o.btf == nil || o.order == t.Order() {
			logs[i] = newRunner(o, t, &b.names, all).log()
		}
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
