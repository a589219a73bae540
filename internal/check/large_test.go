// SPDX-License-Identifier: Apache-2.0

package check

import (
	"runtime"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestManyKernels judges a large object on the same kernel again and again: what
// is known already costs little, and is kept once.
func TestManyKernels(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	o, err := rule.Parse(t.Context(), "large", testinput.Large(testinput.LargeConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(Config{Objects: []*rule.Object{o}})
	tg := new(target)
	done := false
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		if done || it.Key.ID != "debian" {
			return
		}
		r.item(t.Context(), tg, it)
		if loaded, err := r.loader.on(t.Context(), tg); err != nil {
			t.Fatal(err)
		} else if loaded[0] == nil {
			r.kernels = nil
			return
		}
		done = true
		const times = 20
		r.item(t.Context(), tg, it)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range times {
			r.item(t.Context(), tg, it)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept, allocated := (int(after.HeapAlloc)-int(before.HeapAlloc))/times, int(after.TotalAlloc-before.TotalAlloc)/times
		t.Logf("%s: %d bytes kept, %d allocated", it.Name, kept, allocated)
		if kept > 100<<10 {
			t.Errorf("%s: %d bytes are kept of a kernel that is like another", it.Name, kept)
		}
		if allocated > 7<<19 {
			t.Errorf("%s: %d bytes are allocated for a kernel that is like another", it.Name, allocated)
		}
		if rep, err := r.report(t.Context()); err != nil || len(rep.Kernels) != times+2 || len(rep.Programs) != len(o.Programs) {
			t.Errorf("%d programs on %d kernels", len(rep.Programs), len(rep.Kernels))
		}
	})
	if !done {
		t.Error("no kernel of the object's byte order")
	}
}
