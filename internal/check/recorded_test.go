// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// recorded is what became of a program on a kernel that was booted, in a line of the file that BTFGEN_RECORDED names.
type recorded struct {
	Kernel, Object, Program string
	Loads                   bool
	Reason                  string
}

// stand has the kernel of a corpus whose BTF stands for that of a booted kernel, of which there is none, and the release up to which it
// may have facts.
var stand = map[string]struct {
	id, arch, series string
	release          release
}{
	"4.19.108": {"bclinux", "x86_64", "4.19", linux(4, 19)},
	"5.4.273":  {"debian", "x86_64", "5.10", linux(5, 4)},
}

// otherwise are reasons that are not a kernel's release: relocations, as the types of the kernel that stands for the booted one are not its
// own, and what the booted one has no BTF for.
var otherwise = []string{"CO-RE", "Error loading vmlinux BTF", "-ESRCH"}

// alike are objects of testdata with programs that every kernel refuses, or what is known to be wrong with one.
var alike = map[string]string{
	"masks": "accesses beyond a value", "returns": "return values", "license": "licenses", "context": "parts of the context", "perfvalue": "sizes of values",
	"ranges": "bounds of accesses", "since": "5.4.273 follows the content of read-only maps, which 5.4 did not",
}

// TestRecorded compares verdicts with what booted kernels of 4.19 and 5.4 did. What is predicted to load has to, and the other way round.
func TestRecorded(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	path, debian := os.Getenv("BTFGEN_RECORDED"), os.Getenv("BTFGEN_DEBIAN")
	if path == "" || debian == "" || os.Getenv("BTFGEN_CORPUS") == "" {
		t.Skip("needs BTFGEN_RECORDED, BTFGEN_DEBIAN and BTFGEN_CORPUS")
	}
	objects := append(recordedObjects(t, debian), recordedObjects(t, testinput.Path(t, "testdata", "bpf"))...)
	rows := readRecorded(t, path)
	for name, s := range stand {
		r := newRun(Config{Objects: objects, Jobs: 1, Loaders: []Loader{Libbpf}})
		r.inspected = func(k *inventory) { k.age(s.release) }
		testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
			if it.Key.ID == s.id && strings.HasPrefix(it.Key.Release, s.series) && it.Key.Arch == s.arch {
				it.Modules = nil
				r.item(t.Context(), new(target), it)
			}
		})
		if len(r.kernels) != 1 {
			t.Errorf("%s: %d kernels stand for it", name, len(r.kernels))
			continue
		}
		programs := make(map[string]*Program)
		for i, o := range objects {
			for j := range o.Programs {
				p := r.row(i, j)
				programs[o.name+":"+p.Name] = &p
			}
		}
		counts := make(map[string]int)
		var table [2][Fails + 1][2]int // of real tools and of testdata: works, does not
		for _, row := range rows {
			p := programs[row.Object+":"+row.Program]
			if row.Kernel != name {
				continue
			}
			if p == nil {
				counts["not found"]++
				continue
			}
			got := p.Load[0]
			own, not := 0, 0
			if strings.HasPrefix(row.Object, "testdata") {
				own = 1
			}
			if !row.Loads {
				not = 1
			}
			table[own][got][not]++
			if slices.ContainsFunc(otherwise, func(s string) bool { return strings.Contains(row.Reason, s) }) {
				continue
			}
			if alike[strings.TrimSuffix(filepath.Base(row.Object), ".bpfel.o")] != "" {
				continue
			}
			types := worst(findingsOn(p, 0, FamilyCORE)) == Fails
			if row.Loads && got == Fails && !types || !row.Loads && got <= Guarded {
				t.Errorf("%s: %s %s: %s, but loads %t: %s: %v", name, row.Object, row.Program, got, row.Loads, row.Reason, p.Findings)
			}
		}
		for own, objects := range []string{"real tools", "testdata"} {
			line := "|" + name + "|" + objects
			for _, s := range []Status{OK, Guarded, MayFail, Fails} {
				line += fmt.Sprintf("|%d/%d", table[own][s][0], table[own][s][1])
			}
			t.Log(line + "|")
		}
		if counts["not found"] > len(rows)/20 {
			t.Errorf("%s: %d of %d not found", name, counts["not found"], len(rows))
		}
	}
}

func readRecorded(t *testing.T, path string) (all []recorded) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// recordedObjects are the objects below a directory with the names that they have in the records.
func recordedObjects(t *testing.T, dir string) (all []*Object) {
	packages := map[string]string{"bpf": "libxdp1"}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		found, err := embedded.ReadFile(path)
		if errors.Is(err, embedded.ErrNone) {
			return nil
		}
		base := filepath.Base(path)
		for i, f := range found {
			name := "testdata/bpf/" + base
			if !strings.HasSuffix(base, ".bpfel.o") {
				pack := packages[filepath.Base(filepath.Dir(path))]
				if pack == "" {
					if pack = "libbpf-tools"; strings.HasPrefix(base, "xdp") {
						pack = "xdp-tools"
					}
				}
				name = pack + "-" + strings.TrimSuffix(base, ".o")
				if i > 0 {
					name += fmt.Sprintf("-%d", i+1)
				}
				name += ".bpf.o"
			}
			if o, err := Parse(t.Context(), name, f.Data); err == nil {
				all = append(all, o)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// age removes from an inventory what came after a release.
func (k *inventory) age(to release) {
	for name, came := range facts().came {
		if enum, enumerator := enumeratorOf(name); came > to && k.enums[enum] != nil {
			delete(k.enums[enum], enumerator)
		}
	}
	if to < linux(5, 8) { // when flags became an enum
		k.enums[enumMapFlag] = nil
	}
	k.version.V, k.version.Unknown = uint64(to), 0
	k.readHelpers()
	k.settle()
	for i, f := range facts().all {
		if r := &k.facts[i]; f.since > to && r.decided == ByWitness {
			r.presence, r.witness = lacking, f.witness[0].text
		}
	}
}
