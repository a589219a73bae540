// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestOwnBTF looks for the function that only kernels with BTF of their own have. Debian's for 32-bit ARM has none, and was made with
// pahole here, as those before 5.2 were. Two list no static functions.
func TestOwnBTF(t *testing.T) {
	raceflag.SkipSerial(t)
	want := &Wanted{names: make(map[string]int), config: map[string]bool{corpus.OwnBTFSetting: true}}
	want.add(featureNames()...)
	seen := make(map[facts.Presence]int)
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		k, should := inspectItem(t, it, want), facts.Yes
		switch {
		case strings.Contains(it.Path, "5.10.0-30-cloud-arm64"), strings.Contains(it.Path, "4.19.90-52.22"):
			should = facts.Perhaps
		case strings.Contains(it.Path, "armmp"), strings.Contains(it.Path, "4.19.90"), strings.Contains(it.Path, "4.18.0"):
			should = facts.No
		case it.Key.ID != "debian" && it.Key.ID != "android":
			return
		}
		has, by := k.ownBTF()
		if has != should {
			t.Errorf("%s: %d by %q, want %d", it.Path, has, by, should)
		}
		seen[has]++
		if has == facts.Perhaps {
			if k.noOwnBTF = true; k.withoutOwnBTF("fentry").Name != "--no-kernel-btf" {
				t.Errorf("%s: %+v", it.Path, k.withoutOwnBTF("fentry"))
			}
		}
		k.readConfig([]byte("CONFIG_MODULES=y\n"))
		if has, by := k.ownBTF(); has != facts.No || by != "no CONFIG_DEBUG_INFO_BTF" {
			t.Errorf("%s: %d by %q without the setting", it.Path, has, by)
		}
		k.readConfig([]byte("CONFIG_DEBUG_INFO_BTF=y\n"))
		if f := k.withoutOwnBTF("fentry"); f != (Finding{}) {
			t.Errorf("%s: %+v with the setting", it.Path, f)
		}
	})
	if seen[facts.Yes] == 0 || seen[facts.No] == 0 {
		t.Errorf("%v", seen)
	}
}
