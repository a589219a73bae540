// SPDX-License-Identifier: Apache-2.0

// Package bpfobj reads BPF objects, in two steps. [Open] reads the ELF header, the types and .BTF.ext with the CO-RE records,
// which is enough for relocation. [File.Parse] reads the programs: functions, instructions, and what these refer to.
//
// For example, from
//
//	extern int LINUX_KERNEL_VERSION __kconfig;
//	static __noinline int parent(struct task_struct *t) { return t->real_parent->tgid; }
//	SEC("?tp_btf/sched_switch") int on_switch(u64 *ctx) { return parent((void *)ctx[1]); }
//
// [File.Parse] makes two functions and one program. Its Section is tp_btf/sched_switch, for [SectionOf] a program of type
// TRACING attached as BPF_TRACE_RAW_TP. It is not loaded by default. Its Funcs are on_switch and parent, and its Records are
// both CO-RE records in parent. The call in on_switch refers to parent by its index. [Object.Source] returns the line of an
// instruction.
//
// The passes are those of an ELF linker: data sections, functions, maps and externs, relocations, and last the programs with
// the functions that they can call, as in libbpf (bpf_object__collect_relos, bpf_object__reloc_code).
//
// The package has no knowledge of kernels, of registers' values, or of the meaning of CO-RE records.
package bpfobj
