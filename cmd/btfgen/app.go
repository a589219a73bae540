// SPDX-License-Identifier: Apache-2.0

// Command btfgen minimizes BTF for BPF objects on many kernels.
package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/output"
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

// jsonOutput is the error if two outputs would go to standard output.
func jsonOutput() error {
	return optionf("json", "does not go with an output to standard output")
}

func main() {
	os.Exit(run(catchSignals(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command line and returns the exit status. Data goes to stdout, everything else to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runApp(ctx, newApp(stdout, stderr), args)
}

func runApp(ctx context.Context, app *cli.App, args []string) int {
	defects, out := new(workers.Defects), &standardOutput{Writer: app.Writer}
	app.Writer = out
	ctx, found := withFindings(workers.WithDefects(ctx, defects))
	var err error
	d := workers.Catch(ctx, func() { err = runCommand(ctx, app, args) })
	err = cmp.Or(d, err)
	if e := out.failure(); e != nil && !errors.Is(err, e) {
		err = errors.Join(err, e)
	}
	s := status(ctx, err, found.command, app.ErrWriter)
	if s == statusOK {
		found.printSkipped(app.ErrWriter)
		s = found.status()
	}
	if n := len(defects.All()); n > 0 {
		printDefects(app.ErrWriter, defects)
		if s <= statusFindings { // a signal's status stays
			s = statusFailed
		}
	}
	return s
}

func runCommand(ctx context.Context, app *cli.App, args []string) error {
	if len(args) > 0 && args[0] == completeWord {
		complete(app, args[1:])
		return nil
	}
	if len(args) > 0 && args[0] == boot.Word {
		return boot.Guest()
	}
	line, err := parse(app, args)
	f := findingsIn(ctx)
	f.command, f.args = line.path, args
	switch {
	case err != nil:
		return err
	case line.version:
		escape.Fprintf(app.Writer, "%s version %s\n", app.Name, app.Version)
		return nil
	case line.help:
		t := topic{line.command, strings.TrimSpace(app.Name + " " + line.path), exceptBoot}
		if _, boot := line.value("boot"); boot || line.pending != nil && line.pending == line.flag("boot") {
			t.options = optionsBoot
		}
		printHelp(app.Writer, t)
		return nil
	}
	if err := line.configure(app); err != nil {
		return err
	}
	if err := line.refuseConflicts(); err != nil {
		return err
	}
	if i := slices.Index(line.args, ""); i >= 0 { // an unset variable, say
		return usagef("argument %d is empty", i+1)
	}
	err = app.RunContext(ctx, append([]string{app.Name}, line.canonical()...))
	line.locate(err)
	return err
}

// printDefects asks the user to report defects in btfgen, and prints the stack of the first.
func printDefects(stderr io.Writer, l *workers.Defects) {
	all := l.All()
	escape.Fprintf(stderr, "btfgen: %v\n", all[0])
	for line := range strings.Lines(string(all[0].Stack)) {
		escape.Fprintf(stderr, "    %s\n", strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
	}
	escape.Fprintf(stderr, "btfgen: %s in btfgen: please report it, with this output and the input\n",
		words.Plural(len(all), "defect"))
}

// status prints an error and returns the exit status.
func status(ctx context.Context, err error, command string, stderr io.Writer) int {
	var s signaled
	switch {
	case err == nil:
		return statusOK
	case errors.As(context.Cause(ctx), &s):
		escape.Fprintf(stderr, "btfgen: %v\n", s)
		return s.status()
	}
	for _, m := range messages(err) {
		escape.Fprintf(stderr, "btfgen: %s\n", m)
	}
	if errors.As(err, new(usageError)) || errors.Is(err, output.ErrELF) {
		escape.Fprintf(stderr, "btfgen: see '%s'\n", strings.TrimSpace("btfgen help "+command))
		return statusUsage
	}
	return statusFailed
}

// messages returns the messages of an error, or of each error that errors.Join joined, without the names of system
// calls: "x.btfa: no such file or directory".
func messages(err error) (all []string) {
	if u, ok := err.(usageError); ok {
		err = u.error
	}
	if reflect.TypeOf(err) == reflect.TypeOf(errors.Join(io.EOF)) { // package errors has no name for it
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			all = append(all, messages(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) {
		text = strings.Replace(text, pe.Error(), pe.Path+": "+pe.Err.Error(), 1)
	}
	// Errors that were joined and then wrapped have several lines, as have lists below a line with a colon.
	lines := strings.Split(text, "\n")
	for i, l := range lines[1:] {
		if lines[i+1] = "; " + strings.TrimSpace(l); strings.HasSuffix(lines[i], ":") {
			lines[i+1] = lines[i+1][1:]
		}
	}
	text = strings.Join(lines, "")
	if folder := missingFolder(err, text); folder != "" {
		text += ": there is no folder " + folder
	}
	return []string{text}
}

// missingFolder returns the first folder on the way to a file that does not exist, if the message ends with the path of the file and that
// error.
func missingFolder(err error, text string) string {
	path, ok := strings.CutSuffix(text, ": "+syscall.ENOENT.Error())
	if !ok || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	path = strings.Trim(path[strings.LastIndex(path, ": ")+1:], ` "`)
	missing := ""
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = dir
	}
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:                      "btfgen",
		Usage:                     "minimize BTF for BPF CO-RE objects on many kernels",
		Version:                   buildVersion(),
		Writer:                    stdout,
		ErrWriter:                 stderr,
		Commands:                  allCommands(),
		DisableSliceFlagSeparator: true, // paths may have commas
		ExitErrHandler:            func(*cli.Context, error) {},
		HideHelp:                  true, // parse recognizes requests for help
		HideVersion:               true,
	}
	for _, c := range app.Commands {
		prepare(c, c.Name)
	}
	return app
}

// prepare adds what commands have in common. path is the command's name with those of its groups.
func prepare(c *cli.Command, path string) {
	c.HideHelp = true
	for _, s := range c.Subcommands {
		prepare(s, path+" "+s.Name)
	}
	if isGroup(c) {
		return
	}
	classes, findings := commandClasses[path] // commands about btfgen itself have no findings
	if findings {
		c.Flags = append(c.Flags, classes.flags()...)
		c.Flags = append(c.Flags, choiceFlag("color", "use color: `WHEN` is auto, always or never", "auto", "always", "never"),
			newFlag("config", "read options from `FILE`, or from none with '' (default: $"+configVariable+", else "+configFile+" here or in a parent)"))
	}
	c.Flags = append(c.Flags, newFlag("help", "print this help", "h"))
	c.Before = func(c *cli.Context) error {
		if !findings {
			return nil
		}
		if err := found(c).options(c, classes); err != nil {
			return err
		}
		toStdout := c.String("output") == "-" || c.String("manifest") == "-"
		if name := c.Command.Name; c.Bool("json") && name != "check" && toStdout {
			return jsonOutput()
		}
		return nil
	}
}
