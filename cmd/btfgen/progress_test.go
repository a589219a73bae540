// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/walk"
)

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
