// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// runKnown checks an object of testdata/bpf on Debian's 6.1 with a configuration and
// symbols, each unless it is empty.
func runKnown(t *testing.T, object, config, symbols string) *Report {
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
	o, err := Parse(t.Context(), object, data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(context.Background(), []string{dir}, corpus.Options{Extras: true})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 1})
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
	type verdicts map[string]Status // those that differ from guarded, or ok for kprobes
	noModules := strings.Replace(usualConfig, "CONFIG_MODULES=y\n", "", 1)
	for name, tt := range map[string]struct {
		config, symbols string
		want            verdicts
	}{
		"nothing known": {"", "", verdicts{
			"truth": MayFail, "tristate": MayFail, "letter": MayFail, "number": MayFail, "text": MayFail, "not_set": MayFail, "symbol": MayFail, "variable": MayFail, "probed": MayFail,
			"no_symbol": MayFail, "nothing_to_probe": MayFail, "nothing_matches": MayFail,
		}},
		"all symbols":   {usualConfig + "CONFIG_NET=y\nCONFIG_KALLSYMS_ALL=y\n", "", verdicts{"no_symbol": MayFail, "nothing_to_probe": MayFail, "nothing_matches": MayFail}},
		"configuration": {usualConfig, "", verdicts{"variable": Fails, "no_symbol": MayFail, "nothing_to_probe": MayFail, "nothing_matches": MayFail}},
		"both":          {usualConfig, usualSymbols, verdicts{"nothing_to_probe": MayFail, "nothing_matches": MayFail}},
		"no modules":    {noModules, usualSymbols, verdicts{"nothing_to_probe": Fails, "nothing_matches": Fails}},
		"other settings": {strings.NewReplacer("JIT=y", "JIT=m", "EVENTS=y", "EVENTS=m", "250", "99", "(none)", "host").Replace(noModules), usualSymbols, verdicts{
			"tristate": Fails, "letter": Fails, "number": Fails, "text": Fails, "nothing_to_probe": Fails, "nothing_matches": Fails,
		}},
		"another set":  {noModules + "CONFIG_NO_SUCH_SETTING=y\n", usualSymbols, verdicts{"not_set": Fails, "nothing_to_probe": Fails, "nothing_matches": Fails}},
		"others there": {noModules, usualSymbols + "t no_such_function\nt no_such_func2\nd no_such_symbol\n", verdicts{"no_symbol": Fails}},
		"inlined":      {noModules, strings.Replace(usualSymbols, "vfs_read", "vfs_read.isra.0", 1), verdicts{"symbol": Fails, "probed": Fails, "nothing_to_probe": Fails, "nothing_matches": Fails}},
		"twice":        {noModules, usualSymbols + "t vfs_read\n", verdicts{"probed": MayFail, "nothing_to_probe": Fails, "nothing_matches": Fails}},
		"of a module":  {usualConfig, usualSymbols + "t no_such_function [some]\n", verdicts{}},
	} {
		rep := runKnown(t, "settings.bpfel", tt.config, tt.symbols)
		for i := range rep.Programs {
			p := &rep.Programs[i]
			want, ok := tt.want[p.Name]
			if probe := strings.HasPrefix(p.Section, "kprobe"); !ok && !probe {
				want = Guarded
			} else if probe && p.Load[0] != OK && tt.config != "" {
				t.Errorf("%s: %s: %s to load", name, p.Name, p.Load[0])
			}
			if p.Status[0] != want {
				t.Errorf("%s: %s: %s, want %s: %v", name, p.Name, p.Status[0], want, p.Findings)
			}
		}
	}
	// What is strong keeps libbpf from all programs, and so does what does not go into the variable.
	for config, want := range map[string]Status{"": MayFail, usualConfig: Fails, usualConfig + "CONFIG_NO_SUCH_SETTING=y\n": OK, usualConfig + "CONFIG_NO_SUCH_SETTING=m\n": Fails} {
		if rep := runKnown(t, "unset.bpfel", config, ""); rep.Programs[0].Status[0] != want {
			t.Errorf("%q: %s, want %s: %v", config, rep.Programs[0].Status[0], want, rep.Programs[0].Findings)
		}
	}
}

// TestVariables holds the verdict on a program that reads a variable of the kernel, whose address only a kernel with a list
// of all its symbols knows.
func TestVariables(t *testing.T) {
	for config, want := range map[string]Status{"": OK, usualConfig: Fails, usualConfig + "CONFIG_KALLSYMS_ALL=y\n": OK} {
		rep := runKnown(t, "kfuncs.bpfel", config, "")
		p, k := find(t, rep, "sched_switch", rep.Kernels[0].Name)
		if got := statusOf(p, k, FamilyKsym); got != want {
			t.Errorf("%q: %s, want %s: %v", config, got, want, p.Findings)
		}
	}
}

// TestHiddenPatchLevel takes it from the configuration: Debian's release does not show it.
func TestHiddenPatchLevel(t *testing.T) {
	for version, want := range map[string]interp.Number{
		"6.1.90":   {V: 6<<16 | 1<<8 | 90},
		"6.1.1":    {V: 6<<16 | 1<<8 | 1},
		"6.1.0":    {V: 6<<16 | 1<<8, Unknown: 0xff},
		"5.10.99":  {V: 6<<16 | 1<<8, Unknown: 0xff}, // another kernel's
		"999.1.90": {V: 6<<16 | 1<<8, Unknown: 0xff},
	} {
		k := &inventory{want: new(wanted), version: versionOf(kernel.Key{ID: "debian", Release: "6.1.0-47-amd64"})}
		k.readConfig([]byte(strings.Replace(usualConfig, "6.1.90", version, 1)))
		if k.version != want {
			t.Errorf("%s: %+v, want %+v", version, k.version, want)
		}
	}
}

// TestSetting compares with what libbpf writes into variables.
func TestSetting(t *testing.T) {
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "settings.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := Parse(t.Context(), "settings", data)
	if err != nil {
		t.Fatal(err)
	}
	const refused = ^uint64(0)
	type values map[string]uint64 // by text
	all := map[string]values{
		"CONFIG_BPF_SYSCALL":      {"y": 1, "n": 0, "m": refused, "1": 1, "2": refused, `"y"`: refused},
		"CONFIG_BPF_JIT":          {"y": 1, "n": 0, "m": 2, "1": refused},
		"CONFIG_BPF_EVENTS":       {"y": 'y', "m": 'm', "65": 65, "127": 127, "128": refused, "-128": 0x80, "-129": refused},
		"CONFIG_HZ":               {"250": 250, "0xff": 255, "010": 8, "-1": 0xffffffff, "2147483648": refused, "-2147483648": 0x80000000, "y": refused, "": refused, "x": refused},
		"CONFIG_DEFAULT_HOSTNAME": {`"ab"`: 0x6261, `""`: 0, `"0123456789abcdefgh"`: 0x3736353433323130, `"`: refused, "1": refused, "y": refused},
	}
	found := 0
	for i := range o.Externs {
		x := &o.Externs[i]
		for text, want := range all[x.Name] {
			found++
			k := &inventory{known: knowledge{config: map[string]string{x.Name: text}}}
			got, err := k.setting(o, x)
			if want == refused && err == nil || want != refused && (err != nil || got.V != want || got.Unknown != 0) {
				t.Errorf("%s=%s: %+v, %v, want %#x", x.Name, text, got, err, want)
			}
		}
	}
	if found != 32 {
		t.Errorf("%d values were tried", found)
	}
}
