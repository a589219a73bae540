// SPDX-License-Identifier: Apache-2.0

// Package check says on which kernels the programs of BPF objects load, and
// why not on the others, from the kernels' BTF alone.
//
// A program is its entry function with all functions that it can call. For
// each kernel the package asks four things:
//
//   - Which of its CO-RE relocations have no answer there? The loader makes such
//     an instruction invalid, and the verifier refuses the program only if it can
//     reach it, which package interp tells.
//   - Does the kernel have the helpers, kfuncs, ksyms, instructions, and types of
//     maps, programs, attachments and links that it uses? The kernel's BTF has
//     enums of them, or of what came with them.
//   - Does what it attaches to exist?
//   - What of it depends on the running kernel's own BTF, so that shipping one
//     does not help?
//
// For example, of
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
// [Run] takes each kernel through these passes: inspect finds in its BTF all
// names that any object asks for; dryRun relocates all objects; then each
// program has an evaluation, of its interfaces, externs and attachment, and of
// its code. That goes by what collect finds absent, and is done once for all
// kernels where the relocations come to the same as far as it matters (memo).
// [Report] puts the findings together, each of which a ledger has once. What only
// attaching depends on is told apart: [Program.Load] leaves it out. An [ObjectRow] puts
// the programs of an object together as its loader does, by a [Policy] or by guesses, and
// its [Headline] sums it up.
//
// What BTF does not tell stands in tables with their sources: which programs may
// call which helper and kfunc (helpers.txt, kfuncs.txt), which hooks of LSM they are kept from
// (disabledHooks), what programs may return (returns), what definitions of maps kernels take (mapRules), when
// instructions came (groups), and helpers and types (came). A kernel's configuration, and which functions kprobes
// may have beyond those in BTF, is known where its source has that (knowledge);
// where it decides and is not known, the verdict is [MayFail]. How an object is read is
// package bpfobj's business, how a relocation is decided package core's.
package check
