// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"slices"
	"sync"
)

// ledger keeps findings, and lists of them, once each: most kernels have the
// same. It is safe for use by many goroutines.
type ledger struct {
	mu    sync.Mutex
	all   []Finding
	at    map[Finding]int32
	lists map[string][]int32 // by content
}

func newLedger() *ledger {
	return &ledger{at: make(map[Finding]int32), lists: make(map[string][]int32)}
}

// note returns the numbers of findings, as a list that must not be changed.
func (l *ledger) note(findings []Finding) []int32 {
	if len(findings) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]int32, len(findings))
	key := make([]byte, 0, 4*len(findings))
	for i, f := range findings {
		n, ok := l.at[f]
		if !ok {
			n = int32(len(l.all))
			l.at[f] = n
			l.all = append(l.all, f)
		}
		list[i] = n
		key = binary.NativeEndian.AppendUint32(key, uint32(n))
	}
	if known, ok := l.lists[string(key)]; ok {
		return known
	}
	l.lists[string(key)] = list
	return list
}

// read appends the findings of a list.
func (l *ledger) read(to []Finding, list []int32) []Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	to = slices.Grow(to, len(list))
	for _, n := range list {
		to = append(to, l.all[n])
	}
	return to
}
