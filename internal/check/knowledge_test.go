// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// runKnown checks an object of testdata/bpf on Debian's 6.1 with a configuration and
// symbols, each unless it is empty.
func runKnown(t *testing.T, object, config, symbols string) *verdict.Report {
	t.Helper()
	const name = "debian/12/x86_64/6.1.0-47-amd64"
	blob, err := os.ReadFile(testinput.Path(t, "testdata", "vmlinux", name+".btf.zst"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", object+".o"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for suffix, content := range map[string]string{".btf.zst": string(blob), ".config": config, ".kallsyms": symbols} {
		p := filepath.Join(dir, name+suffix)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if content != "" {
			if err := os.WriteFile(p, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	o, err := rule.Parse(t.Context(), object, data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(context.Background(), []string{dir}, corpus.Options{Extras: true})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: []*rule.Object{o}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

const (
	usualConfig  = "# Linux/x86 6.1.90 Kernel Configuration\nCONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\nCONFIG_BPF_EVENTS=y\nCONFIG_DEBUG_INFO_BTF=y\nCONFIG_HZ=250\nCONFIG_DEFAULT_HOSTNAME=\"(none)\"\nCONFIG_MODULES=y\n"
	usualSymbols = "d init_net\nt _stext\nt vfs_read\nt vfs_open\nt schedule\n"
)

// TestSettings holds verdicts on what depends on the configuration and on symbols. The
// same programs are loaded into kernels by scripts/check-kernels.sh.
func TestSettings(t *testing.T) {
	raceflag.SkipSerial(t)
	type verdicts map[string]rule.Status // verdicts other than guarded, or than ok for kprobes
	noModules := strings.Replace(usualConfig, "CONFIG_MODULES=y\n", "", 1)
	for name, tt := range map[string]struct {
		config, symbols string
		want            verdicts
	}{
		"nothing known": {"", "", verdicts{
			"truth": rule.MayFail, "tristate": rule.MayFail, "letter": rule.MayFail, "number": rule.MayFail, "text": rule.MayFail, "not_set": rule.MayFail, "symbol": rule.MayFail, "variable": rule.MayFail, "probed": rule.MayFail,
			"no_symbol": rule.MayFail, "nothing_to_probe": rule.MayFail, "nothing_matches": rule.MayFail,
		}},
		"all symbols":   {usualConfig + "CONFIG_NET=y\nCONFIG_KALLSYMS_ALL=y\n", "", verdicts{"no_symbol": rule.MayFail, "nothing_to_probe": rule.MayFail, "nothing_matches": rule.MayFail}},
		"configuration": {usualConfig, "", verdicts{"variable": rule.Fails, "no_symbol": rule.MayFail, "nothing_to_probe": rule.MayFail, "nothing_matches": rule.MayFail}},
		"both":          {usualConfig, usualSymbols, verdicts{"nothing_to_probe": rule.MayFail, "nothing_matches": rule.MayFail}},
		"no modules":    {noModules, usualSymbols, verdicts{"nothing_to_probe": rule.Fails, "nothing_matches": rule.Fails}},
		"other settings": {strings.NewReplacer("JIT=y", "JIT=m", "EVENTS=y", "EVENTS=m", "250", "99", "(none)", "host").Replace(noModules), usualSymbols, verdicts{
			"tristate": rule.Fails, "letter": rule.Fails, "number": rule.Fails, "text": rule.Fails, "nothing_to_probe": rule.Fails, "nothing_matches": rule.Fails,
		}},
		"another set":  {noModules + "CONFIG_NO_SUCH_SETTING=y\n", usualSymbols, verdicts{"not_set": rule.Fails, "nothing_to_probe": rule.Fails, "nothing_matches": rule.Fails}},
		"others there": {noModules, usualSymbols + "t no_such_function\nt no_such_func2\nd no_such_symbol\n", verdicts{"no_symbol": rule.Fails}},
		"inlined":      {noModules, strings.Replace(usualSymbols, "vfs_read", "vfs_read.isra.0", 1), verdicts{"symbol": rule.Fails, "probed": rule.Fails, "nothing_to_probe": rule.Fails, "nothing_matches": rule.Fails}},
		"twice":        {noModules, usualSymbols + "t vfs_read\n", verdicts{"probed": rule.MayFail, "nothing_to_probe": rule.Fails, "nothing_matches": rule.Fails}},
		"of a module":  {usualConfig, usualSymbols + "t no_such_function [some]\n", verdicts{}},
	} {
		rep := runKnown(t, "settings.bpfel", tt.config, tt.symbols)
		for i := range rep.Programs {
			p := &rep.Programs[i]
			want, ok := tt.want[p.Name]
			if probe := strings.HasPrefix(p.Section, "kprobe"); !ok && !probe {
				want = rule.Guarded
			} else if probe && p.Load[0] != rule.OK && tt.config != "" {
				t.Errorf("%s: %s: %s to load", name, p.Name, p.Load[0])
			}
			got := p.Status[0]
			if p.Name == "nothing_matches" { // fails for any pattern: the kernel was built without probes of several functions
				var others []rule.Finding
				for _, f := range p.Findings {
					if f.Code != rule.FeatureMissing {
						others = append(others, f.Finding)
					}
				}
				if got != rule.Fails {
					t.Errorf("%s: %s: %s", name, p.Name, got)
				}
				got = rule.Worst(others)
			}
			if got != want {
				t.Errorf("%s: %s: %s, want %s: %v", name, p.Name, got, want, p.Findings)
			}
		}
	}
	// What is strong keeps libbpf from all programs, and so does what does not go into the variable.
	for config, want := range map[string]rule.Status{"": rule.MayFail, usualConfig: rule.Fails, usualConfig + "CONFIG_NO_SUCH_SETTING=y\n": rule.OK, usualConfig + "CONFIG_NO_SUCH_SETTING=m\n": rule.Fails} {
		if rep := runKnown(t, "unset.bpfel", config, ""); rep.Programs[0].Status[0] != want {
			t.Errorf("%q: %s, want %s: %v", config, rep.Programs[0].Status[0], want, rep.Programs[0].Findings)
		}
	}
}

// TestVariables holds the verdict on a program that reads a variable of the kernel, whose address only a kernel with a list
// of all its symbols knows.
func TestVariables(t *testing.T) {
	for config, want := range map[string]rule.Status{"": rule.OK, usualConfig: rule.Fails, usualConfig + "CONFIG_KALLSYMS_ALL=y\n": rule.OK} {
		rep := runKnown(t, "kfuncs.bpfel", config, "")
		p, k := find(t, rep, "sched_switch", rep.Kernels[0].Name)
		if got := statusOf(p, k, rule.FamilyKsym); got != want {
			t.Errorf("%q: %s, want %s: %v", config, got, want, p.Findings)
		}
	}
}
