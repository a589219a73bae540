package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// Exit statuses.
const (
	statusOK          = 0
	statusFailed      = 1
	statusUsage       = 2
	statusFindings    = 3
	statusInterrupted = 130
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFindings ends a command that did its work and has already reported what
// it found.
var errFindings = errors.New("finished with findings")

// run executes one command line and returns the exit status. Data goes to
// stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	err := usage(app, args)
	if err == nil {
		var ordered []string
		if ordered, err = optionsFirst(app.Commands, app.Flags, args); err == nil {
			err = app.RunContext(ctx, append([]string{app.Name}, ordered...))
		}
	}
	return status(ctx, err, stderr)
}

func status(ctx context.Context, err error, stderr io.Writer) int {
	var u usageError
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, errFindings):
		return statusFindings
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "btfgen: interrupted")
		return statusInterrupted
	case errors.As(err, &u):
		fmt.Fprintf(stderr, "btfgen: %v\n", err)
		fmt.Fprintln(stderr, "btfgen: see 'btfgen help' and 'btfgen help COMMAND'")
		return statusUsage
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		fmt.Fprintf(stderr, "btfgen: %s\n", line)
	}
	return statusFailed
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:      "btfgen",
		Usage:     "minimized BTF for BPF CO-RE objects and many kernels",
		Version:   buildVersion(),
		Writer:    stdout,
		ErrWriter: stderr,
		// Paths may hold commas.
		DisableSliceFlagSeparator: true,
		Commands: []*cli.Command{
			generateCommand(),
			minCoreBTFCommand(),
			relologCommand(),
			verifyCommand(),
			checkCommand(),
			archiveCommand(),
			corpusCommand(),
		},
		ExitErrHandler: func(*cli.Context, error) {},
	}
	for _, c := range app.Commands {
		prepare(c)
	}
	return app
}

// prepare sets what all commands have in common: mistakes are returned, not
// printed, and no command pretends to have subcommands.
func prepare(c *cli.Command) {
	c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return usageError{err} }
	c.HideHelpCommand = true
	for _, s := range c.Subcommands {
		prepare(s)
	}
}

// usage finds mistakes that the library would answer on standard output.
func usage(app *cli.App, args []string) error {
	if len(args) == 0 {
		return usagef("no command given")
	}
	name := args[0]
	if strings.HasPrefix(name, "-") || name == "help" || name == "h" || app.Command(name) != nil {
		return nil
	}
	return usagef("unknown command %q", name)
}
