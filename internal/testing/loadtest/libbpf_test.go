// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/testing/oracle"
)

// TestLibbpf loads every program with libbpf, with the full and with the minimized BTF
// as btf_custom_path, and compares the instructions before and after the kernel's verifier.
func TestLibbpf(t *testing.T) {
	full, objects := setup(t)
	loader := build(t)
	dir := t.TempDir()
	fullPath := filepath.Join(dir, "full.btf")
	write(t, fullPath, full)
	var paths []string
	for i := range objects {
		p := filepath.Join(dir, fmt.Sprintf("%d.o", i))
		write(t, p, objects[i].Data)
		paths = append(paths, p)
	}
	onFull := run(t, objects[0].Order(), loader, fullPath, paths...)
	var count tally
	for i := range objects {
		o := &objects[i]
		smallPath := filepath.Join(dir, "small.btf")
		write(t, smallPath, o.small)
		onSmall := run(t, objects[0].Order(), loader, smallPath, paths[i])
		n := len(onSmall)
		if n > len(onFull) || onFull[n-1].object != onSmall[0].object || (n < len(onFull) && onFull[n].object == onSmall[0].object) {
			t.Fatalf("%s: another number of programs with the minimized BTF", o.Name())
		}
		for j := range onSmall {
			a, b := &onFull[j], &onSmall[j]
			if d := o.diff(&a.outcome, &b.outcome); d != "" || a.name != b.name {
				t.Errorf("%s: %s: %s", o.Name(), a.name, d)
				continue
			}
			count.add(a.section, &a.outcome)
		}
		onFull = onFull[n:]
	}
	t.Logf("%d objects", len(objects))
	count.report(t)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// build compiles testdata/load.c.
func build(t *testing.T) string {
	t.Helper()
	gcc := oracle.Need(t, "gcc")
	probe := exec.Command(gcc, "-E", "-o", os.DevNull, "-")
	probe.Stdin = strings.NewReader("#include <bpf/libbpf.h>\n")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("needs the headers of libbpf (Debian: apt install libbpf-dev)\n%s", out)
	}
	path := filepath.Join(t.TempDir(), "load")
	if out, err := exec.Command(gcc, "-Wall", "-O1", "-o", path, filepath.Join("testdata", "load.c"), "-lbpf").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// program is the output of the loader for one program.
type program struct {
	object, name, section string
	outcome
}

// run loads every program of some objects with a BTF.
func run(t *testing.T, order binary.ByteOrder, loader, btf string, objects ...string) []program {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), loader, append([]string{btf}, objects...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var list []program
	var object string
	for line := range strings.Lines(string(out)) {
		what, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if what == "object" {
			object = text
			continue
		}
		if what == "program" {
			name, section, _ := strings.Cut(text, " ")
			list = append(list, program{object: object, name: name, section: section})
			continue
		}
		if len(list) == 0 || list[len(list)-1].object != object {
			t.Fatalf("%s: %s", object, line)
		}
		list[len(list)-1].set(t, order, what, text)
	}
	if len(list) == 0 {
		t.Fatalf("no programs\n%s", out)
	}
	return list
}

// ambiguity is followed by the results of the first two candidates that disagree, in
// their order in the BTF, and by type IDs for target_type_id.
var ambiguity = regexp.MustCompile(`ambiguity: .*`)

// set parses a line of the loader about the program.
func (p *program) set(t *testing.T, order binary.ByteOrder, what, text string) {
	t.Helper()
	switch what {
	case "error":
		if text != "0" {
			p.failure = "error " + text
		}
	case "warning":
		text = strings.TrimPrefix(text, "libbpf: ")
		text = strings.TrimPrefix(text, "prog '"+p.name+"': ")
		p.failure += ": " + ambiguity.ReplaceAllString(text, "ambiguity")
	case "log":
		p.failure += ": " + address.ReplaceAllString(text, "ADDRESS")
	case "relocated":
		p.relocated = decode(t, order, text)
	case "xlated":
		p.xlated = decode(t, order, text)
	default:
		t.Fatalf("%s: %s: %s %s", p.object, p.name, what, text)
	}
}

func decode(t *testing.T, order binary.ByteOrder, digits string) asm.Instructions {
	t.Helper()
	code, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	insns, err := asm.AppendInstructions(nil, bytes.NewReader(code), order, "linux")
	if err != nil {
		t.Fatal(err)
	}
	return insns
}
