// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/oracle"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

var (
	patched  = regexp.MustCompile(`^libbpf: prog '(.*?)': relo #(\d+): patched insn #(\d+) \(.*\) (?:off|imm|imm64) (-?\d+) -> (-?\d+)$`)
	poisoned = regexp.MustCompile(`^libbpf: prog '(.*?)': relo #(\d+): substituting insn #(\d+) w/ invalid insn$`)
)

// TestRunningKernel lets libbpf load the objects of testdata on the running kernel, and compares each patched instruction with
// the log. It does not matter whether the kernel then refuses the program.
func TestRunningKernel(t *testing.T) {
	data, bpftool := loadtest.Kernel(t), oracle.Need(t, "bpftool")
	target, err := testinput.NewKernel("running", data)
	if err != nil {
		t.Fatal(err)
	}
	instructions := 0
	for _, o := range testinput.Objects(t) {
		if o.Order() != target.Order() {
			continue
		}
		log, err := core.NewSet(o.Object).Run(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		entries, bitfields := make(map[string]*relo.Entry), make(map[string]bool)
		for i := range log.Entries {
			e := &log.Entries[i]
			entries[fmt.Sprintf("%s #%d", e.Program, e.Index)] = e
			if e.Kind == relo.LShiftU64 {
				bitfields[field(e)] = true
			}
		}
		for _, line := range strings.Split(load(t, bpftool, o.Data), "\n") {
			m := patched.FindStringSubmatch(line)
			if m == nil {
				if m = poisoned.FindStringSubmatch(line); m == nil {
					continue
				}
			}
			e := entries[m[1]+" #"+m[2]]
			if e == nil {
				t.Errorf("%s: not in the log: %s", o.Name(), line)
				continue
			}
			instructions++
			if !holds(e, m[3:], bitfields[field(e)]) {
				t.Errorf("%s: the log has #%d %d → %v: %s", o.Name(), e.Insn, e.Old, e.New, line)
			}
		}
	}
	if instructions == 0 {
		t.Skip("needs a kernel and rights with which libbpf can load") // no BPF, or no bpffs
	}
	t.Logf("%d instructions on the running kernel hold what the log says", instructions)
}

func field(e *relo.Entry) string { return fmt.Sprint(e.Local.TypeID, e.Local.Raw) }

// holds compares an entry with libbpf's instruction number and, unless it is poisoned, with the old and the new value. A
// bitfield can be loaded in several ways, and compilers choose another one than libbpf computes.
func holds(e *relo.Entry, libbpf []string, bitfield bool) bool {
	if e.New == nil { // a 64-bit load has two instructions, both poisoned
		return len(libbpf) == 1 && (libbpf[0] == strconv.Itoa(e.Insn) || libbpf[0] == strconv.Itoa(e.Insn+1))
	}
	return len(libbpf) == 3 && libbpf[0] == strconv.Itoa(e.Insn) && libbpf[2] == printed(*e.New, libbpf[2]) && (bitfield || libbpf[1] == printed(e.Old, libbpf[1]))
}

// printed formats a value, signed if libbpf's is.
func printed(v uint64, libbpf string) string {
	if libbpf[0] == '-' {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}

func load(t *testing.T, bpftool string, object []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object.o")
	if err := os.WriteFile(path, object, 0o600); err != nil {
		t.Fatal(err)
	}
	pin := fmt.Sprintf("/sys/fs/bpf/btfgen-test-%d", os.Getpid())
	t.Cleanup(removePins(pins()))
	defer os.RemoveAll(pin)
	ctx, cancel := context.WithTimeout(t.Context(), oracle.Timeout)
	defer cancel()
	// It fails if the kernel refuses a program, long after the relocations.
	out, _ := exec.CommandContext(ctx, bpftool, "-d", "prog", "loadall", path, pin).CombinedOutput()
	return string(out)
}

// pins lists the BPF file system. Some objects pin their maps there by name.
func pins() map[string]bool {
	out := make(map[string]bool)
	entries, _ := os.ReadDir("/sys/fs/bpf")
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out
}

// removePins removes pins that are not in before.
func removePins(before map[string]bool) func() {
	return func() {
		for name := range pins() {
			if !before[name] {
				os.RemoveAll(filepath.Join("/sys/fs/bpf", name))
			}
		}
	}
}
