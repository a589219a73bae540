// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// memo caches results by a key and by the part of the input on which they depend.
// It is safe for use by many goroutines.
type memo[K comparable, V any] struct {
	mu       sync.Mutex
	keys     map[K]int32 // places in variants
	variants [][]int32   // places in relevant
	places   map[string]int32
	relevant []interp.Relevant
	known    map[answer]V
}

// answer identifies a result: its key, which input is relevant, and that input.
type answer struct {
	key      int32
	relevant int32
	values   string // of appendRelevant
}

// find returns the cached result for a key and an input.
func (m *memo[K, V]) find(key K, in *input) (v V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[key]
	if !ok {
		return v, false
	}
	for _, i := range m.variants[k] {
		if v, ok = m.known[answer{k, i, string(in.appendRelevant(nil, m.relevant[i]))}]; ok {
			break
		}
	}
	return v, ok
}

// add caches the result for a key and an input.
func (m *memo[K, V]) add(key K, r interp.Relevant, in *input, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.keys, m.places, m.known = make(map[K]int32), make(map[string]int32), make(map[answer]V)
	}
	k, ok := m.keys[key]
	if !ok {
		k = int32(len(m.variants))
		m.keys[key] = k
		m.variants = append(m.variants, nil)
	}
	content := fmt.Append(nil, r.Features)
	for _, n := range r.Records {
		content = binary.AppendUvarint(content, uint64(n))
	}
	i, ok := m.places[string(content)]
	if !ok {
		i = int32(len(m.relevant))
		m.places[string(content)] = i
		m.relevant = append(m.relevant, r)
	}
	if !slices.Contains(m.variants[k], i) {
		m.variants[k] = append(m.variants[k], i)
	}
	m.known[answer{k, i, string(in.appendRelevant(nil, r))}] = v
}

// input is what results may depend on, except for what is in their keys.
type input struct {
	features interp.Features
	value    func(record int) uint64 // that the loader writes
}

// appendRelevant appends the relevant part of the input.
func (in *input) appendRelevant(b []byte, r interp.Relevant) []byte {
	f := in.features.Of(r.Features)
	for _, yes := range []bool{f.Rodata, f.Partial, f.Narrow, f.StImm, f.Globals, f.LazyGlobals, f.Ranges, f.Unequal} {
		b = append(b, 0)
		if yes {
			b[len(b)-1] = 1
		}
	}
	for _, n := range r.Records {
		b = binary.AppendUvarint(b, in.value(int(n)))
	}
	return b
}

// results caches the results for code. It is safe for use by many goroutines.
type results struct {
	programs memo[programKey, code]
	units    memo[unitKey, *interp.Unit]

	mu   sync.Mutex
	keys map[[sha256.Size]byte]uint32 // numbers, from 1
}

// number returns the number of some bytes, by their hash.
func (k *results) number(of []byte) uint32 {
	hash := sha256.Sum256(of)
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.keys[hash]
	if !ok {
		if k.keys == nil {
			k.keys = make(map[[sha256.Size]byte]uint32)
		}
		n = uint32(len(k.keys) + 1)
		k.keys[hash] = n
	}
	return n
}

// programKey identifies the input of the findings on a program's code, without what an
// exploration finds relevant, so that kernels share explorations.
type programKey struct {
	o     *bpfobj.Object
	fn    int
	kind  uint32 // number of what programs of its kind must not do, and of whether bounds are judged; 0 for nothing
	funcs string // numbers of the keys of its functions
}

// code is the result for the code of a program.
type code struct {
	findings list
	work     int // of exploring it
}

// unitKey is a programKey for parts of explorations that programs share.
type unitKey struct {
	o       *bpfobj.Object // of from.Fn
	code    uint32         // number of the keys of the function and its callees
	from    interp.Entry
	precise bool
}

// sharedUnits are the units of a program's twin on one kernel.
type sharedUnits struct {
	*evaluation
	*twin
}

func (s sharedUnits) key(from interp.Entry) (k unitKey, ok bool) {
	n := s.codeOf(mapped(s.ours, bpfobj.Site{Fn: from.Fn}).Fn).calls
	return unitKey{s.twin.o, n, from, s.precise}, n != 0
}

func (s sharedUnits) input() *input {
	return &input{s.k.features, func(n int) uint64 { return s.loader[s.record(s.evaluation.o.Object, n)].New }}
}

// Find returns what Add was given for equal input.
func (s sharedUnits) Find(from interp.Entry) *interp.Unit {
	key, ok := s.key(from)
	if !ok {
		return nil
	}
	u, _ := s.results.units.find(key, s.input())
	return u
}

// Add caches the result for a function.
func (s sharedUnits) Add(from interp.Entry, u *interp.Unit) {
	if key, ok := s.key(from); ok {
		s.results.units.add(key, u.Relevant(), s.input(), u)
	}
}
