// SPDX-License-Identifier: Apache-2.0

// Command judges compares what libbpf itself does on a booted kernel with what check
// predicts and with what check --boot does. scripts/check-kernels.sh runs it.
//
//	judges unpack DIR FILE...            writes the BPF objects in files to DIR/0.o, DIR/1.o and so on
//	judges compare DIR REPORT LOADED     compares the text of check --boot --verbose with the lines of
//	                                     internal/check/boot/testdata/load.c about the objects in DIR
//
// compare prints a row of the table of docs/accuracy.md, and each program about which they
// disagree: a wrong ok, a wrong fails, or libbpf and --boot. Its exit status is 1 if one is not
// in known.txt, which has reasons.
package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
)

//go:embed known.txt
var knownText string

func main() {
	bad, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "judges:", err)
		os.Exit(2)
	}
	if bad {
		os.Exit(1)
	}
}

func run(args []string, w io.Writer) (bad bool, err error) {
	switch {
	case len(args) > 2 && args[0] == "unpack":
		return false, unpack(args[1], args[2:])
	case len(args) == 4 && args[0] == "compare":
		return compareFiles(w, args[1], args[2], args[3])
	}
	return false, errors.New("usage: judges unpack DIR FILE... | judges compare DIR REPORT LOADED")
}

// namesFile has the names of the objects in a directory, as check prints them: one list by object file.
const namesFile = "names.json"

// unpack writes each distinct object of the files once.
func unpack(dir string, files []string) error {
	found, err := embedded.ParseFiles(context.Background(), files, func(name string, _ []byte) (string, error) { return name, nil })
	if err != nil {
		return err
	}
	var names [][]string
	index := make(map[[sha256.Size]byte]int)
	for _, f := range found {
		switch {
		case errors.Is(f.Err, embedded.ErrNone):
			continue
		case f.Err != nil:
			fmt.Fprintln(os.Stderr, "judges: left out:", f.Err) // check leaves it out, too
			continue
		}
		sum := sha256.Sum256(f.Object.Data)
		i, ok := index[sum]
		if !ok {
			i = len(names)
			index[sum], names = i, append(names, nil)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.o", i)), f.Object.Data, 0o666); err != nil {
				return err
			}
		}
		names[i] = append(names[i], f.Value)
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, namesFile), text, 0o666)
}

func compareFiles(w io.Writer, dir, reportFile, loadedFile string) (bad bool, err error) {
	var names [][]string
	text, err := os.ReadFile(filepath.Join(dir, namesFile))
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, &names); err != nil {
		return false, fmt.Errorf("%s: %w", namesFile, err)
	}
	report, err := os.ReadFile(reportFile)
	if err != nil {
		return false, err
	}
	kernel, programs, err := parseReport(string(report))
	if err != nil {
		return false, fmt.Errorf("%s: %w", reportFile, err)
	}
	loaded, err := os.ReadFile(loadedFile)
	if err != nil {
		return false, err
	}
	results, err := parseResults(string(loaded), names)
	if err != nil {
		return false, fmt.Errorf("%s: %w", loadedFile, err)
	}
	known, err := parseKnown(knownText)
	if err != nil {
		return false, err
	}
	c := compare(kernel, programs, results, known)
	c.print(w, kernel)
	return c.bad(), nil
}

// result is what libbpf did with a program.
type result struct {
	errno            string
	libbpf, verifier string // the ends of their messages
}

// key is an object's name, as check prints it, and a program's.
type key struct{ object, program string }

// parseResults reads the output of load.c, as check --command prints it: indented, with escaped tabs, and with lines of its own around it.
func parseResults(text string, names [][]string) (map[key]result, error) {
	results := make(map[key]result)
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), `\t`)
		if len(f) != 5 {
			continue
		}
		var i int
		if n, err := fmt.Sscanf(f[0], "%d.o", &i); n != 1 || err != nil || i < 0 || i >= len(names) {
			return nil, fmt.Errorf("an object that is not in the directory: %q", f[0])
		}
		for _, name := range names[i] {
			results[key{name, f[1]}] = result{f[2], f[3], f[4]}
		}
	}
	if len(results) == 0 {
		return nil, errors.New("no results")
	}
	return results, nil
}

// why returns the line that best explains a failure: the verifier's last one or its reason, or else libbpf's last one about more than that
// it failed.
func (r *result) why() string {
	log := strings.Split(r.verifier, `\n`)
	// Since Linux 7.3, explanations follow.
	if i := slices.Index(log, "Reason:"); i >= 0 && i+1 < len(log) {
		return strings.TrimSpace(log[i+1])
	}
	for _, l := range slices.Backward(log) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "processed ") {
			return l
		}
	}
	for _, l := range slices.Backward(strings.Split(r.libbpf, `\n`)) {
		if l != "" && !strings.HasPrefix(l, "libbpf: failed to load object") && !strings.Contains(l, ": failed to load: ") &&
			!strings.HasPrefix(l, "libbpf: failed to perform CO-RE relocations") {
			return l
		}
	}
	return "errno " + r.errno
}

// opened reports whether libbpf got as far as to ask the kernel for the program. An older libbpf than check follows does not know some sections,
// and no libbpf loads a program alone that is with others in an array of programs.
func (r *result) opened() bool {
	return !strings.Contains(r.libbpf, "missing BPF prog type, check ELF section name") && !strings.Contains(r.libbpf, "failed to initialize slot")
}
