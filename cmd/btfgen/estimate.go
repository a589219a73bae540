// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// estimate tells how long a run still takes, by the part of the work that is done.
// Kernels are not alike: the first of a kind take longest, and large ones come first. So it
// goes by the last quarter of the time so far, and says nothing unless both halves of
// that were about as fast.
type estimate struct {
	seen        []sample
	first, then int // in seen: where the halves of the last quarter begin
}

// sample is the work done after some time.
type sample struct {
	at   time.Duration
	work float64
}

// What an estimate needs.
const (
	estimateFrom    = 3 * time.Second // from the start
	estimateSamples = 8
	estimateApart   = 1.3 // the halves may differ by this factor
)

// left returns how long the run still takes, false where that cannot be said.
func (e *estimate) left(now time.Duration, work float64) (time.Duration, bool) {
	e.seen = append(e.seen, sample{now, work})
	last := func(i int, by time.Duration) int {
		for i+1 < len(e.seen) && e.seen[i+1].at <= by {
			i++
		}
		return i
	}
	e.first, e.then = last(e.first, now/8*6), last(e.then, now/8*7)
	if now < estimateFrom || len(e.seen) < estimateSamples || e.first == e.then || e.then == len(e.seen)-1 {
		return 0, false
	}
	a, b := e.seen[e.first], e.seen[e.then]
	one, two := (b.work-a.work)/(b.at-a.at).Seconds(), (work-b.work)/(now-b.at).Seconds()
	if one <= 0 || two <= 0 || max(one, two) > estimateApart*min(one, two) {
		return 0, false
	}
	speed := (work - a.work) / (now - a.at).Seconds()
	return time.Duration((1 - work) / speed * float64(time.Second)), true
}

// roughly prints a time as exactly as it is known: 7s, 40s, 3m, 1h20m.
func roughly(d time.Duration) string {
	unit := time.Second
	switch {
	case d >= time.Hour:
		unit = 10 * time.Minute
	case d >= 2*time.Minute:
		unit = time.Minute
	case d >= 10*time.Second:
		unit = 10 * time.Second
	}
	s := d.Round(unit).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(s) - len(zero) + 1; n > 0 && s[n-1:] == zero {
			s = s[:n]
		}
	}
	return s
}
