package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/internal/testinput"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// inputs returns the objects for Run and for generate.
func inputs(t *testing.T) (objs []Object, plain []*relolog.Object) {
	t.Helper()
	for _, o := range testinput.Objects(t) {
		objs, plain = append(objs, Object(o)), append(plain, o.Object)
	}
	return objs, plain
}

// minimizeAll minimizes a corpus as the command does.
func minimizeAll(t *testing.T, c *corpus.Corpus, objs []*relolog.Object) []Minimized {
	t.Helper()
	rep, err := generate.Run(t.Context(), generate.Config{Objects: objs, Corpus: c, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var all []Minimized
	for _, k := range rep.Kernels {
		all = append(all, Minimized{k.Key, k.Name, k.BTF})
	}
	return all
}

// TestEquivalence verifies what generate makes of every object and kernel.
func TestEquivalence(t *testing.T) {
	objs, plain := inputs(t)
	c := testinput.Corpus(t)
	rep, err := Run(t.Context(), Config{Objects: objs, Minimized: minimizeAll(t, c, plain), Corpus: c, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	records, fixups := 0, 0
	accounted := make(map[string]int)
	for _, k := range rep.Kernels {
		records, fixups = records+k.Records, fixups+k.Fixups
		for _, d := range k.Differences {
			t.Errorf("%+v", d)
		}
		for _, d := range k.Disagreements {
			why := account(&d)
			if accounted[why]++; why == "" {
				t.Errorf("loaders disagree, and nothing says why: %+v", d)
			}
		}
	}
	t.Logf("%d objects on %d kernels: %d records under libbpf's rules, %d fixups of cilium/ebpf compared", len(objs), len(rep.Kernels), records, fixups)
	if records == 0 || fixups == 0 {
		t.Error("nothing was compared")
	}
	for _, why := range slices.Sorted(maps.Keys(accounted)) {
		t.Logf("loaders disagree on %d: %s", accounted[why], why)
	}
	for _, n := range rep.Notes {
		t.Logf("cilium/ebpf: %s: %d records in no program: %s", n.Object, n.Records, n.Reason)
		if n.Reason != "" && n.Records > 0 {
			t.Errorf("%s: records not compared", n.Object)
		}
	}
	if len(rep.NotMinimized)+len(rep.NoKernel)+len(rep.Skipped) > 0 {
		t.Errorf("not compared: %v %v %v", rep.NotMinimized, rep.NoKernel, rep.Skipped)
	}
}

// account says why the two loaders disagree, "" if nobody knows. They are
// differences of rules, each seen in the loaders' sources.
func account(d *Disagreement) string {
	kind, _, _ := strings.Cut(d.Relocation, " ")
	libbpf, _, _ := strings.Cut(d.Libbpf, " ")
	poison := strings.HasSuffix(d.Cilium, "=poison")
	switch {
	case libbpf == "absent" && poison && (kind == "type_size" || kind == "target_type_id"):
		return "the size and the ID of a type that does not exist are 0 for libbpf"
	case kind == "target_type_id" && poison:
		return "cilium/ebpf has no type IDs of modules"
	case kind == "type_matches":
		return "type_matches follows rules of its own in either loader"
	case kind == "byte_off" && strings.HasPrefix(d.Libbpf, "poisoned at"):
		return "libbpf looks at the width of a load"
	case libbpf == "poisoned" && strings.HasPrefix(d.Relocation, "byte_off union "):
		return "cilium/ebpf takes a struct for a union"
	case kind == "enumval_value" && strings.Contains(d.Relocation, "perf_callchain_context"):
		return "values of an ENUM of 8 bytes: libbpf extends their sign, cilium/ebpf does not"
	case kind == "type_size" && strings.Contains(d.Kernel, "/armhf/"):
		return "pointers have 8 bytes for cilium/ebpf, whatever the kernel's"
	case kind == "field_exists" && libbpf == "absent" && strings.Contains(d.Relocation, "___chars.notes"):
		return "cilium/ebpf does not compare the elements of arrays that nobody indexes"
	case strings.HasPrefix(d.Cilium, "error: ") && strings.Contains(d.Cilium, "ambiguous"):
		return "cilium/ebpf decides about all relocations of a type in a program together, and one is ambiguous"
	case libbpf == "ambiguous" && strings.Contains(d.Cilium, "->"):
		return "cilium/ebpf takes the candidate that most relocations of the type match"
	case strings.HasPrefix(d.Relocation, "type_exists struct task_struct___"):
		return "a name that ends in ___ has no flavor for libbpf"
	}
	return ""
}
