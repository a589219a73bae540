// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Writer makes a file, from nothing or from one that is there. The same kernels in the same order make the same bytes.
//
// A kernel is added in three steps. Prepare looks at it alone. Plan gives it its place in the file and chooses what it is encoded against, by
// what Prepare found out about it and those before it. Make tells it from that, once that has been made. Prepare and Make are safe for concurrent
// use, Plan is for one goroutine at a time. Add does all three.
type Writer struct {
	old   *File    // or nil
	spool *os.File // what is written after it
	file  *File    // what there is so far, to be read; its entries are the old ones
	maker *Maker

	at     map[kernel.Key]*plan    // kernels by canonical key
	series map[kernel.Key][]*plan  // kernels of each series
	order  []kernel.Key            // series, in the order of their heads
	same   map[[SumSize]byte]*plan // the first kernel with this BTF

	source   *File       // whose chunks are copied, nil for none
	copied   map[int]int // kernels by those of source that they are copies of
	extrasOf map[int]int // the same of kernels with the same extras

	mu      sync.Mutex
	plans   []*plan // of all kernels
	written int     // how many of them are in the file
	end     int64   // where the next chunk goes
	room    chan struct{}
	knownOf int // what known is of
	known   func() *known
}

// Module is a module's BTF.
type Module struct {
	Name string
	BTF  []byte
}

// mostPlanned is how many kernels may have been planned and not been written, because one before them takes long to make.
const mostPlanned = 64

// NewWriter returns a writer for what is in old, which may be nil, and more. Until the end, new kernels are kept in a
// file in dir that has no name. The caller must call Discard.
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
		old: old, spool: spool, maker: maker, at: make(map[kernel.Key]*plan), series: make(map[kernel.Key][]*plan), same: make(map[[SumSize]byte]*plan),
		end: int64(headerLen), room: make(chan struct{}, mostPlanned),
	}
	w.file = newFile(joined{nil, spool, w.end}, nil, w.end)
	if old != nil {
		w.end = old.end
		w.file = newFile(joined{old.r, spool, old.end}, old.entries, old.end)
		for i := range old.entries {
			w.append(&plan{Entry: old.entries[i]})
		}
		w.written = len(w.plans)
	}
	w.file.find = w.entry
	return w, nil
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

// ErrOther says that a kernel is in the file with other content.
var ErrOther = errors.New("another kernel has its key")

// Add adds a kernel and its modules, whose names are distinct and in order. It reports whether that was needed: a kernel
// that is there with the same content is left alone. The error of one that is there with other content is ErrOther.
func (w *Writer) Add(ctx context.Context, key kernel.Key, btf []byte, modules []Module) (added bool, err error) {
	k, err := Prepare(key, btf, modules)
	if err != nil {
		return false, err
	}
	if added, err = w.Plan(ctx, k); !added {
		return false, err
	}
	return true, w.Make(ctx, w.maker, k)
}

// Kernel is a kernel on its way into a file.
type Kernel struct {
	entry   Entry
	btf     []byte
	modules []Module
	lines   *lines // of its extras, nil for none
	from    *File  // which has it, as kernel number; or nil
	number  int

	plan    *plan
	chunk   []byte
	made    chan struct{} // closed when the entry is complete, but for where its chunk is
	written chan struct{}
}

// Prepare returns a kernel that is to be added with its modules, whose names are distinct and in order. All of it must stay as it is
// until it has been made.
func Prepare(key kernel.Key, btf []byte, modules []Module) (*Kernel, error) {
	if err := btfa.CheckKey(key); err != nil {
		return nil, err
	}
	if len(btf) > limits.PartSize {
		return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of BTF"}
	}
	k := &Kernel{
		entry: Entry{Key: key, Size: int64(len(btf)), Sum: sha256.Sum256(btf), Modules: len(modules), parent: -1, modulesFrom: -1, extrasFrom: -1},
		btf:   btf, modules: modules, made: make(chan struct{}), written: make(chan struct{}),
	}
	if len(modules) > 0 {
		sum, size, err := sumModules(modules)
		if err != nil {
			return nil, err
		}
		if size > limits.PartSize {
			return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
		}
		k.entry.ModulesSum, k.entry.modules = sum, size
	}
	return k, nil
}

// From says that the kernel, with its modules and extras, is number i of a file. If that is the file that the first kernel is from, and what the kernel is told
// from was copied, its chunk is copied as it is.
func (k *Kernel) From(f *File, i int) { k.from, k.number = f, i }

// Made says what made the BTF of the kernel's DWARF.
func (k *Kernel) Made(m Made) { k.entry.Made = m }

// Len is how many kernels there are.
func (w *Writer) Len() int { return len(w.plans) }

// entry is the entry of a kernel that is read again.
func (w *Writer) entry(ctx context.Context, i int) (*Entry, error) {
	w.mu.Lock()
	p := w.plans[i]
	w.mu.Unlock()
	if p.job != nil {
		if err := wait(ctx, p.job.written); err != nil {
			return nil, err
		}
	}
	return p.entry(), nil
}

func wait(ctx context.Context, done chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish notes that a kernel has been made, and writes it, and those behind it that had to wait for it.
func (w *Writer) finish(k *Kernel, chunk []byte) error {
	k.btf, k.modules, k.lines, k.chunk = nil, nil, nil, chunk
	close(k.made)
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; w.written < len(w.plans); w.written++ {
		k := w.plans[w.written].job
		select {
		case <-k.made:
		default:
			return nil
		}
		k.entry.offset = w.end
		if _, err := w.spool.WriteAt(k.chunk, w.end-w.base()); err != nil {
			return err
		}
		w.end += int64(len(k.chunk))
		k.chunk = nil
		close(k.written)
		<-w.room
	}
	return nil
}

// WriteTo writes the file. Nothing may be added then, and all that was planned must have been made.
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
	put(io.NewSectionReader(w.spool, 0, w.end-w.base()))
	if err != nil {
		return n, err
	}
	entries := make([]Entry, len(w.plans))
	for i, p := range w.plans {
		entries[i] = *p.entry()
	}
	plain := appendIndex(nil, entries)
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

// Discard gives up what the writer takes.
func (w *Writer) Discard() {
	w.spool.Close()
	os.Remove(w.spool.Name()) // where it had to keep its name
}
