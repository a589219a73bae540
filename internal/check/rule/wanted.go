// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
)

// Wanted is the names to look for in a kernel's BTF. It is immutable.
type Wanted struct {
	names    map[string]int
	patterns []glob          // of functions
	symbols  map[string]bool // of functions and untyped ksyms
	config   map[string]bool // CONFIG_*
	walks    bool            // the verifier's lists of members of structs
}

func (w *Wanted) add(names ...string) {
	for _, n := range names {
		if _, ok := w.names[n]; !ok && n != "" {
			w.names[n] = len(w.names)
		}
	}
}

// pattern returns the number of a pattern of functions, -1 if the pattern is not wanted.
func (w *Wanted) pattern(text string) int {
	return slices.IndexFunc(w.patterns, func(g glob) bool { return g.text == text })
}

// NewWanted returns what is looked for to judge objects.
func NewWanted(objects []*Object) *Wanted {
	w := &Wanted{names: make(map[string]int), symbols: make(map[string]bool), config: make(map[string]bool)}
	w.add(featureNames()...)
	w.add(allSyscallNames("bpf")...)
	w.config[corpus.OwnBTFSetting], w.config[settingLSM] = true, true
	for id := range facts.LastHelper + 1 {
		if setting := facts.HelperNumbered(id).Setting; setting != "" {
			w.config[setting] = true
			w.add(facts.HelperName(id))
			w.symbols[facts.HelperName(id)] = true
		}
	}
	for _, s := range facts.Settings() {
		w.config[s] = true
	}
	for _, s := range pageSettings {
		w.config[s.name] = true
	}
	for _, settings := range everyKernels {
		for _, s := range settings {
			w.config[s] = true
		}
	}
	for _, o := range objects {
		for i := range o.Programs {
			names, pattern := attachNames(&o.Programs[i])
			w.add(names...)
			for _, n := range names {
				w.symbols[n], w.symbols[blacklist+n] = true, true
			}
			w.add(o.record(i))
			if o.Programs[i].Attach != nil && o.Programs[i].Attach.Kind == bpfobj.AttachTP {
				w.add(enterRecord, exitRecord)
			}
			if pattern != "" && len(pattern) <= limits.PatternBytes && len(w.patterns) < limits.Patterns && w.pattern(pattern) < 0 {
				w.patterns = append(w.patterns, newGlob(pattern))
			}
		}
		for j, l := range o.accesses {
			if s := o.Programs[j].Attach; s != nil && len(l) > 0 {
				w.add(facts.ProgramType(s.ProgType).Context)
			}
			for i := range l {
				w.add(l[i].Struct)
				if record, ok := o.typed(&l[i]); ok {
					w.add(o.records.root(record))
				}
			}
		}
		for j := range o.walks {
			w.walks = w.walks || len(o.walks[j].Uses) > 0
			for i := range o.walks[j].Steps {
				w.add(facts.HelperNumbered(int64(o.walks[j].Steps[i].Helper)).Result)
			}
		}
		for i := range o.Externs {
			x := &o.Externs[i]
			w.add(btf.Essential(x.Name))
			w.symbols[x.Name], w.config[x.Name] = true, true
		}
		for _, m := range o.StructOps {
			w.add(StructOpsPrefix+m.Type, m.Type)
		}
	}
	return w
}

// featureNames are what is looked for in every kernel.
func featureNames() []string {
	return append([]string{anyTracepoint, kprobes, corpus.OwnBTFInit, corpus.OwnBTFModule, loadsModules, corpus.BPFInit}, facts.Types()...)
}
