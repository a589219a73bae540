// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// memo caches results by a key and by the part of the input on which they depend.
// It is safe for use by many goroutines.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K][]memoVariant[V]
}

// memoVariant is the results of a key for which the same input is relevant.
type memoVariant[V any] struct {
	relevant interp.Relevant
	results  map[answer]V
}

// answer is the relevant part of an input.
type answer struct {
	features interp.Features
	values   string
}

// memoInput is what results may depend on, except for what is in their keys.
type memoInput struct {
	features interp.Features
	value    func(record int) uint64 // value that the loader writes for a record
}

func (in *memoInput) answer(r interp.Relevant) answer {
	var b []byte
	for _, n := range r.Records {
		b = binary.AppendUvarint(b, in.value(int(n)))
	}
	return answer{in.features & r.Features, string(b)}
}

// find returns the cached result for a key and an input.
func (m *memo[K, V]) find(key K, in *memoInput) (v V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.known[key] {
		if v, ok = x.results[in.answer(x.relevant)]; ok {
			break
		}
	}
	return v, ok
}

// add caches the result for a key and an input.
func (m *memo[K, V]) add(key K, r interp.Relevant, in *memoInput, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = make(map[K][]memoVariant[V])
	}
	l := m.known[key]
	i := slices.IndexFunc(l, func(x memoVariant[V]) bool {
		return x.relevant.Features == r.Features && slices.Equal(x.relevant.Records, r.Records)
	})
	if i < 0 {
		i = len(l)
		l = append(l, memoVariant[V]{r, make(map[answer]V)})
		m.known[key] = l
	}
	l[i].results[in.answer(r)] = v
}

// results caches the results for code. It is safe for use by many goroutines.
type results struct {
	programs  memo[programKey, codeFindings]
	summaries memo[summaryKey, *interp.Summary]

	mu   sync.Mutex
	keys map[[sha256.Size]byte]uint32 // numbers from 1 on, keyed by hash
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
	object *bpfobj.Code
	fn     int
	kind   uint32 // number of the rules for programs of its kind; 0 for none
	funcs  string // numbers of the keys of its functions
}

// codeFindings is the result for the code of a program.
type codeFindings struct {
	findings list
	work     int // work of exploring the program
}

// summaryKey is a programKey for parts of explorations that programs share.
type summaryKey struct {
	object  *bpfobj.Code // code of from.Fn
	code    uint32       // number of the keys of the function and its callees
	from    interp.Entry
	precise bool
}

// sharedSummaries are the summaries of an object on one kernel. They hold no object or kernel: what an interface holds is kept with all
// methods of its parts, for reflection.
type sharedSummaries struct {
	known *memo[summaryKey, *interp.Summary]
	input *memoInput
	key   func(from interp.Entry) (key summaryKey, ok bool)
}

func (c *objectCode) sharedSummaries(precise bool) *sharedSummaries {
	return &sharedSummaries{&c.results.summaries, c.input, func(from interp.Entry) (summaryKey, bool) {
		n := c.codeOf(from.Fn).calls
		return summaryKey{c.object.Code, n, from, precise}, n != 0
	}}
}

// Find returns what Add was given for equal input.
func (s *sharedSummaries) Find(from interp.Entry) *interp.Summary {
	key, ok := s.key(from)
	if !ok {
		return nil
	}
	sum, _ := s.known.find(key, s.input)
	return sum
}

// Add caches the result for a function.
func (s *sharedSummaries) Add(from interp.Entry, sum *interp.Summary) {
	if key, ok := s.key(from); ok {
		s.known.add(key, sum.Relevant(), s.input, sum)
	}
}
