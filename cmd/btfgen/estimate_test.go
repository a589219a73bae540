// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/walk"
)

// TestEstimate runs with files that take differently long, and compares what is said with what comes.
func TestEstimate(t *testing.T) {
	const files = 400
	for name, takes := range map[string]func(i int) float64{ // seconds
		"alike":              func(int) float64 { return 0.1 },
		"the first are slow": func(i int) float64 { return 0.05 + max(0, 1-float64(i/30)) },
		"by turns":           func(i int) float64 { return 0.05 + 0.2*float64(i%4/3) },
	} {
		all := 0.0
		for i := range files {
			all += takes(i)
		}
		var e estimate
		said, near, at := 0, 0, 0.0
		for i := range files - 1 {
			at += takes(i)
			left, ok := e.left(time.Duration(at*float64(time.Second)), float64(i+1)/files)
			if !ok {
				continue
			}
			if at < estimateFrom.Seconds() {
				t.Errorf("%s: something is said after %.1f s", name, at)
			}
			if said++; math.Abs(left.Seconds()-(all-at)) <= 0.4*(all-at)+1 {
				near++
			}
		}
		t.Logf("%s: of %d files an estimate after %d, right after %d", name, files, said, near)
		if said < files/5 || near < said*8/10 {
			t.Errorf("%s: an estimate after %d files, right after %d", name, said, near)
		}
	}
}

// TestEstimateOfNothing wants none of what does not go on, and of what has hardly begun.
func TestEstimateOfNothing(t *testing.T) {
	var e estimate
	for i := range 100 {
		if left, ok := e.left(time.Duration(i)*time.Second, 0); ok {
			t.Errorf("%v left of a run that does nothing", left)
		}
	}
	e = estimate{}
	if left, ok := e.left(time.Minute, 0.5); ok {
		t.Errorf("%v left after one file", left)
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 7400 * time.Millisecond: "7s", 44 * time.Second: "40s", 60 * time.Second: "1m", 100 * time.Second: "1m40s",
		190 * time.Second: "3m", time.Hour: "1h", 80 * time.Minute: "1h20m", 600 * time.Second: "10m",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestProgressLines wants a line every half minute, with an estimate only where there is one.
func TestProgressLines(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b}
	for i := range 100 {
		p.at(time.Duration(i+1)*time.Second, walk.Progress{Done: i + 1, All: 100, Skipped: 1, Work: float64(i+1) / 100})
	}
	want := "btfgen: 30 of 100 files done, 1 left out, 1.0/s, 1m10s left\n" +
		"btfgen: 60 of 100 files done, 1 left out, 1.0/s, 40s left\n" +
		"btfgen: 90 of 100 files done, 1 left out, 1.0/s, 10s left\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}
