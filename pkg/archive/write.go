package archive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Info says who made an archive of what.
type Info struct {
	Tool        string            // name and version of the program that wrote it
	Objects     []Object          // that the BTFs were minimized for, sorted by name
	Relocations [sha256.Size]byte // hash of the distinct relocations of all objects; zero if unknown
}

// Object is a BPF object that an archive serves.
type Object struct {
	Name string
	// Sum begins the sha256 of the object's file. An archive keeps SumSize bytes of it.
	Sum []byte
}

// SumSize is how many bytes of an object's sha256 an archive keeps: enough to
// tell builds apart, since all of them would take more room than the BTF.
const SumSize = 8

// NewObject returns the Object with this name and content.
func NewObject(name string, data []byte) Object {
	sum := sha256.Sum256(data)
	return Object{name, sum[:SumSize:SumSize]}
}

// Is reports whether data is the object, by its hash.
func (o Object) Is(data []byte) bool {
	sum := sha256.Sum256(data)
	return len(o.Sum) > 0 && bytes.HasPrefix(sum[:], o.Sum)
}

// String returns "name (sha256 0123456789abcdef…)".
func (o Object) String() string { return o.Name + " (sha256 " + hex.EncodeToString(o.Sum) + "…)" }

// Kernel is a kernel and its minimized BTF.
type Kernel struct {
	Key kernel.Key
	BTF []byte
}

// Write writes an archive of some kernels in any order. The BTFs must be what
// pkg/minimize emits: types that are not in its canonical order are refused,
// because they could not be had back byte for byte. That they can is checked
// here, for each. Equal inputs give equal bytes. Kernels with equal keys must
// have equal BTFs.
func Write(w io.Writer, info Info, kernels []Kernel) error {
	b, err := encode(info, kernels)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func encode(info Info, kernels []Kernel) ([]byte, error) {
	kernels, err := sortKernels(kernels)
	if err != nil {
		return nil, err
	}
	streams, of, err := encodeStreams(info, kernels)
	if err != nil {
		return nil, err
	}
	out, err := pack(streams)
	if err != nil {
		return nil, err
	}
	return out, verify(out, kernels, of)
}

// encodeStreams makes the streams for sorted kernels, and tells which layout
// each kernel has.
func encodeStreams(info Info, kernels []Kernel) (*[numStreams][]byte, []int, error) {
	layouts, of, err := distinctLayouts(kernels)
	if err != nil {
		return nil, nil, err
	}
	e := encoder{names: make(map[string]uint64)}
	if err := e.meta(info); err != nil {
		return nil, nil, err
	}
	e.kernels(kernels, of)
	p := newPool(layouts)
	e.pool(p)
	e.layouts(p)
	return &e.streams, of, nil
}

// stored is the form of a key that kernels are sorted by and stored as.
func stored(k kernel.Key) string {
	return k.ID + "/" + k.VersionID + "/" + k.Arch + "/" + k.Release
}

// sortKernels checks and sorts the kernels, and drops those that occur again.
func sortKernels(kernels []Kernel) ([]Kernel, error) {
	if len(kernels) > maxKernels {
		return nil, fmt.Errorf("%d kernels, more than %d", len(kernels), maxKernels)
	}
	seen := make(map[kernel.Key]int, len(kernels))
	var out []Kernel
	for _, k := range kernels {
		if err := checkKey(k.Key); err != nil {
			return nil, err
		}
		c := k.Key.Canonical()
		if i, ok := seen[c]; ok {
			if !bytes.Equal(out[i].BTF, k.BTF) {
				return nil, fmt.Errorf("kernel %s: two different BTFs", k.Key)
			}
			if stored(k.Key) < stored(out[i].Key) { // by an alias
				out[i].Key = k.Key
			}
			continue
		}
		seen[c] = len(out)
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Kernel) int { return cmp.Compare(stored(a.Key), stored(b.Key)) })
	return out, nil
}

// check returns an error if a kernel cannot be stored under the key.
func checkKey(k kernel.Key) error {
	if k.Release == "" {
		return fmt.Errorf("kernel %s: no release", k)
	}
	if err := k.Validate(); err != nil {
		return fmt.Errorf("kernel %s: %w", k, err)
	}
	return nil
}

// distinctLayouts returns the different BTFs in the order of the first kernel
// with each, and for each kernel which it has.
func distinctLayouts(kernels []Kernel) (layouts []layoutDefs, of []int, err error) {
	seen := make(map[[sha256.Size]byte]int)
	for _, k := range kernels {
		sum := sha256.Sum256(k.BTF)
		i, ok := seen[sum]
		if !ok {
			defs, order, err := define(k.BTF)
			if err != nil {
				return nil, nil, fmt.Errorf("kernel %s: %w", k.Key, err)
			}
			i = len(layouts)
			seen[sum] = i
			layouts = append(layouts, layoutDefs{defs, order == binary.BigEndian})
		}
		of = append(of, i)
	}
	return layouts, of, nil
}

var errNotCanonical = errors.New("BTF is not in the canonical form of minimized BTF")

// verify reads an archive back and compares.
func verify(out []byte, kernels []Kernel, of []int) error {
	a, err := Open(out)
	if err != nil {
		return fmt.Errorf("archive cannot be read back: %w", err)
	}
	if n := len(a.keys); n != len(kernels) {
		return fmt.Errorf("archive cannot be read back: %d kernels of %d", n, len(kernels))
	}
	next := 0
	for i, k := range kernels {
		if a.keys[i] != k.Key || a.layoutOf[i] != int32(of[i]) {
			return fmt.Errorf("kernel %s: is %s when read back", k.Key, a.keys[i])
		}
		if of[i] < next {
			continue
		}
		next = of[i] + 1
		b, err := a.layoutBTF(of[i])
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Key, err)
		}
		if !bytes.Equal(b, k.BTF) {
			return fmt.Errorf("kernel %s: %w", k.Key, errNotCanonical)
		}
	}
	return nil
}

// meta writes who made the archive of what.
func (e *encoder) meta(info Info) error {
	objects := slices.Clone(info.Objects)
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Sum, b.Sum))
	})
	objects = slices.CompactFunc(objects, func(a, b Object) bool { return a.Name == b.Name && bytes.Equal(a.Sum, b.Sum) })
	e.putString(streamMeta, info.Tool)
	e.put(streamMeta, uint64(len(objects)))
	texts := info.Tool
	for _, o := range objects {
		if len(o.Sum) < SumSize {
			return fmt.Errorf("object %s: hash of %d bytes, want %d", o.Name, len(o.Sum), SumSize)
		}
		texts += o.Name
		e.putString(streamMeta, o.Name)
	}
	if strings.IndexByte(texts, 0) >= 0 {
		return errors.New("name of the tool or of an object has a NUL byte")
	}
	e.put(streamMeta, SumSize)
	for _, o := range objects {
		e.streams[streamMeta] = append(e.streams[streamMeta], o.Sum[:SumSize]...)
	}
	e.streams[streamMeta] = append(e.streams[streamMeta], info.Relocations[:]...)
	return nil
}

// kernels writes keys, which are sorted: how much of the one before they
// share, which layout they have (0 is the next new one, 1 the newest, 2 the one
// before), and the rest of the text.
func (e *encoder) kernels(kernels []Kernel, of []int) {
	e.put(streamKernels, uint64(len(kernels)))
	last, layouts := "", 0
	for i, k := range kernels {
		s := stored(k.Key)
		n := 0
		for n < len(s) && n < len(last) && s[n] == last[n] {
			n++
		}
		e.put(streamKernels, uint64(n), uint64(layouts-of[i]))
		e.putString(streamKernels, s[n:])
		if of[i] == layouts {
			layouts++
		}
		last = s
	}
}
