// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestExplain explains every code and class that it lists.
func TestExplain(t *testing.T) {
	for _, name := range codesAndClasses() {
		var out, msgs bytes.Buffer
		if s := run(t.Context(), []string{"explain", name}, &out, &msgs); s != statusOK || !strings.HasPrefix(out.String(), name+": ") || msgs.Len() > 0 {
			t.Errorf("%s: exit status %d: %s%s", name, s, &out, &msgs)
		}
	}
	var all explained
	var document, problems bytes.Buffer
	if s := run(t.Context(), []string{"explain", "--json"}, &document, &problems); s != statusOK || json.Unmarshal(document.Bytes(), &all) != nil {
		t.Fatalf("exit status %d: %s%s", s, &document, &problems)
	}
	if n := len(all.Codes) + len(all.Classes); n != len(codesAndClasses()) || len(all.Classes) != len(meanings) {
		t.Errorf("the document has %d codes and %d classes", len(all.Codes), len(all.Classes))
	}
	var list, out, msgs bytes.Buffer
	if s := run(t.Context(), []string{"explain"}, &list, &msgs); s != statusOK {
		t.Fatalf("exit status %d: %s", s, &msgs)
	}
	for _, name := range codesAndClasses() {
		if !strings.Contains(list.String(), "\n  "+name) {
			t.Errorf("%s is not listed", name)
		}
	}
	if s := run(t.Context(), []string{"explain", "no-candidat"}, &out, &msgs); s != statusUsage || !strings.Contains(msgs.String(), "no-candidate") {
		t.Errorf("exit status %d: %s", s, &msgs)
	}
}

// withoutText removes what JSON has for people.
func withoutText(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "message")
		delete(v, "text")
		delete(v, "advice")
		for k := range v {
			v[k] = withoutText(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutText(v[i])
		}
	}
	return v
}

// TestSentencesDecideNothing changes every sentence of the table: verdicts, codes and exit statuses stay, and all text changes.
func TestSentencesDecideNothing(t *testing.T) {
	slow.Skip(t)
	objects, err := filepath.Glob(testinput.Path(t, "testdata", "bpf", "*.bpfel.o"))
	if err != nil || len(objects) < 10 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	kernels := []string{"--btf", testinput.Path(t, "testdata", "vmlinux"), "--select", "debian,x86_64"}
	type result struct {
		status int
		data   []any
		out    string
	}
	runs := func() (all []result) {
		for _, args := range [][]string{
			{"check", "--json"}, {"check", "--json", "--no-guess", "--loader", "libbpf"}, {"check", "--json", "--fail-on", "helper-missing"},
			{"check", "--json", "--fail-on", "map-type-missing", "--loader", "libbpf"}, {"relolog", "--json"}, {"check", "--json", "--fail-on", "none"},
		} {
			var out, msgs bytes.Buffer
			r := result{status: run(t.Context(), append(append(args, kernels...), objects...), &out, &msgs), out: out.String()}
			d := json.NewDecoder(&out)
			for d.More() {
				var v any
				if err := d.Decode(&v); err != nil {
					t.Fatal(err)
				}
				r.data = append(r.data, withoutText(v))
			}
			if len(r.data) == 0 {
				t.Fatalf("%q: exit status %d: %s", args, r.status, &msgs)
			}
			all = append(all, r)
		}
		return all
	}
	before := runs()
	for _, f := range codes.Families() {
		word := f.Word
		f.Word = strings.TrimSpace("ZZ " + word)
		t.Cleanup(func() { f.Word = word })
		for _, e := range f.Codes {
			old := *e
			e.Title, e.Text, e.Log, e.Means, e.Fix = "ZZ "+e.Title, "ZZ "+e.Text, "ZZ "+e.Log, "ZZ "+e.Means, "ZZ "+e.Fix
			t.Cleanup(func() { *e = old })
		}
	}
	for i, after := range runs() {
		if after.status != before[i].status || !reflect.DeepEqual(after.data, before[i].data) {
			t.Errorf("run %d: exit status %d, was %d; equal data: %v", i, after.status, before[i].status, reflect.DeepEqual(after.data, before[i].data))
		}
		if relolog := i == 4; (after.out == before[i].out) != relolog {
			t.Errorf("run %d: text changed: %v", i, !relolog)
		}
	}
	if before[2].status != statusFindings || before[5].status != statusOK {
		t.Errorf("exit status %d with a code, %d with none", before[2].status, before[5].status)
	}
}
