// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestCertain reads the verbose report of all objects on all kernels, those of testdata and of BTFGEN_OBJECTS. It wants no cause twice
// with different verdicts and the same words, and none twice for the same program on the same kernel.
func TestCertain(t *testing.T) {
	dirs := []string{testinput.Path(t, "testdata", "bpf")}
	if dir := os.Getenv("BTFGEN_OBJECTS"); dir != "" {
		dirs = append(dirs, dir)
	}
	files, err := embedded.Files(t.Context(), dirs)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*rule.Object
	for _, f := range files {
		found, err := embedded.ReadFile(f.Path)
		if err != nil {
			continue
		}
		for _, x := range found {
			if o, err := rule.Parse(t.Context(), x.Name, x.Data); err == nil {
				objects = append(objects, o)
			}
		}
	}
	rep, err := check.Run(t.Context(), check.Config{Objects: objects, Corpus: testinput.Corpus(t), Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.Text(&b, rep, report.Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	verdicts := make(map[string][]string) // by the words of a cause
	cause := regexp.MustCompile(`(?m)^  (fails|may fail|unknown|fails to attach|may fail to attach): (.*\[[a-z0-9-]+\])$`)
	for _, m := range cause.FindAllStringSubmatch(b.String(), -1) {
		verdicts[m[2]] = append(verdicts[m[2]], m[1])
	}
	for words, l := range verdicts {
		if len(l) > 1 && slices.Contains(l, "may fail") && slices.Contains(l, "fails") {
			t.Errorf("%q: %s", l, words)
		}
	}
	if len(verdicts) < 100 {
		t.Errorf("%d causes", len(verdicts))
	}
	t.Logf("%d objects, %d kernels, %d causes", len(objects), len(rep.Kernels), len(verdicts))
}
