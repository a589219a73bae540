// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// recorded is a line of the file in BTFGEN_RECORDED: the result of loading a program into a booted kernel.
type recorded struct {
	Kernel, Object, Program string
	Loads                   bool
	Reason                  string
}

// stand has, for booted kernels whose BTF is unknown, a kernel of the corpus to use the BTF of, and the release up to which it may have
// facts.
var stand = map[string]struct {
	id, arch, series string
	release          rule.Release
}{
	"4.19.108": {"bclinux", "x86_64", "4.19", rule.Linux(4, 19)},
	"5.4.273":  {"debian", "x86_64", "5.10", rule.Linux(5, 4)},
}

// Reasons why a verdict differs from what a booted kernel did.
const (
	standIn  = "the types are those of the kernel that stands for it"
	noBounds = "bounds of accesses are not judged; every kernel refuses it"
	unequal  = "bounds of accesses are not judged; kernels before 6.8 refuse it, which learn none from !="
)

// knownDiffers has the programs of testdata whose verdict is known to differ, with the reason.
var knownDiffers = map[string]string{
	"ambiguous:exists": standIn, "ambiguous:narrowing": standIn, "ambiguous:size": standIn, "dups:all_agree": standIn, "dups:one_has_it": standIn,
	"flavors:same_type_twice": standIn, "flavors:target_flavor": standIn, "module:ext4_write": standIn, "netprogs:xdp_count": standIn, "shapes:unions": standIn,
	"masks:too_wide": noBounds, "masks:too_wide_behind": noBounds, "masks:too_wide_for_helper": noBounds,
	"ranges:not_equal": unequal, "ranges:not_equal_32": unequal, "ranges:not_equal_helper": unequal,
}

var update = flag.Bool("update", false, "write the table of old kernels in docs/accuracy.md")

// TestRecorded compares verdicts with what booted kernels of 4.19 and 5.4 did. What is predicted to load has to, and the other way round.
// It compares the counts with docs/accuracy.md; run it with -update to write them.
func TestRecorded(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	path, debian := os.Getenv("BTFGEN_RECORDED"), os.Getenv("BTFGEN_DEBIAN")
	if path == "" || debian == "" || os.Getenv("BTFGEN_CORPUS") == "" {
		t.Skip("needs BTFGEN_RECORDED, BTFGEN_DEBIAN and BTFGEN_CORPUS")
	}
	objects := append(recordedObjects(t, debian), recordedObjects(t, testinput.Path(t, "testdata", "bpf"))...)
	rows, known := readRecorded(t, path), make(map[string]bool)
	var table []string
	for _, name := range slices.Sorted(maps.Keys(stand)) {
		s := stand[name]
		r := newRun(Config{Objects: objects, Jobs: 1, Loaders: []rule.Loader{rule.Libbpf}})
		r.inspected = func(k *rule.Inventory) { rule.Age(k, s.release) }
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
		programs := make(map[string]*verdict.ProgramRow)
		for i, o := range objects {
			for j := range o.Programs {
				p := r.row(i, j, r.alike(i), r.setup.LoadersOf(o))
				programs[o.Name()+":"+p.Name] = &p
			}
		}
		var counts [2][rule.Fails + 1][2]int // for real tools and for testdata: works, does not work
		var left, wrong [2]int               // left has rows without a verdict, wrong rows of knownDiffers
		for _, row := range rows {
			p := programs[row.Object+":"+row.Program]
			if row.Kernel != name {
				continue
			}
			own, not := 0, 0
			if strings.HasPrefix(row.Object, "testdata") {
				own = 1
			}
			if p == nil {
				left[own]++
				continue
			}
			got := p.Load[0]
			if !row.Loads {
				not = 1
			}
			counts[own][got][not]++
			if row.Loads && got == rule.Fails || !row.Loads && got <= rule.Guarded {
				id := strings.TrimSuffix(filepath.Base(row.Object), ".bpfel.o") + ":" + row.Program
				wrong[own]++
				if known[id] = true; own == 0 || knownDiffers[id] == "" {
					t.Errorf("%s: %s %s: %s, but loads %t: %s: %v", name, row.Object, row.Program, got, row.Loads, row.Reason, p.Findings)
				}
			}
		}
		for own, objects := range []string{"real tools", "testdata"} {
			line := "|" + name + "|" + objects
			for _, s := range []rule.Status{rule.OK, rule.Guarded, rule.MayFail, rule.Unknown, rule.Fails} {
				line += fmt.Sprintf("|%d/%d", counts[own][s][0], counts[own][s][1])
			}
			table = append(table, fmt.Sprintf("%s|%d|%d|", line, wrong[own], left[own]))
		}
		if left[0]+left[1] > len(rows)/20 {
			t.Errorf("%s: %d without a verdict", name, left[0]+left[1])
		}
	}
	compareTable(t, table)
	for id, why := range knownDiffers {
		if !known[id] {
			t.Errorf("%s does not differ: %s", id, why)
		}
	}
}

// compareTable compares rows with those of docs/accuracy.md below the header with "left out", or writes them.
func compareTable(t *testing.T, rows []string) {
	page := testinput.Path(t, "docs", "accuracy.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), "|left out|\n")
	line, rest, _ := strings.Cut(rest, "\n")
	old, tail, end := strings.Cut(rest, "\n\n")
	if !ok || !end {
		t.Fatalf("%s has no table with a column for what is left out", page)
	}
	if got := strings.Join(rows, "\n"); *update {
		err = os.WriteFile(page, []byte(head+"|left out|\n"+line+"\n"+got+"\n\n"+tail), 0o644)
	} else if got != old {
		t.Errorf("%s is not up to date, run: go test ./internal/check -run TestRecorded -update\n%s\nwant\n%s", page, old, got)
	}
	if err != nil {
		t.Fatal(err)
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
func recordedObjects(t *testing.T, dir string) (all []*rule.Object) {
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
			if o, err := rule.Parse(t.Context(), name, f.Data); err == nil {
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
