// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// TestCilium loads every program with cilium/ebpf, with the full and with the minimized
// BTF as KernelTypes, and compares the programs in the kernel.
func TestCilium(t *testing.T) {
	slow.Nightly(t)
	full, objects := setup(t)
	fullTypes := types(t, full)
	var count tally
	unread := 0
	cache := btf.NewCache()
	for i := range objects {
		o := &objects[i]
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(o.Data))
		if err != nil {
			t.Logf("%s: cilium/ebpf does not read it: %v", o.Name(), err)
			unread++
			continue
		}
		for _, m := range spec.Maps {
			complete(m)
		}
		smallTypes := types(t, o.small)
		for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
			if spec.Programs[name].Type == ebpf.UnspecifiedProgram {
				continue
			}
			a, b := load(t, spec, name, fullTypes, cache), load(t, spec, name, smallTypes, cache)
			if d := o.diff(a, b); d != "" {
				t.Errorf("%s: %s: %s", o.Name(), name, d)
				continue
			}
			count.add(spec.Programs[name].SectionName, a)
		}
	}
	t.Logf("%d objects, of which cilium/ebpf does not read %d", len(objects), unread)
	count.report(t)
}

// complete sets the parts of a map that a tool sets at run time, without which loading fails.
func complete(m *ebpf.MapSpec) {
	m.Pinning = ebpf.PinNone
	if m.MaxEntries > 0 {
		return
	}
	switch m.Type {
	case ebpf.RingBuf:
		m.MaxEntries = 1 << 16 // bytes, in whole pages
	case ebpf.StackTrace:
		m.MaxEntries, m.ValueSize = 64, cmp.Or(m.ValueSize, 127*8)
	case ebpf.Hash, ebpf.PerCPUHash, ebpf.LRUHash, ebpf.Array, ebpf.PerCPUArray, ebpf.DevMap, ebpf.DevMapHash, ebpf.CPUMap:
		m.MaxEntries = 64
	}
}

func types(t *testing.T, data []byte) *btf.Spec {
	t.Helper()
	s, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// load loads one program of a collection and closes it again.
func load(t *testing.T, all *ebpf.CollectionSpec, name string, kernel *btf.Spec, cache *btf.Cache) *outcome {
	t.Helper()
	prog := all.Programs[name].Copy()
	out := &outcome{relocated: Relocate(prog, kernel)}
	one := all.Copy()
	one.Programs = map[string]*ebpf.ProgramSpec{name: prog}
	one.Variables = nil
	maps.DeleteFunc(one.Maps, func(name string, m *ebpf.MapSpec) bool {
		if m.Type == ebpf.ProgramArray {
			m.Contents = nil // programs that are not loaded
		}
		return !slices.ContainsFunc(prog.Instructions, func(i asm.Instruction) bool { return i.Reference() == name })
	})
	coll, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{KernelTypes: kernel},
		Cache:    cache,
	})
	if err != nil {
		out.failure = strings.TrimPrefix(failure(err), "program "+name+": ")
		return out
	}
	defer coll.Close()
	info, err := coll.Programs[name].Info()
	if err != nil {
		t.Fatal(err)
	}
	insns, err := info.Instructions()
	if err != nil {
		t.Fatal(err)
	}
	out.xlated = insns
	return out
}

var address = regexp.MustCompile(`\b0x[0-9a-f]{8,}\b`)

// failure returns the text of an error. For a verifier's error this is the errno and the
// last line with a reason.
func failure(err error) string {
	var v *ebpf.VerifierError
	if !errors.As(err, &v) {
		return address.ReplaceAllString(err.Error(), "ADDRESS")
	}
	return v.Cause.Error() + ": " + why(v.Log)
}

// why returns the verifier's reason from its log.
func why(log []string) string {
	log = slices.DeleteFunc(slices.Clone(log), func(l string) bool {
		return strings.TrimSpace(l) == "" || strings.HasPrefix(l, "processed ")
	})
	if len(log) == 0 {
		return "no log"
	}
	return address.ReplaceAllString(strings.TrimSpace(log[len(log)-1]), "ADDRESS")
}
