// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cheggaaa/pb/v3"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// progress shows how far a run is: a bar on a terminal, else a line every half minute.
type progress struct {
	w   io.Writer
	bar *pb.ProgressBar // nil without a terminal

	mu    sync.Mutex
	start time.Time
	last  time.Duration // when a line was printed
	now   string        // what is being done, if that is known
}

// barTemplate shows: kernels 12 / 100 [---->____] 12.00% 20s left probe.bpf.o:on_open
const barTemplate = `{{string . "what"}} {{counters .}} {{bar .}} {{percent .}} {{rtime . "%s left" "" ""}}{{string . "now"}}`

// every is the time between two lines.
const every = 30 * time.Second

// newProgress shows the progress of n files on standard error, unless --quiet or --brief is set.
func newProgress(c *cli.Context, n int) *progress {
	w := progressWriter(c)
	p := &progress{w: w, start: time.Now()}
	if n > 1 {
		p.show(n)
	}
	return p
}

// show starts the bar if there is a terminal.
func (p *progress) show(n int) {
	if p.bar == nil && isTerminal(p.w) {
		p.bar = pb.New(n)
		p.bar.SetTemplateString(barTemplate).Set("what", "kernels").Set(pb.CleanOnFinish, true)
		p.bar.SetWriter(p.w).SetRefreshRate(100 * time.Millisecond).Start()
	}
}

func progressWriter(c *cli.Context) io.Writer {
	if found(c).quiet {
		return io.Discard
	}
	return c.App.ErrWriter
}

func (p *progress) set(state walk.Progress) { p.at(time.Since(p.start), state) }

// at is set at a time after the start.
func (p *progress) at(now time.Duration, state walk.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.SetTotal(int64(state.All)).SetCurrent(int64(state.Done))
		if state.Skipped > 0 {
			p.bar.Set("what", fmt.Sprintf("kernels (%d left out)", state.Skipped))
		}
	} else if now-p.last >= every && 0 < state.Done && state.Done < state.All {
		p.last = now
		left := time.Duration(float64(now) / float64(state.Done) * float64(state.All-state.Done))
		escape.Fprintf(p.w, "btfgen: %d of %d files done, %d left out, about %s left%s\n", state.Done, state.All, state.Skipped, left.Round(time.Second), p.now)
	}
}

// doing notes what is being done. The bar shows it, and a line says it.
func (p *progress) doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if runes := []rune(what); len(runes) > 50 {
		what = string(runes[:49]) + "…"
	}
	p.now = ", at " + what
	if time.Since(p.start) > time.Second {
		p.show(1)
	}
	if p.bar != nil {
		p.bar.Set("now", string(escape.Sprintf(" %s", what)))
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
