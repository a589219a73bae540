// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// mapTypes are names of types of maps by number, as the kernels of a run have
// them. They count for types that are newer than knownMapTypes: a kernel that
// lacks a type does not have its name, but others may.
type mapTypes map[uint64]string

const mapPrefix = "BPF_MAP_TYPE_"

// learn takes names from a kernel's enum bpf_map_type. Of two for one number
// the name that is not deprecated counts, then the shorter.
func (m mapTypes) learn(enum map[string]uint64) {
	for name, v := range enum {
		if old, ok := m[v]; strings.HasPrefix(name, mapPrefix) && (!ok || preferred(name, old)) {
			m[v] = name
		}
	}
}

func preferred(a, b string) bool {
	const old = "_DEPRECATED"
	if x, y := strings.HasSuffix(a, old), strings.HasSuffix(b, old); x != y {
		return y
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// name is the name of a type in C.
func (m mapTypes) name(kind uint32) string {
	if int64(kind) < int64(len(knownMapTypes)) {
		return mapPrefix + knownMapTypes[kind]
	}
	if n, ok := m[uint64(kind)]; ok {
		return n
	}
	return fmt.Sprintf("map type %d", kind)
}

// finding is that on a map that a kernel lacks.
func (m mapTypes) finding(x *bpfobj.Map) Finding {
	return Finding{Status: Fails, Code: MapTypeMissing, Subject: m.name(x.Type), Args: Args{Stops: ObjectStops}}
}

// knownMapTypes are names by number: enum bpf_map_type of include/uapi/linux/bpf.h in Linux 7.3.
var knownMapTypes = [...]string{
	"UNSPEC", "HASH", "ARRAY", "PROG_ARRAY", "PERF_EVENT_ARRAY", "PERCPU_HASH", "PERCPU_ARRAY", "STACK_TRACE",
	"CGROUP_ARRAY", "LRU_HASH", "LRU_PERCPU_HASH", "LPM_TRIE", "ARRAY_OF_MAPS", "HASH_OF_MAPS", "DEVMAP", "SOCKMAP",
	"CPUMAP", "XSKMAP", "SOCKHASH", "CGROUP_STORAGE", "REUSEPORT_SOCKARRAY", "PERCPU_CGROUP_STORAGE", "QUEUE", "STACK",
	"SK_STORAGE", "DEVMAP_HASH", "STRUCT_OPS", "RINGBUF", "INODE_STORAGE", "TASK_STORAGE", "BLOOM_FILTER", "USER_RINGBUF",
	"CGRP_STORAGE", "ARENA", "INSN_ARRAY", "RHASH",
}
