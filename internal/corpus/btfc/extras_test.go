// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// extras returns those of a kernel that changes from one build to the next.
func extras(n int) Extras {
	var config, symbols strings.Builder
	fmt.Fprintf(&config, "# Linux/x86 6.1.%d Kernel Configuration\n", n)
	for i := range 300 {
		if i%50 != n%50 {
			fmt.Fprintf(&config, "CONFIG_SETTING_%d=y\n", i*i)
		}
	}
	for i := range 3000 {
		if (i+n)%300 == 0 {
			continue // gone, and back again
		}
		fmt.Fprintf(&symbols, "t function_%d\n", (i*i)%1999) // some names occur twice
		if i%500 == n%500 {
			fmt.Fprintf(&symbols, "d new_%d_%d [module]\n", n, i)
		}
	}
	return Extras{[]byte(config.String()), []byte(symbols.String())}
}

// withExtras returns kernels, most of them with extras.
func withExtras(t testing.TB) (all []input) {
	for n := range 40 {
		k := in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n))
		switch k.extras = extras(n); n % 10 {
		case 3:
			k.extras.Symbols = nil
		case 5:
			k.extras = Extras{}
		case 7:
			k.extras.Config = nil
		case 9:
			k.modules = []Module{{"ext4", []byte("one")}}
		}
		all = append(all, k)
	}
	plain := in("6.2", []byte("text"))
	plain.extras = extras(1)
	return append(all, plain)
}

// TestExtras packs kernels with extras, which take little for each.
func TestExtras(t *testing.T) {
	raceflag.SkipSerial(t)
	all := withExtras(t)
	f := open(t, written(t, nil, all...))
	same(t, f, all...)
	same(t, open(t, written(t, open(t, written(t, nil, all[:20]...)), all[20:]...)), all...)
	var first, others int64
	for i := range f.Entries()[:40] {
		e := f.Entries()[i]
		packed := e.Chunks[partExtras].Packed
		if e.has(partExtras) != hasExtras(all[i]) || !e.has(partExtras) && packed > 0 {
			t.Errorf("%s: extras of %d bytes", e.Key, packed)
		}
		if e.Chunks[partExtras].Parent < 0 {
			first += packed
		} else {
			others += packed
		}
	}
	if others/34 > first/10 { // a tenth of the kernels lack symbols, and the next one has them all
		t.Errorf("the first takes %d bytes, 34 others %d", first, others)
	}
}

func hasExtras(k input) bool { return len(k.extras.Config)+len(k.extras.Symbols) > 0 }

// TestExtrasRefused checks that extras are refused that could not be read again.
func TestExtrasRefused(t *testing.T) {
	for name, x := range map[string]Extras{
		"NUL":      {Config: []byte("CONFIG_A=\x00\n")},
		"no end":   {Config: []byte("CONFIG_A=y\nCONFIG_B=y"), Symbols: []byte("t a\n")},
		"too long": {Config: append(bytes.Repeat([]byte("a"), limits.KconfigBytes), '\n')},
	} {
		if _, err := Prepare(Input{Key: in("6.1", nil).key, Extras: x}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestExtrasDamaged changes each byte of a file: the extras are right, or there is an error.
func TestExtrasDamaged(t *testing.T) {
	raceflag.SkipSerial(t)
	all := []input{in("6.1", nil), in("6.2", nil), in("6.3", nil)}
	for i := range all {
		all[i].extras = Extras{[]byte("CONFIG_A=y\nCONFIG_B=y\n")[:11*(1+i%2)], []byte("t _stext\nt vfs_read\nd jiffies\n")[9*(i/2):]}
	}
	data := written(t, nil, all...)
	same(t, open(t, data), all...)
	changeEach(t, data, all, func(f *File, i int) bool {
		x, err := f.Extras(ctx, i)
		return err != nil || bytes.Equal(x.Config, all[i].extras.Config) && bytes.Equal(x.Symbols, all[i].extras.Symbols)
	})
}

// TestSymbols packs symbols whose names are strings of the BTF, which take next to nothing for these.
func TestSymbols(t *testing.T) {
	k := in("6.1", build(t, binary.LittleEndian, 1))
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf("t s%d\n", i), fmt.Sprintf("d data%d\n", i%4), fmt.Sprintf("t e%d\n", i), fmt.Sprintf("t own%d [mod]\n", i%3))
	}
	symbols := SortSymbols(k.btf, []byte(strings.Join(lines, "")))
	got := slices.Collect(strings.Lines(string(symbols)))
	if want := "t own2 [mod]\n"; len(got) != len(lines) || got[len(got)-1] != want || got[0] != "d data0\n" {
		t.Fatalf("%d lines of %d, from %q to %q", len(got), len(lines), got[0], got[len(got)-1])
	}
	if again := SortSymbols(k.btf, symbols); !bytes.Equal(again, symbols) {
		t.Error("the order depends on the one before")
	}
	for _, order := range []string{string(symbols), strings.Join(lines, ""), "t a\nd b\n", "d b\nx\n", "t \n"} {
		k.extras = Extras{Symbols: []byte(order)}
		other := in("6.2", build(t, binary.LittleEndian, 2))
		other.extras = k.extras
		f := open(t, written(t, nil, k, other))
		same(t, f, k, other)
		if c := f.Entries()[0].Chunks[partExtras]; order == string(symbols) && c.Packed+c.Back.Packed > 250 {
			t.Errorf("%d and %d bytes", c.Packed, c.Back.Packed)
		}
	}
}

// FuzzLines decodes damaged payloads of extras: there is an error, or lines of the right size, which can be encoded and decoded again.
func FuzzLines(f *testing.F) {
	decoded := func(parent *state, front, back []byte, size int64) (*state, []byte, error) {
		st, err := decode(parent, front, back, size, nil)
		if err != nil {
			return nil, nil, err
		}
		text, err := new(builder).build(st, 0, nil)
		return st, text, err
	}
	encoded := func(tb testing.TB, parent *state, text []byte) (front, back []byte) {
		p := newParsed(newKnown(parent))
		p.text("", text)
		_, parts, err := encodeParsed(parent, p, text)
		if err != nil {
			tb.Fatal(err)
		}
		return parts.joined()
	}
	text := []byte("t a\nt b\nt c\nt b\nd e\n")
	front, back := encoded(f, newState(), text)
	parent, _, err := decoded(newState(), front, back, int64(len(text)))
	if err != nil {
		f.Fatal(err)
	}
	for _, own := range []string{"t a\nt b\n", "t new\nt b\nt b\nt b\n", "d e\nt c\n"} {
		for _, from := range []*state{parent, newState()} {
			front, back := encoded(f, from, []byte(own))
			f.Add(front, back, int64(len(own)), from == parent)
		}
	}
	f.Fuzz(func(t *testing.T, front, back []byte, size int64, child bool) {
		from := newState()
		if child {
			from = parent
		}
		size &= 1<<20 - 1
		_, text, err := decoded(from, front, back, size)
		if err != nil {
			return
		}
		if int64(len(text)) != size {
			t.Errorf("%d bytes, want %d", len(text), size)
		}
		front, back = encoded(t, from, text)
		_, again, err := decoded(from, front, back, size)
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q, and again %q, %v", text, again, err)
		}
	})
}
