// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/pkg/archive"
)

// batchSystem is how a system that runs a job several times tells each of them which it is, in variables of
// the environment.
type batchSystem struct {
	index, n string
	first    int    // the lowest index
	lowest   string // or the variable that has it
}

var batchSystems = []batchSystem{
	{index: "JOB_COMPLETION_INDEX", n: "BTFGEN_SHARDS"}, // Kubernetes, which does not tell how many there are
	{index: "AWS_BATCH_JOB_ARRAY_INDEX", n: "AWS_BATCH_JOB_ARRAY_SIZE"},
	{index: "CLOUD_RUN_TASK_INDEX", n: "CLOUD_RUN_TASK_COUNT"},
	{index: "SLURM_ARRAY_TASK_ID", n: "SLURM_ARRAY_TASK_COUNT", lowest: "SLURM_ARRAY_TASK_MIN"},
	{index: "CI_NODE_INDEX", n: "CI_NODE_TOTAL", first: 1}, // GitLab
	{index: "BUILDKITE_PARALLEL_JOB", n: "BUILDKITE_PARALLEL_JOB_COUNT"},
	{index: "CIRCLE_NODE_INDEX", n: "CIRCLE_NODE_TOTAL"},
	{index: "SYSTEM_JOBPOSITIONINPHASE", n: "SYSTEM_TOTALJOBSINPHASE", first: 1}, // Azure Pipelines
}

// ShardFrom returns the shard that a batch system tells in the environment, and by which variables. Empty
// variables are as good as none.
func ShardFrom(getenv func(string) string) (s archive.Shard, from string, err error) {
	var found []batchSystem
	for _, b := range batchSystems {
		if getenv(b.index) != "" {
			found = append(found, b)
		}
	}
	switch len(found) {
	case 0:
		var all []string
		for _, b := range batchSystems {
			all = append(all, b.index)
		}
		return s, "", fmt.Errorf("found none of the variables %s", strings.Join(all, ", "))
	case 1:
		return found[0].shard(getenv)
	}
	return s, "", fmt.Errorf("found both %s and %s", found[0].index, found[1].index)
}

func (b *batchSystem) shard(getenv func(string) string) (s archive.Shard, from string, err error) {
	first := b.first
	if b.lowest != "" {
		if first, err = number(getenv, b.lowest); err != nil {
			return s, "", err
		}
	}
	i, err := number(getenv, b.index)
	if err != nil {
		return s, "", err
	}
	if getenv(b.n) == "" {
		return s, "", fmt.Errorf("found %s=%d but not %s, which tells how many there are", b.index, i, b.n)
	}
	n, err := number(getenv, b.n)
	if err != nil {
		return s, "", err
	}
	from = fmt.Sprintf("%s=%d and %s=%d", b.index, i, b.n, n)
	if s, err = ParseShard(fmt.Sprintf("%d/%d", i-first+1, n)); err != nil {
		return s, "", fmt.Errorf("%s, where the lowest index is %d: %w", from, first, err)
	}
	return s, from, nil
}

// number reads the number in a variable.
func number(getenv func(string) string, name string) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%q: %w", name, getenv(name), errNumber)
	}
	return n, nil
}

var errNumber = errors.New("not a number")
