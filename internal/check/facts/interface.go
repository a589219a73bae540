// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"
)

// Enum is an enum of the kernel's interface.
type Enum int

// The enums.
const (
	EnumHelper  Enum = iota // bpf_func_id
	EnumMap                 // bpf_map_type
	EnumProg                // bpf_prog_type
	EnumAttach              // bpf_attach_type
	EnumLink                // bpf_link_type
	EnumCond                // bpf_cond_pseudo_jmp
	EnumMapFlag             // has no name: it is known by its first enumerator
	Enums                   // how many there are
)

var enumNames = [Enums]string{
	EnumHelper: "bpf_func_id", EnumMap: "bpf_map_type", EnumProg: "bpf_prog_type", EnumAttach: "bpf_attach_type",
	EnumLink: "bpf_link_type", EnumCond: "bpf_cond_pseudo_jmp", EnumMapFlag: "BPF_F_NO_PREALLOC",
}

// String returns the enum's name in C, or its first enumerator if it has no name.
func (e Enum) String() string { return enumNames[e] }

// enumNamed returns the enum with a name.
func enumNamed(name string) (Enum, error) {
	e := slices.Index(enumNames[:], name)
	if e < 0 {
		return 0, fmt.Errorf("%s is not an enum of the kernel's interface", name)
	}
	return Enum(e), nil
}

// enumPrefixes begin the names of enumerators. One without any of them is a type of attachment.
var enumPrefixes = map[string]Enum{
	"BPF_FUNC_": EnumHelper, "BPF_MAP_TYPE_": EnumMap, "BPF_PROG_TYPE_": EnumProg, "BPF_LINK_TYPE_": EnumLink,
}

// Enumerator returns which enumerator a part of the kernel's interface is. A helper is named "bpf_loop".
func Enumerator(name string) (e Enum, enumerator string) {
	if helper, ok := strings.CutPrefix(name, "bpf_"); ok {
		return EnumHelper, "BPF_FUNC_" + helper
	}
	for prefix, e := range enumPrefixes {
		if strings.HasPrefix(name, prefix) {
			return e, name
		}
	}
	return EnumAttach, name
}

// LastHelper is the number of the last helper. Since Linux 6.2 new functions for programs are kfuncs.
const LastHelper = int64(asm.FnCgrpStorageDelete)

// HelperName returns a helper's name in C, "#9999" for an unknown number.
func HelperName(id int64) string {
	s := asm.BuiltinFunc(id).String()
	if !strings.HasPrefix(s, "Fn") {
		return fmt.Sprintf("#%d", id)
	}
	return "bpf_" + snake(s[2:])
}

// HelperEnumerator returns the enumerator of a helper with its enum: "bpf_func_id:BPF_FUNC_loop".
func HelperEnumerator(id int64) string {
	name, known := strings.CutPrefix(HelperName(id), "bpf_")
	if !known {
		return EnumHelper.String() + ":" + strings.TrimPrefix(name, "#")
	}
	return EnumHelper.String() + ":BPF_FUNC_" + name
}

// snake turns MapLookupElem into map_lookup_elem.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// MapPrefix begins the names of types of maps in C.
const MapPrefix = "BPF_MAP_TYPE_"

// MapTypes is how many types of maps are known.
const MapTypes = len(mapNames)

// MapName returns the name of a type of maps without [MapPrefix].
func MapName(kind uint32) string {
	if int64(kind) < int64(len(mapNames)) {
		return mapNames[kind]
	}
	return fmt.Sprintf("map type %d", kind)
}

// isMapType reports whether there is a type of maps.
func isMapType(name string) bool { return slices.Contains(mapNames[1:], name) }

// MapTypeName returns the name of a type of maps in C.
func MapTypeName(kind uint32) string {
	if int64(kind) < int64(len(mapNames)) {
		return MapPrefix + mapNames[kind]
	}
	return MapName(kind)
}

// mapNames are names by number: enum bpf_map_type of include/uapi/linux/bpf.h in Linux 7.3.
var mapNames = [...]string{
	"UNSPEC", "HASH", "ARRAY", "PROG_ARRAY", "PERF_EVENT_ARRAY", "PERCPU_HASH", "PERCPU_ARRAY", "STACK_TRACE",
	"CGROUP_ARRAY", "LRU_HASH", "LRU_PERCPU_HASH", "LPM_TRIE", "ARRAY_OF_MAPS", "HASH_OF_MAPS", "DEVMAP", "SOCKMAP",
	"CPUMAP", "XSKMAP", "SOCKHASH", "CGROUP_STORAGE", "REUSEPORT_SOCKARRAY", "PERCPU_CGROUP_STORAGE", "QUEUE", "STACK",
	"SK_STORAGE", "DEVMAP_HASH", "STRUCT_OPS", "RINGBUF", "INODE_STORAGE", "TASK_STORAGE", "BLOOM_FILTER", "USER_RINGBUF",
	"CGRP_STORAGE", "ARENA", "INSN_ARRAY", "RHASH",
}
