// SPDX-License-Identifier: Apache-2.0

// Package lint finds mistakes in a corpus of kernel BTFs: files that are damaged or misplaced, and BTF that misleads its users.
//
// Run inspects each kernel and keeps some hundred bytes of facts. Then it judges the facts of all kernels. Each Finding has a
// Code, with a severity and an advice.
//
// # Wrong machines
//
// The path of a BTF names an architecture; the BTF itself has a byte order, the size of a pointer, and struct pt_regs, whose members
// differ on every architecture: r15 on x86_64, pstate on arm64, psw on s390x (package machine has the list), also in anonymous
// structs.
//
// # Debug kernels
//
// Only options count that change the layout of types that most programs read, such as spinlock_t and task_struct, because such
// BTF cannot replace that of the production kernel. Each has a member that no other option adds:
//
//	DEBUG_SPINLOCK  raw_spinlock.magic         KASAN  task_struct.kasan_depth (not with hardware tags)
//	LOCKDEP         lockdep_map has members    KCSAN  task_struct.kcsan_ctx
//	DEBUG_MUTEXES   mutex.magic                KMSAN  task_struct.kmsan_ctx
//	                                           KCOV   task_struct.kcov_mode
//
// Types of debugging code do not count: production kernels have kmemleak, page owners, debug objects and hardware-tagged KASAN.
// That kind of KASAN has no kasan_depth and adds kasan_init_hw_tags. The generic kind, reported as KASAN_GENERIC, adds struct
// kasan_global and instruments the code (__asan_load8). A kernel configured for hardware tags becomes a generic one if the
// compiler does not support the tags: the same release, with other offsets.
//
// # Missing deduplication
//
// pahole merges the types of all compilation units. If that fails, each unit has its own copies. Every kernel uses a few names for
// different structs: in 26 kernels, 4.18 to 7.3, at most 3.0 % of the named structs have the name of another (231 of 7,714);
// in CentOS 8's 4.18 for arm64 it is 92 % (72,458 of 78,532, task_struct alone 476 times). The limit is a tenth, from a
// hundred copies on. Structs of vmlinux that modules repeat are counted separately. They only take space, since loaders search
// modules only for types that vmlinux lacks. Debian's 1,121 modules of 6.1 repeat 116 structs, the 31 known of 6.18 repeat
// 16,794; the limit is ten per module.
package lint

import (
	"cmp"
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
)

// Finding is a mistake in one kernel or file.
type Finding struct {
	Code   *Code
	Kernel string // key, or path if it is unknown
	Path   string
	Detail string // in addition to the text of the code
}

// Report is the result of a run.
type Report struct {
	Kernels    int       `json:"kernels"`    // read, including damaged ones
	Ignored    int       `json:"ignored"`    // files without BTF, such as BTFHub's .failed and .hasbtf
	Unselected int       `json:"unselected"` // files that the selectors exclude
	Errors     int       `json:"errors"`
	Warnings   int       `json:"warnings"`
	Notes      int       `json:"notes"`
	Findings   []Finding `json:"-"` // the most serious first, then by code and kernel
}

// Severity is the severity of a finding.
type Severity int

// The severities. Notes need no action.
const (
	Error Severity = iota
	Warning
	Note
)

func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// Code is a kind of finding.
type Code struct {
	Name     string // never renamed
	Severity Severity
	Text     string // explains the code and advises what to do
}

func (c *Code) String() string { return c.Name }

// Codes are all codes in the order of a report.
var Codes []*Code

func define(s Severity, name, text string) *Code {
	c := &Code{name, s, text}
	Codes = append(Codes, c)
	return c
}

// The codes, in the order of a report.
var (
	Empty = define(Error, "empty",
		"the file is empty; fetch it again, or remove it")
	Damaged = define(Error, "damaged",
		"the file cannot be read, so commands skip it; fetch it again")
	WrongArch = define(Error, "wrong-arch",
		"the BTF is not for the machine that its path names; move it")
	KeyConflict = define(Error, "key-conflict",
		"files with different BTF for one kernel; only one is used, so remove the others")
	NoKey = define(Warning, "no-key",
		"the path does not identify the kernel; put it at ID/VERSION_ID/ARCH/RELEASE.btf")
	Undeduplicated = define(Warning, "undeduplicated",
		"unmerged types, so relocations may be ambiguous; encode it again with a newer pahole")
	DebugKernel = define(Warning, "debug-kernel",
		"BTF of a debug kernel, with other offsets; take the production kernel's")
	NoFunctions = define(Warning, "no-functions",
		"no functions to check attach targets and kfuncs; encode it again with a newer pahole")
	NoModules = define(Warning, "no-modules",
		"no BTF of modules, unlike other kernels here; their types stay unresolved")
	StrayModules = define(Warning, "stray-modules",
		"modules without their vmlinux; put them together")
	DanglingLink = define(Warning, "dangling-link",
		"a link to a missing file; remove it")
	KeyRepeated = define(Note, "key-repeated",
		"files with the same BTF for one kernel; one is enough")
	ModuleCopies = define(Note, "module-copies",
		"modules repeat structs of their vmlinux, which takes space")
	Link = define(Note, "link",
		"a second name of files that are read anyway")
)

// Run reads the whole corpus and reports mistakes. The only error is ctx's.
func Run(ctx context.Context, cfg walk.Config) (*Report, error) {
	all, skipped, err := inspectAll(ctx, cfg, (*inspector).inspect)
	if err != nil {
		return nil, err
	}
	c := cfg.Corpus
	j := judge{&Report{Kernels: len(all), Ignored: c.Ignored, Unselected: c.Unselected, Findings: []Finding{}}}
	j.skipped(skipped)
	j.kernels(all)
	slices.SortFunc(j.rep.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Codes, a.Code), slices.Index(Codes, b.Code)),
			cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Detail, b.Detail),
		)
	})
	return j.rep, nil
}

// inspectAll returns the facts of all kernels of a corpus, in its order, and what was skipped.
func inspectAll(ctx context.Context, cfg walk.Config,
	inspect func(*inspector, context.Context, *corpus.Kernel) facts) ([]facts, []*corpus.Error, error) {
	all := make([][]facts, len(cfg.Corpus.Files)) // each file has its own slice, so workers need no lock
	skipped, err := walk.Kernels(ctx, cfg, func() *inspector { return &inspector{sources: cfg.Corpus.Sources} },
		func(in *inspector, file int, k *corpus.Kernel) error {
			all[file] = append(all[file], inspect(in, ctx, k))
			return nil
		})
	return slices.Concat(all...), skipped, err
}
