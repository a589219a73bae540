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

// progress tells how far a run is: by a bar on a terminal, by a line now and
// then elsewhere.
type progress struct {
	w   io.Writer
	bar *pb.ProgressBar // nil where there is no terminal

	mu       sync.Mutex
	start    time.Time
	last     time.Duration // when a line was printed
	far      walk.Progress
	estimate estimate
}

// barTemplate is what a terminal shows: kernels 12 / 100 [---->____] 12.00% 5/s 20s left
const barTemplate = `{{string . "what"}} {{counters .}} {{bar .}} {{percent .}} {{speed . "%s/s" "?/s"}} {{string . "left"}}`

// every is the time between two lines.
const every = 30 * time.Second

// newProgress shows the progress of n files on standard error, nothing if the command is to be quiet.
func newProgress(c *cli.Context, n int) *progress {
	w := c.App.ErrWriter
	if found(c).quiet {
		w = io.Discard
	}
	p := &progress{w: w, start: time.Now(), far: walk.Progress{All: n}}
	if isTerminal(w) && n > 1 {
		p.bar = pb.New(n)
		p.bar.SetTemplateString(barTemplate).Set("what", "kernels").Set(pb.CleanOnFinish, true)
		p.bar.SetWriter(w).SetRefreshRate(100 * time.Millisecond).Start()
	}
	return p
}

// set tells how far the run is.
func (p *progress) set(far walk.Progress) { p.at(time.Since(p.start), far) }

// at is set at some time after the start.
func (p *progress) at(now time.Duration, far walk.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = far
	left, known := p.estimate.left(now, far.Work)
	if p.bar != nil {
		p.bar.SetTotal(int64(far.All)).SetCurrent(int64(far.Done))
		if far.Skipped > 0 {
			p.bar.Set("what", fmt.Sprintf("kernels (%d left out)", far.Skipped))
		}
		p.bar.Set("left", "")
		if known {
			p.bar.Set("left", roughly(left)+" left")
		}
		return
	}
	if now-p.last >= every && far.Done < far.All {
		p.last = now
		line := fmt.Sprintf("%s, %d left out, %.1f/s", p.text(), far.Skipped, float64(far.Done)/now.Seconds())
		if known {
			line += ", " + roughly(left) + " left"
		}
		escape.Fprintf(p.w, "btfgen: %s\n", line)
	}
}

func (p *progress) text() string { return fmt.Sprintf("%d of %d files done", p.far.Done, p.far.All) }

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
