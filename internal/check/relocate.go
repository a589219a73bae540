package check

import (
	"encoding/binary"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// records are the CO-RE records of an object.
type records struct{ obj *relolog.Object }

func parseRecords(name string, data []byte) (records, error) {
	o, err := relolog.ParseObject(name, data)
	return records{o}, err
}

// types returns the object's types, nil if it has none.
func (r records) types() *rawbtf.BTF { return r.obj.BTF() }

// places says where the records are.
func (r records) places() []bpfprog.Record {
	relos := r.obj.Relos()
	out := make([]bpfprog.Record, len(relos))
	for i := range relos {
		out[i] = bpfprog.Record{Section: relos[i].Section, Func: relos[i].Program, Insn: relos[i].Insn}
	}
	return out
}

// text is what a record asks for: "byte_off struct task_struct.mm.pgd".
func (r records) text(i int) string { return r.obj.Relos()[i].String() }

// source is the file:line of a record, "" where it is not known.
func (r records) source(i int) string { return r.obj.Relos()[i].Source }

// asksForID reports whether a record asks for the ID of a kernel's type.
func (r records) asksForID(i int) bool { return r.obj.Relos()[i].Kind == relolog.KindTargetTypeID }

// dryRun relocates objects against kernels.
type dryRun struct{ batch *relolog.Batch }

func newDryRun(objects []*Object) dryRun {
	var all []*relolog.Object
	for _, o := range objects {
		all = append(all, o.records.obj)
	}
	return dryRun{relolog.NewBatch(all...)}
}

// target is a kernel to relocate against. Its memory is reused from kernel to
// kernel.
type target struct{ relolog.Target }

// load makes t a view of a kernel, which must not change while it is used.
func (t *target) load(name string, it *corpus.Item) (reason string, ok bool) {
	mods := make([]relolog.Module, len(it.Modules))
	for i, m := range it.Modules {
		mods[i] = relolog.Module{Name: m.Name, BTF: m.BTF}
	}
	if err := t.Load(name, it.BTF, mods...); err != nil {
		return strings.TrimPrefix(err.Error(), name+": "), false
	}
	return "", true
}

// types calls f for the types of vmlinux, and then for those of each module.
func (t *target) types(f func(b *rawbtf.BTF)) {
	t.Views(func(_ string, b *rawbtf.BTF) bool {
		f(b)
		return true
	})
}

// on relocates each object.
func (d dryRun) on(t *target) []decisions {
	logs := d.batch.Run(&t.Target)
	out := make([]decisions, len(logs))
	for i := range logs {
		out[i].log = logs[i]
	}
	return out
}

// decisions are what a loader makes of the records of one object on one kernel.
type decisions struct {
	log *relolog.Log // nil where their byte orders differ
}

// errByteOrder says why there are no decisions.
var errByteOrder = relolog.ErrByteOrder

// sameOrder reports whether object and kernel are of one byte order.
func (d decisions) sameOrder() bool { return d.log != nil }

// value is what the loader writes for a record; false where it writes nothing,
// or an invalid instruction.
func (d decisions) value(i int) (uint64, bool) {
	if v := d.log.Entries[i].New; v != nil {
		return *v, true
	}
	return 0, false
}

// outcome says whether the loader makes the instruction of a record invalid, or
// refuses the object, and why.
func (d decisions) outcome(i int) (poisoned, refused bool, reason string) {
	e := &d.log.Entries[i]
	switch e.Result {
	case relolog.Poisoned:
		return true, false, e.Reason
	case relolog.Ambiguous, relolog.Error:
		return false, true, string(e.Result) + ": " + e.Reason
	}
	return false, false, e.Reason
}

// appendKey appends all that the decision on a record consists of.
func (d decisions) appendKey(b []byte, i int) []byte {
	e := &d.log.Entries[i]
	b = append(append(b, e.Result...), 0)
	b = append(append(b, e.Reason...), 0)
	if e.New != nil {
		b = binary.AppendUvarint(b, *e.New)
	}
	return append(b, 0)
}
