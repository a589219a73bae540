// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// manualDir and manualHead are set by scripts/release.sh, which takes the manual from TestManual.
var (
	manualDir  = flag.String("manual", "", "write the manual to this folder")
	manualHead = flag.String("manual-head", `"1970-01-01" "btfgen" "User Commands"`, "date, version and title of the manual's pages")
)

// manualName returns the name of a command's page: btfgen-archive-list for "btfgen archive list".
func manualName(p *topic) string { return strings.ReplaceAll(p.name, " ", "-") }

// related are the pages of other commands that a page refers to, beyond its group and the commands in it.
var related = map[string][]string{
	"btfgen generate":        {"btfgen verify", "btfgen check", "btfgen archive", "btfgen corpus fetch"},
	"btfgen min_core_btf":    {"btfgen generate"},
	"btfgen relolog":         {"btfgen check", "btfgen explain"},
	"btfgen verify":          {"btfgen generate", "btfgen explain"},
	"btfgen check":           {"btfgen explain", "btfgen relolog"},
	"btfgen archive lookup":  {"btfgen generate"},
	"btfgen archive convert": {"btfgen generate"},
	"btfgen archive push":    {"btfgen archive pull"},
	"btfgen archive pull":    {"btfgen archive push"},
	"btfgen corpus fetch":    {"btfgen corpus lint"},
	"btfgen corpus push":     {"btfgen corpus pull"},
	"btfgen corpus pull":     {"btfgen corpus push"},
	"btfgen init":            {"btfgen generate", "btfgen verify"},
	"btfgen explain":         {"btfgen check", "btfgen relolog"},
}

// manual returns a command's page as Markdown for md2man.
func manual(p *topic, all []topic) string {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%% %s 1 %s\n\n# NAME\n\n%s - %s\n", manualName(p), *manualHead, manualName(p), p.Usage)
	command := strings.TrimPrefix(p.name, "btfgen ")
	sections := p.sections()
	for _, s := range sections {
		if s.title == "Examples" {
			continue // examples follow at the end
		}
		fmt.Fprintf(b, "\n# %s\n", strings.ToUpper(s.title))
		for _, block := range blocks(s.text) {
			b.WriteString("\n")
			if block[0] != '-' {
				b.WriteString(block + "\n")
				continue
			}
			for line := range strings.SplitSeq(block, "\n") {
				term, meaning := listItem(line)
				term = strings.Trim(term, "`")
				if s.title == "Commands" {
					term = manualName(&topic{name: p.name + " " + term}) + "(1)"
				}
				fmt.Fprintf(b, "**%s**\n: %s\n\n", term, meaning)
			}
		}
	}
	if p.name == "btfgen" {
		for _, s := range written("Chapters")[1:] {
			if s.title != "Exit status" {
				fmt.Fprintf(b, "\n# %s\n\n%s", strings.ToUpper(s.title), s.text)
			}
		}
		b.WriteString("\n# FILES\n\n**btfgen.yaml**\n: options and arguments, in the working directory or a parent\n")
	}
	classes := commandClasses[command]
	b.WriteString("\n# EXIT STATUS\n\n**0**\n: success\n\n**1**\n: failure, or a defect in btfgen\n\n**2**\n: wrong usage; nothing was done\n")
	if len(classes.Counts) > 0 || p.name == "btfgen" {
		b.WriteString("\n**3**\n: success, with findings of the classes in **--fail-on**\n")
	}
	b.WriteString("\n**130, 143, 129**\n: ended by INT, TERM or HUP\n")
	if len(classes.Counts) > 0 {
		b.WriteString("\nThese classes count by default:\n")
		for _, cl := range classes.Counts {
			fmt.Fprintf(b, "\n**%s**\n: %s\n", cl, meanings[cl])
		}
		if len(classes.Others) > 0 {
			b.WriteString("\nThese count if **--fail-on** names them:\n")
			for _, cl := range classes.Others {
				fmt.Fprintf(b, "\n**%s**\n: %s\n", cl, meanings[cl])
			}
		}
	}
	b.WriteString("\n# EXAMPLES\n")
	for _, q := range all { // a group's page has its commands
		if q.name != p.name && !(isGroup(p.Command) && strings.HasPrefix(q.name, p.name+" ")) {
			continue
		}
		for _, s := range q.sections() {
			if s.title == "Examples" {
				b.WriteString("\n" + s.text)
			}
		}
	}
	var see []string
	add := func(name string) { see = append(see, "**"+strings.ReplaceAll(name, " ", "-")+"**(1)") }
	if group := p.name[:max(0, strings.LastIndexByte(p.name, ' '))]; group != "" {
		add(group)
		if group != "btfgen" {
			add("btfgen")
		}
	}
	for _, name := range related[p.name] {
		add(name)
	}
	for _, c := range p.Subcommands {
		add(p.name + " " + c.Name)
	}
	switch p.name {
	case "btfgen":
		see = append(see, "**bpftool-btf**(8)", "**libbtfa**(3)")
	case "btfgen min_core_btf":
		see = append(see, "**bpftool-gen**(8)")
	case "btfgen corpus import":
		see = append(see, "**pahole**(1)")
	}
	fmt.Fprintf(b, "\n# SEE ALSO\n\n%s\n", strings.Join(see, ", "))
	return b.String()
}

// manualPages returns the pages of all commands by their file names.
func manualPages() map[string][]byte {
	pages := make(map[string][]byte)
	all := topics(newApp(io.Discard, io.Discard))
	for _, p := range all {
		page := md2man.Render([]byte(manual(&p, all)))
		// Words are not hyphenated, because most long ones are names. .TH turns that on again.
		pages[manualName(&p)+".1"] = regexp.MustCompile(`(?m)^\.TH .*$`).ReplaceAll(page, []byte("$0\n.nh\n.ad l"))
	}
	return pages
}

// TestManual checks that each command has a page with the usual sections, whose references exist, without mistakes that man, groff or mandoc
// find. With -manual it writes the pages.
func TestManual(t *testing.T) {
	dir := cmp.Or(*manualDir, t.TempDir())
	pages := manualPages()
	for name, text := range pages {
		write(t, filepath.Join(dir, name), string(text))
		var sections []string
		for _, m := range regexp.MustCompile(`(?m)^\.SH "?([A-Z ]+?)"?$`).FindAllSubmatch(text, -1) {
			sections = append(sections, string(m[1]))
		}
		for _, want := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"} {
			if !slices.Contains(sections, want) && !(want == "OPTIONS" && !strings.Contains(string(text), `\-\-`)) && !(want == "OPTIONS" && slices.Contains(sections, "COMMANDS")) {
				t.Errorf("%s: no %s in %q", name, want, sections)
			}
		}
		for _, m := range regexp.MustCompile(`\b(btfgen[a-z_\\-]*)(?:\\fP)?\(1\)`).FindAllSubmatch(text, -1) {
			if to := strings.ReplaceAll(string(m[1]), `\`, "") + ".1"; pages[strings.TrimSuffix(to, "fP.1")] == nil && pages[to] == nil {
				t.Errorf("%s: there is no %s", name, to)
			}
		}
		for _, lint := range [][]string{{"groff", "-K", "utf8", "-man", "-ww", "-Tutf8", "-z"}, {"mandoc", "-T", "lint", "-W", "error"}} {
			if _, err := exec.LookPath(lint[0]); err != nil {
				t.Logf("skipped: needs %s", lint[0])
				continue
			}
			cmd := exec.Command(lint[0], append(lint[1:], filepath.Join(dir, name))...)
			if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
				t.Errorf("%q: %v\n%s", cmd.Args, err, out)
			}
		}
	}
	for name := range related {
		if pages[strings.ReplaceAll(name, " ", "-")+".1"] == nil {
			t.Errorf("%s is no command", name)
		}
	}
}
