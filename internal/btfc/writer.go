// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Writer makes a file, from nothing or from one that is there. The same kernels in the same order make the same bytes.
// It is for one goroutine at a time.
type Writer struct {
	old   *File    // or nil
	spool *os.File // what is written after it
	file  *File    // what there is so far
	enc   *zstd.Encoder

	at     map[kernel.Key]int    // entries by canonical key
	series map[kernel.Key][]int  // entries of each series
	order  []kernel.Key          // series, in the order of their heads
	same   map[[SumSize]byte]int // the first entry of each content, unless it is plain
	depth  []int                 // of each entry, how many it is told from

	source *File       // whose chunks are copied, nil for none
	copied map[int]int // entries by those of source that they are copies of

	knownOf int // what known is of
	known   *known
	builder builder
	buf     []byte
}

// Module is a module's BTF.
type Module struct {
	Name string
	BTF  []byte
}

// NewWriter returns a writer for what is in old, which may be nil, and more. Until the end, new kernels are kept in a
// file in dir that has no name. The caller must call Discard.
func NewWriter(old *File, dir string) (*Writer, error) {
	spool, err := os.CreateTemp(dir, ".btfgen.*.tmp")
	if err != nil {
		return nil, err
	}
	os.Remove(spool.Name())
	w := &Writer{old: old, spool: spool, at: make(map[kernel.Key]int), series: make(map[kernel.Key][]int), same: make(map[[SumSize]byte]int), knownOf: -2}
	w.file = newFile(joined{nil, spool, int64(headerLen)}, nil, int64(headerLen))
	if old != nil {
		w.file.r, w.file.end = joined{old.r, spool, old.end}, old.end
		for i := range old.entries {
			w.append(old.entries[i])
		}
	}
	w.enc, err = newEncoder()
	return w, err
}

func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
}

// joined is a file that goes on in another one.
type joined struct {
	a, b io.ReaderAt
	end  int64 // of a
}

// ReadAt reads from one of the two: no chunk is in both.
func (j joined) ReadAt(p []byte, off int64) (int, error) {
	if off < j.end {
		return j.a.ReadAt(p, off)
	}
	return j.b.ReadAt(p, off-j.end)
}

// base is where the spool begins in the file.
func (w *Writer) base() int64 {
	if w.old != nil {
		return w.old.end
	}
	return int64(headerLen)
}

// append adds an entry.
func (w *Writer) append(e Entry) {
	i := len(w.file.entries)
	w.file.entries = append(w.file.entries, e)
	w.at[e.Key.Canonical()] = i
	if _, ok := w.same[e.Sum]; !ok && !e.Plain {
		w.same[e.Sum] = i
	}
	depth := 0
	if e.parent >= 0 {
		depth = w.depth[e.parent] + 1
	}
	w.depth = append(w.depth, depth)
	s := e.Key.Series()
	if w.series[s] == nil {
		w.order = append(w.order, s)
	}
	w.series[s] = append(w.series[s], i)
}

// ErrOther says that a kernel is in the file with other content.
var ErrOther = errors.New("another kernel has its key")

// Add adds a kernel and its modules, whose names are distinct and in order. It reports whether that was needed: a kernel
// that is there with the same content is left alone. The error of one that is there with other content is ErrOther.
func (w *Writer) Add(ctx context.Context, key kernel.Key, btf []byte, modules []Module) (added bool, err error) {
	return w.add(ctx, key, btf, modules, nil, 0)
}

// AddFrom is Add for kernel i of a file, which has this BTF and these modules. If it is the file that the first kernel is from, and what
// the kernel is told from was copied, its chunk is copied as it is.
func (w *Writer) AddFrom(ctx context.Context, f *File, i int, btf []byte, modules []Module) (added bool, err error) {
	if len(w.file.entries) == 0 {
		w.source, w.copied = f, map[int]int{-1: -1}
	}
	return w.add(ctx, f.entries[i].Key, btf, modules, f, i)
}

func (w *Writer) add(ctx context.Context, key kernel.Key, btf []byte, modules []Module, from *File, number int) (added bool, err error) {
	if err := btfa.CheckKey(key); err != nil {
		return false, err
	}
	e := Entry{Key: key, Size: int64(len(btf)), Sum: sha256.Sum256(btf), Modules: len(modules), parent: -1, offset: w.file.end}
	var more []byte
	if len(modules) > 0 {
		if more, err = joinModules(modules); err != nil {
			return false, err
		}
		e.ModulesSum, e.modules = sha256.Sum256(more), int64(len(more))
	}
	if i, ok := w.at[key.Canonical()]; ok {
		if o := &w.file.entries[i]; o.Sum != e.Sum || o.Modules != e.Modules || o.ModulesSum != e.ModulesSum {
			return false, ErrOther
		}
		return false, nil
	}
	if len(w.file.entries) == limits.CorpusKernels {
		return false, &limits.Exceeded{Max: limits.CorpusKernels, What: "kernels"}
	}
	var st *state
	chunk, err := w.copy(&e, from, number)
	if chunk == nil && err == nil {
		chunk, st, err = w.chunk(ctx, &e, btf)
	}
	if err != nil {
		return false, err
	}
	if len(modules) > 0 {
		packed, _, err := w.pack(more)
		if err != nil {
			return false, err
		}
		e.ModulesPacked = int64(len(packed))
		chunk = append(chunk, packed...)
	}
	e.Packed = int64(len(chunk))
	if _, err := w.spool.WriteAt(chunk, e.offset-w.base()); err != nil {
		return false, err
	}
	w.append(e)
	w.file.end += e.Packed
	if st != nil {
		w.file.states.remember(len(w.file.entries)-1, st)
	}
	return true, nil
}

// copy returns the chunk of kernel i of a file for an entry of the same content, nil if it has to be made.
func (w *Writer) copy(e *Entry, f *File, i int) ([]byte, error) {
	if f == nil || f != w.source || f.entries[i].Sum != e.Sum {
		return nil, nil
	}
	o := &f.entries[i]
	parent, ok := w.copied[o.parent]
	if !ok {
		return nil, nil
	}
	offset, n := o.chunk()
	chunk := make([]byte, n)
	if err := readFull(f.r, chunk, offset); err != nil {
		return nil, err
	}
	w.copied[i] = len(w.file.entries)
	e.parent, e.payload, e.Plain, e.head, e.sketch = parent, o.payload, o.Plain, o.head, o.sketch
	return chunk, nil
}

// Len is how many kernels there are.
func (w *Writer) Len() int { return len(w.file.entries) }

// chunk returns the kernel's own chunk, and its state if it can be told from its parts.
func (w *Writer) chunk(ctx context.Context, e *Entry, btf []byte) ([]byte, *state, error) {
	if i, ok := w.same[e.Sum]; ok && w.depth[i] < seriesDepth {
		return w.again(ctx, e, i)
	}
	e.parent = w.parent(ctx, e, btf)
	parent, err := w.file.states.get(ctx, e.parent, 0)
	if err != nil {
		return nil, nil, err
	}
	st, parts, err := w.model(ctx, parent, e, btf)
	if err != nil {
		e.Plain, e.parent, e.head, parts = true, -1, false, [][]byte{btf}
	}
	chunk, n, err := w.pack(parts...)
	e.payload = n
	return chunk, st, err
}

// again returns the chunk of a kernel with the same BTF as entry i.
func (w *Writer) again(ctx context.Context, e *Entry, i int) ([]byte, *state, error) {
	e.parent = i
	parent, err := w.file.states.get(ctx, i, 0)
	if err != nil {
		return nil, nil, err
	}
	s, err := parent.again()
	if err != nil {
		return nil, nil, err
	}
	parts := s.parts()
	st, err := decode(ctx, parent, slices.Concat(parts...), e.Size, nil)
	if err != nil {
		return nil, nil, err
	}
	chunk, n, err := w.pack(parts...)
	e.payload = n
	return chunk, st, err
}

// model tells a kernel from its parts, and makes sure that it can be put together again.
func (w *Writer) model(ctx context.Context, parent *state, e *Entry, btf []byte) (*state, [][]byte, error) {
	if w.knownOf != e.parent {
		w.known, w.knownOf = newKnown(parent), e.parent
	}
	s, err := encode(parent, w.known, btf)
	if err != nil {
		return nil, nil, err
	}
	parts := s.parts()
	st, err := decode(ctx, parent, slices.Concat(parts...), e.Size, nil)
	if err != nil {
		return nil, nil, err
	}
	if w.buf, err = w.builder.build(st, e.Size, w.buf[:0]); err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(w.buf, btf) {
		return nil, nil, errModel
	}
	return st, parts, nil
}

// How a series is told: every kernel from the one before it, but the first of so many from the first of those before,
// so that none is told from many.
const seriesStep = 4

// seriesDepth is how many kernels a series may begin with being told from. No kernel is told from more than that and what a series has,
// which is less than limits.CorpusDepth.
const seriesDepth = limits.CorpusDepth / 2

// The first of a series is told from one that is alike and takes little to read.
const (
	leastAlike = 6       // how many classes of a sketch have to agree
	mostChain  = 6 << 20 // bytes to be unpacked, at most
	classChain = 1 << 17 // so many are worth a class, of a large kernel a classPart of its own
	classPart  = 40
)

// parent chooses what a kernel is told from: a kernel of its series, or else the last one of the series that is most
// like it, unless that takes long to read.
func (w *Writer) parent(ctx context.Context, e *Entry, btf []byte) int {
	same := slices.DeleteFunc(slices.Clone(w.series[e.Key.Series()]), func(i int) bool { return w.file.entries[i].Plain })
	if n := len(same); n > 0 {
		step := 1
		for n%(step*seriesStep) == 0 {
			step *= seriesStep
		}
		return same[n-step]
	}
	e.head = true
	s := NewSketch(ctx, btf)
	if s == nil {
		return -1
	}
	e.sketch = *s
	best, most := -1, 0
	class := max(classChain, e.Size/classPart)
	for _, s := range w.order {
		all := w.series[s]
		head, last := &w.file.entries[all[0]], all[len(all)-1]
		n, chain := e.sketch.alike(&head.sketch), w.chain(last)
		if !head.head || n < leastAlike || w.file.entries[last].Plain || w.depth[last] >= seriesDepth || chain > mostChain {
			continue
		}
		if score := n - int(chain/class); best < 0 || score > most {
			best, most = last, score
		}
	}
	return best
}

// chain is how many bytes have to be unpacked to read a kernel.
func (w *Writer) chain(i int) (n int64) {
	for ; i >= 0; i = w.file.entries[i].parent {
		n += w.file.entries[i].payload
	}
	return n
}

// smallPart is up to how many bytes a part shares a block with the one before it, and its entropy tables.
const smallPart = 1000

// pack returns a zstd frame, and how many bytes are in it.
func (w *Writer) pack(parts ...[]byte) ([]byte, int64, error) {
	size := int64(0)
	for _, p := range parts {
		size += int64(len(p))
	}
	if size > limits.PartSize {
		return nil, 0, &limits.Exceeded{Max: limits.PartSize, What: "bytes of BTF"}
	}
	var out bytes.Buffer
	w.enc.ResetContentSize(&out, size)
	for _, p := range parts {
		if len(p) > smallPart {
			if err := w.enc.Flush(); err != nil {
				return nil, 0, err
			}
		}
		if _, err := w.enc.Write(p); err != nil {
			return nil, 0, err
		}
	}
	err := w.enc.Close()
	return out.Bytes(), size, err
}

// joinModules is what the chunk of modules holds: their names and sizes, and their BTF.
func joinModules(modules []Module) ([]byte, error) {
	var b []byte
	last := ""
	for _, m := range modules {
		if m.Name <= last || strings.IndexByte(m.Name, 0) >= 0 {
			return nil, fmt.Errorf("module %q: a bad name, or out of order", m.Name)
		}
		last = m.Name
		b = append(append(b, m.Name...), 0)
		b = binary.AppendUvarint(b, uint64(len(m.BTF)))
	}
	for _, m := range modules {
		b = append(b, m.BTF...)
	}
	return b, nil
}

// WriteTo writes the file. Nothing may be added then.
func (w *Writer) WriteTo(out io.Writer) (n int64, err error) {
	put := func(r io.Reader) {
		if err == nil {
			var m int64
			m, err = io.Copy(out, r)
			n += m
		}
	}
	put(bytes.NewReader(append([]byte(Magic), version)))
	if w.old != nil {
		put(io.NewSectionReader(w.old.r, int64(headerLen), w.old.end-int64(headerLen)))
	}
	put(io.NewSectionReader(w.spool, 0, w.file.end-w.base()))
	if err != nil {
		return n, err
	}
	index, _, err := w.pack(appendIndex(nil, w.file.entries))
	if err != nil {
		return n, err
	}
	put(bytes.NewReader(index))
	put(bytes.NewReader(append(binary.LittleEndian.AppendUint64(nil, uint64(len(index))), endMark...)))
	return n, err
}

// Discard gives up what the writer takes.
func (w *Writer) Discard() {
	w.spool.Close()
	os.Remove(w.spool.Name()) // where it had to keep its name
}
