// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/job/store"
)

// A download has bytes, a rate and the time left.
func TestProgressTransfer(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b}
	const mb = 1_000_000
	for i := range 100 { // the tenth second and later
		p.transferAt(time.Duration(i+10)*time.Second, store.FetchProgress{Done: i / 50, All: 2, Bytes: int64(i) * 2 * mb, Size: 200 * mb, Package: "linux-image"})
	}
	p.transferAt(200*time.Second, store.FetchProgress{Done: 2, All: 2, Bytes: 200 * mb, Size: 200 * mb})
	want := "btfgen: 0 of 2 kernels, 40.0 MB of 200.0 MB, 2.0 MB/s, about 1m20s left, at linux-image\n" +
		"btfgen: 1 of 2 kernels, 100.0 MB of 200.0 MB, 2.0 MB/s, about 50s left, at linux-image\n" +
		"btfgen: 1 of 2 kernels, 160.0 MB of 200.0 MB, 2.0 MB/s, about 20s left, at linux-image\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}

// Without a terminal, a line is printed every half minute.
func TestProgressLines(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b}
	for i := range 100 {
		if i == 50 {
			p.doing("probe.bpf.o:on_open")
		}
		p.at(time.Duration(i+1)*time.Second, walk.Progress{Done: i + 1, All: 100, Skipped: 1})
	}
	want := "btfgen: 30 of 100 files done, 1 left out, about 1m10s left\n" +
		"btfgen: 60 of 100 files done, 1 left out, about 40s left, at probe.bpf.o:on_open\n" +
		"btfgen: 90 of 100 files done, 1 left out, about 10s left, at probe.bpf.o:on_open\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}

// The first kernels take longest. A guess counts those done last, and there is none of few.
func TestProgressGuess(t *testing.T) {
	var b strings.Builder
	p := &progress{w: &b}
	now := time.Duration(0)
	for i := range 100 {
		if now += time.Second; i < 10 {
			now += 9 * time.Second
		}
		p.at(now, walk.Progress{Done: i + 1, All: 100})
	}
	want := "btfgen: 3 of 100 files done, 0 left out\n" +
		"btfgen: 6 of 100 files done, 0 left out, about 15m40s left\n" +
		"btfgen: 9 of 100 files done, 0 left out, about 15m10s left\n" +
		"btfgen: 30 of 100 files done, 0 left out, about 1m10s left\n" +
		"btfgen: 60 of 100 files done, 0 left out, about 40s left\n" +
		"btfgen: 90 of 100 files done, 0 left out, about 10s left\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}
