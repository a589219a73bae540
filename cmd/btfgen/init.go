// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	Skeleton          bool // objects become libbpf skeletons
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

// detect looks for bpf2go lines and objects in the working directory.
func detect() (*project, error) {
	p := new(project)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range sources {
		if err := p.addGo(name); err != nil {
			return nil, err
		}
	}
	if len(p.Objects) == 0 {
		if err := p.addObjects(); err != nil {
			return nil, err
		}
	}
	if len(p.Objects) == 0 {
		return nil, errors.New("nothing to set up here: no bpf2go line in a Go file, no .bpf.o file and no .bpf.c file")
	}
	return p, nil
}

// addGo reads a Go file. Of a package without bpf2go it takes the name.
func (p *project) addGo(name string) error {
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if p.GoFile == "" {
		p.GoFile = name
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); p.GoPackage == "" && len(words) > 1 && words[0] == "package" {
			p.GoPackage = words[1]
		}
		directive, ok := strings.CutPrefix(lines.Text(), "//go:generate ")
		if !ok || !strings.Contains(directive, "bpf2go") {
			continue
		}
		_, args, _ := strings.Cut(directive, "bpf2go")
		p.GoFile = name
		if err := p.addBpf2go(strings.Fields(args)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return lines.Err()
}

// addBpf2go adds the objects that bpf2go writes with these arguments.
func (p *project) addBpf2go(args []string) error {
	options := map[string]string{"target": "bpfel,bpfeb"}
	ident := ""
	for i := 0; i < len(args) && ident == "" && args[i] != "--"; i++ {
		name, ok := strings.CutPrefix(args[i], "-")
		name = strings.TrimPrefix(name, "-")
		switch key, value, assigned := strings.Cut(name, "="); {
		case !ok:
			ident = args[i]
		case assigned:
			options[key] = value
		case strings.HasPrefix(name, "no-"): // no value
		case i+1 < len(args):
			i++
			options[name] = args[i]
		}
	}
	if ident == "" || strings.ContainsAny(ident, `$"'`) {
		return errors.New("bpf2go line without a plain name")
	}
	stem := options["output-stem"]
	if stem == "" {
		stem = strings.ToLower(ident)
	}
	if p.Name == "" {
		p.Name = stem
	}
	stem = filepath.Join(options["output-dir"], stem)
	for _, pattern := range []string{stem + "_bpfe[lb].o", stem + "_*_bpfe[lb].o"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		p.Objects = append(p.Objects, found...)
		if len(found) > 0 {
			return nil
		}
	}
	for _, target := range strings.Split(options["target"], ",") {
		if target != "bpfel" && target != "bpfeb" {
			return fmt.Errorf("compile the objects first, with go generate: their names depend on -target %s", options["target"])
		}
		p.Objects = append(p.Objects, stem+"_"+target+".o")
	}
	return nil
}

// addObjects adds .bpf.o files here and one folder deeper, or the objects that .bpf.c files become.
func (p *project) addObjects() error {
	glob := func(patterns ...string) (all []string, err error) {
		for _, pattern := range patterns {
			found, globErr := filepath.Glob(pattern)
			all, err = append(all, found...), errors.Join(err, globErr)
		}
		return all, err
	}
	objects, err := glob("*.bpf.o", "*/*.bpf.o")
	if err == nil && len(objects) == 0 {
		objects, err = glob("*.bpf.c")
		for i, name := range objects {
			objects[i] = strings.TrimSuffix(name, "c") + "o"
		}
	}
	if err != nil || len(objects) == 0 {
		return err
	}
	p.Objects = objects
	p.Name = strings.TrimSuffix(filepath.Base(objects[0]), ".bpf.o")
	skeletons, err := glob("*.skel.h", "*/*.skel.h")
	makefile, _ := os.ReadFile("Makefile")
	p.Skeleton = len(skeletons) > 0 || bytes.Contains(makefile, []byte("gen skeleton"))
	return err
}
