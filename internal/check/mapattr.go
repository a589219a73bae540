// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
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
)

func isMap(m *bpfobj.Map, types ...ebpf.MapType) bool {
	return slices.Contains(types, ebpf.MapType(m.Type))
}

// mapRule is what a type of maps wants of a definition.
type mapRule struct {
	flags  uint32   // that it takes
	key    []uint32 // sizes that it takes; none for any, a 0 for only none
	value  []uint32
	percpu bool
}

// mapRefused judges the definition of a map of a type that the kernel has. What
// it leaves to the loader is not judged.
func (k *inventory) mapRefused(m *bpfobj.Map) Finding {
	rule, ok := mapRules()[m.Type]
	if !ok {
		return Finding{}
	}
	if f := rule.refuses(m); f.Status != OK {
		if k.has(mapsRead.next()) == present {
			f.Status, f.Until = MayFail, mapsRead
		}
		return f
	}
	if f := k.lacksFlag(m.Flags); f.Status != OK {
		return f
	}
	if f := k.tooLarge(m, rule.percpu); f.Status != OK {
		return f
	}
	var f Finding
	switch ebpf.MapType(m.Type) {
	case ebpf.Hash, ebpf.PerCPUHash, ebpf.LRUHash, ebpf.LRUCPUHash, ebpf.HashOfMaps:
		if m.KeySize > mostKey {
			f = k.since(largeKeys, MapKeySize)
			f.Max = mostKey
		}
	case ebpf.DevMap, ebpf.DevMapHash, ebpf.CPUMap:
		if m.ValueSize == 8 { // struct bpf_devmap_val, struct bpf_cpumap_val
			came := devmapPrograms
			if isMap(m, ebpf.CPUMap) {
				came = cpumapPrograms
			}
			f = k.since(came, MapValueSize)
			f.Size = 8
		}
	case ebpf.SockMap, ebpf.SockHash:
		if m.ValueSize == 8 {
			f = k.since(sockmapCookies, MapValueSize)
			f.Size = 8
		}
	case ebpf.CGroupStorage, ebpf.PerCPUCGroupStorage:
		if m.KeySize == 8 {
			f = k.since(cgroupStorageInodes, MapKeySize)
			f.Size = 8
		}
	case ebpf.StackTrace:
		const most = 127
		if depth := m.ValueSize / max(8, m.Flags&flagStackBuildID); depth > most {
			f = Finding{Status: MayFail, Code: MapDepth, Args: Args{Count: int64(depth), Max: most}}
		}
	}
	return f
}

// mostKey is how large keys of hashes can be, bytes.
const mostKey = 512

// refuses returns the first attribute of a definition that every kernel refuses.
func (r *mapRule) refuses(m *bpfobj.Map) Finding {
	no := func(code Code, a Args) Finding { return Finding{Status: Fails, Code: code, Args: a} }
	key, value := Args{Size: int64(m.KeySize)}, Args{Size: int64(m.ValueSize)}
	storage := isMap(m, ebpf.SkStorage, ebpf.InodeStorage, ebpf.TaskStorage, ebpf.CgroupStorage)
	cgroup := isMap(m, ebpf.CGroupStorage, ebpf.PerCPUCGroupStorage)
	frame := max(8, m.Flags&flagStackBuildID)
	switch {
	case m.Flags&(flagNext-1)&^r.flags != 0:
		return no(MapFlagRefused, Args{Count: int64(m.Flags & (flagNext - 1) &^ r.flags)})
	case m.Flags&flagRdonly != 0 && m.Flags&flagWronly != 0, m.Flags&flagRdonlyProg != 0 && m.Flags&flagWronlyProg != 0:
		return no(MapAccess, Args{})
	case !fits(m.KeySize, r.key):
		return no(MapKeySize, key)
	case !fits(m.ValueSize, r.value):
		return no(MapValueSize, value)
	case (isMap(m, ebpf.LPMTrie) || storage) && m.Flags&flagNoPrealloc == 0:
		return no(MapPrealloc, Args{})
	case isMap(m, ebpf.LPMTrie) && m.KeySize != 0 && (m.KeySize < 5 || m.KeySize > 4+256):
		return no(MapKeySize, key)
	case isMap(m, ebpf.StackTrace) && m.ValueSize%frame != 0:
		return no(MapFrames, Args{Size: value.Size, Max: int64(frame)})
	case isMap(m, ebpf.SockHash) && m.KeySize > mostKey:
		return no(MapKeySize, Args{Max: mostKey})
	case (cgroup || storage) && m.MaxEntries != 0:
		return no(MapEntries, Args{})
	case storage && !m.Typed:
		return no(MapUntyped, Args{})
	case (cgroup || storage) && m.ValueSize > 1<<16:
		return no(MapValueSize, value)
	}
	return Finding{}
}

// fits reports whether a size is allowed. 0 always is, because the loader sets it.
func fits(size uint32, sizes []uint32) bool {
	return size == 0 || len(sizes) == 0 || slices.Contains(sizes, size)
}

// lacksFlag judges flags of a map that the kernel may not know.
func (k *inventory) lacksFlag(flags uint32) Finding {
	known := k.enums[enumMapFlag]
	if known == nil {
		return Finding{}
	}
	all := uint32(0)
	for _, v := range known {
		all |= uint32(v)
	}
	if unknown := flags &^ all; unknown != 0 {
		return Finding{Status: Fails, Code: MapFlagUnknown, Args: Args{Count: 1 << bits.TrailingZeros32(unknown)}}
	}
	return Finding{}
}

// tooLarge judges sizes by what the kernel's allocator gives: a value for each
// processor comes from a piece of PCPU_MIN_UNIT_SIZE bytes, 32 kB in whole pages, and a
// key with its value from KMALLOC_MAX_SIZE, which is 4 MB with pages of 4 kB. Before
// Linux 6.1 some were refused only where an element was made, and some were smaller.
func (k *inventory) tooLarge(m *bpfobj.Map, percpu bool) Finding {
	small := slices.Contains([]string{"x86_64", "i386", "arm", "s390x"}, k.arch) // pages are of 4 kB
	unit := uint64(64 << 10)
	if small {
		unit = 32 << 10
	}
	value := uint64(m.ValueSize)
	f := Finding{Status: Fails, Code: MapValueSize, Args: Args{Size: int64(value)}}
	older := k.has(valueSizes) != present
	switch {
	case percpu && value > unit:
		if older && m.Flags&flagNoPrealloc != 0 {
			f.Status = MayFail
		}
		return f
	case percpu && isMap(m, ebpf.PerCPUCGroupStorage) && value > 4<<10, isMap(m, ebpf.CGroupStorage) && value > 4<<10, isMap(m, ebpf.Array) && value > 4<<20:
		if older {
			f.Status, f.Since, f.Doubt = MayFail, valueSizes, SomeKernels
			return f
		}
	case small && isMap(m, ebpf.Hash, ebpf.LRUHash, ebpf.LPMTrie, ebpf.Queue, ebpf.Stack, ebpf.BloomFilter) && uint64(m.KeySize)+value >= 4<<20:
		return f
	}
	return Finding{}
}

// definitions judges the types and definitions of all maps of the object but those that the loader sets. Where libbpf cannot make a map it loads
// no program of the object; cilium/ebpf may still load programs that do not need it.
func (p *pairing) definitions() (l []part) {
	types := p.k.enums[enumMap]
	for i := range p.o.Maps {
		m := &p.o.Maps[i]
		f := p.k.mapsRefused(m)
		switch {
		case p.setsMap(m.Name):
			continue
		case types != nil && !hasValue(types, uint64(m.Type)):
			l = append(l, part{m.Name, typeMissing(m)})
			continue
		case f.Status != OK:
			if p.k.mapsRefused(corrected(m)).Status == OK {
				f.Loader = Libbpf
			}
		case m.Inner == nil && isMap(m, ebpf.ArrayOfMaps, ebpf.HashOfMaps):
			f = Finding{Status: MayFail, Code: MapInner}
		default:
			continue
		}
		f.Subject, f.Stops = m.Name, ObjectStops
		l = append(l, part{m.Name, f})
	}
	return l
}

// mapsRefused judges the definition of a map and of its inner map.
func (k *inventory) mapsRefused(m *bpfobj.Map) Finding {
	f := k.mapRefused(m)
	if f.Status == OK && m.Inner != nil {
		return k.mapRefused(m.Inner)
	}
	return f
}

// corrected is a definition as cilium/ebpf reads it: some types of maps have no size of values, so that it takes a type of values
// for documentation (canHaveValueSize in its types.go, fixupMagicFields in its map.go).
func corrected(m *bpfobj.Map) *bpfobj.Map {
	c := *m
	if m.TypedValue && isMap(m, ebpf.PerfEventArray, ebpf.RingBuf, ebpf.Arena) {
		c.ValueSize = 0
	}
	if m.Inner != nil {
		c.Inner = corrected(m.Inner)
	}
	return &c
}
