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
	have map[string]bool // identities of the kernels, paths of theirs and of the files with some
}

func (j *judge) add(c Code, kernel, path, detail string) {
	j.rep.Findings = append(j.rep.Findings, Finding{c.Severity(), c, kernel, path, detail})
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

// kernels judges the kernels that were read, which are in order of their rank.
func (j *judge) kernels(c *corpus.Corpus, all []facts) {
	j.rep.Kernels = len(all)
	withModules := slices.ContainsFunc(all, func(f facts) bool { return f.Details != nil && f.Modules > 0 })
	j.have = make(map[string]bool)
	byKey := make(map[string][]*facts)
	for i := range all {
		f := &all[i]
		path := c.Files[f.rank.File].Path
		for _, name := range []string{f.identity(), f.Path, path, below(c.Sources, path)} {
			j.have[name] = true
		}
		if f.known {
			byKey[f.identity()] = append(byKey[f.identity()], f)
		} else {
			j.add(NoKey, f.Kernel, f.Path, "")
		}
		if f.damage != nil {
			j.add(Damaged, f.Kernel, f.Path, f.damage.Error())
			continue
		}
		j.kernel(f, withModules)
	}
	for _, same := range byKey {
		j.sameKey(same)
	}
}

// The limits of what is normal; see the package comment.
const (
	maxStructCopies = 100
	maxModuleCopies = 100 // and 10 in each module
)

// kernel judges one whose BTF is sound.
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

// sameKey judges kernels with one key. The first is the one that is used.
func (j *judge) sameKey(same []*facts) {
	first := same[0]
	for _, f := range same[1:] {
		if f.sum == first.sum {
			j.add(KeyRepeated, f.Kernel, f.Path, "like "+first.Path)
		} else {
			j.add(KeyConflict, f.Kernel, f.Path, "unlike "+first.Path)
		}
	}
}

// earlier finds the kernels that are lost.
func (j *judge) earlier(cfg *Config) {
	for i := range cfg.Earlier {
		e := &cfg.Earlier[i]
		if cfg.Selected != nil && !cfg.Selected(e) || j.have[e.identity()] || e.File != "" && j.have[e.Path] {
			continue
		}
		j.have[e.identity()] = true // once is enough
		j.add(Lost, e.Kernel, e.Path, "")
	}
}
