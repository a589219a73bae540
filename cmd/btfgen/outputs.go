// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// standardOutput remembers its first error, so that commands need not check each line that they print.
type standardOutput struct {
	io.Writer
	mu  sync.Mutex
	err error
}

func (o *standardOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(b)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		o.err = fmt.Errorf("standard output: %w", err)
	}
	return n, o.err
}

func (o *standardOutput) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// writeTo writes to a file or, for "-", to standard output.
func writeTo(c *cli.Context, path string, write func(io.Writer) error) error {
	if path != "-" {
		return output.WriteFile(path, write)
	}
	return write(c.App.Writer)
}

// writeOut writes BTF to a file or, for "-", to standard output.
func writeOut(c *cli.Context, path string, data []byte) error {
	if err := refuseTerminal(c, path); err != nil {
		return err
	}
	return writeTo(c, path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// refuseTerminal returns an error if BTF would be written to a terminal.
func refuseTerminal(c *cli.Context, path string) error {
	if path == "-" && isTerminal(c.App.Writer) {
		return usagef("standard output is a terminal, and BTF is binary")
	}
	return nil
}

// parseOutput reads -o and --layout.
func parseOutput(c *cli.Context) (o bundle.Output, err error) {
	switch path := c.String("output"); path {
	case "":
		return o, usagef("%s needs -o OUT", c.Command.Name)
	case "-":
		return o, valuef("output", path, "the format of the output depends on its name, so it cannot be standard output")
	default:
		o.Path = path
		if o.Format, err = bundle.FormatOf(path); err != nil {
			return o, valuef("output", path, "%w", err)
		}
	}
	if o.Layout, err = bundle.LayoutOf(c.String("layout"), o.Format); err != nil {
		return o, valuef("layout", c.String("layout"), "%w", err)
	}
	return o, nil
}

// hold locks an output, a file or directory, that the command reads and replaces. It prints a line if another process has the lock.
func hold(c *cli.Context, path string, dir bool) (unlock func(), err error) {
	return output.Lock(c.Context, path, dir, func() { waiting(c, path) })
}

// waiting prints that another process has locked an output.
func waiting(c *cli.Context, path string) {
	infof(c, "btfgen: %s: waiting for another process that writes it", path)
}

// holdOutput locks an output, so that a second run waits before its work, not after it.
func holdOutput(c *cli.Context, out *bundle.Output) (unlock func(), err error) {
	return hold(c, out.Path, out.Format == bundle.Dir)
}

// writeKernels writes an output, which is locked if it is a directory, and returns its size. If selects is not nil, it
// keeps files of earlier runs for kernels that selects does not select, unless --replace is set. writeKernels reports what it removes.
func writeKernels(
	c *cli.Context, out *bundle.Output, info archive.Info, kernels []archive.Kernel, selects func(kernel.Key) bool,
) (size int64, err error) {
	if selects != nil && !c.Bool("replace") {
		kept := 0
		if info, kernels, kept, err = out.Keep(c.Context, info, kernels, selects); err != nil {
			if errors.Is(err, output.ErrIncomplete) {
				err = fmt.Errorf("%w, with --replace", err)
			}
			return 0, err
		}
		if kept > 0 {
			infof(c, "%s: kept %s of earlier runs, which this one does not select", out.Path, words.Plural(kept, "kernel"))
		}
	}
	res, err := out.Write(c.Context, info, kernels)
	if err == nil && res.Removed > 0 {
		infof(c, "%s: removed %s of an earlier run", out.Path, words.Plural(res.Removed, "file"))
	}
	return res.Size, err
}

// selecting reports whether --select, --exclude or --without-btf chooses kernels.
func selecting(c *cli.Context) bool {
	return len(c.StringSlice("select"))+len(c.StringSlice("exclude")) > 0 || c.Bool("without-btf")
}

// inputs are the files and directories that a command reads, by output.Real.
type inputs map[string]bool

func inputsOf(paths ...string) inputs {
	in := make(inputs)
	for _, p := range paths {
		in[output.Real(p)] = true
	}
	return in
}

// addCorpus adds the files of a corpus if one of the outputs exists. If none does, no input can be an output.
func (in inputs) addCorpus(c *corpus.Corpus, outputs ...string) {
	if slices.ContainsFunc(outputs, func(o string) bool { _, err := os.Stat(o); return err == nil }) {
		for _, p := range c.Paths() {
			in[output.Real(p)] = true
		}
	}
}

// refuse returns an error if an output is an input or is repeated, or an ELF file. A directory may be both. Outputs may be "" or "-".
func (in inputs) refuse(outputs ...string) error {
	seen := make(map[string]bool)
	for _, o := range outputs {
		if fi, err := os.Stat(o); o == "" || o == "-" || err == nil && !fi.Mode().IsRegular() {
			continue
		}
		switch real := output.Real(o); {
		case in[real]:
			return usagef("%s is input and output", o)
		case seen[real]:
			return usagef("%s is output twice", o)
		default:
			seen[real] = true
		}
		if err := output.CheckFile(o); errors.Is(err, output.ErrELF) {
			return err
		}
	}
	return nil
}

// With --json a command prints one document, or one line for each of many results. docs/schema has a schema for each
// command. Fields are only added.

// allFindings is the last field of documents.
type allFindings struct {
	Findings []*finding `json:"findings"`
}

func findingsOf(c *cli.Context) allFindings {
	found(c).runDeferred()
	return allFindings{append([]*finding{}, found(c).all...)}
}

// document prints the document of a run if --json is set.
func document(c *cli.Context, v any) error {
	if !c.Bool("json") {
		return nil
	}
	enc := escape.JSON(c.App.Writer)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// findingLines prints a line for each finding if --json is set, except for classes that other lines contain.
func findingLines(c *cli.Context, shown ...class) error {
	if !c.Bool("json") {
		return nil
	}
	enc := escape.JSON(c.App.Writer)
	for _, x := range findingsOf(c).Findings {
		if slices.Contains(shown, x.Class) {
			continue
		}
		if err := enc.Encode(x); err != nil {
			return err
		}
	}
	return nil
}
