// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// ledger keeps findings, and lists of them, once each: most kernels have the
// same. It is safe for use by many goroutines.
type ledger struct {
	mu      sync.Mutex
	all     []rule.Finding
	at      map[rule.Finding]int32
	lists   [][]int32
	numbers map[string]list // keyed by content
}

// list is the number of a list in a ledger. Equal lists have one number; 0 is empty.
type list int32

func newLedger() *ledger {
	return &ledger{at: make(map[rule.Finding]int32), lists: make([][]int32, 1), numbers: make(map[string]list)}
}

// note returns the list of findings.
func (l *ledger) note(findings []rule.Finding) list {
	var numbers []int32
	for _, f := range findings {
		numbers = append(numbers, l.number(f))
	}
	return l.keep(numbers)
}

// number returns the number of a finding.
func (l *ledger) number(f rule.Finding) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.at[f]
	if !ok {
		n = int32(len(l.all))
		l.at[f] = n
		l.all = append(l.all, f)
	}
	return n
}

// keep returns the list with these numbers, of findings or of other lists.
func (l *ledger) keep(numbers []int32) list {
	if len(numbers) == 0 {
		return 0
	}
	key := make([]byte, 0, 4*len(numbers))
	for _, n := range numbers {
		key = binary.NativeEndian.AppendUint32(key, uint32(n))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.numbers[string(key)]
	if !ok {
		n = list(len(l.lists))
		l.numbers[string(key)] = n
		l.lists = append(l.lists, slices.Clip(numbers))
	}
	return n
}

// of returns the numbers in a list, which must not be changed.
func (l *ledger) of(n list) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists[n]
}

// read returns the findings of a list.
func (l *ledger) read(n list) (findings []rule.Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.lists[n] {
		findings = append(findings, l.all[f])
	}
	return findings
}
