// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// read reads the serial line up to the last event, or to the end of qemu, which is no error.
func (b *running) read(src io.Reader) error {
	// One byte more than may come, to see that it does.
	limited := &io.LimitedReader{R: src, N: limits.GuestBytes + 1}
	in := bufio.NewReaderSize(limited, limits.GuestLine)
	for !b.ended {
		line, err := in.ReadSlice('\n')
		if limited.N == 0 {
			return &limits.Exceeded{Max: limits.GuestBytes, What: "bytes from the machine"}
		}
		b.line(bytes.TrimRight(line, "\r\n"))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) { // which ends what is no line of ours
			return nil
		}
	}
	return nil
}

func (b *running) line(text []byte) {
	e, ok := parse(text)
	switch {
	case !ok:
		b.console.add(text)
	case e.Kind == End:
		b.ended, b.failed = true, e.Error
	default:
		if e.Kind == Hello {
			b.hello = true
			if b.probe != nil {
				b.probe.Stop()
			}
		}
		b.tell(e)
	}
}

// lastText keeps the last lines of a text.
type lastText struct{ b []byte }

func (t *lastText) add(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	t.b = append(append(t.b, line...), '\n')
	if n := len(t.b) - limits.GuestConsole; n > limits.GuestConsole { // not at each line
		t.b = t.b[:copy(t.b, t.b[n:])]
	}
}

// text returns the end of what was kept, from where a kernel's panic begins, if there is one, as one line.
func (t *lastText) text() string {
	const lines = 8
	text := strings.TrimSpace(string(t.b[max(0, len(t.b)-limits.GuestConsole):]))
	if i := strings.LastIndex(text, "Kernel panic"); i >= 0 {
		text, _, _ = strings.Cut(text[i:], "\n")
		return text
	}
	l := strings.Split(text, "\n")
	return strings.Join(l[max(0, len(l)-lines):], " / ")
}

// complaints is what qemu writes to standard error. Where KVM does not work, it says so and waits for a debugger.
type complaints struct {
	kvm    bool
	broken func() // called where KVM does not work

	mu   sync.Mutex
	head decompress.Head
}

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.head.Write(p)
	if c.kvm && strings.Contains(c.head.String(), "KVM internal error") {
		c.broken()
	}
	return n, err
}

// line returns the first line.
func (c *complaints) line() string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.head.String()), "\n")
	return line
}
