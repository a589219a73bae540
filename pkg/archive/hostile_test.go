// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
)

// TestDamage changes files in many ways. Open must notice.
func TestDamage(t *testing.T) {
	raceflag.SkipSerial(t)
	data := mustWrite(t, testminimized.Kernels(t))
	for n := range data {
		if _, err := archive.Open(data[:n]); err == nil {
			t.Errorf("opened the first %d bytes", n)
		}
	}
	for at := range data {
		for _, mask := range []byte{1, 0x80, 0xff} {
			bad := slices.Clone(data)
			bad[at] ^= mask
			if a, err := archive.Open(bad); err == nil {
				same(t, a, at)
			}
		}
	}
	for _, tail := range []string{"\x00", "more", string(data[5:]), "\x50\x2a\x4d\x18\x00\x00\x00\x00"} {
		if _, err := archive.Open(append(slices.Clone(data), tail...)); err == nil || !strings.Contains(err.Error(), "follow the frame") {
			t.Errorf("trailing data %.4q: error %v", tail, err)
		}
	}
	bad := slices.Clone(data)
	bad[4] = btfa.Version + 1
	if _, err := archive.Open(bad); !errors.Is(err, archive.ErrVersion) {
		t.Errorf("version %d: error %v", btfa.Version+1, err)
	}
	for _, s := range []string{"", "btf", "BTFA\x01", "not an archive"} {
		if _, err := archive.Open([]byte(s)); !errors.Is(err, archive.ErrNotArchive) {
			t.Errorf("%q: error %v", s, err)
		}
	}
}

// same checks the content of a file that opens although a byte was changed, such as an
// unused bit of the frame's header.
func same(t *testing.T, a *archive.Archive, at int) {
	t.Helper()
	for _, k := range testminimized.Kernels(t) {
		if b, err := a.BTF(k.Key); err != nil || !bytes.Equal(b, k.BTF) {
			t.Errorf("byte %d changed: %s differs (%v)", at, k.Key, err)
		}
	}
}

// raw returns a file with any payload.
func raw(t testing.TB, payload []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(payload, append([]byte(btfa.Magic), btfa.Version))
}

func TestBombs(t *testing.T) {
	slow.Skip(t)
	bomb := raw(t, make([]byte, btfa.MaxPayload+1))
	if _, err := archive.Open(bomb); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("bomb: error %v", err)
	}
	// The same without a size in the header.
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString(btfa.Magic + "\x01")
	chunk := make([]byte, 1<<20)
	for range 2 * btfa.MaxPayload / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if n := allocated(func() { _, err = archive.Open(b.Bytes()) }); err == nil || n > maxMemory {
		t.Errorf("bomb without size: error %v, %d bytes", err, n)
	}
	if _, err := archive.Open(make([]byte, btfa.MaxFile+1)); err == nil {
		t.Error("opened a file that is too long")
	}
}

// maxMemory is the limit of Open's memory in docs/archive-format.md.
const maxMemory = 256 << 20

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// payloadCase is a payload of a broken or hostile writer.
type payloadCase struct {
	name, want string
	payload    []byte
}

// hostile returns payloads that Open or BTF must refuse, except those without an error.
func hostile(t testing.TB) (cases []payloadCase) {
	u := func(vs ...uint64) (b []byte) {
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	// A valid payload: struct "a" with member "x" of type int, one kernel.
	good := [btfa.NumStreams][]byte{
		btfa.StreamMeta:    []byte("tool\x00\x02\x01\x01\x01x86_64\x00R\x01\x02\x00\x01a.o\x00\x02arm\x00x86_64\x00\x01b.o\x00AB"),
		btfa.StreamKernels: append(u(1, 0, 0), "d/1/x86_64/6\x00"...),
		btfa.StreamNames:   []byte("a\x00int\x00x\x00"),
		btfa.StreamShapes:  u(4<<1, 1, btfa.NameNext, btfa.ToFirst+1+2*1, 1<<1),
		btfa.StreamParents: u(2, 1, 0, 1, 0),
		btfa.StreamNumbers: u(0, btfa.PackOffset(32), btfa.Zigzag(32), btfa.Zigzag(4-32)),
		btfa.StreamLayouts: u(1, 0, 2, 0, btfa.VariantNext, 0, btfa.VariantNext),

		btfa.StreamFingerprints: []byte("\x02ABCD"),
	}
	add := func(name, want string, change func(s *[btfa.NumStreams][]byte)) {
		s := good
		for i := range s {
			s[i] = slices.Clone(s[i])
		}
		change(&s)
		p := u(btfa.NumStreams)
		for _, b := range s {
			p = binary.AppendUvarint(p, uint64(len(b)))
		}
		cases = append(cases, payloadCase{name, want, append(p, slices.Concat(s[:]...)...)})
	}
	set := func(stream int, b []byte) func(*[btfa.NumStreams][]byte) {
		return func(s *[btfa.NumStreams][]byte) { s[stream] = b }
	}
	key := func(k string) []byte { return append(u(1, 0, 0), k+"\x00"...) }
	huge := uint64(1) << 62

	add("good", "", func(*[btfa.NumStreams][]byte) {})
	for i := range good {
		add("cut", btfa.StreamTexts[i]+": ", func(s *[btfa.NumStreams][]byte) { s[i] = s[i][:len(s[i])-1] })
		add("longer", btfa.StreamTexts[i]+": ", func(s *[btfa.NumStreams][]byte) { s[i] = append(s[i], 'x') })
		if i == btfa.StreamFingerprints {
			add("no fingerprints", "", set(i, nil))
			continue
		}
		add("empty", "archive: ", set(i, nil))
	}
	add("fingerprint", "fingerprints: 33 bytes of a fingerprint", set(btfa.StreamFingerprints, u(33)))
	meta := func(head string, vs ...uint64) func(*[btfa.NumStreams][]byte) {
		return set(btfa.StreamMeta, append([]byte(head), u(vs...)...))
	}
	add("shards", "meta: part of a run", meta("\x00", huge, 1))
	add("shard 0", "meta: part of a run", meta("\x00", 2, 0))
	add("shard beyond", "meta: part of a run", meta("\x00", 2, 3))
	add("hash", "meta: 33 bytes of a hash", meta("\x00\x00", 33))
	add("hashes", "meta: 66 hashes of relocations", meta("\x00\x00\x08", 66))
	add("arch of relocations", "meta: not an arch", meta("\x00\x00\x00\x01a/b\x00"))
	add("order of relocations", "meta: relocations of \"a\": not in order", meta("\x00\x00\x00\x02b\x00a\x00"))
	add("hash of an object", "meta: 33 bytes of a hash", meta("\x00\x00\x00\x00", 33))
	add("groups", "meta: 4611686018427387904 groups of objects", meta("\x00\x00\x00\x00\x00", huge))
	add("machines", "meta: 65 machines", meta("\x00\x00\x00\x00\x00\x01", 65))
	add("machine", "meta: not an arch", meta("\x00\x00\x00\x00\x00\x01\x01\x00"))
	add("objects", "meta: 4611686018427387904 objects", meta("\x00\x00\x00\x00\x00\x01\x00", huge))
	add("objects of two groups", "meta: 65536 objects, more than 65535", meta("\x00\x00\x00\x00\x00\x02\x00\x01a\x00\x00", btfa.MaxObjects))
	add("no objects", "meta: group without objects", meta("\x00\x00\x00\x00\x00\x01\x00\x00"))
	add("kernels", "kernels: 4611686018427387904 kernels", set(btfa.StreamKernels, u(huge)))
	add("shared", "kernels: shares more", set(btfa.StreamKernels, append(u(1, 1, 0), "x\x00"...)))
	add("new layout", "kernels: kernel", set(btfa.StreamKernels, append(u(2, 0, 0), "d/1/a/6\x00\x06\x007\x00"...)))
	add("old layout", "kernels: layout does not exist", set(btfa.StreamKernels, append(u(1, 0, 1), "d/1/a/6\x00"...)))
	add("no key", `kernel "a/b/c": not a key`, set(btfa.StreamKernels, key("a/b/c")))
	add("path", "is not a name", set(btfa.StreamKernels, key("../1/x86_64/6")))
	add("absent version", "is not a name", set(btfa.StreamKernels, key("a/-/x86_64/6")))
	add("no arch", `kernel "a/1//6.1": no arch`, set(btfa.StreamKernels, key("a/1//6.1")))
	add("no release", `kernel "a/1/x86_64/": no release`, set(btfa.StreamKernels, key("a/1/x86_64/")))
	add("order of kernels", "not in order", set(btfa.StreamKernels, append(u(2, 0, 0), "d/1/a/7\x00\x06\x016\x00"...)))
	add("same kernel", "not in order", set(btfa.StreamKernels, append(u(2, 0, 0), "d/1/a/7\x00\x06\x017\x00"...)))
	add("alias", "occurs twice", set(btfa.StreamKernels, append(u(2, 0, 0), "d/1/aarch64/7\x00\x04\x01arm64/7\x00"...)))
	add("unused layout", "kernels: use 1 of 2 layouts", set(btfa.StreamLayouts, u(2, 0, 2, 0, 0, 0, 0, 1<<1, 0)))
	add("slots", "parents: 4 slots, more than 3", set(btfa.StreamParents, u(4, 1, 0, 1, 0)))
	add("variants", "parents: 4611686018427387904 variants", set(btfa.StreamParents, u(2, huge)))
	add("parent", "parents: variant does not exist", set(btfa.StreamParents, u(2, 1, 1, 1, 0)))
	add("kind void", "no kind 0", set(btfa.StreamShapes, u(0)))
	add("kind datasec", "no kind 15", set(btfa.StreamShapes, u(15<<1)))
	add("kind huge", "no kind 2305843009213693952", set(btfa.StreamShapes, u(huge)))
	add("members", "shapes: 4611686018427387904 fields", set(btfa.StreamShapes, u(4<<1, huge)))
	add("name", "shapes: name does not exist", set(btfa.StreamShapes, u(4<<1, 1, btfa.NameFirst, 0, 1<<1)))
	add("next name", "shapes: name does not exist", set(btfa.StreamShapes, u(4<<1, 2, btfa.NameNext, 0, btfa.NameNext, 0, 1<<1)))
	add("slot", "shapes: slot does not exist", set(btfa.StreamShapes, u(4<<1, 1, btfa.NameNext, btfa.ToFirst+1+2*2, 1<<1)))
	add("node", "shapes: node does not exist", set(btfa.StreamShapes, u(4<<1, 1, btfa.NameNext, btfa.ToFirst+2*1, 1<<1)))
	add("bits", "shapes: 256 bits", set(btfa.StreamShapes, u(4<<1|1, 1, btfa.NameNext, 256, 0, 1<<1)))
	add("offset", "numbers: number is out of range", set(btfa.StreamNumbers, u(btfa.Zigzag(1<<27)<<2|3, 0, btfa.Zigzag(32), btfa.Zigzag(4-32))))
	add("negative", "numbers: number is out of range", set(btfa.StreamNumbers, u(btfa.PackOffset(-8), btfa.PackOffset(40), btfa.Zigzag(32), btfa.Zigzag(4-32))))
	add("odd size", "numbers: number is out of range", set(btfa.StreamNumbers, u(0, btfa.PackOffset(31), btfa.Zigzag(32), btfa.Zigzag(4-32))))
	add("long varint", "numbers: number of more than 64 bits", set(btfa.StreamNumbers, bytes.Repeat([]byte{0xff}, 20)))
	add("layouts", "layouts: 4611686018427387904 layouts", set(btfa.StreamLayouts, u(huge)))
	add("changes", "layouts: 3 changes", set(btfa.StreamLayouts, u(1, 0, 3, 0, 0, 0, 0, 0, 0)))
	add("parent of layout", "layouts: layout does not exist", set(btfa.StreamLayouts, u(1, 1<<1, 2, 0, 0, 0, 0)))
	add("change of slot", "layouts: slot does not exist", set(btfa.StreamLayouts, u(1, 0, 2, 0, 0, 1, 0)))
	add("slot overflow", "layouts: slot does not exist", set(btfa.StreamLayouts, u(1, 0, 2, 0, 0, 1<<63, 0)))
	add("variant", "layouts: variant does not exist", set(btfa.StreamLayouts, u(1, 0, 2, 0, btfa.VariantFirst, 0, 0)))
	add("next variant", "layouts: variant does not exist", set(btfa.StreamLayouts, u(2, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0)))
	add("dangling", "refers to one that the BTF does not have", set(btfa.StreamLayouts, u(1, 0, 1, 0, btfa.VariantNext)))
	// Each variant takes one byte, and the slots, types, fields and references are 7 more items.
	variants := func(n uint64) []byte { return append(u(2, 1, 0, n, 0), bytes.Repeat(u(1), int(n-1))...) }
	deltas := func(n uint64) []byte { return append(slices.Clone(good[btfa.StreamNumbers]), make([]byte, 2*(n-1))...) }
	items := func(n uint64) func(*[btfa.NumStreams][]byte) {
		return func(s *[btfa.NumStreams][]byte) {
			s[btfa.StreamParents], s[btfa.StreamNumbers] = variants(n), deltas(n)
		}
	}
	add("most items", "", items(btfa.MaxItems-7))
	add("too many items", "more than 1048576 slots, variants", items(btfa.MaxItems-6))
	// Chains of pointers to pointers.
	chain := func(n int) func(*[btfa.NumStreams][]byte) {
		return func(s *[btfa.NumStreams][]byte) {
			s[btfa.StreamShapes] = append(bytes.Repeat(u(2<<1, btfa.ToNext), n), u(7<<1, 1<<1)...)
			s[btfa.StreamNumbers] = u(btfa.Zigzag(32), btfa.Zigzag(4-32))
		}
	}
	add("long chain", "", chain(btfa.MaxTypes-2))
	add("too many types", "more than 65536 types", chain(btfa.MaxTypes))
	cases = append(cases,
		payloadCase{"no streams", "payload: 0 streams", u(0)},
		payloadCase{"many streams", "payload: 65 streams", u(65)},
		payloadCase{"lengths", "payload: streams have", append(u(btfa.NumStreams), bytes.Repeat(u(1), btfa.NumStreams)...)},
		payloadCase{"huge lengths", "payload: streams have", append(u(btfa.NumStreams), bytes.Repeat(u(1<<63), btfa.NumStreams)...)},
		payloadCase{"nothing", "frame: ", nil},
	)
	return cases
}

func TestHostile(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	for _, tt := range hostile(t) {
		a, err := archive.Open(raw(t, tt.payload))
		if err == nil && a.Len() > 0 {
			_, err = a.BTF(a.Keys()[0])
		}
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A later writer may add streams.
func TestMoreStreams(t *testing.T) {
	good := hostile(t)[0].payload
	lens := good[1 : 1+btfa.NumStreams]
	p := append([]byte{btfa.NumStreams + 1}, lens...)
	p = append(append(append(p, 3), good[1+btfa.NumStreams:]...), "new"...)
	a, err := archive.Open(raw(t, p))
	if err != nil || a.Len() != 1 {
		t.Errorf("error %v", err)
	}
}

// manyKeys returns the largest number of kernels.
func manyKeys() []byte {
	b := binary.AppendUvarint(nil, btfa.MaxKernels)
	for i := range btfa.MaxKernels {
		b = append(b, 0, byte(min(i, 1)))
		b = append(fmt.Appendf(b, "a/a/a/%06d", i), 0)
	}
	return b
}

// manyMachines returns a group of one object for the largest number of machines.
func manyMachines() string {
	return string(rune(btfa.MaxMachines)) + strings.Repeat("a\x00", btfa.MaxMachines) + "\x01o\x00"
}

// heavy returns payloads that consist of one stream as far as possible.
func heavy() map[string][]byte {
	const n = btfa.MaxPayload - 1<<10
	fill := func(stream int, head []byte, unit string) []byte {
		s := append(head, bytes.Repeat([]byte(unit), (n-len(head))/max(1, len(unit)))...)
		p := binary.AppendUvarint(nil, btfa.NumStreams)
		var others [btfa.NumStreams][]byte
		others[btfa.StreamMeta] = make([]byte, 6)
		others[btfa.StreamParents] = []byte{1, 1, 0}
		others[btfa.StreamNames] = []byte("a\x00")
		others[btfa.StreamShapes] = []byte{7 << 1}
		if stream == btfa.StreamKernels {
			others[btfa.StreamLayouts] = []byte{1, 0, 0}
		}
		others[stream] = s
		for _, b := range others {
			p = binary.AppendUvarint(p, uint64(len(b)))
		}
		return append(p, slices.Concat(others[:]...)...)
	}
	count := binary.AppendUvarint(nil, n/4)
	return map[string][]byte{
		"objects":  fill(btfa.StreamMeta, binary.AppendUvarint([]byte("\x00\x00\x00\x00\x00\x01\x00"), btfa.MaxObjects), "\x00"),
		"groups":   fill(btfa.StreamMeta, binary.AppendUvarint([]byte("\x00\x00\x00\x00\x00"), btfa.MaxObjects), manyMachines()),
		"names":    fill(btfa.StreamNames, nil, "\x00"),
		"pointers": fill(btfa.StreamShapes, nil, "\x05\x01\x04\x01"), // unions of unions
		"structs":  fill(btfa.StreamShapes, nil, "\x08\x03\x00\x01\x00\x01\x00\x00"),
		"variants": fill(btfa.StreamParents, append([]byte{1}, count...), "\x00"),
		"layouts":  fill(btfa.StreamLayouts, count, "\x00\x00\x02\x01\x00\x00"),
		"kernels":  fill(btfa.StreamKernels, manyKeys(), ""),
	}
}

// TestMemory checks the memory of Open for payloads that consist of one stream.
func TestMemory(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	doc, err := os.ReadFile("../../docs/archive-format.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d MiB", maxMemory>>20); !strings.Contains(string(doc), want) {
		t.Errorf("docs/archive-format.md does not say %s", want)
	}
	for name, p := range heavy() {
		var err error
		file := raw(t, p)
		got := allocated(func() { _, err = archive.Open(file) })
		t.Logf("%s: %d MiB for %d MiB (%v)", name, got>>20, len(p)>>20, err)
		if got > maxMemory {
			t.Errorf("%s: %d MiB", name, got>>20)
		}
	}
}
