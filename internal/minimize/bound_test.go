// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// hostile is a kernel that takes more time or memory than its size suggests,
// unless it is bounded.
type hostile struct {
	name        string
	types, asks string // of the object, in the notation of testbtf
	kernel      func(b *hostileKernel)
	want        string // error that Minimize gives, "" for none
}

// hostileKernel builds one. Type 1 is an int.
type hostileKernel struct{ *btf.Builder }

// member is one of a struct; an anonymous one has no name.
type member struct {
	name string
	of   btf.TypeID
	at   uint32 // bytes
}

func (b hostileKernel) structure(name string, size uint32, members ...member) btf.TypeID {
	id := b.Type(name, btf.KindStruct, false, len(members), size)
	for _, m := range members {
		b.Word(b.String(m.name), uint32(m.of), 8*m.at)
	}
	return id
}

// chain has n structs inside each other, innermost first, and returns the last.
func (b hostileKernel) chain(n int) btf.TypeID {
	inner := btf.TypeID(1)
	for range n {
		inner = b.structure("", 4, member{"", inner, 0})
	}
	return inner
}

const task = "struct task_struct 8: pid int 0, tgid int 4\n"

var hostiles = []hostile{
	{"300,000 structs of one name", task, "byte_off struct task_struct.tgid", func(b *hostileKernel) {
		for i := range uint32(300_000) {
			b.structure("task_struct", 8+i, member{"pid", 1, 0}, member{"tgid", 1, 4 + i})
		}
	}, "too large: more than 16384 candidates of one name"},

	{"200,000 structs of twenty names", repeat(20, "struct s%d 4: pid int 0\n"), repeat(20, "byte_off struct s%d.pid\n"), func(b *hostileKernel) {
		for i := range uint32(200_000) {
			b.structure(fmt.Sprint("s", i%20), 8+i, member{"pid", 1, 4 + i})
		}
	}, ""},

	{"10,000 structs that 300 questions are about", "struct s 1200: m int 0" + repeat(300, ", m%d int 0"), repeat(300, "byte_off struct s.m%d\n"), func(b *hostileKernel) {
		for i := range uint32(10_000) {
			b.structure("s", 8+i, member{"m1", 1, 4 + i})
		}
	}, "too large: more than 2097152 matches to try"},

	{"2,000 structs that share a name of 1 MiB", task, "byte_off struct task_struct.tgid", func(b *hostileKernel) {
		for i := range uint32(2_000) {
			b.structure("task_struct___"+strings.Repeat("x", 1<<20), 8+i, member{"pid", 1, 0}, member{"tgid", 1, 4 + i})
		}
	}, "too large: more than 4096 bytes in a name"},

	{"100,000 anonymous structs inside each other", task, "byte_off struct task_struct.tgid", func(b *hostileKernel) {
		b.structure("task_struct", 8, member{"", b.chain(100_000), 0}, member{"tgid", 1, 4})
	}, ""},

	{"900,000 anonymous structs inside each other", task, "byte_off struct task_struct.tgid", func(b *hostileKernel) {
		b.structure("task_struct", 8, member{"", b.chain(900_000), 0}, member{"tgid", 1, 4})
	}, "too large: more than 262144 types needed"},

	{"40,000 arrays of each other", task, "byte_off struct task_struct.tgid", func(b *hostileKernel) {
		elem := uint32(1)
		for range 40_000 {
			id := b.Type("", btf.KindArray, false, 0, 0)
			b.Word(elem, 1, 1)
			elem = uint32(id)
		}
		b.structure("task_struct", 8, member{"", b.chain(100), 0}, member{"tgid", btf.TypeID(elem), 4})
	}, "type 40001: more than 32 typedefs, modifiers and arrays in a row"},

	{"500 large structs compared as a whole with 30", repeat(30, "struct s___%d 400: x2999 int 0, x2998 int 0, x%[1]d int 0"+strings.Repeat(", x2997 int 0", 97)+"\n"), repeat(30, "type_matches struct s___%d\n"), func(b *hostileKernel) {
		var members []member
		for i := range uint32(3000) {
			members = append(members, member{fmt.Sprint("x", i), 1, 4 * i})
		}
		for i := range uint32(500) {
			b.structure("s", 1<<20+i, members...)
		}
	}, "too large: more than 134217728 comparisons of types"},

	// A mark of the first struct of a name leads to one of the second, and that, by
	// an anonymous struct which they share, to one of the next name.
	{"marks that lead to marks of 800 names", repeat(800, "struct s%d 8: x int 0, y int 4\n") + "struct task_struct 8: m int 0" + repeat(800, ", a%[1]d s%[1]d 0"), "byte_off struct task_struct.a0.x\n" + repeat(800, "byte_off struct task_struct.a%d.y\n"), func(b *hostileKernel) {
		const n = 800
		inner := make([]btf.TypeID, n+1)
		for i := range inner {
			inner[i] = b.structure("", 8, member{"x", 1, 0}, member{"y", 1, 4})
		}
		for copy := range 2 {
			var members []member
			for i := range n {
				s := b.structure(fmt.Sprint("s", i), 8, member{"", inner[i+copy], 0})
				members = append(members, member{fmt.Sprint("a", i), s, uint32(8 * i)})
			}
			b.structure("task_struct", 8*n, members...)
		}
	}, ""},
}

// repeat is format for each number from 0.
func repeat(n int, format string) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, format, i)
	}
	return s.String()
}

// TestHostile holds what each of them may take. Of the bytes less than half are
// in use at once.
func TestHostile(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	const steps, bytes = 150 << 20, 512 << 20
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			if strings.Contains(h.name, "compared as a whole") { // takes more than half of the time
				slow.Skip(t)
			}
			o, err := core.ParseObject("o", testbtf.Object(t, binary.LittleEndian, h.types, h.asks))
			if err != nil {
				t.Fatal(err)
			}
			b := hostileKernel{btf.NewBuilder(binary.LittleEndian)}
			b.Type("int", btf.KindInt, false, 0, 4)
			b.Word(btf.IntSigned<<24 | 32)
			h.kernel(&b)
			target, err := testinput.NewKernel("k", b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx := testlimit.Looks(steps / 4096)
			m := minimize.New([]*core.Object{o}, minimize.Options{})
			_, err = m.Minimize(ctx, target)
			switch {
			case err == context.Canceled:
				t.Errorf("more than %d steps", steps)
			case h.want == "" && err != nil, h.want != "" && (err == nil || err.Error() != h.want):
				t.Errorf("error %v, want %q", err, h.want)
			}
			runtime.ReadMemStats(&after)
			n := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d looks, %d MiB allocated", steps/4096-ctx.Left, n>>20)
			if n > bytes {
				t.Errorf("%d MiB allocated", n>>20)
			}
			if looks := steps/4096 - ctx.Left; looks > 1 {
				if _, err := m.Minimize(testlimit.Looks(looks/2), target); err != context.Canceled {
					t.Errorf("with half the time: error %v", err)
				}
			}
		})
	}
}
