// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// progress shows how far a run is: a line that changes on a terminal, else a line every half minute.
type progress struct {
	w     io.Writer
	width int // columns of the terminal, 0 if there is none
	start time.Time

	mu    sync.Mutex
	last  time.Duration // time of the last line, since start
	state walk.Progress
	now   string          // current object and program, "" if not known
	done  []time.Duration // done[n] is when n files were done, since start

	bytes, size int64         // bytes of a download, so far and in all; size is 0 if nothing is downloaded
	began       time.Duration // start of the download, since start
}

// The times between two lines, and between two changes on a terminal.
const (
	every   = 30 * time.Second
	refresh = 100 * time.Millisecond
)

// fewDone is the number of files, and a twentieth of all is, up to which no guess says how long the others take.
const fewDone = 4

// clearLine moves the cursor to the beginning of its line, and clears that.
const clearLine escape.Own = "\r\x1b[K"

// newProgress shows progress on standard error, unless --quiet or --brief is set.
func newProgress(c *cli.Context) *progress {
	p := &progress{w: c.App.ErrWriter, start: time.Now()}
	if found(c).quiet {
		p.w = io.Discard
	} else if isTerminal(p.w) {
		p.width = 80
		if w, _, err := term.GetSize(int(p.w.(*os.File).Fd())); err == nil && w > 0 {
			p.width = w
		}
	}
	return p
}

func (p *progress) set(state walk.Progress) { p.at(time.Since(p.start), state) }

// transfer shows how much is downloaded.
func (p *progress) transfer(s store.FetchProgress) { p.transferAt(time.Since(p.start), s) }

// transferAt is transfer at a time after the start.
func (p *progress) transferAt(now time.Duration, s store.FetchProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size == 0 {
		p.began = now
	}
	p.state, p.bytes, p.size, p.now = walk.Progress{Done: s.Done, All: s.All}, s.Bytes, s.Size, short(s.Package)
	p.show(now)
}

// at is set at a time after the start.
func (p *progress) at(now time.Duration, state walk.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = state
	for len(p.done) <= state.Done {
		p.done = append(p.done, now)
	}
	p.show(now)
}

// show prints a line if it is time for one.
func (p *progress) show(now time.Duration) {
	s := &p.state
	busy := 0 < s.Done && s.Done < s.All || 0 < p.bytes && p.bytes < p.size
	if !busy && (p.width == 0 || p.now == "") {
		return
	}
	var parts []string
	if p.size > 0 {
		if s.All > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", s.Done, words.Plural(s.All, "kernel")))
		}
		parts = append(parts, fmt.Sprintf("%s of %s", words.Bytes(p.bytes), words.Bytes(p.size)))
		if seconds := (now - p.began).Seconds(); seconds > 0 && busy {
			rate := float64(p.bytes) / seconds
			left := time.Duration(float64(p.size-p.bytes) / rate * float64(time.Second))
			parts = append(parts, words.Bytes(int64(rate))+"/s", fmt.Sprintf("about %v left", left.Round(time.Second)))
		}
	} else if s.All > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d files done, %d left out", s.Done, s.All, s.Skipped))
	}
	if busy && p.size == 0 && s.Done > max(fewDone, s.All/20) {
		half := s.Done / 2 // the first take longest
		left := time.Duration(float64(now-p.done[half]) / float64(s.Done-half) * float64(s.All-s.Done))
		parts = append(parts, fmt.Sprintf("about %v left", left.Round(time.Second)))
	}
	if p.now != "" {
		parts = append(parts, "at "+p.now)
	}
	text := escape.Text(strings.Join(parts, ", "))
	switch {
	case p.width > 0 && now-p.last >= refresh:
		p.last = now
		runes := []rune(text)
		escape.Fprintf(p.w, "%s%s", clearLine, escape.Own(runes[:min(len(runes), p.width-1)]))
	case p.width == 0 && now-p.last >= every:
		p.last = now
		escape.Fprintf(p.w, "btfgen: %s\n", escape.Own(text))
	}
}

// doing notes what is being done, which lines then show.
func (p *progress) doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = short(what)
	if p.width > 0 {
		p.show(time.Since(p.start))
	}
}

// short returns the beginning of a text.
func short(what string) string {
	if runes := []rune(what); len(runes) > 50 {
		return string(runes[:49]) + "…"
	}
	return what
}

// finish removes the line from a terminal.
func (p *progress) finish() {
	if p.width > 0 && p.last > 0 {
		escape.Fprintf(p.w, "%s", clearLine)
	}
}

// terminalOf returns the descriptor of the terminal that w writes to, and whether it is one.
func terminalOf(w io.Writer) (fd int, ok bool) {
	if o, ok := w.(*standardOutput); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}

func isTerminal(w io.Writer) bool {
	_, ok := terminalOf(w)
	return ok
}

// columnsOf returns the columns of the terminal that w writes to, or 0 if it is none.
func columnsOf(w io.Writer) int {
	fd, ok := terminalOf(w)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(fd)
	if err != nil {
		return 0
	}
	return width
}
