// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

const mapPrefix = "BPF_MAP_TYPE_"

// mapTypeName is the name of a type of maps in C.
func mapTypeName(kind uint32) string {
	if int64(kind) < int64(len(knownMapTypes)) {
		return mapPrefix + knownMapTypes[kind]
	}
	return fmt.Sprintf("map type %d", kind)
}

// typeMissing is the finding on a map that a kernel lacks.
func typeMissing(m *bpfobj.Map) Finding {
	return Finding{Status: Fails, Code: MapTypeMissing, Subject: mapTypeName(m.Type), Args: Args{Stops: ObjectStops}}
}

// knownMapTypes are names by number: enum bpf_map_type of include/uapi/linux/bpf.h in Linux 7.3.
var knownMapTypes = [...]string{
	"UNSPEC", "HASH", "ARRAY", "PROG_ARRAY", "PERF_EVENT_ARRAY", "PERCPU_HASH", "PERCPU_ARRAY", "STACK_TRACE",
	"CGROUP_ARRAY", "LRU_HASH", "LRU_PERCPU_HASH", "LPM_TRIE", "ARRAY_OF_MAPS", "HASH_OF_MAPS", "DEVMAP", "SOCKMAP",
	"CPUMAP", "XSKMAP", "SOCKHASH", "CGROUP_STORAGE", "REUSEPORT_SOCKARRAY", "PERCPU_CGROUP_STORAGE", "QUEUE", "STACK",
	"SK_STORAGE", "DEVMAP_HASH", "STRUCT_OPS", "RINGBUF", "INODE_STORAGE", "TASK_STORAGE", "BLOOM_FILTER", "USER_RINGBUF",
	"CGRP_STORAGE", "ARENA", "INSN_ARRAY", "RHASH",
}
