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

// grace is how long a run has to end after a signal. Then temporary files are removed and the process ends.
const grace = 120 * time.Millisecond

// signaled is the cause of a context that a signal canceled.
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

// status returns the exit status that shells use for a program that a signal ended.
func (s signaled) status() int { return 128 + int(s.Signal) }

// catchSignals returns a context that the first INT, TERM or HUP cancels. Signals that are ignored stay so, as nohup and
// background jobs expect.
func catchSignals(ctx context.Context) context.Context {
	c := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return endOn(ctx, c, func(s signaled) {
		await(c, output.Abandon)
		escape.Fprintf(os.Stderr, "btfgen: %v\n", s)
		os.Exit(s.status())
	})
}

// await calls tidy, which first lets files be moved that are being moved. It returns when tidy does, however long a disk takes, or at
// another signal.
func await(signals <-chan os.Signal, tidy func()) {
	done := make(chan struct{})
	go func() {
		tidy()
		close(done)
	}()
	select {
	case <-done:
	case <-signals:
	}
}

// endOn returns a context that the first signal cancels. It calls exit at the second signal, or after the grace period.
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
