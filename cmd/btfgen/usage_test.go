// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOptionErrors runs commands with a wrong option, typed and from a file. The message names the option as the user did, or the place
// in the file.
func TestOptionErrors(t *testing.T) {
	testdata, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("CI_NODE_INDEX", "") // a batch system may run the test
	object, kernel := filepath.Join(testdata, "bpf/tcplife.bpfel.o"), filepath.Join(testdata, "vmlinux/debian/12")
	generate := " " + object + " --btf " + kernel
	for _, tt := range []struct {
		command, option, value string
		rest                   string // rest of the command line
		want                   string // regular expression for the text after the option
	}{
		{"generate", "shard", "3", generate + " -o x.btfa", ` "3": want I/N`},
		{"generate", "shard", "auto", generate + " -o x.btfa", ` "auto": the environment has no CI_NODE_INDEX`},
		{"generate", "keep", "nothing", generate + " -o x.btfa", ` "nothing": want KIND:NAME`},
		{"generate", "output", "x.zip", generate, ` "x.zip": unknown suffix .zip`},
		{"generate", "output", "-", generate, ` "-": the format of the output`},
		{"generate", "layout", "bcc", generate + " -o x.btfa", ` "bcc": bcc's tools read`},
		{"generate", "select", "debian>=x", generate + " -o x.btfa", ` "debian>=x": `},
		{"generate", "exclude", "a,,b", generate + " -o x.btfa", ` "a,,b": `},
		{"generate", "modules", "a,,b", generate + " -o x.btfa", ` "a,,b": `},
		{"generate", "fail-on", "dammaged", generate + " -o x.btfa", ` "dammaged": .*none of`},
		{"generate", "fail-on", "damaged,", generate + " -o x.btfa", ` "damaged,": a class is missing`},
		{"generate", "as", "nothing", generate + " -o x.btfa", ` "nothing": `},
		{"check", "require", "debian>=x", " " + object, ` "debian>=x": `},
		{"check", "target", "nothing", " " + object, ` "nothing": want PROGRAM=NAME`},
		{"check", "target", "[=x", " " + object, ` "\[=x": `},
		{"check", "rodata-var", "[", " " + object, ` "\[": `},
		{"check", "when", "nothing", " " + object, ` "nothing": want`},
		{"check", "types", kernel, " " + object + " --loader aya", ` does not go with --loader aya`},
		{"check", "types", filepath.Join(testdata, "vmlinux"), " " + object, ` "[^"]*vmlinux": holds \d+ BTFs, want one`},
		{"check", "timeout", "3", " " + object, ` goes with --boot`},
		{"check", "archive", "x.btfa", " " + object + " --boot debian/12 --command x", ` does not go with --command`},
		{"check", "summary", "x.md", " " + object + " --boot debian/12", ` does not go with --boot`},
		{"relolog", "type", "[", " " + object, ` "\[": `},
		{"relolog", "program", "[", " " + object, ` "\[": `},
		{"relolog", "result", "nothing", " " + object, ` "nothing": want`},
		{"min_core_btf", "keep", "nothing", " x y " + object, ` "nothing": want KIND:NAME`},
		{"archive lookup", "builds", "3", " x.btfa", ` needs --neighbour`},
		{"archive lookup", "release", "a/b", " x.btfa", ` "a/b": `},
		{"archive lookup", "arch", "a/b", " x.btfa", ` "a/b": `},
		{"corpus import", "output", "x.btfa", " " + kernel, ` "x.btfa": want a name that ends in .btfc`},
		{"corpus fetch", "output", "x.btfa", " debian/12", ` "x.btfa": want a name that ends in .btfc`},
		{"corpus fetch", "limit", "much", " debian/12 -o x.btfc", ` "much": `},
		{"corpus fetch", "mirror", "much", " debian/12 -o x.btfc", ` "much": want URL=URL`},
		{"corpus fetch", "packages", "d", " debian/12 -o x.btfc", ` does not go with -o`},
		{"corpus fetch", "prune", "debian>=x", " debian/12 -o x.btfc", ` "debian>=x": `},
		{"corpus extract", "output", "x.zip", " " + filepath.Join(testdata, "vmlinux"), ` "x.zip": several kernels need a directory`},
		{"corpus extract", "modules", "a", " " + kernel + " --select x86_64 -o x.btf", ` needs a directory`},
	} {
		file, words := "", strings.Fields(tt.command)
		for i, word := range words {
			file += strings.Repeat("  ", i) + word + ":\n"
		}
		file += fmt.Sprintf("%s%s: %q\n", strings.Repeat("  ", len(words)), tt.option, tt.value)
		write(t, "options.yaml", file)
		for arguments, want := range map[string]string{
			" --config options.yaml":           `options.yaml:\d+:\d+: --` + tt.option,
			" --" + tt.option + "=" + tt.value: "--" + tt.option,
		} {
			var stdout, stderr bytes.Buffer
			line := tt.command + tt.rest + arguments
			if s := run(t.Context(), strings.Fields(line), &stdout, &stderr); s != statusUsage {
				t.Errorf("%s: status %d, want %d", line, s, statusUsage)
			}
			if want = "^btfgen: " + want + tt.want; !regexp.MustCompile(want).MatchString(stderr.String()) {
				t.Errorf("%s:\n%swant %s", line, stderr.String(), want)
			}
		}
	}
}
