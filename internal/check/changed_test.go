// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestChanged checks on which kernels of testdata/vmlinux programs read something else than elsewhere.
func TestChanged(t *testing.T) {
	before := func(release string) func(kernel.Key) bool {
		return func(k kernel.Key) bool { return kernel.CompareVersions(k.Release, release) < 0 }
	}
	from := func(release string) func(kernel.Key) bool {
		return func(k kernel.Key) bool { return kernel.CompareVersions(k.Release, release) >= 0 }
	}
	never := func(kernel.Key) bool { return false }
	narrow := func(k kernel.Key) bool { return k.Arch == "arm" }
	want := map[string]func(kernel.Key) bool{
		"as_bio": before("5.11"), "as_bio_guarded": never, "used_guarded": never, "matched": never,
		"untyped": before("5.11"), "untyped_guarded": never, "number": before("6.1"), "same": never, "as_larger": never,
		"inserted": from("5.12"), "inserted_number": before("5.12"),
		"moved": from("5.19"), "moved_guarded": never, "moved_unnamed": from("5.19"), "stayed": narrow,
		"of_class": from("5.14"), "became": from("6.18"),
	}
	tried := make(map[string]bool)
	for _, order := range []string{".bpfel", ".bpfeb"} {
		rep := runOn(t, "changed"+order)
		if len(rep.Programs) != len(want) {
			t.Errorf("%d programs, want %d", len(rep.Programs), len(want))
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for k := range rep.Kernels {
				key := rep.Kernels[k].Key()
				if p.Status[k] == rule.Other {
					continue
				}
				tried[p.Name] = tried[p.Name] || p.Status[k] != rule.Fails
				alone := p.Name == "moved_unnamed" && narrow(key) || order == ".bpfeb" && slices.Contains([]string{"untyped", "number", "inserted_number", "moved_unnamed"}, p.Name) // no other kernel to compare with
				if got := len(findingsOn(p, k, rule.FamilyChanged)) > 0; got != (want[p.Name](key) && !alone && p.Status[k] != rule.Fails) {
					t.Errorf("%s on %s: warning %t: %+v", p.Name, rep.Kernels[k].Name, got, findingsOn(p, k, rule.FamilyChanged))
				}
			}
		}
	}
	for name := range want {
		if !tried[name] {
			t.Errorf("%s fails on every kernel", name)
		}
	}
}
