// SPDX-License-Identifier: Apache-2.0

// Package lint finds what is wrong with a corpus of kernel BTFs before it costs somebody a release:
// files that are damaged, in the wrong place or missing, and BTF that misleads those who use it.
//
//	rep, err := lint.Run(ctx, lint.Config{Sweep: sweep.Config{Corpus: c, Jobs: 4}})
//	rep.Text(os.Stdout, false)
//
// Run looks at each kernel alone (inspect), which keeps a few hundred bytes of facts, and then at all
// facts together (judge). Each Finding has a Code; rules has, for each code, how serious it is and
// what to do.
//
// # What gives a machine away
//
// The path of a BTF says for which architecture it is; the BTF itself shows its byte order, the
// size of a pointer, and struct pt_regs, whose members differ on every architecture: r15 on
// x86_64, pstate on arm64, psw on s390x (machines has the list). Members of anonymous structs within it count.
//
// # What gives a debug kernel away
//
// Only options count that change the layout of types that everybody's programs read, such as
// spinlock_t and task_struct, since with them the BTF of a debug kernel is no substitute for that of
// the production one. Each is told by a member that no other option brings:
//
//	DEBUG_SPINLOCK  raw_spinlock.magic         KASAN  task_struct.kasan_depth (not with hardware tags)
//	LOCKDEP         lockdep_map has members    KCSAN  task_struct.kcsan_ctx
//	DEBUG_MUTEXES   mutex.magic                KMSAN  task_struct.kmsan_ctx
//	                                           KCOV   task_struct.kcov_mode
//
// Types that merely come with debugging code do not count: production kernels have kmemleak, page
// owners, debug objects and hardware-tagged KASAN built in. That kind of KASAN has no kasan_depth and
// brings kasan_init_hw_tags; the generic kind, which is reported as KASAN_GENERIC, brings struct
// kasan_global and instruments the code (__asan_load8). A kernel configured for hardware tags becomes
// a generic one if the compiler does not know the tags: same release, other offsets.
//
// # What gives missing deduplication away
//
// pahole merges the types of all compilation units; where that fails, each unit brings its own copy of
// the kernel's structs. A few names are used for different structs in every kernel: of the named
// structs of 26 kernels, 4.18 to 7.3, at most 3.0 % are second ones of their name (231 of 7,714), of
// CentOS 8's 4.18 for arm64 it is 92 % (72,458 of 78,532, task_struct alone 476 times). The limit is
// a tenth, from a hundred copies on. What modules repeat of their vmlinux is counted apart: it only
// takes space, since loaders look for a type in modules only where vmlinux has none. Debian's 1,121
// modules of 6.1 repeat 116 structs, the 31 known of 6.18 repeat 16,794; the limit is ten in each.
package lint
