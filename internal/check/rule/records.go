// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// records are the CO-RE records of an object.
type records struct {
	*core.Object
}

// types returns the object's types, nil if it has none.
func (r records) types() *btf.BTF { return r.Object.BTF() }

// text is a record in words: "byte_off struct task_struct.mm.pgd".
func (r records) text(i int) string { return r.Object.Relocation(&r.Object.Records()[i]) }

// finding returns a finding about a record.
func (r records) finding(i int, s Status, reason relo.Reason) Finding {
	f := Finding{Status: s, Code: reason.Code, Source: r.source(i)}
	f.Local, f.Target = reason.Local, reason.Target
	f.Cause, f.Name, f.LocalNumber, f.TargetNumber = reason.Cause, reason.Name, reason.LocalNumber, reason.TargetNumber
	f.Relocation, f.Subject = r.Object.Local(&r.Object.Records()[i])
	return f
}

// root is the essential name of the struct that a record is about, "" if it is about something else.
func (r records) root(i int) string {
	t := r.Object.Root(&r.Object.Records()[i])
	if t.Kind() != btf.KindStruct {
		return ""
	}
	return string(btf.Essential(t.Name()))
}

// notes returns findings about a record that do not depend on the kernel.
func (r records) notes(i int) (l []Finding) {
	if r.asksForID(i) {
		l = append(l, r.finding(i, OK, relo.Reason{Code: RunningKernelTypeID}))
	}
	return l
}

// source is the file:line of a record, "" where it is not known.
func (r records) source(i int) string { return r.Object.Source(&r.Object.Records()[i]) }

// asksForID reports whether the value of a record is the ID of a kernel's type.
func (r records) asksForID(i int) bool {
	return r.Object.Records()[i].Kind == relo.TargetTypeID
}
