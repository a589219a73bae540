// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// judge turns facts into findings.
type judge struct{ rep *Report }

func (j *judge) add(c *Code, kernel, path, detail string) {
	j.rep.Findings = append(j.rep.Findings, Finding{c, kernel, path, detail})
	switch c.Severity {
	case Error:
		j.rep.Errors++
	case Warning:
		j.rep.Warnings++
	case Note:
		j.rep.Notes++
	}
}

// skipped judges what could not be read.
func (j *judge) skipped(skipped []*corpus.Error) {
	for _, s := range skipped {
		fi, err := os.Lstat(s.Path)
		switch {
		case err == nil && fi.Mode()&fs.ModeSymlink != 0:
			if _, err := os.Stat(s.Path); err != nil {
				j.add(DanglingLink, s.Path, s.Path, "")
			} else {
				j.add(Link, s.Path, s.Path, s.Reason())
			}
		case err == nil && fi.Mode().IsRegular() && fi.Size() == 0:
			j.add(Empty, s.Path, s.Path, "")
		case errors.Is(s, corpus.ErrNoKernel):
			j.add(StrayModules, s.Path, s.Path, "")
		default:
			j.add(Damaged, s.Path, s.Path, s.Reason())
		}
	}
}

// kernels judges the kernels that were read, in the order of the corpus.
func (j *judge) kernels(all []facts) {
	withModules := slices.ContainsFunc(all, func(f facts) bool { return f.Details != nil && f.Modules > 0 })
	first := make(map[kernel.Key]*facts)
	for i := range all {
		f := &all[i]
		key := f.Key().Canonical()
		switch same := first[key]; {
		case !key.Known():
			j.add(NoKey, f.Kernel, f.Path, "")
		case same == nil:
			first[key] = f
		case f.sum == same.sum:
			j.add(KeyRepeated, f.Kernel, f.Path, "like "+same.Path)
		default:
			j.add(KeyConflict, f.Kernel, f.Path, "unlike "+same.Path)
		}
		if f.damage != nil {
			j.add(Damaged, f.Kernel, f.Path, f.damage.Error())
			continue
		}
		j.kernel(f, withModules)
	}
}

// The limits of what is normal; see the package comment.
const (
	maxStructCopies = 100
	maxModuleCopies = 100 // and 10 per module
)

// kernel judges a kernel whose BTF could be loaded.
func (j *judge) kernel(f *facts, withModules bool) {
	add := func(c *Code, detail string) { j.add(c, f.Kernel, f.Path, detail) }
	for _, m := range f.bad {
		j.add(Damaged, f.Kernel, m.Path, m.Reason())
	}
	if f.Types == 0 {
		add(Empty, "BTF without types")
		return
	}
	if f.wrong != "" {
		add(WrongArch, f.wrong)
	}
	if extra := f.structs - f.names; extra > maxStructCopies && extra > f.structs/10 {
		add(Undeduplicated, fmt.Sprintf("%d × struct %s; %d of %d named structs are copies", f.worstCount, f.worst, extra, f.structs))
	}
	if len(f.debug) > 0 {
		add(DebugKernel, "CONFIG_"+strings.Join(f.debug, ", CONFIG_"))
	}
	if f.funcs == 0 {
		add(NoFunctions, "")
	}
	if withModules && f.modules && f.Modules == 0 {
		add(NoModules, "")
	}
	if f.moduleCopies > maxModuleCopies && f.moduleCopies > 10*f.Modules {
		add(ModuleCopies, fmt.Sprintf("%s in %s", words.Plural(f.moduleCopies, "struct"), words.Plural(f.Modules, "module")))
	}
}
