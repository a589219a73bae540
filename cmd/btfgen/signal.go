// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// How long a run may take to end after a signal. What does not look at its context until then, because it
// waits for a disk, say, ends with the process; temporary files may take a little longer to remove.
const (
	grace   = 120 * time.Millisecond
	tidying = 30 * time.Millisecond
)

// signaled is why a run ends before it is done.
type signaled struct{ syscall.Signal }

func (s signaled) Error() string {
	switch s.Signal {
	case syscall.SIGTERM:
		return "terminated"
	case syscall.SIGHUP:
		return "hung up"
	}
	return "interrupted"
}

// status is what shells have for a program that a signal ended.
func (s signaled) status() int { return 128 + int(s.Signal) }

// catchSignals returns a context that ends with the first signal that asks the program to end. A
// signal that is ignored stays so, as nohup and jobs in the background want it.
func catchSignals(ctx context.Context) context.Context {
	c := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return endOn(ctx, c, func(s signaled) {
		tidied := make(chan struct{})
		go func() {
			output.Abandon()
			close(tidied)
		}()
		select {
		case <-tidied:
		case <-time.After(tidying):
		}
		escape.Fprintf(os.Stderr, "btfgen: %v\n", s)
		os.Exit(s.status())
	})
}

// endOn returns a context that ends with the first of signals. At the second, or when the time is
// up, it calls exit with the first.
func endOn(ctx context.Context, signals <-chan os.Signal, exit func(signaled)) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		s, _ := (<-signals).(syscall.Signal)
		cancel(signaled{s})
		select {
		case <-signals:
		case <-time.After(grace):
		}
		exit(signaled{s})
	}()
	return ctx
}
