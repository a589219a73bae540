// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"regexp"
	"strings"
)

// definitions are what C files define, by name.
type definitions struct {
	functions map[string][]string // bodies; one name may have several, for several settings
	structs   map[string][]string
	enums     map[string][]string
	variables map[string][]string // initializers
}

func newDefinitions() *definitions {
	return &definitions{
		functions: make(map[string][]string),
		structs:   make(map[string][]string),
		enums:     make(map[string][]string),
		variables: make(map[string][]string),
	}
}

// uncomment replaces comments by a space.
func uncomment(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"' || c == '\'':
			j := skipLiteral(text, i)
			b.WriteString(text[i:j])
			i = j
		case strings.HasPrefix(text[i:], "/*"):
			b.WriteByte(' ')
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return b.String()
			}
			i += end + 4
		case strings.HasPrefix(text[i:], "//"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return b.String()
			}
			i += end
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// skipLiteral returns the end of the string or character that begins at i, at the latest the end of its line.
func skipLiteral(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case '\n':
			return j
		case text[i]:
			return j + 1
		}
	}
	return len(text)
}

// preprocess drops directives and the branches behind #else and #elif, so that braces match. Of a branch for checksums of the interface, which
// distributions use for what they have changed, it drops the first instead.
func preprocess(text string) string {
	var b strings.Builder
	var dropped []bool // whether the lines of each open #if are dropped
	continued := false
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		if continued || strings.HasPrefix(word, "#") {
			isDirective := !continued
			continued = strings.HasSuffix(word, "\\")
			if !isDirective {
				continue
			}
			word = strings.TrimSpace(word[1:])
			switch {
			case strings.HasPrefix(word, "if"):
				dropped = append(dropped, word == "if 0" || word == "ifdef __GENKSYMS__")
			case strings.HasPrefix(word, "el") && len(dropped) > 0:
				dropped[len(dropped)-1] = !dropped[len(dropped)-1]
			case strings.HasPrefix(word, "endif") && len(dropped) > 0:
				dropped = dropped[:len(dropped)-1]
			}
			continue
		}
		keep := true
		for _, d := range dropped {
			keep = keep && !d
		}
		if keep {
			b.WriteString(line)
		}
	}
	return b.String()
}

var (
	functionHead = regexp.MustCompile(`(\w+)\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*(?:__\w+\s*(?:\([^()]*\))?\s*)*$`)
	recordHead   = regexp.MustCompile(`\b(struct|union|enum)\s+(\w+)\s*(?:__\w+\s*)*$`)
	variableHead = regexp.MustCompile(`(\w+)\s*(?:\[[^\]]*\]\s*)*(?:__\w+\s*(?:\([^()]*\))?\s*)*=\s*$`)
)

// scan adds what a text without comments and directives defines.
func (d *definitions) scan(text string) {
	depth, head, body := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i = skipLiteral(text, i) - 1
		case ';':
			if depth == 0 {
				head = i + 1
			}
		case '{':
			if depth == 0 {
				body = i
			}
			depth++
		case '}':
			if depth == 0 {
				head = i + 1
				continue
			}
			if depth--; depth == 0 {
				d.define(text[head:body], text[body:i+1])
				head = i + 1
			}
		}
	}
}

// define adds one definition, by what is before its first brace and from there on.
func (d *definitions) define(head, body string) {
	head = strings.TrimSpace(head)
	const most = 4000 // macros without semicolons before it
	head = head[max(0, len(head)-most):]
	if m := variableHead.FindStringSubmatch(head); m != nil {
		d.variables[m[1]] = append(d.variables[m[1]], body)
	} else if m := recordHead.FindStringSubmatch(head); m != nil {
		to := d.structs
		if m[1] == "enum" {
			to = d.enums
		}
		to[m[2]] = append(to[m[2]], body)
	} else if m := functionHead.FindStringSubmatch(head); m != nil {
		name := m[1]
		if strings.HasPrefix(name, "BPF_CALL_") || strings.HasPrefix(name, "NOTRACE_BPF_CALL_") {
			name, _, _ = strings.Cut(m[2], ",")
			name = strings.TrimSpace(name)
		}
		d.functions[name] = append(d.functions[name], "("+m[2]+")"+body)
	}
}
