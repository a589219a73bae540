// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Writer writes a new file, or adds kernels to an existing one. The same kernels in the same order give the same bytes.
//
// A kernel is added in three steps. Prepare looks at it alone. Plan chooses its place in the file and its parent. Make encodes it
// once its parent has been made. Prepare and Make are safe for concurrent use, Plan is for one goroutine at a time.
type Writer struct {
	spool    *os.File // the chunks, in the order in which they were made
	file     *File    // reads them
	encoders chan *zstd.Encoder

	at     map[kernel.Key]int // kernels by canonical key
	series map[kernel.Key]*series
	likes  [][]*series    // those whose first kernels have the same sketch, in the order of these
	likeOf map[Sketch]int // the numbers of sketches in likes
	alike  sketches       // the same sketches, with these numbers
	same   map[Sum]int    // the first kernel with this BTF

	packages []Package

	mu  sync.Mutex
	end int64 // where the next chunk goes

	known      func() *known
	knownChunk chunkID // the chunk that known indexes
}

// NewWriter returns a writer that adds to old, which may be nil. Until WriteTo, kernels are kept in a nameless file in dir. The
// caller must call Discard.
func NewWriter(old *File, dir string) (*Writer, error) {
	spool, err := output.Nameless(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		spool: spool, file: newFile(spool, nil), encoders: newEncoders(),
		at: make(map[kernel.Key]int), series: make(map[kernel.Key]*series), likeOf: make(map[Sketch]int), same: make(map[Sum]int),
	}
	if old != nil {
		if w.end, err = io.Copy(spool, io.NewSectionReader(old.reader, 0, old.end)); err != nil {
			w.Discard()
			return nil, err
		}
		w.packages = slices.Clone(old.packages)
		for _, e := range old.entries {
			w.append(e)
		}
	}
	return w, nil
}

// ErrOther says that the file has a kernel of the same key with other content.
var ErrOther = errors.New("another kernel has its key")

// Input is a kernel for Prepare. The names of the modules are distinct and sorted.
type Input struct {
	Key     kernel.Key
	BTF     []byte
	Modules []Module
	Extras  Extras
	Made    Made   // the maker of BTF, if that was made of DWARF
	Shape   Shape  // shape of BTF, stored in the index
	OwnBTF  OwnBTF // stored in the index
}

// Kernel is a kernel to be added.
type Kernel struct {
	Input
	entry  *Entry // complete when its made is closed
	number int    // index in the file, set by Plan
	btf    *state // once that is encoded; the cache may forget it
}

// Prepare returns a kernel to be added. All of it must not change until the kernel has been made.
func Prepare(in Input) (*Kernel, error) {
	if err := btfa.CheckKey(in.Key); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", btfa.KeyName(in.Key), err)
	}
	if len(in.BTF) > limits.PartSize {
		return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of BTF"}
	}
	if err := in.Extras.check(); err != nil {
		return nil, err
	}
	e := &Entry{
		Key: in.Key, Size: int64(len(in.BTF)), Sum: sha256.Sum256(in.BTF),
		Made: in.Made, Shape: in.Shape, OwnBTF: in.OwnBTF, Modules: len(in.Modules),
		Config: int64(len(in.Extras.Config)), Symbols: int64(len(in.Extras.Symbols)), made: make(chan struct{}),
	}
	if len(in.Modules) > 0 {
		var size int64
		var err error
		if e.ModulesSum, size, err = sumModules(in.Modules); err != nil {
			return nil, err
		}
		if size > limits.PartSize {
			return nil, &limits.Exceeded{Max: limits.PartSize, What: "bytes of modules"}
		}
		for _, m := range in.Modules {
			e.ModulesSize += int64(len(m.BTF))
		}
	}
	return &Kernel{Input: in, entry: e}, nil
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
	for _, text := range [][]byte{x.Config, x.Symbols} {
		if len(text) > 0 && text[len(text)-1] != '\n' {
			return errors.New("configuration or symbols: the last line has no end")
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return errors.New("configuration or symbols: a NUL byte")
		}
	}
	return nil
}

// Lacks reports whether the file has the kernel without configuration or symbols that k has.
func (w *Writer) Lacks(k *Kernel) bool {
	i, ok := w.at[k.Key.Canonical()]
	return ok && (w.file.entries[i].Config == 0 && k.entry.Config > 0 || w.file.entries[i].Symbols == 0 && k.entry.Symbols > 0)
}

// Len returns the number of kernels.
func (w *Writer) Len() int { return len(w.file.entries) }

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

// finish writes the chunks of a kernel.
func (w *Writer) finish(e *Entry, chunks []byte) error {
	w.mu.Lock()
	at := w.end
	w.end += int64(len(chunks))
	w.mu.Unlock()
	if _, err := w.spool.WriteAt(chunks, at); err != nil {
		return err
	}
	e.setOffset(at)
	close(e.made)
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
	for _, e := range w.file.entries {
		put(io.NewSectionReader(w.spool, e.Chunks[partBTF].offset, e.Packed()))
	}
	if err != nil {
		return n, err
	}
	plain, err := appendIndex(w.file.entries, w.packages)
	if err != nil {
		return n, err
	}
	if len(plain) > limits.CorpusIndex {
		return n, &limits.Exceeded{Max: limits.CorpusIndex, What: "bytes of the index"}
	}
	index, size, err := w.pack(plain)
	if err != nil {
		return n, err
	}
	put(bytes.NewReader(index))
	foot := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(len(index))), uint64(size))
	sum := sha256.Sum256(index)
	put(bytes.NewReader(slices.Concat(foot, sum[:], []byte(endMark))))
	return n, err
}

// Discard releases the resources of the writer.
func (w *Writer) Discard() {
	w.spool.Close()
	os.Remove(w.spool.Name()) // where it had to keep its name
}

// sumModules returns the SHA-256 of the names and sizes of modules and of their BTF, and how many bytes these are.
func sumModules(modules []Module) (sum Sum, size int64, err error) {
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
