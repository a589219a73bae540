// SPDX-License-Identifier: Apache-2.0

// Package bpfobj reads BPF objects, in two steps. [Open] reads the ELF header, the
// types and .BTF.ext, with the CO-RE records: that is all that relocating takes.
// [File.Parse] reads the programs: functions, their instructions, and what these
// refer to.
//
// For example, of
//
//	extern int LINUX_KERNEL_VERSION __kconfig;
//	static __noinline int parent(struct task_struct *t) { return t->real_parent->tgid; }
//	SEC("?tp_btf/sched_switch") int on_switch(u64 *ctx) { return parent((void *)ctx[1]); }
//
// [File.Parse] makes two functions and one program. Its Section is
// tp_btf/sched_switch, which [SectionOf] takes for a program of type TRACING
// attached as BPF_TRACE_RAW_TP; it is not loaded unless asked for; its Funcs are
// on_switch and parent, and both CO-RE records, which are in parent, are in its
// Records. The call in on_switch refers to parent by its index. [Object.Accesses]
// says that the program reads its second argument, and [Object.Source] which
// line an instruction is from.
//
// The passes are those of an ELF linker: sections of data, functions at their
// symbols, maps and externs from the BTF, relocations, and at last programs with
// all that they can call, as libbpf (bpf_object__collect_relos,
// bpf_object__reloc_code) does it.
//
// The package knows nothing of kernels, of what an instruction does to registers, or
// what a CO-RE record asks: of records it has places and indices.
package bpfobj
