// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// shapedTypes and shapedAsks are an object with relocations of every sort.
const (
	shapedTypes = `struct s 24: a int 0, b *t 8, c int[2] 16
struct t 16: next *t 0, s s 8
struct u 8: # #in 0
union #in 8: x int 0, y u64 0
enum e 4: A 0, B 1
typedef d s
proto p int: *s, int
`
	shapedAsks = `byte_off struct s.a
field_exists struct s.b
byte_sz struct s.c
byte_off struct s.c[1]
byte_off struct u.y
program types
type_exists struct t
type_size struct s
type_matches struct t
type_matches struct u
target_type_id struct s
enumval_value enum e::B
type_exists d
`
)

// shaper makes kernels of an input's bytes: chains, rings, many types of one
// name, structs inside each other, arrays of every length, and kinds where they
// are not expected.
type shaper struct {
	*btf.Builder
	data []byte
	last uint32 // ID
	all  uint32 // IDs that references lead to
	few  bool   // no type is repeated
}

func (s *shaper) byte() uint32 {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return uint32(b)
}

func (s *shaper) name() string {
	names := [...]string{"", "s", "t", "u", "e", "d", "p", "int", "a", "b", "c", "next", "x", "y", "A", "B", "s___1", "t___2", "long"}
	b := int(s.byte())
	if b < 13*len(names) {
		return names[b%len(names)]
	}
	return [...]string{"s___", "s____1", "B___"}[b%3] // loaders do not agree on these
}

// ref returns a type near the one that comes next, on either side, or any.
func (s *shaper) ref() uint32 {
	switch b := s.byte(); {
	case b < 80:
		return s.last
	case b < 160:
		return min(s.last+1+b-80, s.all)
	case b < 170:
		return 0
	default:
		return (s.byte()<<8 | s.byte()) % (s.all + 1)
	}
}

func (s *shaper) add(name string, kind btf.Kind, flag bool, vlen int, third uint32) {
	s.last = uint32(s.Type(name, kind, flag, vlen, third))
}

// one adds a type.
func (s *shaper) one() {
	switch op := s.byte() % 12; op {
	case 0, 1, 2:
		kind, n := btf.KindStruct, int(s.byte()%5)
		if op == 2 {
			kind = btf.KindUnion
		}
		flag := s.byte()%4 == 0
		name := s.name()
		refs := make([]uint32, n)
		for i := range refs {
			refs[i] = s.ref()
		}
		s.add(name, kind, flag, n, s.byte()%64)
		for i := range refs {
			at := s.byte() * 4
			if flag {
				at |= s.byte() % 40 << 24
			}
			s.Word(s.String(s.name()), refs[i], at)
		}
	case 3:
		s.add("", btf.KindPtr, false, 0, s.ref())
	case 4:
		elem := s.ref()
		s.add("", btf.KindArray, false, 0, 0)
		s.Word(elem, 1, s.byte()%4)
	case 5:
		s.add(s.name(), btf.KindTypedef, false, 0, s.ref())
	case 6:
		s.add("", btf.KindConst, false, 0, s.ref())
	case 7:
		s.add(s.name(), btf.KindEnum, s.byte()%2 == 0, 2, 4)
		s.Word(s.String("A"), s.byte(), s.String(s.name()), s.byte())
	case 8:
		s.add(s.name(), btf.KindInt, false, 0, s.byte()%17)
		s.Word(s.byte()%8<<24 | s.byte())
	case 9:
		s.add("", btf.KindFuncProto, false, 2, s.ref())
		s.Word(0, s.last-min(s.last, s.byte()), 0, 1)
	case 10:
		s.add(s.name(), btf.KindFwd, s.byte()%2 == 0, 0, 0)
	case 11:
		s.add(s.name(), btf.KindEnum64, s.byte()%2 == 0, 1, 8)
		s.Word(s.String("B"), s.byte(), s.byte())
	}
}

// maxShaped is how many types there are at most.
const maxShaped = 600

// kernel returns the BTF of an input. A byte is a number of repetitions.
func (s *shaper) kernel() []byte {
	s.Builder = btf.NewBuilder(binary.LittleEndian)
	s.all = maxShaped
	s.Type("int", btf.KindInt, false, 0, 4)
	s.Word(btf.IntSigned<<24 | 32)
	for s.last = 1; len(s.data) > 0 && s.last < maxShaped; {
		times, from := 1+s.byte(), s.data
		if s.few {
			times = 1
		}
		for range times {
			if s.data = from; s.last < maxShaped {
				s.one()
			}
		}
	}
	for s.last < maxShaped { // what references lead to
		s.add("", btf.KindPtr, false, 0, 1)
	}
	return s.Bytes()
}

// FuzzShapes minimizes them. The judges are the proof, cilium/ebpf, and what it may allocate.
// Structs that are members of each other are searched for as long as limits
// allow; here it is for fewer steps, so that more inputs have their turn.
func FuzzShapes(f *testing.F) {
	object := testbtf.Object(f, binary.LittleEndian, shapedTypes, shapedAsks)
	o, err := core.ParseObject("o", object)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"\xff\x00\x01\x01\x01\x00\x10\x00", // structs named s in a chain
		"\xff\x03\x00\x00\x00\x02\x00\x02\x00\xff\x00\x04\x08",
		"\xff\x04\x00\x01\x00\x00\x01\x01\x01\x00\x10\x0a",
		"\x01\x00\x01\x01\x01\xb0\x00\x02\x08\x00\xff\x00\x01\x01\x00\x00\x08\x00",
		"\x00\x05\x05\x5f\x00\x06\x05",
		"\x40\x02\x02\x00\x03\x00\x55\x10\x00\x00\x0d\x20\x08\x10",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		kernel := (&shaper{data: data}).kernel()
		target, err := testinput.NewKernel("fuzz", kernel)
		if err != nil {
			t.Fatal(err)
		}
		const steps, bytes = 1 << 19, 128 << 20
		ctx := testlimit.Looks(steps / 4096)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := minimize.Blob(minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(ctx, target))
		runtime.ReadMemStats(&after)
		switch {
		case isDefect(err):
			t.Error(err)
		case err == nil:
			if _, err := btf.New(out, nil); err != nil {
				t.Error(err)
			}
			if len(out) > len(kernel) {
				t.Errorf("%d bytes of %d", len(out), len(kernel))
			}
			for _, d := range ciliumDiffers(t, verify.Object{Object: o, Data: object}, kernel, out) {
				t.Error(d)
			}
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > bytes {
			t.Errorf("%d bytes allocated for a kernel of %d", n, len(kernel))
		}
	})
}
