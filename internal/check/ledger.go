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

	numbered [][]int32 // those that have a number
	numbers  map[*int32]int32
}

func newLedger() *ledger {
	return &ledger{at: make(map[Finding]int32), lists: make(map[string][]int32), numbered: make([][]int32, 1), numbers: make(map[*int32]int32)}
}

// note returns the numbers of findings, as [ledger.intern] does.
func (l *ledger) note(findings []Finding) []int32 {
	if len(findings) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]int32, len(findings))
	for i, f := range findings {
		list[i] = l.numberOf(f)
	}
	return l.keep(list)
}

// one returns the number of a finding.
func (l *ledger) one(f Finding) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numberOf(f)
}

// numberOf is for holders of l.mu.
func (l *ledger) numberOf(f Finding) int32 {
	n, ok := l.at[f]
	if !ok {
		n = int32(len(l.all))
		l.at[f] = n
		l.all = append(l.all, f)
	}
	return n
}

// intern returns a list of numbers that must not be changed. Equal lists are the
// same.
func (l *ledger) intern(list []int32) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keep(list)
}

func (l *ledger) keep(list []int32) []int32 {
	if len(list) == 0 {
		return nil
	}
	key := make([]byte, 0, 4*len(list))
	for _, n := range list {
		key = binary.NativeEndian.AppendUint32(key, uint32(n))
	}
	known, ok := l.lists[string(key)]
	if !ok {
		known = slices.Clip(list)
		l.lists[string(key)] = known
	}
	return known
}

// number returns a number for a list of intern's, which takes less memory; 0 for
// one of nothing.
func (l *ledger) number(list []int32) int32 {
	if len(list) == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.numbers[&list[0]]
	if !ok {
		n = int32(len(l.numbered))
		l.numbers[&list[0]] = n
		l.numbered = append(l.numbered, list)
	}
	return n
}

// list returns the list that has a number.
func (l *ledger) list(n int32) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numbered[n]
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
