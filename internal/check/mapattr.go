// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

func isMap(m *bpfobj.Map, types ...ebpf.MapType) bool {
	return slices.Contains(types, ebpf.MapType(m.Type))
}

// mapRefused judges the definition of a map and of its inner map: flags that the kernel does not know, and sizes since a release. What
// every kernel refuses is not judged.
func (k *inventory) mapRefused(m *bpfobj.Map) (f Finding) {
	const mostKey = 512
	switch flag := k.unknownFlag(m.Flags); {
	case flag != 0:
		return Finding{Status: Fails, Code: MapFlagUnknown, Args: Args{Count: int64(flag)}}
	case m.KeySize > mostKey && isMap(m, ebpf.Hash, ebpf.PerCPUHash, ebpf.LRUHash, ebpf.LRUCPUHash, ebpf.HashOfMaps):
		f = k.since(largeKeys, MapKeySize)
		f.Max = mostKey
	case m.ValueSize == 8 && isMap(m, ebpf.DevMap, ebpf.DevMapHash): // struct bpf_devmap_val
		f = k.since(devmapPrograms, MapValueSize)
		f.Size = 8
	case m.ValueSize == 8 && isMap(m, ebpf.CPUMap): // struct bpf_cpumap_val
		f = k.since(cpumapPrograms, MapValueSize)
		f.Size = 8
	}
	switch {
	case f.Status != OK:
	case m.Inner != nil:
		return k.mapRefused(m.Inner)
	case isMap(m, ebpf.ArrayOfMaps, ebpf.HashOfMaps):
		return Finding{Status: MayFail, Code: MapInner}
	}
	return f
}

// unknownFlag returns the first flag of a map that the kernel's BTF does not list, 0 for none.
func (k *inventory) unknownFlag(flags uint32) uint32 {
	known := k.enums[enumMapFlag]
	if known == nil {
		return 0
	}
	for _, v := range known {
		flags &^= uint32(v)
	}
	if flags == 0 {
		return 0
	}
	return 1 << bits.TrailingZeros32(flags)
}

// definitions judges the types and definitions of all maps of the object but those that the loader sets. Where libbpf cannot make a map it loads
// no program of the object; cilium/ebpf may still load programs that do not need it.
func (p *pairing) definitions() (l []part) {
	types := p.k.enums[enumMap]
	for i := range p.o.Maps {
		m := &p.o.Maps[i]
		if p.setsMap(m.Name) {
			continue
		}
		if types != nil && !hasValue(types, uint64(m.Type)) {
			l = append(l, part{m.Name, typeMissing(m)})
		} else if f := p.k.mapRefused(m); f.Status != OK {
			f.Subject, f.Stops = m.Name, ObjectStops
			l = append(l, part{m.Name, f})
		}
	}
	return l
}
