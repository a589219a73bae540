// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// BenchmarkLog is the log of an object with tens of thousands of records that
// ask 400 questions, on every kernel of its byte order once for each
// iteration. The time is to follow the kernels and the questions, and to grow
// little with the records.
func BenchmarkLog(b *testing.B) {
	var targets []*core.Target
	testinput.Each(b, testinput.Corpus(b), func(k *corpus.Kernel) {
		t, err := testinput.NewKernel(k.Name, append([]byte(nil), k.BTF...))
		if err != nil {
			b.Fatal(err)
		}
		targets = append(targets, t)
	})
	for _, c := range []struct {
		name    string
		records int
	}{{"4375", 4_375}, {"8750", 8_750}, {"17500", 17_500}, {"35000", 35_000}} {
		b.Run(c.name, func(b *testing.B) {
			o, err := core.ParseObject("large.o", testinput.Large(testinput.LargeConfig{Records: c.records}))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			kernels := 0
			for b.Loop() {
				kernels = 0
				for _, t := range targets {
					if t.Order() != o.Order() {
						continue
					}
					kernels++
					l, err := core.NewSet(o).Run(b.Context(), t)
					if err != nil || len(l.Entries) != c.records {
						b.Fatalf("%d entries, %v", len(l.Entries), err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*kernels), "µs/kernel")
		})
	}
}
