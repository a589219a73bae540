// SPDX-License-Identifier: Apache-2.0

// Package codes makes text of findings. codes.txt has for each code the sentence, what it means and what to do about it; no other package
// turns a code into a sentence. docs/findings.md and 'btfgen explain' show the same table.
package codes

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"sync"
	"text/template"

	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

//go:embed codes.txt
var table string

// Entry is what is said of a code.
type Entry struct {
	Code    relo.Code
	Family  *Family
	Title   string
	Text    string // a template over the arguments of the finding
	Log     string // the same of a relo.Reason, "" for Text
	Means   string // meaning of the finding, and why kernels do that
	Fix     string
	Example string
}

// Family has what its codes have in common. Fix and Example are for codes that have none of their own.
type Family struct {
	Name, Word, Title, Means, Fix, Example string
	Codes                                  []*Entry
}

// tables are the families in order, the entries by code, and the templates of causes.
type tables struct {
	families []*Family
	entries  map[relo.Code]*Entry
	causes   map[string]string
}

// parsed is the table. A test reads it, so that there is no mistake in it.
var parsed = sync.OnceValue(func() *tables {
	t := &tables{entries: make(map[relo.Code]*Entry)}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(table), "\n\n") {
		if paragraph[0] == '#' {
			continue
		}
		head, body, _ := strings.Cut(paragraph, "\n")
		fields := make(map[string]string)
		for line := range strings.SplitSeq(strings.ReplaceAll(body, "\n  ", "\x00"), "\n") {
			name, value, ok := strings.Cut(line, ": ")
			if !ok || fields[name] != "" {
				panic(fmt.Sprintf("codes.txt: %s: %q", head, line))
			}
			between := " "
			if name == "example" {
				between = "\n"
			}
			fields[name] = strings.ReplaceAll(value, "\x00", between)
		}
		if head == "causes" {
			t.causes = fields
			continue
		}
		if name, ok := strings.CutPrefix(head, "family "); ok {
			t.families = append(t.families, &Family{name, fields["word"], fields["title"], fields["means"], fields["fix"], fields["example"], nil})
			continue
		}
		f := t.families[len(t.families)-1]
		e := &Entry{
			Code: relo.Code(head), Family: f, Title: fields["title"], Text: fields["text"], Log: fields["log"],
			Means: fields["means"], Fix: fields["fix"], Example: fields["example"],
		}
		e.Fix, e.Example = cmp.Or(e.Fix, f.Fix), cmp.Or(e.Example, f.Example)
		f.Codes, t.entries[e.Code] = append(f.Codes, e), e
	}
	return t
})

// Families returns all families with their codes.
func Families() []*Family { return parsed().families }

// Of returns the entry of a code, nil if there is none.
func Of(code relo.Code) *Entry { return parsed().entries[code] }

var functions = template.FuncMap{
	"plural": func(n int64, what string) string { return words.Plural(int(n), what) },
	"bytes":  func(n int64) string { return fmt.Sprintf("%d bytes", n) },
	"signed": func(n uint64) int64 { return int64(n) },
	"span": func(lo, hi int64) string {
		switch hi - lo {
		case 0:
			return fmt.Sprint(lo)
		case 1:
			return fmt.Sprintf("%d or %d", lo, hi)
		}
		return fmt.Sprintf("%d to %d", lo, hi)
	},
	"flag": func(flag int64) string {
		if i := bits.TrailingZeros64(uint64(flag)); i < len(mapFlags) && flag == 1<<i {
			return fmt.Sprintf("BPF_F_%s (%#x)", mapFlags[i], flag)
		}
		return fmt.Sprintf("%#x", flag)
	},
	"anyOf": func(names []string) string { return strings.Join(names, " or ") },
}

// mapFlags are the flags of maps by their bits, without BPF_F_, as include/uapi/linux/bpf.h has them.
var mapFlags = []string{"NO_PREALLOC", "NO_COMMON_LRU", "NUMA_NODE", "RDONLY", "WRONLY", "STACK_BUILD_ID", "ZERO_SEED", "RDONLY_PROG", "WRONLY_PROG", "CLONE",
	"MMAPABLE", "PRESERVE_ELEMS", "INNER_MAP", "LINK", "PATH_FD", "VTYPE_BTF_OBJ_FD", "TOKEN_FD", "SEGV_ON_FAULT", "NO_USER_CONV", "RB_OVERWRITE"}

// Sentence returns the table's sentence for a finding with these arguments, or the code if the table does not have it.
func Sentence(code relo.Code, args any) string {
	if e := Of(code); e != nil {
		return fill(string(e.Code), e.Text, args)
	}
	return string(code)
}

// cause returns the sentence for a cause with these arguments, or the cause if the table does not have it.
func cause(c relo.Cause, args any) string {
	return fill(string(c), cmp.Or(parsed().causes[string(c)], string(c)), args)
}

// fill executes a template, or returns the name of what it is for if it does not fit the arguments.
func fill(name, text string, args any) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	t, ok := compiled.Load(text)
	if !ok {
		t, _ = compiled.LoadOrStore(text, template.Must(template.New(name).Funcs(functions).Funcs(template.FuncMap{"cause": cause}).Parse(text)))
	}
	var b strings.Builder
	if err := t.(*template.Template).Execute(&b, args); err != nil {
		return name
	}
	return b.String()
}

var compiled sync.Map // templates by their text

// Reason returns the sentence for a reason of package relo with its code in brackets, "" for nil.
func Reason(r *relo.Reason) string {
	if r == nil {
		return ""
	}
	text := string(r.Code)
	if e := Of(r.Code); e != nil {
		text = fill(string(e.Code), cmp.Or(e.Log, e.Text), r)
	}
	return text + " [" + string(r.Code) + "]"
}

// Write writes an entry for a terminal.
func (e *Entry) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s\n\n%s\n\n%s\n\n    %s\n", e.Code, e.Title, e.Means, e.Fix, strings.ReplaceAll(e.Example, "\n", "\n    "))
	return err
}
