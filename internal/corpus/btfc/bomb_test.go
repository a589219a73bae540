// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// lab is a chunk of a kernel in a file that no writer writes.
type lab struct {
	front, back []byte // payloads
	parent      int
	size        int64 // of the BTF
}

// labPayload returns a payload with some streams.
func labPayload(late [2]uint64, streams map[int][]byte) (out []byte) {
	out = binary.AppendUvarint(binary.AppendUvarint(nil, late[0]), late[1])
	for i := range numStreams {
		out = binary.AppendUvarint(out, uint64(len(streams[i])))
	}
	for i := range numStreams {
		out = append(out, streams[i]...)
	}
	return out
}

// labUnit returns a unit with a rest of one byte.
func labUnit(size, types, front, strings uint64) []byte {
	b := []byte{0}
	for _, v := range []uint64{size, types, front, strings, 1} {
		b = binary.AppendUvarint(b, v)
	}
	return append(b, 0)
}

// labLeaf is a small kernel with a parent.
func labLeaf(parent int) lab {
	return lab{front: labPayload([2]uint64{}, map[int][]byte{streamUnits: labUnit(1, 0, 0, 0)}), parent: parent, size: 1}
}

// labFile returns a file.
func labFile(t testing.TB, kernels ...lab) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	out := append([]byte(Magic), version)
	var entries []*Entry
	for i, k := range kernels {
		e := &Entry{Key: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprint(i)}, Size: k.size}
		e.Chunks[partBTF].Parent = k.parent
		for j, payload := range [][]byte{k.front, k.back} {
			if len(payload) == 0 {
				continue
			}
			packed := enc.EncodeAll(payload, nil)
			*e.Chunks[partBTF].frames()[j] = frame{Packed: int64(len(packed)), Size: int64(len(payload)), Check: sha256.Sum256(packed)}
			out = append(out, packed...)
		}
		entries = append(entries, e)
	}
	index, err := appendIndex(entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := enc.EncodeAll(index, nil)
	sum := sha256.Sum256(packed)
	foot := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(len(packed))), uint64(len(index)))
	return slices.Concat(out, packed, foot, sum[:], []byte(endMark))
}

// readsOf counts how often the first byte behind the header is read.
type readsOf struct {
	io.ReaderAt
	n int
}

func (r *readsOf) ReadAt(p []byte, off int64) (int, error) {
	if off == int64(headerLen) && len(p) > 0 {
		r.n++
	}
	return r.ReaderAt.ReadAt(p, off)
}

// TestBombs reads files whose first kernel unpacks to far more than its size. It is not unpacked.
func TestBombs(t *testing.T) {
	const n = 40 << 20
	for name, root := range map[string]lab{
		"names": {front: labPayload([2]uint64{}, map[int][]byte{streamUnits: labUnit(3*n, 0, 0, 0), streamText: make([]byte, n), streamShared: make([]byte, n)}), parent: -1, size: 3 * n},
		"back": {
			front:  labPayload([2]uint64{n, 0}, map[int][]byte{streamUnits: labUnit(3*n, 0, 0, 0)}),
			back:   labPayload([2]uint64{}, map[int][]byte{streamText: make([]byte, n), streamShared: make([]byte, n)})[2:],
			parent: -1, size: 3 * n,
		},
	} {
		data := labFile(t, root, labLeaf(0), labLeaf(0))
		reads := &readsOf{ReaderAt: bytes.NewReader(data)}
		f, err := Open(reads, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Entries() {
			_, err := f.BTF(ctx, i, nil)
			if err == nil || !strings.Contains(err.Error(), "debian/12/x86_64/0") || !strings.Contains(err.Error(), "unpacks to more than 100 times its size") {
				t.Errorf("%s, kernel %d: error %v", name, i, err)
			}
		}
		if reads.n > 0 {
			t.Errorf("%s: it is read %d times", name, reads.n)
		}
	}
}

// TestClaims reads a front that claims names at the back, where there is no room for them.
func TestClaims(t *testing.T) {
	const n = 100 << 20
	q := NewQuery(nil)
	for _, late := range [][2]uint64{{n, 0}, {0, n / 12}} {
		data := labFile(t, lab{front: labPayload(late, map[int][]byte{streamUnits: labUnit(n, 0, 0, 0)}), parent: -1, size: n})
		if _, err := open(t, data).For(q).Part(ctx, 0, nil, nil); err == nil || !strings.Contains(err.Error(), "at the back") {
			t.Errorf("%d: error %v", late, err)
		}
	}
}

// TestDamageOnce reads kernels whose parent is damaged. It is decoded once, and each error names it.
func TestDamageOnce(t *testing.T) {
	root := lab{front: labPayload([2]uint64{}, map[int][]byte{streamUnits: labUnit(1, 0, 0, 0), streamText: []byte("abc"), streamShared: {0}}), parent: -1, size: 1}
	kernels := []lab{root}
	for range 10 {
		kernels = append(kernels, labLeaf(0))
	}
	data := labFile(t, kernels...)
	reads := &readsOf{ReaderAt: bytes.NewReader(data)}
	f, err := Open(reads, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Entries() {
		if _, err := f.BTF(ctx, i, nil); err == nil || !strings.Contains(err.Error(), "kernel debian/12/x86_64/0, at byte 5: ") {
			t.Errorf("kernel %d: error %v", i, err)
		}
	}
	if reads.n != 1 {
		t.Errorf("the parent is read %d times", reads.n)
	}
}

// TestRepetitive writes a kernel that compresses to less than what readers take for its size.
func TestRepetitive(t *testing.T) {
	k := in("1", make([]byte, 4<<20)) // stored as bytes
	f := open(t, written(t, nil, k))
	for _, from := range f.entries[0].Chunks[partBTF].frames() {
		if from.Size > limits.UnpackedRatio*from.Packed {
			t.Errorf("%d bytes unpack to %d", from.Packed, from.Size)
		}
	}
	same(t, f, k)
}

// TestRatioTogether opens a file of chunks that each unpack to less than limits.UnpackedSmall. Those behind it are refused.
func TestRatioTogether(t *testing.T) {
	const n = 12 << 20
	var kernels []lab
	for range 4 {
		kernels = append(kernels, lab{front: labPayload([2]uint64{}, map[int][]byte{streamUnits: labUnit(n, 0, 0, 0), streamText: make([]byte, n)}), parent: -1, size: n})
	}
	f := open(t, labFile(t, kernels...))
	for i := range kernels {
		if _, err := f.BTF(ctx, i, nil); errors.Is(err, limits.ErrRatio) != (i >= 2) {
			t.Errorf("kernel %d: error %v", i, err)
		}
	}
}

// TestStateLimits decodes chunks that take more memory than their size allows: names that share bytes with others, and names in place of
// long ones.
func TestStateLimits(t *testing.T) {
	const n = 100_000
	shared := bytes.Repeat([]byte{255}, n)
	shared[0] = 0
	long := append(bytes.Repeat([]byte{'a'}, 1000), 0)
	prefixes := labPayload([2]uint64{}, map[int][]byte{
		streamUnits: labUnit(100<<20, 0, 0, 0), streamText: append(long, make([]byte, n-1)...), streamShared: shared,
	})
	if _, err := decode(newState(), prefixes, nil, 100<<20, nil); !errors.Is(err, limits.ErrTooLarge) {
		t.Errorf("names that share bytes: %v", err)
	}
	lists := labPayload([2]uint64{}, map[int][]byte{streamUnits: labUnit(100<<20, 8<<20, 8<<20, 1<<20)})
	if _, err := decode(newState(), lists, nil, 100<<20, nil); err == nil || !strings.Contains(err.Error(), "more types and strings") {
		t.Errorf("lists: %v", err)
	}
}

// TestCacheCounted reads kernels, and then lets a task have all memory. The cached states count until then, and are dropped.
func TestCacheCounted(t *testing.T) {
	all := limits.NewMemory(1 << 20)
	var kernels []input
	for i := range 5 {
		kernels = append(kernels, in(fmt.Sprint(i), build(t, binary.LittleEndian, i)))
	}
	f := open(t, written(t, nil, kernels...))
	f.states.held = all.Cache(f.states.drop)
	same(t, f, kernels...)
	states := func() (n int) {
		for _, p := range f.states.of {
			if p.state != nil {
				n++
			}
		}
		return n
	}
	if all.Held() == 0 || states() == 0 {
		t.Fatalf("%d bytes of %d states", all.Held(), states())
	}
	r, err := f.states.open(ctx, chunkID{partBTF, 4})
	if err != nil {
		t.Fatal(err)
	}
	task := all.Open(ctx)
	defer task.Close()
	if err := task.Take(1 << 20); err != nil {
		t.Fatal(err)
	}
	if n := states(); n != 1 {
		t.Errorf("%d states are left while one is in use", n)
	}
	r.close()
	task.Close()
	task = all.Open(ctx)
	if err := task.Take(1 << 20); err != nil {
		t.Fatal(err)
	}
	if n, held := states(), all.Held(); n != 0 || held != 1<<20 {
		t.Errorf("%d states are left, %d bytes held", n, held)
	}
	same(t, f, kernels...)
}
