// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestWitnesses compares the witnesses of facts with the kernels of a corpus: Debian's kernels have the BPF of their release, so that a
// witness is there since the fact came. Other kernels have newer BPF than their release says, but lose nothing. With -v it prints a table.
func TestWitnesses(t *testing.T) {
	raceflag.SkipSerial(t)
	want := &wanted{names: make(map[string]int)}
	want.add(featureNames()...)
	var table bytes.Buffer
	n := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		release := it.Key.Release
		if release == "" || release[0] < '0' || release[0] > '9' {
			return
		}
		k := inspectItem(t, it, want)
		if !k.whole {
			t.Errorf("%s has no struct %s", it.Name, wholeBTF)
		}
		fmt.Fprintf(&table, "\n%s:", it.Name)
		for _, f := range facts().all {
			got, by := k.witnessed(f)
			if got == present {
				fmt.Fprintf(&table, " %s;", f.name)
			}
			since := kernel.CompareVersions(release, f.since.String()) >= 0
			if it.Key.ID == "debian" && (got == present && !since || got == lacking && since) || got == lacking && since {
				t.Errorf("%s: %s, which came with %s: %d by %s", it.Name, f.name, f.since, got, by)
			}
			n++
		}
	})
	t.Log(table.String())
	if n == 0 {
		t.Error("no kernel")
	}
}
