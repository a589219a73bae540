// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/workers"
)

// Every panic is reported as a defect, and makes the run fail.
func TestDefects(t *testing.T) {
	const ask = "btfgen: 1 defect in btfgen: please report it, with this output and the input\n"
	task := func(ctx *cli.Context) { _ = workers.Catch(ctx.Context, func() { panic("trouble\n\x1b") }) }
	for name, do := range map[string]cli.ActionFunc{
		"outside of a task":        func(*cli.Context) error { panic("trouble\n\x1b") },
		"in a task":                func(c *cli.Context) error { task(c); return nil },
		"in a task, with findings": func(c *cli.Context) error { task(c); record(c, finding{Class: defective}); return nil },
	} {
		stumble := func(args ...string) string {
			var stderr bytes.Buffer
			app := newApp(io.Discard, &stderr)
			app.Commands = append(app.Commands, &cli.Command{Name: "stumble", Action: do})
			prepare(app.Commands[len(app.Commands)-1], "stumble")
			if s := runApp(t.Context(), app, args); s != statusFailed {
				t.Errorf("%s: exit status %d, want %d", name, s, statusFailed)
			}
			printed(t, name, stderr.String())
			return stderr.String()
		}
		const line = "btfgen: defect of btfgen: trouble\\n\\x1b\n"
		if got := stumble("stumble"); !strings.Contains(got, line) || !strings.Contains(got, "defect_test.go:") || !strings.HasSuffix(got, ask) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
