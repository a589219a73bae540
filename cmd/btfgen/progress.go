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

	"github.com/btfgen/btfgen/internal/foreign"
)

// progress tells how far a run is: by a bar on a terminal, by a line now and
// then elsewhere.
type progress struct {
	w   io.Writer
	bar *pb.ProgressBar // nil where there is no terminal

	mu                 sync.Mutex
	start, last        time.Time
	done, all, skipped int
}

// barTemplate is what a terminal shows: kernels 12 / 100 [---->____] 12.00% 5/s 17s left
const barTemplate = `{{string . "what"}} {{counters .}} {{bar .}} {{percent .}} {{speed . "%s/s" "?/s"}} {{rtime . "%s left" "%s" ""}}`

// every is the time between two lines.
const every = 30 * time.Second

// newProgress shows the progress of n files on standard error, nothing if the command is to be quiet.
func newProgress(c *cli.Context, n int) *progress {
	w := c.App.ErrWriter
	if found(c).quiet {
		w = io.Discard
	}
	now := time.Now()
	p := &progress{w: w, start: now, last: now, all: n}
	if isTerminal(w) && n > 1 {
		p.bar = pb.New(n)
		p.bar.SetTemplateString(barTemplate).Set("what", "kernels").Set(pb.CleanOnFinish, true)
		p.bar.SetWriter(w).SetRefreshRate(100 * time.Millisecond).Start()
	}
	return p
}

// set tells that so many of all files are done.
func (p *progress) set(done, all int) { p.update(done, all, 0) }

// update is set for those who know how many things were skipped so far.
func (p *progress) update(done, all, skipped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.all, p.skipped = done, all, skipped
	if p.bar != nil {
		p.bar.SetTotal(int64(all)).SetCurrent(int64(done))
		if skipped > 0 {
			p.bar.Set("what", fmt.Sprintf("kernels (%d left out)", skipped))
		}
		return
	}
	if now := time.Now(); now.Sub(p.last) >= every && done < all {
		p.last = now
		rate := float64(done) / now.Sub(p.start).Seconds()
		left := time.Duration(float64(all-done) / rate * float64(time.Second))
		foreign.Fprintf(p.w, "btfgen: %s, %d left out, %.1f/s, %s left\n", p.text(), skipped, rate, left.Round(time.Second))
	}
}

func (p *progress) text() string { return fmt.Sprintf("%d of %d files done", p.done, p.all) }

// String says how far it is.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text()
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
