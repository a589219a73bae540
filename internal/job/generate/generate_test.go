// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/archive"
)

func object(t *testing.T, name string) *core.Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../testdata/bpf", name))
	if err != nil {
		t.Fatal(err)
	}
	o, err := core.ParseObject(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func config(t *testing.T, source string) generate.Config {
	t.Helper()
	c, err := corpus.Open(context.Background(), []string{source}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generate.Config{
		Objects: []*core.Object{object(t, "tcplife.bpfel.o"), object(t, "tcplife.bpfeb.o"), object(t, "ambiguous.bpfel.o")},
		Corpus:  c, Jobs: 1,
	}
}

const kernels = "../../../testdata/vmlinux"

// TestJobs compares the reports of several numbers of workers.
func TestJobs(t *testing.T) {
	slow.Skip(t)
	var want *generate.Report
	for _, jobs := range []int{1, 2, 7} {
		cfg := config(t, kernels)
		cfg.Jobs = jobs
		calls := 0
		cfg.Done = func(p walk.Progress) {
			if calls++; p.Done != calls || p.All != len(cfg.Corpus.Files) || p.Skipped != 0 {
				t.Errorf("progress %d: %+v", calls, p)
			}
		}
		got, err := generate.Run(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		got.Stages = nil
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: another report", jobs)
		}
	}
	if len(want.Kernels) < 8 || len(want.Unresolved) == 0 {
		t.Errorf("%d kernels, %d unresolved", len(want.Kernels), len(want.Unresolved))
	}
}

// TestShards checks that every kernel is in exactly one shard.
func TestShards(t *testing.T) {
	all, err := generate.Run(context.Background(), config(t, kernels))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]byte)
	for i := 1; i <= 3; i++ {
		cfg := config(t, kernels)
		cfg.Shard = archive.Shard{Index: i, N: 3}
		part, err := generate.Run(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range part.Kernels {
			if found[k.Name] != nil {
				t.Errorf("%s is in two shards", k.Name)
			}
			found[k.Name] = k.BTF
		}
	}
	if len(found) != len(all.Kernels) {
		t.Errorf("%d kernels in the shards, %d in all", len(found), len(all.Kernels))
	}
	for _, k := range all.Kernels {
		if !bytes.Equal(found[k.Name], k.BTF) {
			t.Errorf("%s differs", k.Name)
		}
	}
}

// TestParseShard reads shards, some of them from the variables of batch systems.
func TestParseShard(t *testing.T) {
	for _, tt := range []struct {
		text, environment string
		want              string // or what the error contains
	}{
		{"3/10", "", "3/10"},
		{"1/1", "", "0/0"},
		{"2/3", "CI_NODE_INDEX=1 CI_NODE_TOTAL=4", "2/3"},
		{"auto", "CI_NODE_INDEX=1 CI_NODE_TOTAL=4", "1/4"},
		{"auto", "CI_NODE_INDEX=4 CI_NODE_TOTAL=4", "4/4"},
		{"auto", "CI_NODE_INDEX=1 CI_NODE_TOTAL=1", "0/0"},
		{"auto/4", "CI_NODE_INDEX=4 CI_NODE_TOTAL=4", "4/4"},
		{"auto/10", "JOB_COMPLETION_INDEX=0", "1/10"},
		{"auto/10", "JOB_COMPLETION_INDEX=9", "10/10"},
		{"auto", "SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=8", "1/8"},
		{"auto", "SLURM_ARRAY_TASK_ID=8 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=8", "8/8"},
		{"auto", "SLURM_ARRAY_TASK_ID=12 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_STEP=4 SLURM_ARRAY_TASK_COUNT=3", "3/3"},
		{"auto", "CIRCLE_NODE_INDEX=0 CIRCLE_NODE_TOTAL=2", "1/2"},
		{"auto", "BUILDKITE_PARALLEL_JOB=1 BUILDKITE_PARALLEL_JOB_COUNT=2", "2/2"},

		{"auto", "CI_NODE_TOTAL=1", "the environment has no CI_NODE_INDEX, JOB_COMPLETION_INDEX, "},
		{"auto", "JOB_COMPLETION_INDEX=0", "want auto/N, since JOB_COMPLETION_INDEX does not say how many"},
		{"auto", "CI_NODE_INDEX=0 CI_NODE_TOTAL=4", "CI_NODE_INDEX is 0: not one of 4 tasks numbered from 1"},
		{"auto", "CI_NODE_INDEX=5 CI_NODE_TOTAL=4", "CI_NODE_INDEX is 5"},
		{"auto/5", "CI_NODE_INDEX=4 CI_NODE_TOTAL=4", "CI_NODE_TOTAL is 4"},
		{"auto/10", "JOB_COMPLETION_INDEX=10", "JOB_COMPLETION_INDEX is 10: not one of 10 tasks numbered from 0"},
		{"auto/10", "JOB_COMPLETION_INDEX=-1", `JOB_COMPLETION_INDEX is "-1": want a number`},
		{"auto/10", "JOB_COMPLETION_INDEX=x", `JOB_COMPLETION_INDEX is "x": want a number`},
		{"auto/10", "JOB_COMPLETION_INDEX=1 CI_NODE_INDEX=1", "the environment has CI_NODE_INDEX and JOB_COMPLETION_INDEX: want I/N"},
		{"auto", "SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_ID is 7"}, // 1,3,7
		{"auto", "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=0 SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_ID is 3"},
		{"auto", "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_ID is 3"},
		{"auto", "CI_NODE_INDEX=1 CI_NODE_TOTAL=9999999999", `CI_NODE_TOTAL is "9999999999"`},
		{"auto", "CI_NODE_INDEX=1 CI_NODE_TOTAL=2147483647", "CI_NODE_TOTAL is 2147483647: want 1 to 262144"},
		{"auto", "SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_STEP=4 SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_ID is 6: not one of 3 tasks numbered from 4 in steps of 4"},
		{"auto/0", "JOB_COMPLETION_INDEX=0", "want I/N"},
		{"auto/", "CI_NODE_INDEX=1 CI_NODE_TOTAL=4", "want I/N"},
		{"", "", "want I/N"}, {"1", "", "want I/N"}, {"0/2", "", "want I/N"}, {"3/2", "", "want I/N"}, {"a/b", "", "want I/N"}, {"1/0", "", "want I/N"}, {"-1/2", "", "want I/N"},
	} {
		getenv := func(name string) string {
			for word := range strings.FieldsSeq(tt.environment) {
				if value, ok := strings.CutPrefix(word, name+"="); ok {
					return value
				}
			}
			return ""
		}
		s, err := generate.ParseShard(tt.text, getenv)
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s with %q: %s, want %s", tt.text, tt.environment, got, tt.want)
		}
	}
}

// TestSameName checks the reports of two kernels with one name, with different and with equal BTF.
func TestSameName(t *testing.T) {
	dir := t.TempDir()
	put := func(name, from string) {
		data, err := os.ReadFile(filepath.Join(kernels, from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (*generate.Report, error) {
		cfg := config(t, dir)
		cfg.Objects = []*core.Object{object(t, "tcplife.bpfel.o")}
		return generate.Run(context.Background(), cfg)
	}
	put("debian/12/x86_64/1.btf.zst", "debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	put("a/debian/12/x86_64/1.btf.zst", "debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	rep, err := run()
	if err != nil || len(rep.Kernels) != 1 || len(rep.Skipped) != 1 || !errors.Is(rep.Skipped[0], corpus.ErrAgain) {
		t.Errorf("equal kernels: %d kernels, skipped %v, %v", len(rep.Kernels), rep.Skipped, err)
	}
	put("a/debian/12/x86_64/1.btf.zst", "debian/11/x86_64/5.10.0-30-amd64.btf.zst")
	rep, err = run()
	if err != nil || len(rep.Kernels) != 1 || len(rep.Skipped) != 1 || !strings.Contains(rep.Skipped[0].Reason(), "another kernel is debian/12/x86_64/1: ") {
		t.Errorf("different kernels: %d kernels, skipped %v, %v", len(rep.Kernels), rep.Skipped, err)
	}
}

// TestCancel checks the error of a cancelled run.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := config(t, kernels)
	cfg.Done = func(walk.Progress) { cancel() }
	if rep, err := generate.Run(ctx, cfg); err != context.Canceled || rep != nil {
		t.Errorf("report %v, error %v", rep, err)
	}
}
