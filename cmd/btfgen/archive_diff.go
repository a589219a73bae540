// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func archiveDiffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two archives or manifests",
		ArgsUsage: "OLD NEW",
		Description: "OLD and NEW are outputs of generate: .btfa files, tar files or directories, or manifests (.json). The report lists\n" +
			"the kernels that NEW gained, lost and changed, and the objects. The exit status does not depend on it.",
		Flags: []cli.Flag{
			choiceFlag("format", "print `FORMAT`: text, or markdown for release notes", "text", "markdown"),
			jsonFlag("the report"),
		},
		UsageText: "    btfgen archive diff old.btfa new.btfa\n" +
			"    btfgen archive diff --format markdown old.json new.json",
		Action: runArchiveDiff,
	}
}

// side is one of the archives or manifests that diff compares.
type side struct {
	name    string
	size    int64 // of the file in bytes; 0 for a directory
	kernels map[kernel.Key]diffBTF
	objects map[string]diffObject
}

// diffBTF is the minimized BTF of a kernel.
type diffBTF struct {
	sum  [sha256.Size]byte
	size int
}

// diffObject identifies an object. Prefixes of a hash have different lengths.
type diffObject struct{ sum, fingerprint string }

// archiveDiff is the document of diff.
type archiveDiff struct {
	Old     diffSide      `json:"old"`
	New     diffSide      `json:"new"`
	Gained  []diffKernel  `json:"gained"`
	Lost    []diffKernel  `json:"lost"`
	Changed []diffKernel  `json:"changed"`
	Same    int           `json:"same"`
	Objects []diffObjects `json:"objects"`
}

type diffSide struct {
	Name    string `json:"name"`
	Size    int64  `json:"size,omitempty"` // of the file, bytes
	Kernels int    `json:"kernels"`
}

// diffKernel is a kernel with the bytes of its BTF on the sides that have it.
type diffKernel struct {
	Kernel  string `json:"kernel"`
	OldSize int    `json:"old_size,omitempty"`
	NewSize int    `json:"new_size,omitempty"`
}

// The values of diffObjects.Change.
const (
	objectGained      = "gained"
	objectLost        = "lost"
	objectRelocations = "relocations" // other relocations
	objectCode        = "code"        // another file with the same relocations
	objectFile        = "file"        // another file; whether the relocations differ is unknown
)

// diffObjects is an object that is not the same on both sides.
type diffObjects struct {
	Name   string `json:"name"`
	Change string `json:"change"`
}

func runArchiveDiff(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("diff needs OLD and NEW")
	}
	if c.Bool("json") && c.IsSet("format") {
		return usagef("--json does not go with --format")
	}
	old, err := readSide(c, c.Args().Get(0))
	if err != nil {
		return err
	}
	fresh, err := readSide(c, c.Args().Get(1))
	if err != nil {
		return err
	}
	d := compareSides(old, fresh)
	if c.Bool("json") {
		return document(c, d)
	}
	out := bufio.NewWriter(c.App.Writer)
	if c.String("format") == "markdown" {
		d.markdown(out)
	} else {
		d.text(out)
	}
	return out.Flush()
}

// readSide reads an archive or a manifest.
func readSide(c *cli.Context, name string) (*side, error) {
	s := &side{name: name, kernels: make(map[kernel.Key]diffBTF), objects: make(map[string]diffObject)}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Mode().IsRegular() {
		head := make([]byte, 1)
		if n, _ := f.Read(head); n == 1 && head[0] == '{' {
			return s, s.addManifest(c, name)
		}
		s.size = fi.Size()
	}
	info, kernels, err := bundle.ReadKernels(c.Context, name)
	if err != nil {
		return nil, err
	}
	sums := make(map[*byte]diffBTF) // kernels with one BTF share its memory
	for _, k := range kernels {
		if len(k.BTF) == 0 {
			continue
		}
		b, ok := sums[&k.BTF[0]]
		if !ok {
			b = diffBTF{sha256.Sum256(k.BTF), len(k.BTF)}
			sums[&k.BTF[0]] = b
		}
		s.kernels[k.Key.Canonical()] = b
	}
	for _, o := range info.Objects {
		s.objects[o.Name] = diffObject{hex.EncodeToString(o.Sum), hex.EncodeToString(o.Fingerprint)}
	}
	return s, nil
}

// addManifest adds the kernels and objects of a manifest.
func (s *side) addManifest(c *cli.Context, name string) error {
	m, err := generate.ReadManifest(c.Context, name)
	if err != nil {
		return err
	}
	for _, e := range m.Kernels {
		k, err := kernel.ParseKey(e.Kernel)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.kernels[k.Canonical()] = diffBTF{e.SHA256, e.Size}
	}
	for _, o := range m.Objects {
		s.objects[o.Name] = diffObject{sum: hex.EncodeToString(o.SHA256[:])}
	}
	return nil
}

// compareSides lists what differs, in the order of keys and names.
func compareSides(old, fresh *side) *archiveDiff {
	d := &archiveDiff{
		Old: diffSide{old.name, old.size, len(old.kernels)}, New: diffSide{fresh.name, fresh.size, len(fresh.kernels)},
		Gained: []diffKernel{}, Lost: []diffKernel{}, Changed: []diffKernel{}, Objects: []diffObjects{},
	}
	keys := slices.Concat(slices.Collect(maps.Keys(old.kernels)), slices.Collect(maps.Keys(fresh.kernels)))
	slices.SortFunc(keys, kernel.Key.Compare)
	for _, k := range slices.Compact(keys) {
		before, had := old.kernels[k]
		after, has := fresh.kernels[k]
		e := diffKernel{k.String(), before.size, after.size}
		switch {
		case !had:
			d.Gained = append(d.Gained, e)
		case !has:
			d.Lost = append(d.Lost, e)
		case before.sum != after.sum:
			d.Changed = append(d.Changed, e)
		default:
			d.Same++
		}
	}
	names := slices.Concat(slices.Collect(maps.Keys(old.objects)), slices.Collect(maps.Keys(fresh.objects)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, had := old.objects[name]
		after, has := fresh.objects[name]
		n := min(len(before.sum), len(after.sum))
		change := ""
		switch known := before.fingerprint != "" && after.fingerprint != ""; {
		case !had:
			change = objectGained
		case !has:
			change = objectLost
		case known && before.fingerprint != after.fingerprint:
			change = objectRelocations
		case before.sum[:n] == after.sum[:n]:
			continue
		case known:
			change = objectCode
		default:
			change = objectFile
		}
		d.Objects = append(d.Objects, diffObjects{name, change})
	}
	return d
}

// summary returns the counts in one line.
func (d *archiveDiff) summary() string {
	s := fmt.Sprintf("%d gained, %d lost, %d changed, %d the same", len(d.Gained), len(d.Lost), len(d.Changed), d.Same)
	if d.Old.Size > 0 && d.New.Size > 0 {
		s += fmt.Sprintf("; %s before, %s now", words.Bytes(d.Old.Size), words.Bytes(d.New.Size))
	}
	return words.Plural(d.New.Kernels, "kernel") + ": " + s
}

// changeTexts are the texts of diffObjects.Change.
var changeTexts = map[string]string{
	objectGained: "new", objectLost: "removed", objectRelocations: "other relocations", objectCode: "the same relocations, other code",
	objectFile: "another file",
}

// text writes the report for people.
func (d *archiveDiff) text(w io.Writer) {
	for _, o := range d.Objects {
		escape.Fprintf(w, "object %s: %s\n", o.Name, changeTexts[o.Change])
	}
	for _, k := range d.Gained {
		escape.Fprintf(w, "+ %s  %s\n", k.Kernel, words.Bytes(int64(k.NewSize)))
	}
	for _, k := range d.Lost {
		escape.Fprintf(w, "- %s  %s\n", k.Kernel, words.Bytes(int64(k.OldSize)))
	}
	for _, k := range d.Changed {
		escape.Fprintf(w, "~ %s  %s → %s\n", k.Kernel, words.Bytes(int64(k.OldSize)), words.Bytes(int64(k.NewSize)))
	}
	escape.Fprintf(w, "%s\n", d.summary())
}

// markdown writes the report for release notes: a table by distribution, and the kernels that are new or gone.
func (d *archiveDiff) markdown(w io.Writer) {
	escape.Fprintf(w, "%s.\n", d.summary())
	if len(d.Objects) > 0 {
		escape.Fprintf(w, "\n")
	}
	for _, o := range d.Objects {
		fmt.Fprintf(w, "- object %s: %s\n", escape.Code(o.Name), changeTexts[o.Change])
	}
	type row struct{ gained, lost, changed int }
	rows := make(map[string]*row)
	var order []string
	count := func(kernels []diffKernel, n func(*row) *int) {
		for _, k := range kernels {
			series := k.Kernel[:max(0, strings.LastIndexByte(k.Kernel, '/'))]
			if rows[series] == nil {
				rows[series] = new(row)
				order = append(order, series)
			}
			*n(rows[series])++
		}
	}
	count(d.Gained, func(r *row) *int { return &r.gained })
	count(d.Lost, func(r *row) *int { return &r.lost })
	count(d.Changed, func(r *row) *int { return &r.changed })
	slices.Sort(order)
	if len(order) > 0 {
		fmt.Fprintf(w, "\n| distribution | gained | lost | changed |\n|---|--:|--:|--:|\n")
	}
	for _, s := range order {
		r := rows[s]
		fmt.Fprintf(w, "| %s | %d | %d | %d |\n", escape.Code(s), r.gained, r.lost, r.changed)
	}
	for _, part := range []struct {
		title   string
		kernels []diffKernel
	}{{"Gained", d.Gained}, {"Lost", d.Lost}, {"Changed", d.Changed}} {
		if len(part.kernels) == 0 {
			continue
		}
		var b bytes.Buffer
		for _, k := range part.kernels {
			fmt.Fprintf(&b, "- %s\n", escape.Code(k.Kernel))
		}
		fmt.Fprintf(w, "\n<details><summary>%s: %s</summary>\n\n%s\n</details>\n", part.title, words.Plural(len(part.kernels), "kernel"), &b)
	}
}
