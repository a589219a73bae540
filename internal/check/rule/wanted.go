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
	patterns []glob          // patterns of functions
	symbols  map[string]bool // names of functions and untyped ksyms
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
	w.addSettings()
	for _, o := range objects {
		for i := range o.Programs {
			w.addProgram(o, i)
		}
		for i := range o.Externs {
			x := &o.Externs[i]
			w.add(btf.Essential(x.Name))
			w.symbols[x.Name], w.config[x.Name] = true, true
		}
		for _, m := range o.StructOps {
			w.add(StructOpsPrefix+m.Type, m.Type)
			for _, member := range m.Members {
				w.add(stubOf(m.Type, member))
			}
			if ops := facts.OpsNamed(m.Type); ops != nil {
				w.add(ops.Structs()...)
			}
		}
	}
	return w
}

// addSettings adds the settings of kernels that facts depend on, and helpers that depend on one.
func (w *Wanted) addSettings() {
	w.config[corpus.OwnBTFSetting], w.config[settingLSM], w.config[settingRealTime] = true, true, true
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
}

// addProgram adds what program i of an object attaches to, and the structs that it reads.
func (w *Wanted) addProgram(o *Object, i int) {
	p := &o.Programs[i]
	names, pattern := attachNames(p)
	w.add(names...)
	for _, n := range names {
		w.symbols[n], w.symbols[blacklist+n] = true, true
	}
	if pattern != "" && len(pattern) <= limits.PatternBytes && len(w.patterns) < limits.Patterns && w.pattern(pattern) < 0 {
		w.patterns = append(w.patterns, newGlob(pattern))
	}
	w.add(o.record(i))
	if p.Attach != nil && p.Attach.Kind == bpfobj.AttachTP {
		w.add(enterRecord, exitRecord)
	}
	if p.Attach != nil && len(o.accesses[i]) > 0 {
		w.add(facts.ProgramType(p.Attach.ProgType).Context)
	}
	for j := range o.accesses[i] {
		a := &o.accesses[i][j]
		w.add(a.Struct)
		if record, ok := o.typed(a); ok {
			w.add(o.records.root(record))
		}
	}
	walks := &o.walks[i]
	w.walks = w.walks || len(walks.Uses) > 0
	for j := range walks.Steps {
		w.add(facts.HelperNumbered(int64(walks.Steps[j].Helper)).Result)
	}
}

// featureNames are what is looked for in every kernel.
func featureNames() []string {
	names := []string{anyTracepoint, kprobes, corpus.OwnBTFInit, corpus.OwnBTFModule, loadsModules, corpus.BPFInit}
	return append(names, facts.Types()...)
}
