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
)

// judge turns facts into findings.
type judge struct {
	rep  *Report
	have map[string]bool // identities and paths of the kernels, and paths of their files
}

func (j *judge) add(c Code, kernel, path, detail string) {
	j.rep.Findings = append(j.rep.Findings, Finding{c, kernel, path, detail})
	switch c.Severity() {
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
func (j *judge) kernels(c *corpus.Corpus, all []facts) {
	withModules := slices.ContainsFunc(all, func(f facts) bool { return f.Details != nil && f.Modules > 0 })
	first := make(map[string]*facts)
	for i := range all {
		f := &all[i]
		path := c.Files[f.file].Path
		id := f.identity()
		for _, name := range []string{id, f.Path, path, below(c.Sources, path)} {
			j.have[name] = true
		}
		switch same := first[id]; {
		case !f.Key().Known():
			j.add(NoKey, f.Kernel, f.Path, "")
		case same == nil:
			first[id] = f
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
	add := func(c Code, detail string) { j.add(c, f.Kernel, f.Path, detail) }
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

// earlier finds lost kernels.
func (j *judge) earlier(cfg *Config) {
	for i := range cfg.Earlier {
		e := &cfg.Earlier[i]
		if cfg.Selected != nil && !cfg.Selected(e) || j.have[e.identity()] || e.File != "" && j.have[e.Path] {
			continue
		}
		j.have[e.identity()] = true // report it once
		j.add(Lost, e.Kernel, e.Path, "")
	}
}
