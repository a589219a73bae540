// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"regexp"
	"strconv"
	"strings"
)

// specRoom is the number of bytes after which libbpf cuts off a spec, including its kind
// in angle brackets.
const specRoom = 255

var (
	foundLine  = regexp.MustCompile(`^CO-RE relocating (\[\d+\] .*): found target candidate (\[\d+\] .*) in \[(.*)\]$`)
	reloLine   = regexp.MustCompile(`^prog '(.*?)': relo #(\d+): (.*)$`)
	asideLine  = regexp.MustCompile(`^prog '(.*?)': (relo (?:for \[|\d+ at insn #).*)$`)
	localText  = regexp.MustCompile(`^(?:kind )?(<(\w+)> (?:\(\d+\), spec is )?)(\[\d+\] .*)$`)
	candText   = regexp.MustCompile(`^(non-)?matching candidate #(\d+) (<\w+> )?(\[\d+\] .*)$`)
	parsing    = regexp.MustCompile(`^parsing (\[\d+\] .*) \+ (.*) failed: .*$`)
	typeText   = regexp.MustCompile(`^\[(\d+)\] (\S+) (.*)$`)
	fieldText  = regexp.MustCompile(`^(.*) \(([-\d:]*) @ offset (\d+(?:\.\d+)?)\)$`)
	failedText = regexp.MustCompile(`^(error matching candidate #|field offset ambiguity: |relocation decision ambiguity: |` +
		`unrecognized CO-RE relocation |<\w+> \(\d+\) relocation doesn't support anonymous types)`)
)

// Parse reads the log of "bpftool -d gen min_core_btf". It does not set ExitStatus and
// Written.
func Parse(log string) *Result {
	p := parser{res: new(Result)}
	for line := range strings.Lines(log) {
		// One of libbpf's messages has a space after its end of line.
		line = strings.TrimPrefix(strings.TrimRight(line, "\r\n"), " ")
		// Another has no end of line, so bpftool's error follows at once.
		text, failure, failed := strings.Cut(line, "Error: ")
		if failed {
			p.res.Failure = join(p.res.Failure, failure)
		}
		if text, ok := strings.CutPrefix(text, "libbpf: "); ok {
			p.libbpf(text)
		} else if text != "" {
			p.res.Other = append(p.res.Other, text)
		}
	}
	if p.aside != "" {
		p.res.Other = append(p.res.Other, p.aside)
	}
	return p.res
}

type parser struct {
	res   *Result
	aside string // an error that belongs to the next record
}

func (p *parser) libbpf(text string) {
	known := true
	if m := foundLine.FindStringSubmatch(text); m != nil {
		known = p.found(m[1], m[2], m[3])
	} else if m := reloLine.FindStringSubmatch(text); m != nil {
		known = p.relo(m[1], m[2], m[3])
	} else if m := asideLine.FindStringSubmatch(text); m != nil {
		known = p.setAside(m[1], m[2])
	} else if strings.HasPrefix(text, "prog '") {
		known = false
	} else {
		p.res.Warnings = append(p.res.Warnings, text)
	}
	if !known {
		p.res.Other = append(p.res.Other, text)
	}
}

func (p *parser) found(local, target, module string) bool {
	l, ok1 := parseType(local)
	t, ok2 := parseType(target)
	p.res.Found = append(p.res.Found, Found{Record: len(p.res.Records), Local: l, Target: t, Module: module})
	return ok1 && ok2
}

// setAside keeps an error without the number of its relocation. An error of a candidate
// follows the relocation, and an error of the local type precedes it.
func (p *parser) setAside(program, text string) bool {
	if strings.HasPrefix(text, "relo for [") {
		p.aside = join(p.aside, text)
		return true
	}
	r := p.last()
	if r == nil || r.Program != program {
		return false
	}
	r.Err = join(r.Err, text)
	return true
}

func (p *parser) relo(program, number, text string) bool {
	index, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	if m := localText.FindStringSubmatch(text); m != nil {
		s, ok := parseSpec(m[2], m[3], len(m[1]))
		p.begin(Record{Program: program, Index: index, Kind: m[2], Local: s})
		return ok
	}
	if m := parsing.FindStringSubmatch(text); m != nil {
		s, ok := parseType(m[1])
		s.Raw = m[2]
		p.begin(Record{Program: program, Index: index, Local: s, Err: text})
		return ok
	}
	r := p.last()
	if r == nil || r.Program != program || r.Index != index {
		return false
	}
	if m := candText.FindStringSubmatch(text); m != nil {
		return r.candidate(m[1] == "", m[2], m[4], len(m[3]))
	}
	switch {
	case text == "no matching targets found":
		r.NoMatch = true
	case failedText.MatchString(text):
		r.Err = join(r.Err, text)
	default:
		return false
	}
	return true
}

func (p *parser) begin(r Record) {
	r.Err, p.aside = join(p.aside, r.Err), ""
	p.res.Records = append(p.res.Records, r)
}

func (p *parser) last() *Record {
	if len(p.res.Records) == 0 {
		return nil
	}
	return &p.res.Records[len(p.res.Records)-1]
}

func (r *Record) candidate(match bool, number, text string, before int) bool {
	index, err := strconv.Atoi(number)
	s, ok := parseSpec(r.Kind, text, before)
	r.Candidates = append(r.Candidates, Candidate{Match: match, Index: index, Spec: s})
	return ok && err == nil
}

// parseSpec parses a spec for a relocation of the given kind. before is the number of
// bytes that libbpf printed into the same buffer before text.
func parseSpec(kind, text string, before int) (Spec, bool) {
	s, ok := parseType(text)
	if !ok {
		return s, false
	}
	full := before+len(text) == specRoom
	switch kind {
	case "byte_off", "byte_sz", "field_exists", "signed", "lshift_u64", "rshift_u64":
		if m := fieldText.FindStringSubmatch(s.TypeName); m != nil {
			s.TypeName, s.Raw, s.Offset = m[1], m[2], m[3]
		} else {
			s.Truncated, ok = full, full
		}
		if i := strings.IndexAny(s.TypeName, ".["); i >= 0 {
			s.TypeName, s.Path = s.TypeName[:i], s.TypeName[i:]
		}
	case "enumval_exists", "enumval_value":
		// The digits of a value may be incomplete.
		s.Truncated = full
		if i := strings.LastIndex(s.TypeName, "::"); i >= 0 {
			s.TypeName, s.Path = s.TypeName[:i], s.TypeName[i:]
		} else {
			ok = full
		}
	case "local_type_id", "target_type_id", "type_exists", "type_matches", "type_size":
		s.Truncated = full
	default:
		ok = false
	}
	return s, ok
}

// parseType parses "[ID] KIND NAME"; NAME is the rest of the text.
func parseType(text string) (Spec, bool) {
	m := typeText.FindStringSubmatch(text)
	if m == nil {
		return Spec{}, false
	}
	id, err := strconv.ParseUint(m[1], 10, 32)
	return Spec{TypeID: uint32(id), TypeKind: m[2], TypeName: m[3]}, err == nil
}

// join appends a message to others.
func join(have, more string) string {
	if have == "" || more == "" {
		return have + more
	}
	return have + "; " + more
}
