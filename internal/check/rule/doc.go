// SPDX-License-Identifier: Apache-2.0

// Package rule judges a BPF program on a kernel by what the kernel has and what
// its verifier and loaders take.
//
// [Parse] reads an [Object], and finds what its programs use before any kernel is
// known. [Inspect] finds in a kernel's BTF, configuration and symbols what any
// object uses ([Wanted]): an [Inventory]. A [Scene] is an object on a kernel with
// one loader and its decisions on the relocations. All rules are applied to a
// program there (scene.go). [Scenes] are those of several loaders, whose findings
// are merged, as are findings with modules and without them (merge.go). What rules
// find counts at once, or if the verifier reaches an instruction:
// [Program.JudgeCode] says that after package interp has explored the code.
//
// For example, a program of type XDP calls bpf_loop on 5.10. The rule of helpers
// (calls in helpers.go) asks the inventory, whose enum bpf_func_id does not have it,
// and returns an absence: a [Finding] of code helper-missing at that instruction. If
// an exploration reaches it, the finding [Fails]; if not, it is [Guarded].
//
// What kernels differ in is data with sources: the tables of package facts, for
// which an inventory is the evidence (facts.go). A kernel's configuration and
// symbols are used where the source has them (knowledge.go); without them, what
// depends on them is [MayFail].
//
// The files of rules, each with the functions of the kernel and of loaders that it
// follows:
//
//   - attach.go, hooks.go, interface.go, returns.go: what a program is attached to,
//     and its type
//   - context.go, shape.go, walks.go: what it reads of its context, and of structs to which that leads
//   - helpers.go, mapcalls.go, kfuncs.go, callees.go: what it calls
//   - maps.go, opening.go, extern.go, kconfig.go, ownbtf.go: what its object
//     needs before any program is loaded
//   - ebpfgo.go, aya.go: what only one loader refuses
//   - notes.go, unjudged.go, external.go: what is noted of a program or an object whatever the kernel,
//     with the status [OK]
//
// Rules do not know how objects are combined, what was found on other kernels, or
// whether a result was known before.
package rule
