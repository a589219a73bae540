// SPDX-License-Identifier: Apache-2.0

// Package lint finds mistakes in a corpus of kernel BTFs: files that are damaged or misplaced, and BTF that misleads its users.
//
// Run inspects each kernel and keeps some hundred bytes of facts. Then it judges the facts of all kernels. Each Finding has a
// Code, with a severity and an advice. List and Read list kernels.
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
// # Cut enumerators
//
// A compiler makes an enum of 8 bytes if an enumerator needs more than 32 bits. The kind ENUM has 32 bits for each, so pahole
// before 1.24 cut them. Later ones write ENUM64, unless an option forbids it.
//
// # Missing deduplication
//
// pahole merges the types of all compilation units. If that fails, each unit has its own copies. Every kernel uses a few names for
// different structs: in 26 kernels, 4.18 to 7.3, at most 3.0 % of the named structs have the name of another (231 of 7,714);
// in CentOS 8's 4.18 for arm64 it is 92 % (72,458 of 78,532, task_struct alone 476 times). The limit is a tenth, from a
// hundred copies on.
package lint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Finding is a mistake in one kernel or file.
type Finding struct {
	Code   *Code
	Kernel string // key, or path if it is unknown
	Path   string
	Detail string // text in addition to that of the code
	Shared bool   // see corpus.Error
}

// Report is the result of a run.
type Report struct {
	Kernels    int       `json:"kernels"`    // read, including damaged ones
	Ignored    int       `json:"ignored"`    // files without BTF, such as BTFHub's .failed and .hasbtf
	Unselected int       `json:"unselected"` // files that the selectors exclude
	Errors     int       `json:"errors"`
	Warnings   int       `json:"warnings"`
	Notes      int       `json:"notes"`
	Findings   []Finding `json:"-"` // sorted in the order of Codes, then by kernel
}

// Code is a kind of finding.
type Code struct {
	Name     string // never renamed
	Severity string // error, warning, or note for what a kernel's distribution decides
	Text     string // explains the code and advises what to do
}

// The codes.
var (
	Empty          = &Code{"empty", "error", "the file is empty; fetch it again, or remove it"}
	Damaged        = &Code{"damaged", "error", "the file cannot be read, so commands skip it; fetch it again"}
	WrongArch      = &Code{"wrong-arch", "error", "the BTF is not for the machine that its path names; move it"}
	KeyConflict    = &Code{"key-conflict", "error", "files with different BTF for one kernel; only one is used, so remove the others"}
	NoKey          = &Code{"no-key", "warning", "the path does not identify the kernel; put it at ID/VERSION_ID/ARCH/RELEASE.btf"}
	NoRelease      = &Code{"no-release", "note", "no host has this release, as uname -r begins with a number; import it with --as and the release that hosts have"}
	StrayModules   = &Code{"stray-modules", "warning", "modules without their vmlinux; put them together"}
	DanglingLink   = &Code{"dangling-link", "warning", "a link to a missing file; remove it"}
	Undeduplicated = &Code{"undeduplicated", "note", "unmerged types, so relocations may be ambiguous; encode it again with a newer pahole"}
	DebugKernel    = &Code{"debug-kernel", "note", "BTF of a debug kernel, with other offsets; take the production kernel's"}
	CutEnumerators = &Code{"cut-enumerators", "note", "enumerators of more than 32 bits are cut; encode it again with pahole 1.24 or newer"}
	NoFunctions    = &Code{"no-functions", "note", "no functions to check attach targets and kfuncs; encode it again with a newer pahole"}
	NoModules      = &Code{"no-modules", "note", "no BTF of modules, unlike other kernels here; their types stay unresolved"}
)

// Codes are all codes in the order of a report.
var Codes = []*Code{
	Empty, Damaged, WrongArch, KeyConflict, NoKey, StrayModules, DanglingLink, NoRelease, Undeduplicated, DebugKernel, CutEnumerators, NoFunctions, NoModules,
}

// Run reads the whole corpus and reports mistakes. The only error is ctx's.
func Run(ctx context.Context, cfg walk.Config) (*Report, error) {
	all, skipped, err := inspectAll(ctx, cfg, (*inspector).inspect)
	if err != nil {
		return nil, err
	}
	c := cfg.Corpus
	rep := &Report{Kernels: len(all), Ignored: c.Ignored, Unselected: c.Unselected, Findings: []Finding{}}
	for _, s := range skipped {
		rep.skipped(s)
	}
	rep.kernels(all)
	for _, f := range rep.Findings {
		switch f.Code.Severity {
		case "error":
			rep.Errors++
		case "warning":
			rep.Warnings++
		default:
			rep.Notes++
		}
	}
	sort.Slice(rep.Findings, func(i, j int) bool {
		a, b := &rep.Findings[i], &rep.Findings[j]
		return cmp.Or(
			cmp.Compare(slices.Index(Codes, a.Code), slices.Index(Codes, b.Code)),
			cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Detail, b.Detail),
		) < 0
	})
	return rep, nil
}

func (r *Report) add(c *Code, kernel, path, detail string) {
	r.Findings = append(r.Findings, Finding{Code: c, Kernel: kernel, Path: path, Detail: detail})
}

// skipped judges what could not be read.
func (r *Report) skipped(s *corpus.Error) {
	code, detail := Damaged, s.Reason()
	fi, err := os.Stat(s.Path)
	link, linkErr := os.Lstat(s.Path)
	switch {
	case err != nil && linkErr == nil && link.Mode()&fs.ModeSymlink != 0:
		if code = DanglingLink; errors.Is(err, fs.ErrNotExist) {
			detail = ""
		}
	case err == nil && fi.Mode().IsRegular() && fi.Size() == 0:
		code, detail = Empty, ""
	case errors.Is(s, corpus.ErrNoKernel):
		code, detail = StrayModules, ""
	}
	r.Findings = append(r.Findings, Finding{code, s.Path, s.Path, detail, s.Shared})
}

// kernels judges the kernels that were read, in the order of the corpus.
func (r *Report) kernels(all []facts) {
	withModules := slices.ContainsFunc(all, func(f facts) bool { return f.modules > 0 })
	first := make(map[kernel.Key]*facts)
	for i := range all {
		f := &all[i]
		switch same := first[f.key]; {
		case !f.key.Known():
			r.add(NoKey, f.name, f.path, "")
		case same == nil:
			first[f.key] = f
		case f.sum != same.sum:
			r.add(KeyConflict, f.name, f.path, "unlike "+same.path)
		}
		if linux := f.key.Linux(); f.key.Known() && linux != "" && linux != f.key.Release {
			r.add(NoRelease, f.name, f.path, "")
		}
		r.kernel(f, withModules)
	}
}

// maxCopies is the number of copied structs that is normal; see the package comment.
const maxCopies = 100

// kernel judges a kernel.
func (r *Report) kernel(f *facts, withModules bool) {
	add := func(c *Code, detail string) { r.add(c, f.name, f.path, detail) }
	for _, m := range f.bad {
		r.add(Damaged, f.name, m.Path, m.Reason())
	}
	switch {
	case f.damage != nil:
		add(Damaged, f.damage.Error())
		return
	case f.types == 0:
		add(Empty, "BTF without types")
		return
	}
	if f.wrong != "" {
		add(WrongArch, f.wrong)
	}
	if copies := f.structs - f.names; copies > maxCopies && copies > f.structs/10 {
		add(Undeduplicated, fmt.Sprintf("%d of %d named structs are copies", copies, f.structs))
	}
	if len(f.debug) > 0 {
		add(DebugKernel, "CONFIG_"+strings.Join(f.debug, ", CONFIG_"))
	}
	if f.cut > 0 {
		add(CutEnumerators, fmt.Sprintf("%s of 8 bytes, such as %s", words.Plural(f.cut, "enum"), f.cutName))
	}
	if f.funcs == 0 {
		add(NoFunctions, "")
	}
	if withModules && f.loadable && f.modules == 0 {
		add(NoModules, "")
	}
}
