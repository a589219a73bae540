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
	"sync"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Writer writes a new file, or adds kernels to an existing one. The same kernels in the same order give the same bytes.
//
// A kernel is added in three steps. Prepare looks at it alone. Plan chooses its place in the file and its parent. Make encodes it
// once its parent has been made. Prepare and Make are safe for concurrent use, Plan is for one goroutine at a time.
type Writer struct {
	old   *File    // or nil
	spool *os.File // what is written behind it
	file  *File    // reads what there is so far; its entries are the old ones
	maker *Maker

	at     map[kernel.Key]*Kernel    // kernels by canonical key
	series map[kernel.Key][]*Kernel  // kernels of each series
	order  []kernel.Key              // series, in the order of their first kernels
	same   map[[SumSize]byte]*Kernel // the first kernel with this BTF

	source *File       // whose chunks are copied, or nil
	copies map[int]int // kernels by the numbers in source of what they are copies of

	packages []Package

	mu      sync.Mutex
	kernels []*Kernel // that were planned, and those of the old file
	written int       // how many of them are in the file
	end     int64     // where the next chunk goes
	room    chan struct{}

	known      func() *known
	knownChunk chunkID // what known is for
}

// mostPlanned is how many kernels may wait to be written behind one that takes long to make.
const mostPlanned = 64

// NewWriter returns a writer that adds to old, which may be nil. Until WriteTo, new kernels are kept in a nameless file in dir. The
// caller must call Discard.
func NewWriter(old *File, dir string) (*Writer, error) {
	maker, err := NewMaker()
	if err != nil {
		return nil, err
	}
	spool, err := os.CreateTemp(dir, ".btfgen.*.tmp")
	if err != nil {
		return nil, err
	}
	os.Remove(spool.Name())
	w := &Writer{
		old: old, spool: spool, maker: maker, at: make(map[kernel.Key]*Kernel), series: make(map[kernel.Key][]*Kernel), same: make(map[[SumSize]byte]*Kernel),
		copies: make(map[int]int), room: make(chan struct{}, mostPlanned),
	}
	if old == nil {
		old = &File{end: int64(headerLen)}
	}
	w.end = old.end
	w.file = newFile(joined{old.r, spool, old.end}, old.entries, old.end, nil)
	w.file.find = w.entry
	w.packages = slices.Clone(old.packages)
	for i := range old.entries {
		w.append(&Kernel{entry: old.entries[i]})
	}
	w.written = len(w.kernels)
	return w, nil
}

// joined is a file that continues in another one.
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

// ErrOther says that the file has a kernel of the same key with other content.
var ErrOther = errors.New("another kernel has its key")

// Kernel is a kernel to be added, or one of the old file.
type Kernel struct {
	entry      Entry // of a kernel to be added, complete when written is closed
	btf        []byte
	modules    []Module
	extras     Extras
	from       *File // which has it, as number fromNumber; or nil
	fromNumber int

	// Set by Plan. They depend only on the kernels before this one.
	number int  // in the file
	copied bool // its chunks are copied

	chunks  []byte
	written chan struct{} // closed when the kernel is in the file; nil for one of the old file
}

// Prepare returns a kernel to be added with its modules, whose names are distinct and sorted. All of it must not change until the
// kernel has been made.
func Prepare(key kernel.Key, btf []byte, modules []Module) (*Kernel, error) {
	if err := btfa.CheckKey(key); err != nil {
		return nil, err
	}
	if len(btf) > limits.PartSize {
		return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of BTF"}
	}
	k := &Kernel{
		entry: Entry{Key: key, Size: int64(len(btf)), Sum: sha256.Sum256(btf), Modules: len(modules)},
		btf:   btf, modules: modules, written: make(chan struct{}),
	}
	if len(modules) > 0 {
		sum, size, err := sumModules(modules)
		if err != nil {
			return nil, err
		}
		if size > limits.PartSize {
			return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
		}
		k.entry.ModulesSum = sum
		for _, m := range modules {
			k.entry.modulesSize += int64(len(m.BTF))
		}
	}
	return k, nil
}

// Extras are the configuration and the symbols of a kernel: lines with a newline each. Nil is unknown.
type Extras struct {
	Config, Symbols []byte
}

// check returns an error if a file cannot have the extras.
func (x *Extras) check() error {
	switch {
	case len(x.Config) > limits.KconfigBytes:
		return &limits.Exceeded{Max: limits.KconfigBytes, What: "bytes of configuration"}
	case len(x.Symbols) > limits.SymbolBytes:
		return &limits.Exceeded{Max: limits.SymbolBytes, What: "bytes of symbols"}
	}
	count := 0
	for _, text := range [][]byte{x.Config, x.Symbols} {
		if len(text) > 0 && text[len(text)-1] != '\n' {
			return errors.New("configuration or symbols: the last line has no end")
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return errors.New("configuration or symbols: a NUL byte")
		}
		count += bytes.Count(text, []byte("\n"))
	}
	if count > (len(x.Config)+len(x.Symbols))/lineBytes {
		return errors.New("configuration or symbols: too many short lines")
	}
	return nil
}

// lineBytes is the minimum of bytes of a line: "t x" and the newline.
const lineBytes = 4

// Extras sets the configuration and symbols of the kernel, which must not change until the kernel has been made.
func (k *Kernel) Extras(x Extras) error {
	k.entry.Config, k.entry.Symbols, k.extras = int64(len(x.Config)), int64(len(x.Symbols)), x
	return x.check()
}

// From says that the kernel, with its modules and extras, is number i of a file. If that is the file that the first kernel is from, and
// the parent was copied, the chunks are copied.
func (k *Kernel) From(f *File, i int) { k.from, k.fromNumber = f, i }

// Made says what made the BTF of the kernel's DWARF.
func (k *Kernel) Made(m Made) { k.entry.Made = m }

// Lacks reports whether the file has the kernel without configuration or symbols that k has.
func (w *Writer) Lacks(k *Kernel) bool {
	o := w.at[k.entry.Key.Canonical()]
	return o != nil && (o.entry.Config == 0 && k.entry.Config > 0 || o.entry.Symbols == 0 && k.entry.Symbols > 0)
}

// Len returns the number of kernels.
func (w *Writer) Len() int { return len(w.kernels) }

// Note adds packages to those that the file was made from. The later of two notes of one package counts.
func (w *Writer) Note(packages ...Package) {
	type id struct{ series, name, version string }
	at := make(map[id]int, len(w.packages))
	for i, p := range w.packages {
		at[id{p.Series, p.Name, p.Version}] = i
	}
	for _, p := range packages {
		here := id{p.Series, p.Name, p.Version}
		if i, ok := at[here]; ok {
			w.packages[i] = p
		} else {
			at[here] = len(w.packages)
			w.packages = append(w.packages, p)
		}
	}
}

// entry waits until a kernel has been written, and returns its entry.
func (w *Writer) entry(ctx context.Context, i int) (*Entry, error) {
	w.mu.Lock()
	k := w.kernels[i]
	w.mu.Unlock()
	if k.written != nil {
		select {
		case <-k.written:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &k.entry, nil
}

// finish notes that a kernel has been made, and writes it and those behind it that waited for it.
func (w *Writer) finish(k *Kernel, chunks []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.btf, k.modules, k.extras, k.chunks = nil, nil, Extras{}, chunks
	for ; w.written < len(w.kernels); w.written++ {
		k := w.kernels[w.written]
		if k.chunks == nil {
			return nil
		}
		if _, err := w.spool.WriteAt(k.chunks, w.end-w.file.end); err != nil {
			return err
		}
		for p := range k.entry.chunks {
			k.entry.chunks[p].offset = w.end
			w.end += k.entry.chunks[p].packed
		}
		k.chunks = nil
		close(k.written)
		<-w.room
	}
	return nil
}

// WriteTo writes the file. All kernels that were planned must have been made, and none may be added afterwards.
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
	put(io.NewSectionReader(w.spool, 0, w.end-w.file.end))
	if err != nil {
		return n, err
	}
	entries := make([]Entry, len(w.kernels))
	for i, k := range w.kernels {
		entries[i] = k.entry
	}
	plain := appendIndex(entries, w.packages)
	if len(plain) > limits.CorpusIndex {
		return n, &limits.Exceeded{Max: limits.CorpusIndex, What: "bytes of the index"}
	}
	index, _, err := w.maker.pack(plain)
	if err != nil {
		return n, err
	}
	put(bytes.NewReader(index))
	put(bytes.NewReader(append(binary.LittleEndian.AppendUint64(nil, uint64(len(index))), endMark...)))
	return n, err
}

// Discard releases the resources of the writer.
func (w *Writer) Discard() {
	w.spool.Close()
	os.Remove(w.spool.Name()) // where it had to keep its name
}

// sumModules returns the SHA-256 of the names and sizes of modules and of their BTF, and how many bytes these are.
func sumModules(modules []Module) (sum [SumSize]byte, size int64, err error) {
	var b []byte
	last := ""
	for _, m := range modules {
		if err := kernel.CheckName(m.Name); err != nil {
			return sum, 0, fmt.Errorf("module: %w", err)
		}
		if m.Name <= last {
			return sum, 0, fmt.Errorf("module %q: out of order", m.Name)
		}
		last = m.Name
		b = append(append(b, m.Name...), 0)
		b = binary.AppendUvarint(b, uint64(len(m.BTF)))
	}
	h := sha256.New()
	h.Write(b)
	size = int64(len(b))
	for _, m := range modules {
		h.Write(m.BTF)
		size += int64(len(m.BTF))
	}
	h.Sum(sum[:0])
	return sum, size, nil
}
