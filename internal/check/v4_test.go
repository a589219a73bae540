// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// v4Source has sign-extending loads of fields: one that every kernel has, and
// one that none has, behind a check. The latter is not an instruction of cpu v4
// once a loader has made it invalid.
const v4Source = `
#define SEC(n) __attribute__((section(n), used))
char LICENSE[] SEC("license") = "GPL";
struct task_struct { int pid; int no_such_field; } __attribute__((preserve_access_index));
SEC("tp_btf/sched_switch") long guarded(unsigned long long *ctx) {
	struct task_struct *t = (void *)ctx[1];
	if (__builtin_preserve_field_info(t->no_such_field, 2))
		return (t->no_such_field * 0x123456789LL) >> 40;
	return 0;
}
SEC("tp_btf/sched_switch") long reads(unsigned long long *ctx) {
	struct task_struct *t = (void *)ctx[1];
	return (t->pid * 0x123456789LL) >> 40;
}
SEC("tp_btf/sched_switch") long plain(unsigned long long *ctx) { return ctx[1] >> 40; }
`

// TestV4 checks an object that clang makes for cpu v4, on the kernels at hand.
func TestV4(t *testing.T) {
	raceflag.SkipSerial(t)
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("needs clang-19")
	}
	dir := t.TempDir()
	src, out := filepath.Join(dir, "v4.bpf.c"), filepath.Join(dir, "v4.bpf.o")
	if err := os.WriteFile(src, []byte(v4Source), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(clang, "-O2", "-g", "--target=bpfel", "-mcpu=v4", "-c", src, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	o, err := rule.Parse(t.Context(), "v4", data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(context.Background(), []string{testinput.Vmlinux(t)}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(context.Background(), Config{Objects: []*rule.Object{o}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		for _, name := range []string{"guarded", "reads", "plain"} {
			p, ki := find(t, rep, name, k.Name)
			if p.Status[ki] == rule.Other {
				continue
			}
			want := rule.OK
			if name == "reads" && kernel.CompareVersions(k.Key().Release, "6.6") < 0 {
				want = rule.Fails
				refused++
			}
			if got := statusOf(p, ki, rule.FamilyInsn); got != want {
				t.Errorf("%s: %s: %s, want %s: %v", k.Name, name, got, want, p.Findings)
			}
			if got := statusOf(p, ki, rule.FamilyCORE); (got == rule.Guarded) != (name == "guarded") {
				t.Errorf("%s: %s: relocations %s: %v", k.Name, name, got, p.Findings)
			}
		}
	}
	if refused == 0 {
		t.Error("no kernel before cpu v4")
	}
}
