// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfprog"
)

// Types of maps whose definitions are judged, by their numbers in knownMapTypes.
const (
	mapHash                = 1
	mapArray               = 2
	mapProgArray           = 3
	mapPerfEventArray      = 4
	mapPercpuHash          = 5
	mapPercpuArray         = 6
	mapStackTrace          = 7
	mapCgroupArray         = 8
	mapLRUHash             = 9
	mapLRUPercpuHash       = 10
	mapLPMTrie             = 11
	mapArrayOfMaps         = 12
	mapHashOfMaps          = 13
	mapDevmap              = 14
	mapSockmap             = 15
	mapCpumap              = 16
	mapXskmap              = 17
	mapSockhash            = 18
	mapCgroupStorage       = 19
	mapReuseport           = 20
	mapPercpuCgroupStorage = 21
	mapQueue               = 22
	mapStack               = 23
	mapSkStorage           = 24
	mapDevmapHash          = 25
	mapRingbuf             = 27
	mapInodeStorage        = 28
	mapTaskStorage         = 29
	mapBloom               = 30
	mapUserRingbuf         = 31
	mapCgrpStorage         = 32
	mapArena               = 33
)

// Flags of maps (include/uapi/linux/bpf.h).
const (
	flagNoPrealloc = 1 << iota
	flagNoCommonLRU
	flagNUMA
	flagRdonly
	flagWronly
	flagStackBuildID
	flagZeroSeed
	flagRdonlyProg
	flagWronlyProg
	flagClone
	flagMmapable
	flagPreserveElems
	flagInnerMap
	flagNext // flags from here on are for any type of map, or of types that are not judged

	flagsUser    = flagNUMA | flagRdonly | flagWronly
	flagsAccess  = flagsUser | flagRdonlyProg | flagWronlyProg
	flagsHash    = flagsAccess | flagNoPrealloc | flagNoCommonLRU | flagZeroSeed
	flagsStorage = flagNoPrealloc | flagClone
)

// mapRule is what a type of maps wants of a definition.
type mapRule struct {
	flags  uint32   // that it takes
	key    []uint32 // sizes that it takes; none for any, a 0 for only none
	value  []uint32
	percpu bool
}

// mapRules are what the functions *_alloc_check and *_alloc and the masks
// *_CREATE_FLAG_MASK come to, to which Linux 5.10, 6.1, 6.12, 6.18 and 7.2 answered alike
// in TestVerifierMaps. They are in kernel/bpf/hashtab.c, arraymap.c,
// stackmap.c, lpm_trie.c, local_storage.c, bpf_local_storage.c, queue_stack_maps.c,
// bloom_filter.c, ringbuf.c, devmap.c, cpumap.c and reuseport_array.c, net/xdp/xskmap.c and
// net/core/sock_map.c. What differs between releases is in inventory.mapRefused.
var mapRules = map[uint32]mapRule{
	mapHash:                {flags: flagsHash &^ flagNoCommonLRU},
	mapPercpuHash:          {flags: flagsHash &^ (flagNoCommonLRU | flagNUMA), percpu: true},
	mapLRUHash:             {flags: flagsHash &^ flagNoPrealloc},
	mapLRUPercpuHash:       {flags: flagsHash &^ (flagNoPrealloc | flagNUMA), percpu: true},
	mapArray:               {flags: flagsAccess | flagMmapable | flagInnerMap, key: []uint32{4}},
	mapPercpuArray:         {flags: flagsAccess &^ flagNUMA, key: []uint32{4}, percpu: true},
	mapProgArray:           {flags: flagsUser, key: []uint32{4}, value: []uint32{4}},
	mapPerfEventArray:      {flags: flagsUser | flagPreserveElems, key: []uint32{4}, value: []uint32{4}},
	mapCgroupArray:         {flags: flagsUser, key: []uint32{4}, value: []uint32{4}},
	mapArrayOfMaps:         {flags: flagsUser, key: []uint32{4}, value: []uint32{4}},
	mapHashOfMaps:          {flags: flagsHash &^ flagNoCommonLRU, value: []uint32{4}},
	mapStackTrace:          {flags: flagsUser | flagStackBuildID, key: []uint32{4}},
	mapLPMTrie:             {flags: flagsAccess | flagNoPrealloc},
	mapDevmap:              {flags: flagsUser, key: []uint32{4}, value: []uint32{4, 8}},
	mapDevmapHash:          {flags: flagsUser, key: []uint32{4}, value: []uint32{4, 8}},
	mapSockmap:             {flags: flagsUser, key: []uint32{4}, value: []uint32{4, 8}},
	mapSockhash:            {flags: flagsUser, value: []uint32{4, 8}},
	mapCpumap:              {flags: flagNUMA, key: []uint32{4}, value: []uint32{4, 8}},
	mapXskmap:              {flags: flagsUser, key: []uint32{4}, value: []uint32{4}},
	mapCgroupStorage:       {flags: flagsAccess, key: []uint32{8, 16}},
	mapPercpuCgroupStorage: {flags: flagsAccess, key: []uint32{8, 16}, percpu: true},
	mapReuseport:           {flags: flagsAccess, key: []uint32{4}, value: []uint32{4, 8}},
	mapQueue:               {flags: flagsAccess, key: []uint32{0}},
	mapStack:               {flags: flagsAccess, key: []uint32{0}},
	mapBloom:               {flags: flagsAccess | flagZeroSeed, key: []uint32{0}},
	mapRingbuf:             {flags: flagNUMA, key: []uint32{0}, value: []uint32{0}},
	mapUserRingbuf:         {flags: flagNUMA, key: []uint32{0}, value: []uint32{0}},
	mapSkStorage:           {flags: flagsStorage, key: []uint32{4}},
	mapInodeStorage:        {flags: flagsStorage, key: []uint32{4}},
	mapTaskStorage:         {flags: flagsStorage, key: []uint32{4}},
	mapCgrpStorage:         {flags: flagsStorage, key: []uint32{4}},
}

// mapRefused judges the definition of a map of a type that the kernel has. What
// it leaves to the loader is not judged.
func (k *inventory) mapRefused(m *bpfprog.Map) (Status, string) {
	rule, ok := mapRules[m.Type]
	if !ok {
		return OK, ""
	}
	if why := rule.refuses(m); why != "" {
		if k.has(linux(7, 4)) == present {
			return MayFail, why + " in kernels up to Linux 7.3"
		}
		return Fails, why
	}
	if why := k.lacksFlag(m.Flags); why != "" {
		return Fails, why
	}
	if status, why := k.tooLarge(m, rule.percpu); status != OK {
		return status, why
	}
	switch m.Type {
	case mapHash, mapPercpuHash, mapLRUHash, mapLRUPercpuHash, mapHashOfMaps:
		if m.KeySize > 512 { // "bpf: Lift hashtab key_size limit"
			return k.refused(linux(5, 11), "keys cannot be of more than 512 bytes")
		}
	case mapDevmap, mapDevmapHash, mapCpumap:
		if m.ValueSize == 8 { // struct bpf_devmap_val, struct bpf_cpumap_val
			came := linux(5, 8)
			if m.Type == mapCpumap {
				came = linux(5, 9)
			}
			return k.refused(came, "values cannot be of 8 bytes")
		}
	case mapSockmap, mapSockhash:
		if m.ValueSize == 8 {
			return k.refused(linux(5, 7), "values cannot be of 8 bytes")
		}
	case mapCgroupStorage, mapPercpuCgroupStorage:
		if m.KeySize == 8 {
			return k.refused(linux(5, 9), "keys cannot be of 8 bytes")
		}
	case mapStackTrace:
		if depth := m.ValueSize / max(8, m.Flags&flagStackBuildID); depth > 127 {
			return MayFail, fmt.Sprintf("stacks of %d frames are more than sysctl kernel.perf_event_max_stack usually allows, 127", depth)
		}
	}
	return OK, ""
}

// refuses says what of a definition no kernel takes.
func (r *mapRule) refuses(m *bpfprog.Map) string {
	switch {
	case m.Flags&(flagNext-1)&^r.flags != 0:
		return fmt.Sprintf("maps of this type do not take flag %#x", m.Flags&(flagNext-1)&^r.flags)
	case m.Flags&flagRdonly != 0 && m.Flags&flagWronly != 0, m.Flags&flagRdonlyProg != 0 && m.Flags&flagWronlyProg != 0:
		return "a map cannot be both for reading only and for writing only"
	case !fits(m.KeySize, r.key):
		return fmt.Sprintf("keys cannot be of %d bytes", m.KeySize)
	case !fits(m.ValueSize, r.value):
		return fmt.Sprintf("values cannot be of %d bytes", m.ValueSize)
	}
	switch m.Type {
	case mapLPMTrie:
		switch {
		case m.Flags&flagNoPrealloc == 0:
			return "such maps need the flag BPF_F_NO_PREALLOC"
		case m.KeySize != 0 && (m.KeySize < 5 || m.KeySize > 4+256):
			return fmt.Sprintf("keys cannot be of %d bytes", m.KeySize)
		}
	case mapStackTrace:
		if frame := max(8, m.Flags&flagStackBuildID); m.ValueSize%frame != 0 {
			return fmt.Sprintf("values are of %d bytes, not a multiple of %d", m.ValueSize, frame)
		}
	case mapSockhash:
		if m.KeySize > 512 {
			return "keys cannot be of more than 512 bytes"
		}
	case mapCgroupStorage, mapPercpuCgroupStorage:
		switch {
		case m.MaxEntries != 0:
			return "such maps have no max_entries"
		case m.ValueSize > 1<<16:
			return fmt.Sprintf("values cannot be of %d bytes", m.ValueSize)
		}
	case mapSkStorage, mapInodeStorage, mapTaskStorage, mapCgrpStorage:
		switch {
		case m.Flags&flagNoPrealloc == 0:
			return "such maps need the flag BPF_F_NO_PREALLOC"
		case m.MaxEntries != 0:
			return "such maps have no max_entries"
		case !m.Typed:
			return "such maps need types of key and value"
		case m.ValueSize > 1<<16:
			return fmt.Sprintf("values cannot be of %d bytes", m.ValueSize)
		}
	}
	return ""
}

// fits reports whether a size is one of those; one that the loader sets is.
func fits(size uint32, sizes []uint32) bool {
	return size == 0 || len(sizes) == 0 || slices.Contains(sizes, size)
}

// lacksFlag says which flag of a map the kernel does not know.
func (k *inventory) lacksFlag(flags uint32) string {
	known := k.enums[enumMapFlag]
	if known == nil {
		return ""
	}
	all := uint32(0)
	for _, v := range known {
		all |= uint32(v)
	}
	if unknown := flags &^ all; unknown != 0 {
		return fmt.Sprintf("the kernel knows no flag %#x of maps", uint32(1)<<bits.TrailingZeros32(unknown))
	}
	return ""
}

// tooLarge judges sizes by what the kernel's allocator gives: a value for each
// processor comes from a piece of PCPU_MIN_UNIT_SIZE bytes, 32 kB in whole pages, and a
// key with its value from KMALLOC_MAX_SIZE, which is 4 MB with pages of 4 kB. Before
// Linux 6.1 some were refused only where an element was made, and some were smaller.
func (k *inventory) tooLarge(m *bpfprog.Map, percpu bool) (Status, string) {
	small := slices.Contains([]string{"x86_64", "i386", "arm", "s390x"}, k.arch) // pages are of 4 kB
	unit := uint64(64 << 10)
	if small {
		unit = 32 << 10
	}
	value := uint64(m.ValueSize)
	why := fmt.Sprintf("values cannot be of %d bytes", value)
	older := Fails
	if k.has(linux(6, 1)) != present {
		older = MayFail
	}
	switch {
	case percpu && value > unit && m.Flags&flagNoPrealloc != 0:
		return older, why
	case percpu && value > unit:
		return Fails, why
	case percpu && m.Type == mapPercpuCgroupStorage && value > 4<<10, m.Type == mapCgroupStorage && value > 4<<10, m.Type == mapArray && value > 4<<20:
		if older == MayFail {
			return older, why + " on some kernels before Linux 6.1"
		}
	case small && slices.Contains([]uint32{mapHash, mapLRUHash, mapLPMTrie, mapQueue, mapStack, mapBloom}, m.Type) && uint64(m.KeySize)+value >= 4<<20:
		return Fails, why
	}
	return OK, ""
}

// libbpfRefuses is what follows where libbpf cannot make a map or find an extern;
// cilium/ebpf may still load programs that need neither.
const libbpfRefuses = "; libbpf then loads no program of the object"

// definitions judges the definitions of all maps of the object.
func (p *pairing) definitions() (l []Finding) {
	types := p.k.enums[enumMap]
	for i := range p.o.Maps {
		m := &p.o.Maps[i]
		if types != nil && !hasValue(types, uint64(m.Type)) {
			continue // see lackedMaps
		}
		f := Finding{Topic: TopicMapDef, Subject: m.Name}
		f.Status, f.Reason = p.k.mapsRefused(m)
		if f.Status == OK && m.Inner == nil && (m.Type == mapArrayOfMaps || m.Type == mapHashOfMaps) {
			f.Status, f.Reason = MayFail, "its definition has no inner map, so the loader has to set one"+libbpfRefuses
			l = append(l, f)
			continue
		}
		if f.Status != OK {
			f.Reason += libbpfRefuses
			if status, _ := p.k.mapsRefused(corrected(m)); status == OK {
				f.Loader = Libbpf
			}
			l = append(l, f)
		}
	}
	return l
}

// mapsRefused judges the definition of a map and of its inner map.
func (k *inventory) mapsRefused(m *bpfprog.Map) (Status, string) {
	status, why := k.mapRefused(m)
	if status == OK && m.Inner != nil {
		return k.mapRefused(m.Inner)
	}
	return status, why
}

// corrected is a definition as cilium/ebpf reads it: some types of maps have no size of values, so that it takes a type of values
// for documentation (canHaveValueSize in its types.go, fixupMagicFields in its map.go).
func corrected(m *bpfprog.Map) *bpfprog.Map {
	c := *m
	if m.TypedValue && slices.Contains([]uint32{mapPerfEventArray, mapRingbuf, mapArena}, m.Type) {
		c.ValueSize = 0
	}
	if m.Inner != nil {
		c.Inner = corrected(m.Inner)
	}
	return &c
}
