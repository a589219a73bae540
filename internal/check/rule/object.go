// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
)

// Object is a BPF object with its programs. It is immutable and safe for use
// by many goroutines.
type Object struct {
	*bpfobj.Code
	name    string
	records records

	uses      [][]use                  // by function
	recordsOf [][]int32                // by function
	calls     []callees                // by function
	flawed    [][]interp.Flawed        // by function: instructions with possible flaws of sizes
	stacks    []stacks                 // by function: its stack with those of its callees
	memory    map[int]bpfobj.Registers // by global function: arguments that are pointers to memory
	accesses  [][]flow.Access          // by program: see contextAccesses
	mapCalls  [][]flow.MapCall
	fresh     [][]flow.Fresh    // by program: reads of bytes of the stack that nothing wrote
	unjudged  [][]Finding       // by program: see findUnjudged
	walks     []flow.Walks      // by program
	contexts  []btf.Type        // by program: its own struct for the context, void for none
	called    []helperSet       // by program
	refers    []map[string]bool // by program: names of maps and externs in the code
	tailOnly  []bool            // by program: see TailCalled
	unread    Finding           // the reason why cilium/ebpf does not read the object; Subject is "" if it does
}

// use is an instruction that not every kernel takes, whatever the registers
// hold: one that calls a helper, refers to an extern, or is newer than BTF.
type use struct {
	at    bpfobj.Site
	in    *bpfobj.Insn
	newer *bpfobj.Newer // nil if the instruction is as old as BTF
	facts []facts.Fact  // needed even if the verifier does not reach the instruction
}

// Named returns the same object with another name. What is found out about one holds for the other, and is found out once.
func (o *Object) Named(name string) *Object {
	out := *o
	out.name, out.records = name, records{o.records.Named(name)}
	return &out
}

// Name returns the name that was given to Parse.
func (o *Object) Name() string { return o.name }

// ProgramName returns the name of program i.
func (o *Object) ProgramName(i int) string { return o.Funcs[o.Programs[i].Fn].Name }

// Order returns the byte order of the object.
func (o *Object) Order() binary.ByteOrder { return o.records.Order() }

// Relocations returns the object's relocation records.
func (o *Object) Relocations() *core.Object { return o.records.Object }

// Machines returns the machines that the object is for, none for any.
func (o *Object) Machines() []string { return o.records.Machines() }

// ForMachines returns the same object for these machines, as core.Object.ForMachines does.
func (o *Object) ForMachines(machines ...string) *Object {
	out := *o
	out.records = records{o.records.ForMachines(machines...)}
	return &out
}

// WithTarget returns the same object with the programs whose name matches a glob attached to another
// function, tracepoint or hook than the section says, or than it leaves to the loader. It also returns
// their names.
func (o *Object) WithTarget(glob, to string) (_ *Object, programs []string) {
	prog, out := *o.Code, *o
	matches := func(name string) bool { ok, _ := path.Match(glob, name); return ok }
	prog.Programs = slices.Clone(prog.Programs)
	for i := range prog.Programs {
		pr := &prog.Programs[i]
		if s := pr.Attach; s != nil && attachesByName(s.Kind) && matches(prog.Funcs[pr.Fn].Name) {
			pr.Section = s.Prefix + "/" + to
			programs = append(programs, prog.Funcs[pr.Fn].Name)
		}
	}
	out.Code = &prog
	return &out, programs
}

// attachesByName reports whether programs of a kind are attached to something of
// the kernel that has a name.
func attachesByName(kind bpfobj.AttachKind) bool {
	switch kind {
	case bpfobj.AttachNone, bpfobj.AttachOps, bpfobj.AttachExt:
		return false
	}
	return true
}

// attachesByBTF reports whether the kernel needs the BTF of what programs of a kind are attached to.
func attachesByBTF(kind bpfobj.AttachKind) bool {
	switch kind {
	case bpfobj.AttachFunc, bpfobj.AttachModRet, bpfobj.AttachBTFTP, bpfobj.AttachLSM, bpfobj.AttachIter:
		return true
	}
	return false
}

// otherMachine is the finding where the object is not for the kernel.
func (o *Object) otherMachine() Finding {
	if m := o.records.Machines(); len(m) > 0 {
		return Finding{
			Status: Other, Code: AnalysisMachine, Subject: "machine",
			Args: Args{Name: strings.Join(m, ", ")},
		}
	}
	return Finding{Status: Other, Code: AnalysisByteOrder, Subject: "byte order"}
}

// extern returns what an instruction refers to, nil unless that is an extern.
func (o *Object) extern(in *bpfobj.Insn) *bpfobj.Extern {
	if in.Ref.Kind() != bpfobj.RefExtern {
		return nil
	}
	return &o.Externs[in.Ref.N()]
}
