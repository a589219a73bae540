// SPDX-License-Identifier: Apache-2.0

// Package check judges on which kernels the programs of BPF objects load, and
// why not on the others, from the kernels' BTF alone.
//
// A program is its entry function with the functions that it can call. For each
// program and kernel the package answers four questions:
//
//   - Which CO-RE relocations do not resolve? The loader makes such an
//     instruction invalid, and the verifier rejects the program only if it can
//     reach it. Package interp finds out.
//   - Does the kernel have the helpers, kfuncs, ksyms, instructions, and types of
//     maps, programs, attachments and links that it uses? The kernel's BTF has
//     enums of them, or of features that came with them.
//   - Does the attach target exist?
//   - What depends on the running kernel's own BTF, so that shipping one does not
//     help?
//
// For example, for
//
//	SEC("tp_btf/sched_switch") int on_switch(u64 *ctx)
//	{
//		struct task_struct *t = (void *)ctx[1];
//		if (bpf_core_field_exists(t->__state))
//			return t->__state;
//		return bpf_loop(1, step, NULL, 0);
//	}
//
// a kernel of 5.10 gives two findings: the offset of __state is absent, but
// guarded by the branch that field_exists decides; bpf_loop is no helper there,
// and reached. The verdict is the worse one, [Fails]. On 5.17 it is [OK].
//
// The result is findings: codes with arguments. This package never makes
// sentences of them; internal/report does.
//
// [Run] takes each kernel through these passes: inspect finds the names that any
// object uses; dryRun relocates all objects; an evaluation of each program then
// judges its interfaces, externs, attachment and code. Several workers explore code; verdicts
// are made in order, so they do not depend on timing. Results for code are cached
// by everything that they depend on (memo), so kernels with equal relevant input
// share them. Kernels with equal contents, machine and version are judged once. A ledger keeps each distinct finding once, and [Report] merges them.
// [Program.Load] leaves out findings that count only for attaching. An [ObjectRow] combines the programs of an object as its
// loader does, by a [Policy] or by guesses, and its [Headline] sums it up. An
// executable with several objects needs all of them.
//
// What kernels differ in is data with sources: facts.txt, whose witnesses in a
// kernel's BTF decide (facts.go), and helpers.txt. A kernel's configuration and
// symbols are used where the source has them (knowledge); without them, what
// depends on them is [MayFail]. Package bpfobj reads objects, package core decides
// relocations.
package check
