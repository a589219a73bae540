// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bundle"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/archive"
)

// writeOut writes data to a file or, for "-", to standard output.
func writeOut(c *cli.Context, path string, data []byte) error {
	return writeBy(c, path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// writeBy has write write to a file or, for "-", to standard output.
func writeBy(c *cli.Context, path string, write func(io.Writer) error) error {
	if path != "-" {
		return output.WriteFile(path, write)
	}
	if isTerminal(c.App.Writer) {
		return usagef("standard output is a terminal, and BTF is binary")
	}
	return write(c.App.Writer)
}

// hold locks outputs that the command reads and replaces, and says if it has to wait for another process.
func hold(c *cli.Context, paths ...string) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, f := range slices.Backward(held) {
			f()
		}
	}
	for _, path := range paths {
		ctx, one, err := output.Lock(c.Context, path, func() { say(c, "btfgen: %s: waiting for another process that writes it", path) })
		if err != nil {
			unlock()
			return nil, err
		}
		c.Context = ctx
		held = append(held, one)
	}
	return unlock, nil
}

// holdInput is hold for an output if it is one of the inputs.
func holdInput(c *cli.Context, out string, inputs ...string) (unlock func(), err error) {
	if out == "" || !inputsOf(inputs...)[output.Real(out)] {
		return func() {}, nil
	}
	return hold(c, out)
}

// writeKernels writes to an output, and tells what became of files of an earlier run.
func writeKernels(c *cli.Context, out *bundle.Output, info archive.Info, kernels []archive.Kernel) error {
	if !out.Native && out.Format == bundle.Dir {
		unlock, err := hold(c, out.Path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	told, err := out.Write(c.Context, info, kernels)
	if err != nil {
		return err
	}
	if told.Removed > 0 {
		say(c, "%s: removed %s of an earlier run", out.Path, logtext.Plural(told.Removed, "file"))
	}
	if told.Foreign.N > 0 {
		say(c, "%s: left alone what btfgen did not write: %s", out.Path, told.Foreign)
	}
	return nil
}

// readKernels is bundle.ReadKernels, and tells what it passes over.
func readKernels(c *cli.Context, name string) (archive.Info, []archive.Kernel, error) {
	if err := tellUnlisted(c, name); err != nil {
		return archive.Info{}, nil, err
	}
	return bundle.ReadKernels(c.Context, name)
}

// tellUnlisted tells which BTF in a directory its list does not have.
func tellUnlisted(c *cli.Context, dir string) error {
	if l, err := output.ReadList(c.Context, dir); err != nil || l == nil {
		return err
	}
	f, err := output.FindForeign(c.Context, dir)
	if err == nil && f.N > 0 {
		say(c, "%s: passed over what btfgen did not write: %s", dir, f)
	}
	return err
}

// inputs are the files and directories that a command reads, as output.Real names them.
type inputs map[string]bool

func inputsOf(paths ...string) inputs {
	in := make(inputs)
	in.add(paths...)
	return in
}

func (in inputs) add(paths ...string) {
	for _, p := range paths {
		in[output.Real(p)] = true
	}
}

// addCorpus adds the files of a corpus if anything is there that could be one of them.
func (in inputs) addCorpus(c *corpus.Corpus, outputs ...string) {
	for _, o := range outputs {
		if _, err := os.Stat(o); err != nil {
			continue
		}
		in.add(c.Paths()...)
		return
	}
}

// refuse returns an error if a file to be written is an input, or is written twice. Empty names and "-"
// are none. A directory may be both.
func (in inputs) refuse(outputs ...string) error {
	seen := make(map[string]bool)
	for _, o := range outputs {
		if o == "" || o == "-" {
			continue
		}
		real := output.Real(o)
		if fi, err := os.Stat(o); err == nil && !fi.Mode().IsRegular() {
			continue
		}
		switch {
		case in[real]:
			return usagef("%s is input and output", o)
		case seen[real]:
			return usagef("%s is output twice", o)
		}
		seen[real] = true
	}
	return nil
}

// refuseTree returns an error if the minimized BTF of a kernel, in a tree at dir, would replace a file of the corpus.
func (in inputs) refuseTree(dir string, c *corpus.Corpus) error {
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil
	}
	for _, f := range c.Files {
		k := generate.Kernel{Key: f.Key, Path: f.Path}
		if err := in.refuse(filepath.Join(dir, k.FileName())); err != nil {
			return err
		}
	}
	return nil
}

// distinctDirs refuses an output directory that is also a source.
func distinctDirs(dir string, sources []string) error {
	if inputsOf(sources...)[output.Real(dir)] {
		return usagef("%s is input and output", dir)
	}
	return nil
}
