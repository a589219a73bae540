// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
)

// memo knows what the code of one program came to on the kernels so far. It is
// safe for use by many goroutines.
type memo struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte][]*variant // by codeKey
}

// variant is what the code came to where the values of the same records counted.
type variant struct {
	records []int
	codes   map[string]code // by these values
}

// code is what the code of a program comes to.
type code struct {
	findings []int32 // in the ledger
	records  []int   // whose values count, ascending
	work     int     // of exploring it
}

// find returns what the code comes to with a codeKey and the values of records.
func (m *memo) find(key [sha256.Size]byte, d decisions) (code, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.known[key] {
		if c, ok := v.codes[d.values(v.records)]; ok {
			return c, true
		}
	}
	return code{}, false
}

// add notes what the code comes to.
func (m *memo) add(key [sha256.Size]byte, d decisions, c code) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = make(map[[sha256.Size]byte][]*variant)
	}
	i := slices.IndexFunc(m.known[key], func(v *variant) bool { return slices.Equal(v.records, c.records) })
	if i < 0 {
		i = len(m.known[key])
		m.known[key] = append(m.known[key], &variant{c.records, make(map[string]code)})
	}
	v := m.known[key][i]
	c.records = v.records
	v.codes[d.values(v.records)] = c
}

// values are what the loader writes for some records.
func (d decisions) values(records []int) string {
	b := make([]byte, 0, 4*len(records))
	for _, r := range records {
		b = binary.AppendUvarint(b, d[r].New)
	}
	return string(b)
}
