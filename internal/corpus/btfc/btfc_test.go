// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

var ctx = context.Background()

// input is a kernel to be added.
type input struct {
	key     kernel.Key
	btf     []byte
	modules []Module
	extras  Extras
}

// add adds it to a file.
func (k *input) add(w *Writer) (added bool, err error) {
	it, err := Prepare(Input{Key: k.key, BTF: k.btf, Modules: k.modules, Extras: k.extras})
	if err != nil {
		return false, err
	}
	if added, err = w.Plan(ctx, it); !added {
		return false, err
	}
	return true, w.Make(ctx, it)
}

func add(w *Writer, key kernel.Key, btf []byte, modules []Module) (added bool, err error) {
	k := input{key: key, btf: btf, modules: modules}
	return k.add(w)
}

func in(release string, btf []byte) input {
	return input{key: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: release}, btf: btf}
}

// written returns the file that is made of old and more.
func written(t testing.TB, old *File, more ...input) []byte {
	t.Helper()
	w, err := NewWriter(old, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for _, k := range more {
		if added, err := k.add(w); err != nil || !added {
			t.Fatalf("%s: added %v, error %v", k.key, added, err)
		}
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// same fails if a file does not have these kernels. It reads them in a random order.
func same(t testing.TB, f *File, want ...input) {
	t.Helper()
	if len(f.Entries()) != len(want) {
		t.Fatalf("%d kernels, want %d", len(f.Entries()), len(want))
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(want)) {
		k := want[i]
		if f.Entries()[i].Key != k.key {
			t.Errorf("kernel %d is %s, want %s", i, f.Entries()[i].Key, k.key)
		}
		got, err := f.BTF(ctx, i, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, k.btf) {
			t.Errorf("%s: other bytes", k.key)
		}
		modules, err := f.Modules(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(modules, k.modules, func(a, b Module) bool { return a.Name == b.Name && bytes.Equal(a.BTF, b.BTF) }) {
			t.Errorf("%s: other modules", k.key)
		}
		x, err := f.Extras(ctx, i)
		if err != nil || !bytes.Equal(x.Config, k.extras.Config) || !bytes.Equal(x.Symbols, k.extras.Symbols) {
			t.Errorf("%s: other extras, error %v", k.key, err)
		}
	}
}

// build is the BTF of a kernel that changes from one build to the next.
func build(t testing.TB, order binary.ByteOrder, n int) []byte {
	var b strings.Builder
	for i := range 60 {
		if (i+n)%17 == 0 {
			continue // gone, and back again
		}
		fmt.Fprintf(&b, "struct s%d %d: next *s%d 0, count u32 8, data%d u8[%d] 12\n", i, 64+n/3*i%5, (i+1)%60, i%4, 4+i%7)
		fmt.Fprintf(&b, "proto #p%d int: *s%d, u32\nenum e%d 4: A%d 1, B%d %d\n", i, i, i, i, i, n/4)
		if i%5 == n%5 {
			fmt.Fprintf(&b, "typedef new%d_%d s%d\n", n, i, i)
		}
	}
	for i := range 60 {
		if (i+n)%17 == 0 {
			fmt.Fprintf(&b, "fwd s%d struct\n", i)
		}
	}
	return testbtf.Types(t, order, b.String())
}

// TestSeries packs builds of a series in either byte order, and a similar series.
func TestSeries(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	for _, test := range []struct {
		order  binary.ByteOrder
		builds int
	}{{binary.LittleEndian, 260}, {binary.BigEndian, 20}} {
		order := test.order
		var all []input
		raw := 0
		for n := range test.builds {
			all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, order, n)))
		}
		for n := range 3 {
			all = append(all, in(fmt.Sprintf("6.2.0-%d-amd64", n), build(t, order, n+test.builds)))
		}
		for _, k := range all {
			raw += len(k.btf)
		}
		data := written(t, nil, all...)
		f := open(t, data)
		same(t, f, all...)
		if len(data) > raw/10 {
			t.Errorf("%s: %d bytes of %d", order, len(data), raw)
		}
		for i := range f.Entries() {
			if f.Entries()[i].Plain {
				t.Errorf("%s is kept as bytes", f.Entries()[i].Key)
			}
			depth := 0
			for j := i; j >= 0; j = f.Entries()[j].Chunks[partBTF].Parent {
				depth++
			}
			if depth > 50 {
				t.Errorf("%s is encoded against %d others", f.Entries()[i].Key, depth)
			}
		}
		if head := f.Entries()[test.builds].Chunks[partBTF]; head.Parent != test.builds-1 {
			t.Errorf("the second series is encoded against kernel %d", head.Parent)
		}
	}
}

// TestFrame packs a payload, and changes and cuts the frame wherever that may make a difference.
func TestFrame(t *testing.T) {
	slow.Skip(t)
	w, err := NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	parts := make([][]byte, 1+numStreams)
	for i := range parts {
		parts[i] = bytes.Repeat([]byte{byte(i), 1, 2}, 70*i)
	}
	payload := slices.Concat(parts...)
	size := int64(len(payload))
	frame, n, err := w.pack(parts...)
	if err != nil || n != size {
		t.Fatalf("%d bytes, want %d; error %v", n, size, err)
	}
	unpacked := func(frame []byte, size int64) ([]byte, error) {
		return new(buffers).unpack(bytes.NewReader(frame), 0, int64(len(frame)), size, sha256.Sum256(frame))
	}
	if got, err := unpacked(frame, size); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("other bytes; error %v", err)
	}
	for i := range frame {
		bad := slices.Clone(frame)
		for _, c := range []byte{^frame[i], frame[i] ^ 1, 0} {
			bad[i] = c
			if got, err := unpacked(bad, size); err == nil && !bytes.Equal(got, payload) {
				t.Fatalf("byte %d is %#x: other bytes and no error", i, bad[i])
			}
		}
		if got, err := unpacked(frame[:i], size); err == nil && !bytes.Equal(got, payload) { // what only pads the frame may be missing
			t.Errorf("cut to %d bytes: other bytes and no error", i)
		}
	}
	for _, c := range []struct {
		name  string
		frame []byte
		size  int64
	}{
		{"too many", frame, size - 1}, {"too few", frame, size + 1}, {"far too few", frame, limits.PartSize},
		{"two", slices.Concat(frame, frame), size},
	} {
		if _, err := unpacked(c.frame, c.size); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
}

// TestAppend adds to a file. Its kernels stay in place, and cost nothing.
func TestAppend(t *testing.T) {
	raceflag.SkipSerial(t)
	var all []input
	for n := range 20 {
		all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n)))
	}
	first := written(t, nil, all[:19]...)
	f := open(t, first)
	data := written(t, f, all[19])
	same(t, open(t, data), all...)
	if !bytes.Equal(data[:f.end], first[:f.end]) {
		t.Error("what was there has changed")
	}
	if once := written(t, nil, all...); !bytes.Equal(data, once) {
		t.Error("two steps make other bytes than one")
	}

	w, err := NewWriter(f, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	again := all[3]
	again.key.Arch = "amd64"
	if added, err := add(w, again.key, again.btf, nil); added || err != nil {
		t.Errorf("the same again: added %v, error %v", added, err)
	}
	if _, err := add(w, again.key, all[4].btf, nil); !errors.Is(err, ErrOther) {
		t.Errorf("another under its key: error %v", err)
	}
	if _, err := add(w, again.key, again.btf, []Module{{"a", all[4].btf}}); !errors.Is(err, ErrOther) {
		t.Errorf("the same with modules: error %v", err)
	}
	if _, err := add(w, kernel.Key{ID: "a/b", Release: "1"}, again.btf, nil); err == nil {
		t.Error("a bad key was taken")
	}
}

// TestModules packs modules.
func TestModules(t *testing.T) {
	a := in("6.1.0-1-amd64", build(t, binary.LittleEndian, 1))
	a.modules = []Module{{"ext4", []byte("one")}, {"nf_nat", nil}, {"xfs", []byte("three")}}
	b := in("6.1.0-2-amd64", build(t, binary.LittleEndian, 2))
	f := open(t, written(t, nil, a, b))
	same(t, f, a, b)
	w, err := NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for _, name := range []string{"a\x00b", ""} {
		if _, err := add(w, a.key, a.btf, []Module{{"ext4", nil}, {name, nil}}); err == nil {
			t.Errorf("module %q was taken", name)
		}
	}
}

// odd returns BTF that no compiler makes. Names begin with "plain" if it is stored as bytes.
func odd(t testing.TB) map[string][]byte {
	le := binary.LittleEndian
	plain := build(t, le, 0)
	typeLen, strLen := le.Uint32(plain[12:]), le.Uint32(plain[20:])
	types, strs := plain[24:][:typeLen], plain[24+typeLen:]
	blob := func(hdr uint32, typeOff, strOff uint32, parts ...[]byte) []byte {
		b := le.AppendUint32(slices.Clone(plain[:4]), hdr)
		for _, v := range []uint32{typeOff, typeLen, strOff, strLen} {
			b = le.AppendUint32(b, v)
		}
		return slices.Concat(append([][]byte{b}, parts...)...)
	}
	changed := func(at int, b ...byte) []byte {
		out := slices.Clone(plain)
		copy(out[at:], b)
		return out
	}
	gap := []byte("gap!")
	unused := slices.Concat(plain[:20], le.AppendUint32(nil, strLen+7), types, strs, []byte("unused\x00"))
	twice := slices.Concat(plain[:20], le.AppendUint32(nil, strLen+4), types, strs, []byte("int\x00"))
	shuffled := slices.Clone(strs)
	parts := bytes.SplitAfter(shuffled[1:], []byte{0})
	slices.Reverse(parts[:len(parts)-1])
	return map[string][]byte{
		"a usual one":             plain,
		"gaps":                    blob(24, 4, 8+typeLen, gap, types, gap, strs, gap),
		"strings in front":        blob(24, strLen+4, 0, strs, gap, types),
		"long header":             blob(32, 0, typeLen, gap, gap, types, strs),
		"unused string":           unused,
		"plain: shuffled":         slices.Concat(plain[:24], types, []byte{0}, bytes.Join(parts, nil)),
		"no types":                slices.Concat(plain[:12], make([]byte, 8), le.AppendUint32(nil, 1), []byte{0}),
		"plain: a string twice":   twice,
		"plain: half a name":      changed(24, 2),
		"plain: name outside":     changed(24, 0, 0, 0, 9),
		"plain: unknown kind":     changed(24+7, 0x7f),
		"plain: cut short":        plain[:len(plain)-5],
		"plain: reference":        changed(24+4*16+8+16, 0xff, 0xff, 0xff),
		"plain: a name for a ptr": changed(24, le.AppendUint32(slices.Clone(plain[24:28]), uint32(btf.KindPtr)<<24)...),
		"plain: text":             []byte("no BTF at all"),
		"plain: nothing":          {},
	}
}

// TestOdd packs odd BTF, as the first kernel and as the next of another.
func TestOdd(t *testing.T) {
	raceflag.SkipSerial(t)
	for name, btf := range odd(t) {
		t.Run(name, func(t *testing.T) {
			all := []input{in("6.1.0-1-amd64", btf), in("6.1.0-2-amd64", build(t, binary.LittleEndian, 1)), in("6.1.0-3-amd64", btf)}
			f := open(t, written(t, nil, all...))
			same(t, f, all...)
			for _, i := range []int{0, 2} {
				if got := f.Entries()[i].Plain; got != strings.HasPrefix(name, "plain: ") {
					t.Errorf("kernel %d: kept as bytes: %v", i, got)
				}
			}
		})
	}
}

// TestOrder chooses the order in which kernels are added.
func TestOrder(t *testing.T) {
	w, err := NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	sketch := func(n int) *Sketch {
		s := new(Sketch)
		for i := range s {
			s[i] = uint32(max(i, n))
		}
		return s
	}
	if got, want := w.Order([]*Sketch{nil, sketch(60), sketch(30), sketch(10), sketch(40)}), []int{2, 3, 4, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// vmlinux returns the BTF of one of Debian's kernels.
func vmlinux(t testing.TB, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile("../../../testdata/vmlinux/debian/" + name + ".btf.zst")
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	btf, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return btf
}

// TestReal packs real kernels, each encoded against the one before it.
func TestReal(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	all := []input{
		in("6.1.0-47-amd64", vmlinux(t, "12/x86_64/6.1.0-47-amd64")),
		in("6.12.107+deb13-amd64", vmlinux(t, "13/x86_64/6.12.107+deb13-amd64")),
		in("7.3-amd64", vmlinux(t, "experimental/x86_64/7.3-amd64")),
	}
	all = all[:slow.Some(len(all))]
	data := written(t, nil, all...)
	f := open(t, data)
	same(t, f, all...)
	for i, most := range []int64{920 << 10, 420 << 10, 480 << 10}[:len(all)] {
		if e := f.Entries()[i]; e.Plain || e.Chunks[partBTF].Parent != i-1 || e.Packed() > most {
			t.Errorf("%s: %d bytes, encoded against %d, kept as bytes: %v", e.Key, e.Packed(), e.Chunks[partBTF].Parent, e.Plain)
		}
	}
	second(t, data, all...)
}

// TestAgain packs the same kernel under many keys, each in a series of its own, and similar ones.
func TestAgain(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	var all []input
	for n := range 3 * limits.CorpusDepth {
		k := in("6.1.0", build(t, binary.LittleEndian, n/4%2*n))
		k.key.VersionID = fmt.Sprint(n)
		all = append(all, k)
	}
	data := written(t, nil, all...)
	f := open(t, data)
	same(t, f, all...)
	for i := 8; i < len(all); i++ {
		if e := f.Entries()[i]; i/4%2 == 0 && (e.Chunks[partBTF].Parent != 0 || e.Packed() > 120) {
			t.Errorf("kernel %d: encoded against %d in %d bytes", i, e.Chunks[partBTF].Parent, e.Packed())
		}
	}
}

// TestRatio packs BTF that compresses better than a reader allows, in parts and as bytes: a chain of typedefs, and zeros behind the sections.
func TestRatio(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	b := btf.NewBuilder(binary.LittleEndian)
	id := b.Type("int", btf.KindInt, false, 0, 4)
	b.Word(32)
	for i := range 250_000 {
		id = b.Type(fmt.Sprintf("t%d", i), btf.KindTypedef, false, 0, uint32(id))
	}
	chain := in("6.1", b.Bytes())
	b = btf.NewBuilder(binary.LittleEndian)
	for i := range 600_000 {
		b.Type("t", btf.KindTypedef, false, 0, uint32(i))
	}
	few := in("6.3", b.Bytes())
	zeros := in("6.2", append([]byte("not BTF"), make([]byte, 4<<20)...))
	same(t, open(t, written(t, nil, chain, zeros, few)), chain, zeros, few)
}

// TestDoc compares the payload in doc.go with what is written.
func TestDoc(t *testing.T) {
	parent := newState()
	var parts payloads
	for _, text := range []string{"struct point 8: x u32 0, y u32 4", "struct point 12: x u32 0, y u32 4, z u32 8"} {
		var err error
		if parent, parts, err = encode(parent, testbtf.Types(t, binary.LittleEndian, text)); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var want [2][numStreams][]byte // of the front and of the back
	for line := range strings.Lines(string(doc)) {
		columns := strings.Split(strings.TrimPrefix(line, "//\t"), "|")
		number, back := strings.CutPrefix(columns[0], "back")
		stream, err := strconv.Atoi(strings.TrimSpace(number))
		if len(columns) < 3 || err != nil {
			continue
		}
		data, err := hex.DecodeString(strings.ReplaceAll(columns[1], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		of := &want[0]
		if back {
			of = &want[1]
		}
		of[stream] = append(of[stream], data...)
	}
	for of, streams := range [][][]byte{parts.front[1:], parts.back[1:]} {
		for i, got := range streams {
			if want := want[of][i]; !bytes.Equal(got, want) {
				t.Errorf("%s: stream %d is % x, in doc.go % x", []string{"front", "back"}[of], i, got, want)
			}
		}
	}
}
