// Package check says on which kernels the programs of BPF objects load, and
// why not on the others, from the kernels' BTF alone.
//
// A program is its entry function with all functions that it can call. For
// each kernel the package asks four things:
//
//   - Which of its CO-RE relocations have no answer there ([relolog.Run])? The
//     loader makes such an instruction invalid, and the verifier refuses the
//     program only if it can reach it. So the program is executed abstractly
//     as the verifier does it (explore): the relocated immediates are constants,
//     and so are frozen global data and what is computed from them; a branch
//     that constants decide is followed on one side, any other on both.
//   - Does the kernel have the helpers, kfuncs, ksyms, map types, program types
//     and attach types that it uses? The kernel's BTF has enums of them.
//   - Does what it attaches to exist?
//   - What of it depends on the running kernel's own BTF, so that shipping one
//     does not help?
//
// For example, in
//
//	r1 = 1          // field_exists task_struct.__state
//	if r1 == 0 goto else
//	r1 = 112        // byte_off task_struct.__state
//
// on a kernel without the field the first immediate becomes 0 and the third
// instruction is poisoned. The branch is taken, so the poisoned instruction is
// unreachable and the program is guarded. Had the first been a load from a map,
// both sides would be explored and the program fails.
//
// The exploration never calls an instruction unreachable that the verifier
// reaches: it knows less than the verifier does of ranges and of pointers,
// keeps to what all verifiers since 5.2 know of constants, and looks at the
// kernel's BTF for the rest (features). The price is that a guard of a form
// which only the verifier understands is reported as a failure.
package check
