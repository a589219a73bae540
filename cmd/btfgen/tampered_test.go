// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testregistry"
)

// needAll matches commands that need all chunks.
var needAll = regexp.MustCompile("^check|^corpus (lint|import|extract|push)")

// TestTampered changes a byte of a .btfc in many places, from its head over chunks to the index at its end. Each command that reads the file refuses
// it, reports damage, or does not need what was changed: then its result has the same bytes as before. Commands that say that a file is good or
// hand it on need all chunks.
func TestTampered(t *testing.T) {
	slow.Skip(t)
	testregistry.Folder(t)
	td := inNewFolder(t)
	const tree = "tree/debian/12/x86_64"
	if err := os.CopyFS(tree, os.DirFS(td+"/vmlinux/debian/12/x86_64")); err != nil {
		t.Fatal(err)
	}
	write(t, tree+"/6.1.0-47-amd64.config", "CONFIG_BPF=y\n")
	expand := strings.NewReplacer("$K", "tree", "$O", td+"/bpf/execsnoop.bpfel.o")
	// do runs a command and returns its exit status, and its standard output and the file out.
	do := func(args string) (status int, result string) {
		os.RemoveAll("out")
		os.RemoveAll("out.btfa")
		os.RemoveAll("out.btfc")
		var out, msgs bytes.Buffer
		status = run(t.Context(), strings.Fields(expand.Replace(args)), &out, &msgs)
		result = out.String()
		for _, name := range []string{"out.btfa", "out.btfc"} {
			if data, err := os.ReadFile(name); err == nil {
				result += string(data)
			}
		}
		return status, result
	}
	if status, _ := do("corpus import $K -o good.btfc"); status != statusOK {
		t.Fatalf("exit status %d", status)
	}
	good, err := os.ReadFile("good.btfc")
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := do("generate --btf $K -o good.btfa $O"); status != statusOK {
		t.Fatalf("exit status %d", status)
	}
	var places, frames []int // places in the file, and in each frame of a chunk
	for i := range 8 {
		places = append(places, i*(len(good)-1)/7)
	}
	for _, f := range testinput.Frames(t, good) {
		frames = append(frames, f.Middle)
	}
	if len(frames) != 4 {
		t.Fatalf("%d frames, want front and back of BTF and configuration", len(frames))
	}
	for _, command := range []string{
		"generate --btf bad.btfc -o out.btfa -q $O", "check --btf bad.btfc --json $O", "relolog --btf bad.btfc --json $O", "verify good.btfa --btf bad.btfc --json $O",
		"corpus list bad.btfc --json", "corpus lint bad.btfc --json", "corpus import bad.btfc -o out.btfc -q", "corpus extract bad.btfc -o out -q",
		"corpus push bad.btfc localhost/some/corpus:v1 --json",
	} {
		write(t, "bad.btfc", string(good))
		status, want := do(command)
		if status != statusOK {
			t.Fatalf("%s: exit status %d", command, status)
		}
		refused := 0
		for i, at := range slices.Concat(frames, places) {
			bad := bytes.Clone(good)
			bad[at] ^= 1
			write(t, "bad.btfc", string(bad))
			switch status, got := do(command); {
			case status != statusOK:
				refused++
			case got != want && !strings.HasPrefix(command, "corpus push"): // push only reports the artifact, which the registry has
				t.Errorf("%s: another result after a change at %d of %d", command, at, len(bad))
			case i < len(frames) && needAll.MatchString(command):
				t.Errorf("%s: takes a changed frame, at %d of %d", command, at, len(bad))
			}
		}
		// corpus list reads only the index, all others read nearly everything of a single kernel.
		if list := strings.HasPrefix(command, "corpus list"); refused == 0 || !list && refused < len(places)*3/4 {
			t.Errorf("%s: refuses %d of %d changes", command, refused, len(frames)+len(places))
		}
	}
}
