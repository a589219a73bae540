// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/pkg/archive"
)

// TestShardFrom has the variables that each system sets for the third of four tasks.
func TestShardFrom(t *testing.T) {
	for _, env := range []map[string]string{
		{"JOB_COMPLETION_INDEX": "2", "BTFGEN_SHARDS": "4"},
		{"AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "4"},
		{"CLOUD_RUN_TASK_INDEX": "2", "CLOUD_RUN_TASK_COUNT": "4"},
		{"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "0"},
		{"SLURM_ARRAY_TASK_ID": "13", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "11"},
		{"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "4"},
		{"BUILDKITE_PARALLEL_JOB": "2", "BUILDKITE_PARALLEL_JOB_COUNT": "4"},
		{"CIRCLE_NODE_INDEX": "2", "CIRCLE_NODE_TOTAL": "4", "CI_NODE_INDEX": ""},
		{"SYSTEM_JOBPOSITIONINPHASE": "3", "SYSTEM_TOTALJOBSINPHASE": "4", "CI_NODE_TOTAL": "1"},
	} {
		s, from, err := generate.ShardFrom(func(name string) string { return env[name] })
		if err != nil || s != (archive.Shard{Index: 3, N: 4}) || !strings.Contains(from, "=4") {
			t.Errorf("%v: %s from %q, %v", env, s, from, err)
		}
	}
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "found none of the variables JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX, "},
		{map[string]string{"CI_NODE_TOTAL": "1"}, "found none"},
		{map[string]string{"JOB_COMPLETION_INDEX": "0"}, "found JOB_COMPLETION_INDEX=0 but not BTFGEN_SHARDS"},
		{map[string]string{"JOB_COMPLETION_INDEX": "4", "BTFGEN_SHARDS": "4"}, "lowest index is 0: \"5/4\""},
		{map[string]string{"JOB_COMPLETION_INDEX": "x", "BTFGEN_SHARDS": "4"}, "JOB_COMPLETION_INDEX=\"x\": not a number"},
		{map[string]string{"JOB_COMPLETION_INDEX": "0", "BTFGEN_SHARDS": "-1"}, "BTFGEN_SHARDS=\"-1\": not a number"},
		{map[string]string{"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "4"}, "lowest index is 1: \"0/4\""},
		{map[string]string{"SLURM_ARRAY_TASK_ID": "20", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "0"}, "\"21/3\""},
		{map[string]string{"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}, "SLURM_ARRAY_TASK_MIN=\"\": not a number"},
		{map[string]string{"CI_NODE_INDEX": "1", "CIRCLE_NODE_INDEX": "0"}, "found both CI_NODE_INDEX and CIRCLE_NODE_INDEX"},
	} {
		s, _, err := generate.ShardFrom(func(name string) string { return tt.env[name] })
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %s, %v; want %q", tt.env, s, err, tt.want)
		}
	}
}
