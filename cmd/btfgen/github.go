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

// onGitHub reports whether a runner of GitHub Actions reads the output.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// Limits of the runner: annotations of each level for a step, and bytes of a step's summary.
const (
	maxAnnotations = 10
	maxSummary     = 1 << 20
)

// reportToGitHub annotates the findings that --fail-on selects and the error of a run, and adds to the step's summary.
func reportToGitHub(stderr io.Writer, f *findings, err error) {
	title := strings.TrimSpace("btfgen " + f.command)
	all := make(map[string][]string) // by level
	for _, x := range f.all {
		if f.counts(x) {
			level := "error"
			if x.Class == warned {
				level = "warning"
			}
			all[level] = append(all[level], annotation(title, x))
		}
	}
	for _, m := range messages(err) {
		all["error"] = append(all["error"], "title="+property(title)+"::"+data(m))
	}
	for _, level := range slices.Sorted(maps.Keys(all)) {
		list := all[level]
		if n := len(list) - maxAnnotations + 1; n > 1 {
			list = append(list[:maxAnnotations-1], "title="+property(title)+"::"+words.Plural(n, "more finding"))
		}
		for _, a := range list {
			escape.Fprintf(stderr, "::%s %s\n", level, escape.Own(a))
		}
	}
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := appendSummary(path, f.summary(title, err)); err != nil {
			escape.Fprintf(stderr, "btfgen: GITHUB_STEP_SUMMARY: %v\n", err)
		}
	}
}

var (
	dataEscaper     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func data(text string) string     { return dataEscaper.Replace(escape.Text(text)) }
func property(text string) string { return propertyEscaper.Replace(escape.Text(text)) }

// annotation returns the parameters of a workflow command, after its level.
func annotation(title string, x *finding) string {
	text := "title=" + property(title+": "+string(x.Class))
	file, _, _ := strings.Cut(x.File, "!") // a member of an archive
	line, message := "", x.text()
	if i := strings.LastIndexByte(file, ':'); i >= 0 {
		if n, err := strconv.ParseUint(file[i+1:], 10, 32); err == nil && n > 0 {
			file, line, message = filepath.Clean(file[:i]), file[i+1:], x.Message
		}
	}
	if rel, err := filepath.Rel(os.Getenv("GITHUB_WORKSPACE"), file); err == nil && filepath.IsLocal(rel) && filepath.IsAbs(file) {
		file = rel
	}
	if file != "" {
		text += ",file=" + property(file)
	}
	if line != "" {
		text += ",line=" + line
	}
	return text + "::" + data(message)
}

// summary describes a run in Markdown.
func (f *findings) summary(title string, err error) []byte {
	var b bytes.Buffer
	escape.Fprintf(&b, "### %s\n", title)
	for _, m := range messages(err) {
		escape.Fprintf(&b, "\n**Failed**: %s\n", escape.Markdown(m))
	}
	for _, line := range f.infoLines {
		escape.Fprintf(&b, "\n%s\n", escape.Markdown(line))
	}
	if f.report != nil {
		b.WriteByte('\n')
		_ = f.report(&b) // a buffer has no write errors
	}
	others := make(map[class]int)
	head := "\n| class | finding |\n|---|---|\n"
	for _, x := range f.all {
		switch {
		case !f.counts(x):
			others[x.Class]++
		case b.Len() <= maxSummary:
			escape.Fprintf(&b, "%s| %s | %s |\n", escape.Own(head), x.Class, escape.Markdown(x.text()))
			head = ""
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

// appendSummary appends whole lines to the step's summary, as many as the runner accepts.
func appendSummary(path string, text []byte) error {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", path)
	}
	room := maxSummary
	if err == nil {
		room -= int(fi.Size())
	}
	const cut = "\n… and more than a summary can hold.\n"
	if len(text) > room {
		end := bytes.LastIndexByte(text[:max(0, room-len(cut))], '\n') + 1
		if end == 0 {
			return fmt.Errorf("%s: full", path)
		}
		text = append(text[:end:end], cut...)
	}
	w, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if _, err = w.Write(text); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}
