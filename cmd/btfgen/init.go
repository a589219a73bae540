// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// initText has templates of the files for a project, and of what is left to do.
//
//go:embed init.txt
var initText string

// project is what init finds in the working directory.
type project struct {
	Name    string   // of the archive, without its suffix
	Objects []string // files that generate reads
	// For a Go package its name, and the last file with a bpf2go line. go generate runs the lines of files in order of
	// their names, and the archive comes after the objects.
	GoPackage, GoFile string
}

// Archive returns the name of the archive.
func (p *project) Archive() string { return p.Name + bundle.NativeSuffix }

func runInit(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("init takes no arguments: run it in the folder of the project")
	}
	p, err := detect()
	if err != nil {
		return err
	}
	texts := template.Must(template.New("").Funcs(template.FuncMap{"slash": filepath.ToSlash}).Parse(initText))
	text := func(name string) string {
		var b strings.Builder
		if err := texts.ExecuteTemplate(&b, name, p); err != nil {
			panic(err)
		}
		return b.String()
	}
	files := [][2]string{{"btfgen.yaml", "yaml"}, {"btfgen.mk", "mk"}}
	if p.GoPackage != "" {
		stem := strings.TrimSuffix(p.GoFile, ".go")
		files = [][2]string{{"btfgen.yaml", "yaml"}, {stem + "_btfgen.go", "go"}, {stem + "_btfgen_test.go", "test"}}
	}
	kept := false
	for _, f := range files {
		switch err := create(f[0], text(f[1])); {
		case errors.Is(err, fs.ErrExist):
			kept = true
			escape.Fprintf(c.App.Writer, "exists, not changed: %s\n", f[0])
		case err != nil:
			return err
		default:
			escape.Fprintf(c.App.Writer, "wrote %s\n", f[0])
		}
	}
	if kept {
		escape.Fprintf(c.App.Writer, "To see what init would write to a file that exists, rename it and run init again.\n")
	}
	escape.Fprintf(c.App.Writer, "\nNext:\n")
	for step := range strings.Lines(text("next")) {
		escape.Fprintf(c.App.Writer, "%s\n", strings.TrimSuffix(step, "\n"))
	}
	return nil
}

// create writes a file that does not exist.
func create(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// detect looks for bpf2go lines and objects in the working directory and one folder deeper.
func detect() (*project, error) {
	packageClause, bpf2goLine := regexp.MustCompile(`(?m)^package (\w+)`), regexp.MustCompile(`(?m)^//go:generate .*bpf2go`)
	// The end of names that bpf2go gives to objects, for any machine or for one.
	bpf2goSuffix := regexp.MustCompile(`(_(x86|arm|arm64|loongarch|mips|powerpc|riscv|s390|sparc))?_bpfe[lb]\.o$`)
	p := new(project)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	bpf2go := false
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if m := packageClause.FindSubmatch(data); m != nil && p.GoPackage == "" {
			p.GoPackage, p.GoFile = string(m[1]), name
		}
		if bpf2goLine.Match(data) {
			p.GoFile, bpf2go = name, true
		}
	}
	patterns := [][]string{{"*.bpf.o", "*/*.bpf.o"}, {"*.bpf.c"}}
	if bpf2go {
		patterns = [][]string{{"*_bpfe[lb].o", "*/*_bpfe[lb].o"}}
	}
	for _, alternatives := range patterns {
		for _, pattern := range alternatives {
			found, err := filepath.Glob(pattern)
			if err != nil {
				return nil, err
			}
			p.Objects = append(p.Objects, found...)
		}
		if len(p.Objects) > 0 {
			break
		}
	}
	switch {
	case len(p.Objects) == 0 && bpf2go:
		return nil, fmt.Errorf("%s: compile the objects first, with go generate", p.GoFile)
	case len(p.Objects) == 0:
		return nil, errors.New("nothing to set up here: no bpf2go line in a Go file, no .bpf.o file and no .bpf.c file")
	}
	for i, name := range p.Objects {
		if stem, ok := strings.CutSuffix(name, ".bpf.c"); ok { // what it becomes
			p.Objects[i] = stem + ".bpf.o"
		}
	}
	p.Name = strings.TrimSuffix(bpf2goSuffix.ReplaceAllString(filepath.Base(p.Objects[0]), ""), ".bpf.o")
	return p, nil
}
