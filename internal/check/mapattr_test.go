// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestMapDefinitions holds verdicts on the maps of two objects: those of one are
// right, and the one of the other has keys that are too long for old kernels.
func TestMapDefinitions(t *testing.T) {
	families := []Family{FamilyMapType, FamilyMapDef}
	expectVerdicts(t, "maps", families, map[string]expected{"uses_maps": {}})
	long := expected{before: "5.11", status: Fails}
	expectVerdicts(t, "longkeys", families, map[string]expected{"uses_map": long, "uses_none": long})
}

// TestCorrectedMaps holds verdicts on a perf event array with values of 20 bytes: libbpf fails to create it and loads nothing, and
// cilium/ebpf corrects the size if it is that of a type.
func TestCorrectedMaps(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, order := range []string{".bpfel.o", ".bpfeb.o"} {
		for _, tt := range []struct {
			change         func(*bpfobj.Map)
			loader         Loader
			uses, usesNone Status
		}{
			{loader: Libbpf, uses: Fails, usesNone: Fails},
			{loader: EbpfGo},
			{loader: EbpfGo, uses: Fails, change: func(m *bpfobj.Map) { m.TypedValue = false }},
			{loader: EbpfGo, uses: Fails, change: func(m *bpfobj.Map) { m.KeySize = 8 }},
			{loader: EbpfGo, uses: Fails, change: func(m *bpfobj.Map) { m.Type = uint32(ebpf.CGroupArray) }},
			{loader: EbpfGo, change: func(m *bpfobj.Map) { m.Type, m.KeySize, m.MaxEntries = uint32(ebpf.RingBuf), 0, 4096 }},
			{loader: EbpfGo, uses: Fails, change: func(m *bpfobj.Map) { m.Type, m.KeySize, m.MaxEntries = uint32(ebpf.UserRingbuf), 0, 4096 }},
		} {
			o, err := Parse(t.Context(), "o", testinput.Named(t, "perfvalue"+order).Data)
			if err != nil || len(o.Maps) != 1 {
				t.Fatal(err, o.Maps)
			}
			if m := &o.Maps[0]; tt.change != nil {
				tt.change(m)
			}
			rep := runWith(t, Config{Objects: []*Object{o}, Loaders: []Loader{tt.loader}})
			for name, want := range map[string]Status{"uses_map": tt.uses, "uses_none": tt.usesNone} {
				p, _ := find(t, rep, name, rep.Kernels[0].Name)
				for k := range rep.Kernels {
					if p.Status[k] == Other || kernel.CompareVersions(rep.Kernels[k].Key().Release, "6.1") < 0 { // which has no user ring buffers
						continue
					}
					if got := statusOf(p, k, FamilyMapDef); got != want {
						t.Errorf("%s on %s with %s, of %+v: %s, want %s", name, rep.Kernels[k].Name, tt.loader, o.Maps[0], got, want)
					}
				}
			}
		}
	}
}

// TestVerifierMaps asks the running kernel for maps of random definitions: none that
// is predicted to fail may be created, and hardly any other may fail.
func TestVerifierMaps(t *testing.T) {
	k := runningKernel(t)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	k.version = versionOf(kernel.Key{Release: unix.ByteSliceToString(u.Release[:])})
	k.arch = kernel.CanonicalArch(unix.ByteSliceToString(u.Machine[:]))
	types := typeless(t)
	defer unix.Close(types)
	rnd := rand.New(rand.NewPCG(7, 7))
	pick := func(l ...uint32) uint32 { return l[rnd.IntN(len(l))] }
	counts := make(map[string]int)
	for range 20_000 {
		m := &bpfobj.Map{
			Type: 1 + uint32(rnd.IntN(int(ebpf.CgroupStorage))), MaxEntries: 1,
			KeySize: pick(4, 4, 4, 8, 16, 5, 20, 260, 261, 512, 513, 600), ValueSize: pick(4, 4, 8, 8, 12, 64, 1016, 1024, 32768, 32776, 5<<20),
			Flags: pick(0, 0, 0, 1<<rnd.IntN(13), 1, 1|1<<rnd.IntN(13)) | pick(0, 0, 0, 1<<rnd.IntN(13)),
		}
		switch m.Type {
		case uint32(ebpf.ArrayOfMaps), uint32(ebpf.HashOfMaps), 26: // they need an inner map, or a type of the kernel
			continue
		case uint32(ebpf.Queue), uint32(ebpf.Stack), uint32(ebpf.BloomFilter), uint32(ebpf.RingBuf), uint32(ebpf.UserRingbuf):
			m.KeySize = pick(0, 0, 0, 4)
		case uint32(ebpf.SkStorage), uint32(ebpf.InodeStorage), uint32(ebpf.TaskStorage), uint32(ebpf.CgroupStorage), uint32(ebpf.CGroupStorage), uint32(ebpf.PerCPUCGroupStorage):
			m.MaxEntries = pick(0, 0, 0, 1)
		}
		switch m.Type {
		case uint32(ebpf.RingBuf), uint32(ebpf.UserRingbuf):
			m.MaxEntries, m.ValueSize = 4096, pick(0, 0, 4)
		case uint32(ebpf.SkStorage), uint32(ebpf.InodeStorage), uint32(ebpf.TaskStorage), uint32(ebpf.CgroupStorage):
			m.Typed, m.ValueSize = rnd.IntN(4) > 0, 4 // as the type of values is
		}
		if !hasValue(k.enums[enumMap], uint64(m.Type)) {
			continue
		}
		why := k.mapRefused(m)
		status := why.Status
		err := createMap(m, types)
		switch {
		case errors.Is(err, unix.EPERM):
			counts["not allowed"]++
		case err == nil && status == Fails:
			t.Errorf("%+v was made: %s", *m, why.Code)
		case err != nil && status <= Guarded:
			counts["not foreseen: "+mapTypeName(m.Type)+": "+err.Error()]++
		case err == nil:
			counts["made"]++
		default:
			counts["refused"]++
		}
	}
	t.Log(counts)
	if counts["made"] < 1000 || counts["refused"] < 1000 {
		t.Error("the definitions are too much alike")
	}
}

// typeless loads a BTF with one type, an int of 4 bytes.
func typeless(t *testing.T) int {
	t.Helper()
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("int", btf.KindInt, false, 0, 4)
	b.Word(btf.IntSigned<<24 | 32)
	data := b.Bytes()
	attr := struct {
		btf, log         uint64
		size, logSize    uint32
		logLevel, unused uint32
	}{btf: uint64(uintptr(unsafe.Pointer(&data[0]))), size: uint32(len(data))}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_BTF_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		t.Skipf("loading BTF needs more rights: %v", os.NewSyscallError("bpf", errno))
	}
	return int(fd)
}

// createMap makes a map and closes it.
func createMap(m *bpfobj.Map, types int) error {
	attr := struct {
		kind, key, value, max, flags, inner, numa uint32
		name                                      [16]byte
		ifindex, btf, btfKey, btfValue            uint32
		vmlinux                                   uint32
	}{kind: m.Type, key: m.KeySize, value: m.ValueSize, max: m.MaxEntries, flags: m.Flags}
	if m.Typed {
		attr.btf, attr.btfKey, attr.btfValue = uint32(types), 1, 1
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}
