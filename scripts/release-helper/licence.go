// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// readLicences reads the licences of a module from its directory. It fails if no licence is known; a person then has to decide
// whether the module may be part of a release.
func (m *module) readLicences(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isLicence(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		f := file{e.Name(), strings.ReplaceAll(string(data), "\r\n", "\n")}
		m.files = append(m.files, f)
		m.licences = append(m.licences, identify(f.text)...)
		for line := range strings.Lines(f.text) {
			if line = strings.Trim(line, quoteMarks+"\n"); isCopyright(line) && !slices.Contains(m.copyright, line) {
				m.copyright = append(m.copyright, line)
			}
		}
	}
	slices.Sort(m.licences)
	m.licences = slices.Compact(m.licences)
	if len(m.licences) == 0 {
		return fmt.Errorf("%s: no known licence in %s", m.key(), dir)
	}
	return nil
}

// isLicence reports whether a file of this name has to be distributed.
func isLicence(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	return slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, stem)
}

// quoteMarks are characters at the start of lines of comments and quotations.
const quoteMarks = " \t*#>"

func isCopyright(line string) bool {
	rest, ok := strings.CutPrefix(line, "Copyright ")
	return ok && strings.ContainsAny(rest, "0123456789") && !strings.Contains(line, "[")
}

// known has texts that identify each licence. All of a list have to occur.
var known = []struct {
	id    string
	words []string
	not   string // must not occur
}{
	{"0BSD", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted."}, ""},
	{"Apache-2.0", []string{"Licensed under the Apache License, Version 2.0"}, ""},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms, with or without modification, are permitted"}, "endorse or promote products"},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms, with or without modification, are permitted", "endorse or promote products"}, ""},
	{"ISC", []string{"is hereby granted, provided that the above copyright notice and this permission notice appear in all copies"}, ""},
	{"MIT", []string{"Permission is hereby granted, free of charge, to any person obtaining a copy", "shall be included in all copies or substantial portions"}, ""},
}

// identify returns the licences in a text. Parts of a module can have their own.
func identify(text string) (ids []string) {
	words := strings.Fields(text)
	words = slices.DeleteFunc(words, func(w string) bool { return strings.Trim(w, quoteMarks) == "" })
	text = strings.Join(words, " ")
	for _, k := range known {
		all := k.not == "" || !strings.Contains(text, k.not)
		for _, w := range k.words {
			all = all && strings.Contains(text, w)
		}
		if all {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// licences returns the texts of all modules.
func (r *release) licences() string {
	var b strings.Builder
	b.WriteString("btfgen contains these modules. Their licences follow.\n")
	for _, m := range r.modules {
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n", strings.Repeat("=", 78), m.path, m.version, strings.Join(m.licences, ", "))
		for _, f := range m.files {
			fmt.Fprintf(&b, "\n%s:\n\n%s\n", f.name, strings.TrimSpace(f.text))
		}
	}
	return b.String()
}

// apacheText matches the Apache licence, with or without the appendix.
var apacheText = regexp.MustCompile(`(?s)Apache License\s+Version 2\.0, January 2004.*?END OF TERMS AND CONDITIONS(\s+APPENDIX:.*?limitations under the License\.)?`)

const debianApache = "On Debian systems the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0."

// copyright returns Debian's copyright file. A module has its path, as if it were part of the sources.
func (r *release) copyright() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(r.sources) + "\n")
	for _, m := range r.modules {
		who := slices.Clone(m.copyright)
		for i := range who {
			who[i] = strings.TrimPrefix(who[i], "Copyright ")
		}
		if len(who) == 0 {
			who = []string{"see the licence"}
		}
		fmt.Fprintf(&b, "\nFiles: %s/*\nCopyright: %s\nComment: linked into the program, from the Go module %s %s\nLicense: %s\n",
			m.path, strings.Join(who, "\n "), m.path, m.version, m.path+"-"+m.version)
		for _, f := range m.files {
			text := apacheText.ReplaceAllLiteralString(f.text, debianApache)
			for line := range strings.Lines(strings.TrimSpace(text)) {
				if line = strings.TrimRight(line, " \t\n"); line == "" {
					line = "."
				}
				b.WriteString(" " + line + "\n")
			}
		}
	}
	return b.String()
}
