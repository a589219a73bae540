// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/escape"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:  "init",
		Usage: "set up btfgen in a project",
		Description: "Run it in the folder of a Go package with bpf2go, or of a project with .bpf.c or .bpf.o files. It writes\n" +
			"btfgen.yaml, and either a go:generate line and a Go test or a Makefile to include. These make the archive and check\n" +
			"that it is not stale. It prints what to do next. It does not change existing files.",
		UsageText: "    btfgen init",
		Action:    runInit,
	}
}

// project is what init finds in the working directory.
type project struct {
	name    string   // of the archive, without its suffix
	objects []string // files that generate reads
	// For a Go package its name, and the last file with a bpf2go line. go generate runs the lines of files in order of
	// their names, and the archive comes after the objects.
	goPackage, goFile string
	skeleton          bool // objects become libbpf skeletons
}

func runInit(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("init takes no arguments: run it in the folder of the project")
	}
	p, err := detect()
	if err != nil {
		return err
	}
	kept := false
	for _, f := range p.files() {
		switch err := create(f.name, f.text); {
		case errors.Is(err, fs.ErrExist):
			kept = true
			escape.Fprintf(c.App.Writer, "exists, not changed: %s\n", f.name)
		case err != nil:
			return err
		default:
			escape.Fprintf(c.App.Writer, "wrote %s\n", f.name)
		}
	}
	if kept {
		escape.Fprintf(c.App.Writer, "To see what init would write to a file that exists, rename it and run init again.\n")
	}
	escape.Fprintf(c.App.Writer, "\nNext:\n")
	for i, step := range p.steps() {
		escape.Fprintf(c.App.Writer, "%d. %s\n", i+1, step)
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
	if len(p.objects) == 0 {
		if err := p.addObjects(); err != nil {
			return nil, err
		}
	}
	if len(p.objects) == 0 {
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
	if p.goFile == "" {
		p.goFile = name
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); p.goPackage == "" && len(words) > 1 && words[0] == "package" {
			p.goPackage = words[1]
		}
		directive, ok := strings.CutPrefix(lines.Text(), "//go:generate ")
		if !ok || !strings.Contains(directive, "bpf2go") {
			continue
		}
		_, args, _ := strings.Cut(directive, "bpf2go")
		p.goFile = name
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
	if p.name == "" {
		p.name = stem
	}
	stem = filepath.Join(options["output-dir"], stem)
	for _, pattern := range []string{stem + "_bpfe[lb].o", stem + "_*_bpfe[lb].o"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		p.objects = append(p.objects, found...)
		if len(found) > 0 {
			return nil
		}
	}
	for _, target := range strings.Split(options["target"], ",") {
		if target != "bpfel" && target != "bpfeb" {
			return fmt.Errorf("compile the objects first, with go generate: their names depend on -target %s", options["target"])
		}
		p.objects = append(p.objects, stem+"_"+target+".o")
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
	p.objects = objects
	p.name = strings.TrimSuffix(filepath.Base(objects[0]), ".bpf.o")
	skeletons, err := glob("*.skel.h", "*/*.skel.h")
	makefile, _ := os.ReadFile("Makefile")
	p.skeleton = len(skeletons) > 0 || bytes.Contains(makefile, []byte("gen skeleton"))
	return err
}

// initFile is a file that init writes.
type initFile struct{ name, text string }

// files returns the files for the project.
func (p *project) files() []initFile {
	archive := p.name + bundle.NativeSuffix
	var yaml strings.Builder
	yaml.WriteString("# yaml-language-server: $schema=https://raw.githubusercontent.com/btfgen/btfgen/main/docs/schema/btfgen.yaml.json\n\n" +
		"btf: kernels/ # the kernels to support: a folder, or a .btfc file of 'btfgen corpus import'\nobjects:\n")
	for _, o := range p.objects {
		yaml.WriteString(fmt.Sprintf("  - %q\n", o))
	}
	yaml.WriteString(fmt.Sprintf("generate:\n  output: %q\nverify:\n  archive: %q\n", archive, archive))
	all := []initFile{{"btfgen.yaml", yaml.String()}}
	if p.goPackage == "" {
		return append(all, initFile{"btfgen.mk", fmt.Sprintf("# Include this in the Makefile.\n"+
			"%[1]s: btfgen.yaml %[2]s\n\tbtfgen generate\n\n"+
			"# Fails if the archive was not made for the relocations of the objects.\n"+
			".PHONY: check-archive\ncheck-archive: %[2]s\n\tbtfgen verify --covers\n", archive, strings.Join(p.objects, " "))})
	}
	stem := strings.TrimSuffix(p.goFile, ".go")
	quoted := slices.Clone(p.objects)
	for i, o := range quoted {
		quoted[i] = fmt.Sprintf("%q", filepath.ToSlash(o))
	}
	return append(all,
		initFile{stem + "_btfgen.go", fmt.Sprintf("package %s\n\n"+
			"// go generate runs this after the lines of %s, which compile the objects.\n//go:generate go tool btfgen generate\n", p.goPackage, p.goFile)},
		initFile{stem + "_btfgen_test.go", fmt.Sprintf("package %s\n\nimport (\n\t\"testing\"\n\n"+
			"\t\"github.com/btfgen/btfgen/pkg/archive/archivetest\"\n)\n\n"+
			"// TestArchive fails if the archive was not made for the relocations of the objects.\n"+
			"func TestArchive(t *testing.T) {\n\tarchivetest.Covers(t, %q, %s)\n}\n", p.goPackage, archive, strings.Join(quoted, ", "))})
}

// steps returns what is left to do.
func (p *project) steps() []string {
	kernels := "put the kernels to support into kernels/, or name them in btfgen.yaml (docs/howto-kernels.md)"
	if p.goPackage == "" {
		steps := []string{kernels, fmt.Sprintf("add 'include btfgen.mk' to the Makefile; 'make %s%s' makes the archive, 'make check-archive' checks it", p.name, bundle.NativeSuffix)}
		if p.skeleton {
			steps = append(steps, "find the types with btfa_find, with NAME__elf_bytes as the object (docs/tutorial.md, C with libbpf)")
		}
		return steps
	}
	return []string{
		kernels, "go get -tool github.com/btfgen/btfgen/cmd/btfgen@latest", "go generate && go test",
		"find the types with archive.Find (docs/tutorial.md)",
	}
}
