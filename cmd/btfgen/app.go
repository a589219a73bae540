// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
)

// Exit statuses. That of a run that a signal ends is signaled.status.
const (
	statusOK       = 0
	statusFailed   = 1
	statusUsage    = 2
	statusFindings = 3
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run executes one command line and returns the exit status. Data goes to
// stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runApp(ctx, newApp(stdout, stderr), args)
}

func runApp(ctx context.Context, app *cli.App, args []string) int {
	defects := new(workers.Defects)
	ctx, found := withFindings(workers.WithDefects(ctx, defects))
	var err error
	d := workers.Catch(ctx, func() { err = runCommand(ctx, app, args) })
	err = cmp.Or(d, err)
	s := status(ctx, err, found.command, app.ErrWriter)
	if s == statusOK {
		found.leftOut(app.ErrWriter)
		s = found.status()
	}
	if onGitHub() && s <= statusFindings {
		tellGitHub(app.ErrWriter, found, err)
	}
	if n := len(defects.All()); n > 0 {
		return reportDefects(app.ErrWriter, defects, s)
	}
	return s
}

func runCommand(ctx context.Context, app *cli.App, args []string) error {
	if len(args) > 0 && args[0] == completeWord {
		return complete(app, args[1:])
	}
	if len(args) > 0 && args[0] == boot.Word {
		return boot.Guest()
	}
	line, err := parseArgs(app, args)
	findingsIn(ctx).command = strings.Join(names(line.commands), " ")
	switch {
	case err != nil:
		return err
	case line.version:
		escape.Fprintf(app.Writer, "%s version %s\n", app.Name, app.Version)
		return nil
	case line.help:
		printHelp(app.Writer, app, line.commands)
		return nil
	}
	if err := line.settle(); err != nil {
		return err
	}
	if i := slices.Index(line.args, ""); i >= 0 { // a variable that is not set, say
		return usagef("argument %d is empty", i+1)
	}
	if v, _ := line.value("verbose"); v == "true" {
		line.tellSettled(app.ErrWriter)
	}
	err = app.RunContext(ctx, append([]string{app.Name}, line.canonical()...))
	if errors.As(err, new(usageError)) {
		return line.placed(err)
	}
	return err
}

// reportDefects asks for a report and returns the status of a run that met defects of ours and would
// have had the given one else.
func reportDefects(stderr io.Writer, l *workers.Defects, status int) int {
	all := l.All()
	if l.Stacks {
		for _, d := range all {
			escape.Fprintf(stderr, "btfgen: %v\n", d)
			for line := range strings.Lines(string(d.Stack)) {
				escape.Fprintf(stderr, "    %s\n", strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
			}
		}
	}
	escape.Fprintf(stderr, "btfgen: met %s of its own: please report it, with what --debug prints and what it was given\n", words.Plural(len(all), "defect"))
	if status == statusOK || status == statusFindings || status == statusUsage {
		return statusFailed
	}
	return status // of a failure, or a signal
}

func status(ctx context.Context, err error, command string, stderr io.Writer) int {
	var u usageError
	var s signaled
	switch {
	case err == nil:
		return statusOK
	case errors.As(context.Cause(ctx), &s):
		escape.Fprintf(stderr, "btfgen: %v\n", s)
		return s.status()
	case errors.As(err, &u):
		for _, m := range messages(u.error) {
			escape.Fprintf(stderr, "btfgen: %s\n", m)
		}
		escape.Fprintf(stderr, "btfgen: see '%s'\n", strings.TrimSpace("btfgen help "+command))
		return statusUsage
	}
	for _, m := range messages(err) {
		escape.Fprintf(stderr, "btfgen: %s\n", m)
	}
	return statusFailed
}

// messages are what an error says, or what each of several says that were joined, without the system call:
// "x.btfa: no such file or directory".
func messages(err error) (all []string) {
	for _, e := range joined(err) {
		text := e.Error()
		var pe *fs.PathError
		if errors.As(e, &pe) {
			text = strings.Replace(text, pe.Error(), pe.Path+": "+pe.Err.Error(), 1)
		}
		all = append(all, text)
	}
	return all
}

// joined returns the errors that errors.Join made one of. Newlines in others are those of names.
func joined(err error) (all []error) {
	if err == nil {
		return nil
	}
	j, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(j.Unwrap()...).Error() {
		return []error{err}
	}
	for _, e := range j.Unwrap() {
		all = append(all, joined(e)...)
	}
	return all
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
			explainCommand(),
			completionCommand(),
			manCommand(),
		},
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   onUsageError,
		HideHelp:       true, // printHelp does that, and parseArgs finds where it is asked for
		HideVersion:    true,
	}
	for _, c := range app.Commands {
		prepare(c, c.Name)
	}
	return app
}

// prepare sets what all commands have in common: mistakes are returned, not
// printed, no command pretends to have subcommands, and findings. name is the command's, with those that it is under.
func prepare(c *cli.Command, name string) {
	c.OnUsageError = onUsageError
	if len(c.Subcommands) == 0 {
		told, finds := contract[name]
		if finds { // and is not about btfgen itself
			c.Flags = append(c.Flags, configFlag())
		}
		c.Flags = append(c.Flags, &cli.BoolFlag{Name: "debug", Usage: "print where a defect of btfgen is", Hidden: true})
		if finds {
			c.Flags = append(c.Flags, told.flags()...)
		}
		c.Before = func(c *cli.Context) error {
			workers.DefectsOf(c.Context).Stacks = c.Bool("debug")
			if finds {
				if err := found(c).options(c, told); err != nil {
					return err
				}
			}
			if name == "check" { // whose output is the JSON
				return nil
			}
			return cmp.Or(oneOutput(c, "-o", c.String("output")), oneOutput(c, "--manifest", c.String("manifest")))
		}
	}
	c.HideHelp = true
	for _, s := range c.Subcommands {
		prepare(s, name+" "+s.Name)
	}
}

func onUsageError(_ *cli.Context, err error, _ bool) error { return usageError{err} }
