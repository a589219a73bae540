// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// watched is a process that runs, with its standard error.
type watched struct {
	*exec.Cmd

	ended chan struct{} // closed when the process has ended
	err   error         // result of Wait, once the process has ended

	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed at the next output
}

// watch starts a process.
func watch(t *testing.T, cmd *exec.Cmd) *watched {
	t.Helper()
	w := &watched{Cmd: cmd, ended: make(chan struct{}), more: make(chan struct{})}
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		w.err = cmd.Wait()
		close(w.ended)
	}()
	return w
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.more)
	w.more = make(chan struct{})
	return w.buf.Write(b)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// says waits until the process has printed a text to standard error. It reports false if the process ends before.
func (w *watched) says(text string) bool {
	for {
		w.mu.Lock()
		more := w.more
		w.mu.Unlock()
		if strings.Contains(w.String(), text) {
			return true
		}
		select {
		case <-more:
		case <-w.ended:
			return strings.Contains(w.String(), text)
		}
	}
}

// end waits for the end of the process and returns the result of Wait.
func (w *watched) end() error {
	<-w.ended
	return w.err
}
