// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestLicense holds verdicts on programs whose license is not compatible with the GPL.
func TestLicense(t *testing.T) {
	raceflag.SkipSerial(t)
	expectVerdicts(t, "license", []Family{FamilyLicense}, map[string]expected{
		"free_to_use":   {},
		"tells_time":    {},
		"reads":         {status: Fails},
		"reads_guarded": {status: Guarded},
		"locks":         {before: "6.2", others: Fails},
		"decides":       {status: Fails},
	})
}

// TestVerifierLicense asks the running kernel which helpers are kept from programs whose license is not compatible
// with the GPL. With -v the answers are logged: helpers.txt is made of them.
func TestVerifierLicense(t *testing.T) {
	k := datedKernel(t)
	allowed, refused := 0, make(map[int64]bool)
	for _, p := range probes {
		s, l := p.loader(t, k)
		if l == nil || s.ProgType == "LSM" { // which wants such a license of all programs
			continue
		}
		l.license = "Apache-2.0"
		for id := int64(1); id <= lastHelper; id++ {
			if !k.helpers[id] {
				continue
			}
			log, err := l.load(helperCall(id))
			if errors.Is(err, unix.EPERM) {
				t.Fatal(p.section, err)
			}
			if strings.Contains(log, "unknown func ") || strings.Contains(log, "cannot use helper") {
				continue
			}
			want := k.restricts(s, id)
			if strings.Contains(log, "GPL-restricted") {
				refused[id] = true
				if want == OK {
					t.Errorf("%s: %s is refused", p.section, helperName(id))
				}
			} else {
				allowed++
				if want == Fails {
					t.Errorf("%s: %s is allowed", p.section, helperName(id))
				}
			}
		}
	}
	t.Logf("refused:%s", ranges(slices.Sorted(maps.Keys(refused))))
	if allowed < 500 || len(refused) < 20 {
		t.Errorf("%d allowed, %d refused: too few to tell anything", allowed, len(refused))
	}
}
