// SPDX-License-Identifier: Apache-2.0

// Package check judges on which kernels the programs of BPF objects load, and
// why not on the others, from the kernels' BTF alone.
//
// A program is its entry function with the functions that it can call. For each
// program and kernel check answers four questions:
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
// and reached. The verdict is the worse one, [rule.Fails]. On 5.17 it is [rule.OK].
//
// Four packages share the work:
//
//   - Package facts has the tables of what kernels differ in, and decides what a
//     kernel has.
//   - Package rule has the rules of kernels and programs, and the findings
//     that they make: codes with arguments. internal/report makes sentences of them.
//   - Package verdict has the report: it derives verdicts on objects from findings on
//     programs.
//   - This package is the run. It knows workers, memory and time, and no rule.
//
// [Run] takes each kernel through these passes: rule.Inspect finds the names that
// any object uses; dryRun relocates all objects; rules evaluate each program; then
// its code is explored and judged (explore.go). Several workers explore code;
// findings are noted in order, so they do not depend on timing. Results for code
// are cached by everything that they depend on (memo), so kernels with equal
// relevant input share them, and kernels with equal contents, machine and version are judged
// once. A ledger keeps each distinct finding once. After the
// last kernel, what other kernels show changes some findings (vote.go), and
// package verdict judges the objects.
package check
