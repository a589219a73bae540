// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"iter"
	"math/bits"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// sleepingMaps judges the maps that a program uses which may sleep, by their types and whether they are preallocated.
func (e *Evaluation) sleepingMaps() (l []Finding) {
	seen := make(map[uint32]bool)
	for _, fn := range e.pr.Funcs {
		if m := e.o.allocates(fn); m != nil {
			l = append(l, e.k.judge(facts.MapsOnDemand, FeatureMissing).named(m.Name))
		}
		for m := range e.o.mapsOf(fn) {
			name := facts.MapName(m.Type)
			if seen[m.Type] || e.SetsMap(m.Name) {
				continue
			}
			seen[m.Type] = true
			f := e.k.judge(facts.SleepableMap(name), FeatureMissing)
			f.Subject = "maps of type " + name + " in programs that may sleep"
			l = append(l, f.named(m.Name))
		}
	}
	return l
}

// spinLock is the struct of a lock in values of maps.
const spinLock = "bpf_spin_lock"

// tracingTypes are the types of programs for which is_tracing_prog_type of kernel/bpf/verifier.c holds.
var tracingTypes = []string{"KPROBE", "TRACEPOINT", "PERF_EVENT", "RAW_TRACEPOINT", "RAW_TRACEPOINT_WRITABLE"}

// specialFacts says which programs may not use maps with a struct in their values: check_map_prog_compatibility in kernel/bpf/verifier.c. A
// row without types is about programs that may sleep.
var specialFacts = []struct {
	name  string // the struct
	types []string
	looks facts.Fact // kernels with it look for the struct
	lets  facts.Fact // kernels with it let such programs use the struct; 0 if none does
}{
	{spinLock, tracingTypes, facts.LocksInMaps, 0},
	{spinLock, []string{"SOCKET_FILTER"}, facts.LocksInMaps, 0},
	{spinLock, nil, facts.LocksInMapsOfProgramsThatMaySleep, facts.LocksOfSleepablePrograms},
	{"bpf_res_spin_lock", tracingTypes, facts.ResilientLocksInMaps, facts.ResilientLocksOfTracingPrograms},
	{"bpf_res_spin_lock", []string{"SOCKET_FILTER"}, facts.ResilientLocksInMaps, 0},
	{"bpf_timer", tracingTypes, facts.TimersInMaps, facts.TimersOfTracingPrograms},
	{"bpf_wq", tracingTypes, facts.WorkQueuesInMaps, facts.WorkQueuesOfTracingPrograms},
	{"bpf_list_head", tracingTypes, facts.ListsInMaps, 0},
	{"bpf_rb_root", tracingTypes, facts.TreesInMaps, 0},
}

// specialValues judges the maps of a program by the structs in their values.
func (e *Evaluation) specialValues() (l []Finding) {
	s, seen := e.pr.Attach, make(map[string]bool)
	for _, fn := range e.pr.Funcs {
		for m := range e.o.mapsOf(fn) {
			if seen[m.Name] || e.SetsMap(m.Name) {
				continue
			}
			seen[m.Name] = true
			for _, x := range specialFacts {
				meant := slices.Contains(x.types, s.ProgType) || x.types == nil && maySleep(s)
				if !meant || !slices.Contains(m.Special, x.name) {
					continue
				}
				f := Finding{Status: Fails, Code: FeatureMissing, Subject: x.name + " in maps of such programs"}
				if x.lets != 0 {
					f = e.k.judge(x.lets, FeatureMissing)
				}
				switch e.k.facts.Has(x.looks).Presence {
				case facts.No: // the kernel does not look for the struct
					f = Finding{}
				case facts.Perhaps:
					f.Status = min(f.Status, MayFail)
				}
				l = append(l, f.named(m.Name))
			}
		}
	}
	return l
}

// mapsOf yields the maps of all instructions of a function: verifiers look at these whether they reach them or not
// (check_map_prog_compatibility in kernel/bpf/verifier.c).
func (o *Object) mapsOf(fn int) iter.Seq[*bpfobj.Map] {
	return func(yield func(*bpfobj.Map) bool) {
		for i := range o.Funcs[fn].Insns {
			ref := o.Funcs[fn].Insns[i].Ref
			if ref.Kind() == bpfobj.RefMap && ref.N() >= 0 && !yield(&o.Maps[ref.N()]) {
				return
			}
		}
	}
}

// allocates returns the first map of a function that is a hash map without preallocation, or has such maps in it, nil for none.
func (o *Object) allocates(fn int) *bpfobj.Map {
	const noPrealloc = 1 // BPF_F_NO_PREALLOC
	for used := range o.mapsOf(fn) {
		for m := used; m != nil; m = m.Inner {
			if m.Flags&noPrealloc != 0 && isMap(m, ebpf.Hash, ebpf.PerCPUHash, ebpf.HashOfMaps) {
				return used
			}
		}
	}
	return nil
}

func isMap(m *bpfobj.Map, types ...ebpf.MapType) bool {
	return slices.Contains(types, ebpf.MapType(m.Type))
}

// mapRefused judges the definition of a map and of its inner map: flags that the kernel does not know, and sizes since a release. What
// every kernel refuses is not judged.
func (k *Inventory) mapRefused(m *bpfobj.Map) (f Finding) {
	const mostKey = 512
	switch f = k.flags(m.Flags); {
	case f.Status != OK:
		return f
	case m.KeySize > mostKey && isMap(m, ebpf.Hash, ebpf.PerCPUHash, ebpf.LRUHash, ebpf.LRUCPUHash, ebpf.HashOfMaps):
		f = k.judge(facts.MapLargeKeys, MapKeySize)
		f.Max = mostKey
	case m.ValueSize == 8 && isMap(m, ebpf.DevMap, ebpf.DevMapHash): // struct bpf_devmap_val
		f = k.judge(facts.MapDevmapProgram, MapValueSize)
		f.Size = 8
	case m.ValueSize == 8 && isMap(m, ebpf.SockMap, ebpf.SockHash): // the socket's cookie, for user space
		f = k.judge(facts.MapCookies, MapValueSize)
		f.Size = 8
	case m.ValueSize == 8 && isMap(m, ebpf.CPUMap): // struct bpf_cpumap_val
		f = k.judge(facts.MapCpumapProgram, MapValueSize)
		f.Size = 8
	}
	switch {
	case f.Status != OK:
	case m.Inner != nil && slices.Contains(m.Inner.Special, spinLock):
		return k.judge(facts.MapInnerLocks, MapInnerLock)
	case m.Inner != nil:
		return k.mapRefused(m.Inner)
	case isMap(m, ebpf.ArrayOfMaps, ebpf.HashOfMaps):
		return Finding{Status: MayFail, Code: MapInner}
	}
	return f
}

// flags judges the flags of a map: by the enum of all flags, which came with Linux 5.8, else each by its fact.
func (k *Inventory) flags(flags uint32) Finding {
	known := k.enums[facts.EnumMapFlag]
	for _, v := range known {
		flags &^= uint32(v)
	}
	for ; flags != 0; flags &= flags - 1 {
		flag := uint32(1) << bits.TrailingZeros32(flags)
		f := Finding{
			Status: Fails, Code: MapFlagUnknown,
			Args: Args{Decided: ByWitness, Witness: facts.EnumMapFlag.String()},
		}
		if known == nil {
			f = k.judge(facts.MapFlag(flag), MapFlagUnknown)
		}
		if f.Status != OK {
			f.Count = int64(flag)
			return f
		}
	}
	return Finding{}
}

// definitions judges the types and definitions of all maps of the object but those that the loader sets. Where libbpf cannot make a map it loads
// no program of the object; cilium/ebpf may still load programs that do not need it.
func (s *Scene) definitions() (l []neededPart) {
	types, page := s.k.enums[facts.EnumMap], s.k.page()
	for i := range s.o.Maps {
		m := &s.o.Maps[i]
		if s.SetsMap(m.Name) {
			continue
		}
		f := s.k.mapRefused(m)
		subject := m.Name
		if types != nil && !hasValue(types, uint64(m.Type)) {
			subject = facts.MapTypeName(m.Type)
			f = Finding{
				Status: Fails, Code: MapTypeMissing,
				Args: Args{Name: m.Name, Decided: ByWitness, Witness: facts.EnumMap.String() + ":" + subject},
			}
		} else if unset := s.k.unsetMap(m.Type); unset.Status != OK {
			subject, f = facts.MapTypeName(m.Type), unset
			f.Name = m.Name
		}
		if f.Status != OK {
			f.Subject, f.Stops = subject, s.loader.stopsWithout()
			l = append(l, neededPart{m.Name, f})
		}
		if FamilyOf(f.Code) == FamilyMapType {
			continue
		}
		f = loaderRefuses(m, s.loader, page)
		if name := InnerName(m); name != "" && s.loader == Libbpf {
			f = s.k.judge(facts.MapDottedNames, MapInnerName)
			f.Name = name
		}
		if f.Status != OK {
			f.Subject, f.Loader, f.Stops = m.Name, s.loader, s.loader.stops()
			l = append(l, neededPart{m.Name, f})
		}
	}
	return l
}

// unsetMap judges whether a kernel whose enum has a type of maps was built with it.
func (k *Inventory) unsetMap(kind uint32) Finding {
	if ebpf.MapType(kind) == ebpf.Arena {
		if f := k.judge(facts.Arenas(k.Arch), FeatureMissing); f.Status != OK {
			return f
		}
	}
	fact := facts.MapType(facts.MapName(kind))
	if fact != facts.Every && k.known.config[fact.Setting()] != "" && k.facts.Has(fact).Decided != ByWitness {
		return Finding{}
	}
	f := k.judge(fact, MapTypeUnset)
	f.Since = 0 // the enum has the type, so that only the setting counts
	return f
}

// InnerName returns the name with a dot that libbpf gives to the inner map of a map (bpf_object__create_map in its src/libbpf.c), "" if
// there is none.
func InnerName(m *bpfobj.Map) string {
	const most = 15 // BPF_OBJ_NAME_LEN without the zero
	if m.Inner == nil || len(m.Name) >= most {
		return ""
	}
	name := m.Name + ".inner"
	return name[:min(len(name), most)]
}

// pinByName is the last value of pinning that loaders know, LIBBPF_PIN_BY_NAME.
const pinByName = 1

// arenaData is the section of the variables of an arena.
const arenaData = ".addr_space.1"

const leastPage = 4096

// pageSettings are the settings for pages of more than 4 KiB, and their bytes (arch/arm64/Kconfig, arch/powerpc/Kconfig, arch/Kconfig).
var pageSettings = []struct {
	name  string
	bytes uint32
}{
	{settingPrefix + "ARM64_16K_PAGES", 16384}, {settingPrefix + "ARM64_64K_PAGES", 65536},
	{settingPrefix + "PPC_16K_PAGES", 16384}, {settingPrefix + "PPC_64K_PAGES", 65536},
	{settingPrefix + "PAGE_SIZE_16KB", 16384}, {settingPrefix + "PAGE_SIZE_64KB", 65536},
}

// page returns the bytes of a page, as far as the configuration shows; 4096 is the least.
func (k *Inventory) page() uint32 {
	for _, s := range pageSettings {
		if k.known.config[s.name] == "y" {
			return s.bytes
		}
	}
	return leastPage
}

// loaderRefuses judges values that one loader passes to the kernel unchanged, and another completes, whatever the kernel: mapSpecFromBTF in
// cilium/ebpf's elf_reader.go and fixupMagicFields in its map.go; adjust_ringbuf_sz and map_set_def_max_entries in libbpf.c. Kernels want
// no sizes for ring buffers (ringbuf_map_alloc in kernel/bpf/ringbuf.c), and those of numbers for perf event arrays
// (fd_array_map_alloc_check in kernel/bpf/arraymap.c). aya is not judged.
func loaderRefuses(m *bpfobj.Map, l Loader, page uint32) Finding {
	const number = 4
	goDrops := l == EbpfGo && m.TypedValue
	ring, user, events := isMap(m, ebpf.RingBuf), isMap(m, ebpf.UserRingbuf), isMap(m, ebpf.PerfEventArray)
	switch {
	case l == Aya:
	case m.Pinning > pinByName && l == EbpfGo: // libbpf does not open the object: see Unopened
		return Finding{Status: Fails, Code: MapPinning, Args: Args{Count: int64(m.Pinning)}}
	case ring && m.ValueSize != 0 && !goDrops, user && m.ValueSize != 0, (ring || user) && m.KeySize != 0:
		return Finding{Status: Fails, Code: MapSizes}
	case (ring || user) && l == EbpfGo && m.MaxEntries != 0 &&
		(m.MaxEntries%page != 0 || bits.OnesCount32(m.MaxEntries) != 1):
		f := Finding{Status: Fails, Code: MapRingSize, Args: Args{Size: int64(m.MaxEntries)}}
		// The size is wrong only on kernels with large pages.
		if m.MaxEntries%leastPage == 0 && bits.OnesCount32(m.MaxEntries) == 1 {
			f.Max, f.Decided = int64(page), ByConfig
		}
		return f
	case events && l == Libbpf && (m.KeySize != number || m.ValueSize != number):
		return Finding{Status: Fails, Code: MapNoSizes}
	case events && l == EbpfGo && (m.KeySize != 0 && m.KeySize != number ||
		m.ValueSize != 0 && m.ValueSize != number && !m.TypedValue):
		return Finding{Status: Fails, Code: MapNoSizes}
	}
	return Finding{}
}

// needsEntries reports whether a map has no size, which kernels want and loaders do not set by themselves.
func needsEntries(m *bpfobj.Map) bool {
	return m.MaxEntries == 0 && !isMap(m, ebpf.PerfEventArray, ebpf.CPUMap, ebpf.SkStorage, ebpf.InodeStorage, ebpf.TaskStorage,
		ebpf.CgroupStorage, ebpf.CGroupStorage, ebpf.PerCPUCGroupStorage, ebpf.StructOpsMap)
}

func hasValue(m map[string]uint64, v uint64) bool {
	for n, x := range m {
		if x == v && !strings.HasPrefix(n, "__MAX") {
			return true
		}
	}
	return false
}
