// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/archive"
)

// batch names the variables that hold the index of a batch system's task and the number of tasks.
type batch struct {
	index, total string // an empty total means that the user gives the number of tasks
	first        int    // the index of the first task, unless a variable has it:
	min, step    string
}

// batches are the systems that "auto" recognises. Their documentation says what the variables hold; GitLab alone counts from 1.
var batches = []batch{
	{index: "CI_NODE_INDEX", total: "CI_NODE_TOTAL", first: 1}, // GitLab, with parallel
	{index: "JOB_COMPLETION_INDEX"},                            // Kubernetes, jobs with completionMode: Indexed
	{index: "SLURM_ARRAY_TASK_ID", total: "SLURM_ARRAY_TASK_COUNT", min: "SLURM_ARRAY_TASK_MIN", step: "SLURM_ARRAY_TASK_STEP"},
	{index: "CIRCLE_NODE_INDEX", total: "CIRCLE_NODE_TOTAL"},
	{index: "BUILDKITE_PARALLEL_JOB", total: "BUILDKITE_PARALLEL_JOB_COUNT"},
}

// shardOf returns the shard of the task that the environment describes. n is the number of tasks, or 0 if a variable has it.
func shardOf(n int, getenv func(string) string) (i, of int, err error) {
	var found []batch
	var names, set []string
	for _, b := range batches {
		names = append(names, b.index)
		if getenv(b.index) != "" {
			found, set = append(found, b), append(set, b.index)
		}
	}
	switch len(found) {
	case 0:
		return 0, 0, fmt.Errorf("the environment has no %s or %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	case 1:
	default:
		return 0, 0, fmt.Errorf("the environment has %s: want I/N", strings.Join(set, " and "))
	}
	number := func(name string, value *int) {
		text := getenv(name)
		if name == "" || text == "" || err != nil {
			return
		}
		n, parseErr := strconv.ParseUint(text, 10, 31)
		if *value = int(n); parseErr != nil {
			err = fmt.Errorf("%s is %q: want a number", name, text)
		}
	}
	b := found[0]
	index, first, step := 0, b.first, 1
	number(b.index, &index)
	number(b.min, &first)
	number(b.step, &step)
	total := 0
	number(b.total, &total)
	switch {
	case err != nil:
		return 0, 0, err
	case total == 0 && n == 0:
		return 0, 0, fmt.Errorf("want auto/N, since %s does not say how many tasks there are", b.index)
	case total != 0 && n != 0 && total != n:
		return 0, 0, fmt.Errorf("%s is %d", b.total, total)
	case total > btfa.MaxShards:
		return 0, 0, fmt.Errorf("%s is %d: want 1 to %d", b.total, total, btfa.MaxShards)
	}
	total = max(total, n)
	if step < 1 || (index-first)%step != 0 || index < first || (index-first)/step >= total {
		steps := ""
		if step != 1 {
			steps = fmt.Sprintf(" in steps of %d", step)
		}
		return 0, 0, fmt.Errorf("%s is %d: not one of %d tasks numbered from %d%s", b.index, index, total, first, steps)
	}
	return (index-first)/step + 1, total, nil
}

// ParseShard reads "3/10", or "auto" or "auto/10" for the shard of the task that a batch system started with this environment. "1/1" is the
// zero Shard, the whole.
func ParseShard(s string, getenv func(string) string) (archive.Shard, error) {
	a, b, cut := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	ok := cut && err2 == nil && n >= 1
	if a == "auto" && (ok || !cut) {
		var err error
		if i, n, err = shardOf(n, getenv); err != nil {
			return archive.Shard{}, err
		}
		ok, err1 = true, nil
	}
	if !ok || err1 != nil || i < 1 || n < i || n > btfa.MaxShards {
		return archive.Shard{}, fmt.Errorf("want I/N with 1 ≤ I ≤ N ≤ %d, auto or auto/N", btfa.MaxShards)
	}
	if n == 1 {
		return archive.Shard{}, nil
	}
	return archive.Shard{Index: i, N: n}, nil
}

// first reports whether s is the shard that reports what belongs to no shard.
func first(s archive.Shard) bool { return s.Index <= 1 }

// inShard returns the files in a shard. It depends on a kernel's key alone: all sources of a kernel are in the same shard,
// and a kernel stays in its shard when others come and go.
func inShard(s archive.Shard, files []*corpus.File) []*corpus.File {
	if s.N <= 1 {
		return files
	}
	var out []*corpus.File
	for _, f := range files {
		name := f.Path
		if f.Key.Known() {
			name = f.Key.Canonical().String()
		}
		h := fnv.New32a()
		h.Write([]byte(name))
		if int(h.Sum32()%uint32(s.N)) == s.Index-1 {
			out = append(out, f)
		}
	}
	return out
}
