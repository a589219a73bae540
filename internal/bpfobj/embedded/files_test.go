// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o777), os.WriteFile(p, data, 0o666)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	one, two := bpf(le, "one"), bpf(le, "two")
	both := slices.Concat([]byte("text"), one, two)
	paths := []string{write("a/x.o", one), write("b/x.o", two), filepath.Join(dir, "absent"), write("tool", both), write("c/tool", both), write("bad.o", one[:99])}
	bad := errors.New("not two")
	var got []string
	parse := func(name string, data []byte) (string, error) {
		if string(data) != string(two) {
			return "", bad
		}
		return name, nil
	}
	all, err := ParseFiles(t.Context(), paths, parse)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		switch {
		case o.Err == bad:
			got = append(got, "bad")
		case o.Err != nil:
			got = append(got, strings.TrimPrefix(o.Err.Error(), dir+"/"))
		case string(o.Data) != string(two):
			t.Errorf("%s: other data", o.Value)
		default:
			got = append(got, strings.TrimPrefix(o.Value, dir+"/"))
		}
	}
	want := []string{"bad", "b/x.o", "absent: no such file or directory", "bad", "tool!#2", "bad", "c/tool!#2", "bad.o: damaged BPF object"}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q, want %q", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = ParseFiles(ctx, paths, func(string, []byte) (string, error) {
		cancel()
		return "", nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the context ended", err)
	}
}

// TestParseFilesPanics checks that a panic costs only its object.
func TestParseFilesPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "both")
	if err := os.WriteFile(path, slices.Concat([]byte("text"), bpf(le, "one"), bpf(le, "two")), 0o666); err != nil {
		t.Fatal(err)
	}
	all, err := ParseFiles(t.Context(), []string{path}, func(name string, _ []byte) (string, error) {
		if strings.HasSuffix(name, "#1") {
			panic("trouble")
		}
		return name, nil
	})
	if err != nil || len(all) != 2 || all[1].Value != "both!#2" {
		t.Fatalf("%v, %v", all, err)
	}
	if e := all[0].Err; e == nil || e.Error() != "both!#1: defect of btfgen: trouble" {
		t.Errorf("error %v", e)
	}
}
