// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// onGitHub is whether GitHub's runner reads what is printed.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// maxAnnotations is how many of each level the runner shows of a step.
const maxAnnotations = 10

// maxPage is how many bytes it takes for the page of a step.
const maxPage = 1 << 20

// tellGitHub annotates the findings that count, or the error that a run ended with, and adds to the page of the step.
func tellGitHub(stderr io.Writer, f *findings, err error) {
	all := map[string][]annotation{}
	for _, x := range f.all {
		if !f.counts(x) {
			continue
		}
		level := "error"
		if x.Class == warned {
			level = "warning"
		}
		all[level] = append(all[level], f.annotation(x))
	}
	for _, m := range messages(err) {
		all["error"] = append(all["error"], annotation{title: f.title(), message: m})
	}
	for _, level := range slices.Sorted(maps.Keys(all)) {
		list := all[level]
		if n := len(list) - maxAnnotations + 1; n > 1 {
			list = append(list[:maxAnnotations-1], annotation{title: f.title(), message: words.Plural(n, "more finding")})
		}
		for _, a := range list {
			escape.Fprintf(stderr, "::%s\n", a.command(level))
		}
	}
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := addTo(path, f.page(err)); err != nil {
			escape.Fprintf(stderr, "btfgen: GITHUB_STEP_SUMMARY: %v\n", err)
		}
	}
}

// title is what was run.
func (f *findings) title() string { return strings.TrimSpace("btfgen " + f.command) }

// annotation is what the runner shows beside a file, or above all.
type annotation struct{ title, file, line, message string }

func (f *findings) annotation(x *finding) annotation {
	a := annotation{title: f.title() + ": " + string(x.Class), message: x.text()}
	a.file, _, _ = strings.Cut(x.File, "!")
	if i := strings.LastIndexByte(a.file, ':'); i >= 0 {
		if n, err := strconv.ParseUint(a.file[i+1:], 10, 32); err == nil && n > 0 {
			a.file, a.line, a.message = filepath.Clean(a.file[:i]), a.file[i+1:], x.Message
		}
	}
	if rel, err := filepath.Rel(os.Getenv("GITHUB_WORKSPACE"), a.file); err == nil && filepath.IsLocal(rel) && filepath.IsAbs(a.file) {
		a.file = rel
	}
	return a
}

var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// command is what the runner reads after two colons.
func (a *annotation) command(level string) escape.Own {
	properties := "title=" + escapeProperty.Replace(escape.Text(a.title))
	if a.file != "" {
		properties += ",file=" + escapeProperty.Replace(escape.Text(a.file))
	}
	if a.line != "" {
		properties += ",line=" + a.line
	}
	return escape.Own(level + " " + properties + "::" + escapeData.Replace(escape.Text(a.message)))
}

// page is a run in Markdown.
func (f *findings) page(err error) []byte {
	var b bytes.Buffer
	escape.Fprintf(&b, "### %s\n", f.title())
	for _, m := range messages(err) {
		escape.Fprintf(&b, "\n**Failed**: %s\n", escape.Markdown(m))
	}
	for _, line := range f.said {
		escape.Fprintf(&b, "\n%s\n", escape.Markdown(line))
	}
	if f.report != nil {
		b.WriteByte('\n')
		_ = f.report(&b) // a buffer takes all
	}
	others, head := make(map[class]int), false
	for _, x := range f.all {
		if !f.counts(x) {
			others[x.Class]++
			continue
		}
		if !head {
			escape.Fprintf(&b, "\n| class | finding |\n|---|---|\n")
			head = true
		}
		escape.Fprintf(&b, "| %s | %s |\n", x.Class, escape.Markdown(x.text()))
		if b.Len() > maxPage {
			break
		}
	}
	var counts []string
	for _, c := range slices.Sorted(maps.Keys(others)) {
		counts = append(counts, fmt.Sprintf("%d %s", others[c], c))
	}
	if len(counts) > 0 {
		escape.Fprintf(&b, "\nDoes not count: %s.\n", strings.Join(counts, ", "))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// addTo appends to the page of the step as much as the runner takes, in whole lines.
func addTo(path string, page []byte) error {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: is no file", path)
	}
	w, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer w.Close()
	if fi, err = w.Stat(); err != nil {
		return err
	}
	const cut = "\n… and more than this page can have.\n"
	if room := maxPage - fi.Size(); int64(len(page)) > room {
		end := bytes.LastIndexByte(page[:max(0, room-int64(len(cut)))], '\n') + 1
		if end == 0 {
			return fmt.Errorf("%s: full", path)
		}
		page = append(page[:end:end], cut...)
	}
	if _, err = w.Write(page); err == nil {
		err = w.Close()
	}
	return err
}
