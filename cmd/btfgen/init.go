// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// initText has templates of the files for a project, and of the list of next steps.
//
//go:embed init.txt
var initText string

// project is what init finds.
type project struct {
	Dir     string   // the folder of the project; the paths below are relative to it
	Name    string   // name of the archive, without its suffix
	Objects []string // objects for generate
	Missing []string // objects that do not exist
	Sources []string // C files without an object
	// For a Go package its name, and the last file with a bpf2go line. go generate runs the lines of files in order of
	// their names, and the archive comes after the objects.
	GoPackage, GoFile string

	Loader     rule.Loader // loader that the project seems to use, "" if unknown
	LoaderFrom string      // file that shows the loader
}

// Archive returns the name of the archive.
func (p *project) Archive() string { return p.Name + bundle.NativeSuffix }

func runInit(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("init takes no arguments: run it in the folder of the project")
	}
	p, err := detect(c.Context)
	if err == nil {
		err = p.checkNames()
	}
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
	out, kept, configured := c.App.Writer, false, false
	for _, f := range files {
		write := create
		if c.Bool("dry-run") {
			write = func(name, text string) error { return preview(out, name, text) }
		}
		name := filepath.Join(p.Dir, f[0])
		switch err := write(name, text(f[1])); {
		case errors.Is(err, fs.ErrExist):
			escape.Fprintf(out, "exists, not changed: %s\n", name)
			kept = true
			configured = configured || f[1] == "yaml"
		case err != nil:
			return err
		case !c.Bool("dry-run"):
			escape.Fprintf(out, "wrote %s\n", name)
		}
	}
	switch {
	case configured:
	case p.Loader != "":
		escape.Fprintf(out, "check judges for %s, as %s shows; to change that, edit loader: in btfgen.yaml\n", p.Loader, p.LoaderFrom)
	default:
		escape.Fprintf(out, "check judges for libbpf and ebpf-go, as the project's loader is not known; to name one, add loader: to btfgen.yaml\n")
	}
	if kept {
		escape.Fprintf(out, "To see what init would write to a file that exists, run init --dry-run.\n")
	}
	for _, name := range p.Missing {
		escape.Fprintf(out, "missing: %s; go generate makes it\n", name)
	}
	for _, name := range p.Sources {
		escape.Fprintf(out, "missing: the object of %s; compile it, and add it to btfgen.yaml\n", name)
	}
	where := ""
	if p.Dir != "." {
		where = ", in " + p.Dir
	}
	escape.Fprintf(out, "\nNext%s:\n", where)
	for step := range strings.Lines(text("next")) {
		escape.Fprintf(out, "%s\n", strings.TrimSuffix(step, "\n"))
	}
	return nil
}

// checkNames returns an error if a name would be something else than a name in the files that init writes. In a Makefile this is so for most
// characters that are no letters, in ways that differ between versions of make and between places in a rule.
func (p *project) checkNames() error {
	for _, name := range append(p.Objects, p.GoFile) {
		if !utf8.ValidString(name) {
			return fmt.Errorf("%s: init cannot write this name in YAML, as it is not UTF-8: rename it", name)
		}
		changesRule := func(c rune) bool { return special(c) || c == '%' || c == '=' || c == ':' }
		if i := strings.IndexFunc(filepath.ToSlash(name), changesRule); i >= 0 && p.GoPackage == "" {
			c, _ := utf8.DecodeRuneInString(name[i:])
			return fmt.Errorf("%s: init cannot write %q in a name to a Makefile: rename it", name, c)
		}
	}
	if strings.ContainsFunc(p.GoFile, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("%s: init cannot write this name to a Go file: rename it", p.GoFile)
	}
	return nil
}

// preview prints what a file would be.
func preview(w io.Writer, name, text string) error {
	would := " would be:"
	if _, err := os.Lstat(name); err == nil {
		would = " exists, and would be:"
	}
	escape.Fprintf(w, "%s%s\n", name, would)
	for line := range strings.Lines(text) {
		escape.Fprintf(w, "    %s\n", strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        "))
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

// tree is what init finds in a folder and below.
type tree struct {
	goFiles          []string // Go files that are no tests
	objects, sources []string // *.bpf.o and *.bpf.c, as libbpf names them
	bpf2goObjects    []string
	signs            []string // files that may show the loader
}

// look looks for files. It skips what belongs to other projects: hidden folders and dependencies.
func look(ctx context.Context) (t tree, err error) {
	left := int(limits.ObjectFiles)
	err = filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return &limits.Exceeded{Max: limits.ObjectFiles, What: "files to look for BPF objects in"}
		}
		name := e.Name()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path != ".": // a folder that only others may read
			return nil
		case e.IsDir():
			other := strings.HasPrefix(name, ".") || slices.Contains([]string{"vendor", "node_modules", "testdata"}, name)
			if path != "." && (other || strings.Count(path, string(filepath.Separator)) >= limits.InitDepth) {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			t.goFiles = append(t.goFiles, path)
		case strings.HasSuffix(name, "_bpfel.o"), strings.HasSuffix(name, "_bpfeb.o"), strings.HasSuffix(name, "_bpf.o"):
			t.bpf2goObjects = append(t.bpf2goObjects, path)
		case strings.HasSuffix(name, ".bpf.o"):
			t.objects = append(t.objects, path)
		case strings.HasSuffix(name, ".bpf.c"):
			t.sources = append(t.sources, path)
		case isLoaderSign(name) && e.Type().IsRegular():
			t.signs = append(t.signs, path)
		}
		return err
	})
	return t, err
}

// detect looks for bpf2go lines and objects in the working directory and below.
func detect(ctx context.Context) (*project, error) {
	packageClause := regexp.MustCompile(`(?m)^package (\w+)`)
	bpf2goLine := regexp.MustCompile(`(?m)^//go:generate .*?bpf2go(?:@\S+)?[ \t](.*)$`)
	t, err := look(ctx)
	if err != nil {
		return nil, err
	}
	var order []string                    // folders with bpf2go lines
	packages := make(map[string]*project) // keyed by folder
	for _, name := range t.goFiles {
		data, err := readRegular(name, limits.SourceBytes)
		if err != nil {
			return nil, err
		}
		dir := filepath.Dir(name)
		p := packages[dir]
		if p == nil {
			p = &project{Dir: dir}
			packages[dir] = p
		}
		if m := packageClause.FindSubmatch(data); m != nil && p.GoPackage == "" {
			p.GoPackage, p.GoFile = string(m[1]), filepath.Base(name)
		}
		lines := bpf2goLine.FindAllSubmatch(data, -1)
		for _, line := range lines {
			p.Objects = append(p.Objects, bpf2goObjects(string(line[1]))...)
		}
		if len(lines) > 0 {
			p.GoFile = filepath.Base(name)
			if !slices.Contains(order, dir) {
				order = append(order, dir)
			}
		}
	}
	p := packages["."]
	if p == nil {
		p = &project{Dir: "."}
	}
	switch {
	case slices.Contains(order, "."), len(order) == 1:
		if !slices.Contains(order, ".") {
			p = packages[order[0]]
		}
		p.Loader, p.LoaderFrom = rule.EbpfGo, filepath.Join(p.Dir, p.GoFile)
		err = p.addBpf2go(t.bpf2goObjects)
	case len(order) > 1:
		err = fmt.Errorf("bpf2go lines in %s: run init in one of them", strings.Join(order, ", "))
	default:
		err = errors.Join(p.addLibbpf(t.objects, t.sources), p.guessLoader(t.signs))
	}
	if err != nil {
		return nil, err
	}
	// The end of names that bpf2go gives to objects, for any machine or for one.
	suffix := regexp.MustCompile(`(_(x86|arm|arm64|loongarch|mips|powerpc|riscv|s390|sparc))?_bpf(e[lb])?\.o$`)
	p.Name = strings.TrimSuffix(suffix.ReplaceAllString(filepath.Base(p.Objects[0]), ""), ".bpf.o")
	return p, nil
}

// addBpf2go adds the objects in the folder of a package and one below it to those that its bpf2go lines make.
func (p *project) addBpf2go(found []string) error {
	exist := make(map[string]bool)
	for _, name := range found {
		rel, err := filepath.Rel(p.Dir, name)
		if err == nil && !strings.HasPrefix(rel, "..") && strings.Count(rel, string(filepath.Separator)) < 2 {
			exist[rel] = true
			p.Objects = append(p.Objects, rel)
		}
	}
	if len(exist) == 0 {
		return fmt.Errorf("%s: compile the objects first, with go generate", filepath.Join(p.Dir, p.GoFile))
	}
	slices.SortFunc(p.Objects, func(a, b string) int {
		depth := func(path string) int { return strings.Count(path, string(filepath.Separator)) }
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a, b))
	})
	p.Objects = slices.Compact(p.Objects)
	for _, name := range p.Objects {
		if !exist[name] {
			p.Missing = append(p.Missing, name)
		}
	}
	return nil
}

// addLibbpf adds the objects of a project without bpf2go, or what its sources become.
func (p *project) addLibbpf(objects, sources []string) error {
	if len(objects)+len(sources) == 0 {
		return errors.New("nothing to set up here: no bpf2go line in a Go file, no .bpf.o file and no .bpf.c file")
	}
	p.Objects = objects
	for _, name := range sources {
		stem := strings.TrimSuffix(name, ".bpf.c")
		switch {
		case len(objects) == 0:
			p.Objects = append(p.Objects, stem+".bpf.o")
		case !slices.ContainsFunc(objects, func(o string) bool { return filepath.Base(o) == filepath.Base(stem)+".bpf.o" }):
			p.Sources = append(p.Sources, name)
		}
	}
	return nil
}

// bpf2goTargets are the ends of the names of objects that bpf2go makes for Go's architectures.
var bpf2goTargets = map[string]string{
	"386": "x86_bpfel", "amd64": "x86_bpfel", "arm": "arm_bpfel", "arm64": "arm64_bpfel", "loong64": "loongarch_bpfel",
	"mips": "mips_bpfeb", "ppc64": "powerpc_bpfeb", "ppc64le": "powerpc_bpfel", "riscv64": "riscv_bpfel", "s390x": "s390_bpfeb",
	"bpf": "bpf", "bpfel": "bpfel", "bpfeb": "bpfeb",
}

// bpf2goObjects returns the objects that bpf2go makes with a line of arguments; none if that depends on the environment.
func bpf2goObjects(line string) (objects []string) {
	args := strings.Fields(line)
	if strings.ContainsAny(line, "$\"") {
		return nil
	}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, name := range []string{"verbose", "no-strip", "no-global-types"} {
		set.Bool(name, false, "")
	}
	for _, name := range []string{"cc", "strip", "cflags", "tags", "makebase", "type", "go-package"} {
		set.String(name, "", "")
	}
	targets, stem := set.String("target", "bpfel,bpfeb", ""), set.String("output-stem", "", "")
	suffix, dir := set.String("output-suffix", "", ""), set.String("output-dir", "", "")
	if err := set.Parse(args); err != nil || set.NArg() < 2 {
		return nil
	}
	for target := range strings.SplitSeq(*targets, ",") {
		if target == "native" {
			target = runtime.GOARCH
		}
		if end := bpf2goTargets[target]; end != "" {
			name := cmp.Or(*stem, strings.ToLower(set.Arg(0))) + "_" + end + *suffix + ".o"
			objects = append(objects, filepath.Join(*dir, name))
		}
	}
	return objects
}
