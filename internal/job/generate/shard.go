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

// ParseShard reads "3/10". "1/1" is the zero Shard, the whole.
func ParseShard(s string) (archive.Shard, error) {
	a, b, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || i < 1 || n < i || n > btfa.MaxShards {
		return archive.Shard{}, fmt.Errorf("%q: want I/N with 1 ≤ I ≤ N ≤ %d", s, btfa.MaxShards)
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

// batchSystem has the environment variables in which a batch system passes a task its index and the number of tasks.
type batchSystem struct {
	index, n string
	first    int    // the lowest index
	lowest   string // or the variable that contains it
}

var batchSystems = []batchSystem{
	{index: "JOB_COMPLETION_INDEX", n: "BTFGEN_SHARDS"}, // Kubernetes, which has no variable for the number
	{index: "AWS_BATCH_JOB_ARRAY_INDEX", n: "AWS_BATCH_JOB_ARRAY_SIZE"},
	{index: "CLOUD_RUN_TASK_INDEX", n: "CLOUD_RUN_TASK_COUNT"},
	{index: "SLURM_ARRAY_TASK_ID", n: "SLURM_ARRAY_TASK_COUNT", lowest: "SLURM_ARRAY_TASK_MIN"},
	{index: "CI_NODE_INDEX", n: "CI_NODE_TOTAL", first: 1}, // GitLab
	{index: "BUILDKITE_PARALLEL_JOB", n: "BUILDKITE_PARALLEL_JOB_COUNT"},
	{index: "CIRCLE_NODE_INDEX", n: "CIRCLE_NODE_TOTAL"},
	{index: "SYSTEM_JOBPOSITIONINPHASE", n: "SYSTEM_TOTALJOBSINPHASE", first: 1}, // Azure Pipelines
}

// ShardFrom returns the shard that a batch system has set in the environment, and the variables used. An empty variable
// counts as unset.
func ShardFrom(getenv func(string) string) (s archive.Shard, from string, err error) {
	var b *batchSystem
	var all []string
	for i := range batchSystems {
		next := &batchSystems[i]
		all = append(all, next.index)
		switch {
		case getenv(next.index) == "":
		case b != nil:
			return s, "", fmt.Errorf("found both %s and %s", b.index, next.index)
		default:
			b = next
		}
	}
	if b == nil {
		return s, "", fmt.Errorf("found none of the variables %s", strings.Join(all, ", "))
	}
	number := func(name string) (n int) {
		if err == nil {
			if n, err = strconv.Atoi(getenv(name)); err != nil || n < 0 {
				err = fmt.Errorf("%s=%q: not a number", name, getenv(name))
			}
		}
		return n
	}
	first := b.first
	if b.lowest != "" {
		first = number(b.lowest)
	}
	i := number(b.index)
	if err == nil && getenv(b.n) == "" {
		return s, "", fmt.Errorf("found %s=%d but not %s, the number of tasks", b.index, i, b.n)
	}
	n := number(b.n)
	if err != nil {
		return s, "", err
	}
	from = fmt.Sprintf("%s=%d and %s=%d", b.index, i, b.n, n)
	if s, err = ParseShard(fmt.Sprintf("%d/%d", i-first+1, n)); err != nil {
		return s, "", fmt.Errorf("%s, where the lowest index is %d: %w", from, first, err)
	}
	return s, from, nil
}
