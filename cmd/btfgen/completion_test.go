// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/relo"
)

func TestCompletions(t *testing.T) {
	raceflag.SkipSerial(t)
	app := newApp(io.Discard, io.Discard)
	for _, c := range []struct {
		line string // the last word is the one to complete
		want string // words with spaces between them, then ... if there are more
	}{
		{"", "generate min_core_btf ..."},
		{"ver", "verify version"},
		{"archive ", "list lookup convert diff push pull help"},
		{"archive l", "list lookup"},
		{"help arch", "archive"},
		{"archive help l", "list lookup"},
		{"help generate ", ""},
		{"nonsense ", ""},
		{"nonsense --x", ""},
		{"generate ", ""},
		{"generate --la", "--layout"},
		{"generate -", "--btf --select ..."},
		{"generate --layout ", "btfhub bcc inspektor-gadget tracee datadog"},
		{"generate --layout bc", "bcc"},
		{"generate --layout=bc", "--layout=bcc"},
		{"generate --layout bcc ", ""},
		{"generate --jobs ", ""},
		{"generate -j ", ""},
		{"generate -j ", ""},
		{"generate -v ", ""},
		{"generate --unknown ", ""},
		{"generate -o ", ""},
		{"check --boot ", ""},
		{"generate --manifest=x", ""},
		{"generate --verbose=", ""},
		{"generate --layout=", "--layout=btfhub --layout=bcc --layout=inspektor-gadget --layout=tracee --layout=datadog"},
		{"check --format j", "junit json"},
		{"check --fail-on ", "conflicting damaged different failing lost missing note skipped uncertain unmatched warning none"},
		{"check --fail-on failing,", "failing,conflicting ..."},
		{"check --fail-on=failing,un", "--fail-on=failing,uncertain --fail-on=failing,unmatched --fail-on=failing,unpatchable-instruction --fail-on=failing,unjudged-bounds --fail-on=failing,unjudged-work"},
		{"archive convert x.btfa -o ", ""},
		{"archive convert ", ""},
		{"archive lookup --arch arm", "arm64 arm"},
		{"archive list x.btfa ", ""}, // the command takes one argument
		{"corpus lint ", ""},
		{"completion ", "bash zsh fish"},
		{"completion bash ", ""},
		{"check --fail-on failing,helper-mi", "failing,helper-missing"},
		{"generate --fail-on helper-mi", ""},
		{"explain helper-mi", "helper-missing"},
		{"explain helper-missing damag", "damaged"},
		{"explain ", "no-candidate ..."},
		{"generate --shard ", "auto auto/"},
		{"generate --select deb", "debian"},
		{"generate --select debian/1", "debian/10 debian/11 debian/12 debian/13"},
		{"generate --select debian/12/a", "debian/12/arm debian/12/arm64"},
		{"generate --exclude arm", "arm64 arm"},
		{"check --require=ubuntu/22.04,x86", "--require=ubuntu/22.04,x86_64"},
		{"corpus fetch rock", "rocky/10 rocky/8 rocky/9"},
		{"corpus fetch debian/12 ubuntu/22.04/ar", "ubuntu/22.04/arm64"},
		{"corpus pull ", ""},
		{"corpus pull ghcr.io/you/kernels:latest debian/12/x", "debian/12/x86_64"},
		{"man nonsense ", ""},
		{"\x1b", ""},
	} {
		words := strings.Split(c.line, " ")
		var texts []string
		for _, w := range completions(app, words) {
			texts = append(texts, w.text)
		}
		want, longer := strings.CutSuffix(c.want, " ...")
		list := strings.Join(texts, " ")
		if longer {
			want, list = want+" ", strings.TrimPrefix(list, want+" ")
			if strings.Join(texts, " ") == list {
				t.Errorf("%q: %q, want %q first", c.line, texts, want)
			}
		} else if list != want {
			t.Errorf("%q: %q, want %q", c.line, list, want)
		}
	}
}

// Completion has values for every option and argument that is not free text.
func TestCompletionValues(t *testing.T) {
	free := []string{"N", "PATTERN", "RELEASE", "KEY", "PROGRAM=NAME", "PROGRAM", "[OBJECT:]PROGRAM", "PROGRAM,PROGRAM", "PROGRAM=SELECTOR", "MAP", "COMMAND", "SECONDS", "[PATTERN=]KEY", "URL=URL", "SIZE", "KERNEL", "MODULES"}
	for name, c := range commands(newApp(io.Discard, io.Discard).Commands, "") {
		for _, f := range c.Flags {
			o := describe(f)
			if !takesValue(f) {
				continue
			}
			if ways := b2i(len(values(&commandLine{path: name}, f, "")) > 0) + b2i(isPath(o.value)) + b2i(slices.Contains(free, o.value)); ways != 1 {
				t.Errorf("%s %s: want it in one of isPath, values and the list here, not in %d", name, o.typed, ways)
			}
		}
	}
	for _, r := range results {
		if err := new(relo.Result).UnmarshalText([]byte(r)); err != nil {
			t.Error(err)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// scriptOf writes the script for a shell to a file with a name.
func scriptOf(t *testing.T, shell, name string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	if s := run(t.Context(), []string{"completion", shell}, &out, &stderr); s != statusOK {
		t.Fatalf("exit status %d: %s", s, &stderr)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// folder returns a folder with files to complete.
func folder(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"probe.o", "tracer.btfa", "dir/x"} {
		write(t, filepath.Join(dir, name), "")
	}
	return dir
}

// completed are lines before and after the user presses TAB.
var completed = []struct{ line, want string }{
	{"btfgen gen", "btfgen generate"},
	{"btfgen archive conv", "btfgen archive convert"},
	{"btfgen generate --la", "btfgen generate --layout"},
	{"btfgen generate --layout bc", "btfgen generate --layout bcc"},
	{"btfgen generate --layout=bc", "btfgen generate --layout=bcc"},
	{"btfgen check --fail-on failing,unm", "btfgen check --fail-on failing,unmatched"},
	{"btfgen check --fail-on=failing,unm", "btfgen check --fail-on=failing,unmatched"},
	{"btfgen explain helper-mi", "btfgen explain helper-missing"},
	{"btfgen generate --select debian/12/x", "btfgen generate --select debian/12/x86_64"},
	{"btfgen check --require=debian/12/x", "btfgen check --require=debian/12/x86_64"},
	{"btfgen corpus fetch amzn/20", "btfgen corpus fetch amzn/2023"},
	{"btfgen archive list t", "btfgen archive list tracer.btfa"},
	{"btfgen archive list di", "btfgen archive list dir/"},
	{"btfgen generate --reuse=tr", "btfgen generate --reuse=tracer.btfa"},
	{"btfgen generate -o tr", "btfgen generate -o tracer.btfa"},
	{"btfgen generate pr", "btfgen generate probe.o"},
	{"btfgen generate x86_64=pr", "btfgen generate x86_64=probe.o"},
	{"btfgen archive convert tracer.btfa -o d", "btfgen archive convert tracer.btfa -o dir/"},
}

// TestCompletionTerminal types lines into shells on a terminal.
func TestCompletionTerminal(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("needs script, of util-linux, for a terminal")
	}
	for _, shell := range []struct{ name, start, file, load string }{
		{"bash", "bash --norc --noprofile -i", "btfgen", "source $SCRIPT"},
		{"zsh", "zsh -f -i", "_btfgen", "fpath=(${SCRIPT:h} $fpath); autoload -U compinit; compinit -u -D; unsetopt auto_menu auto_remove_slash"},
	} {
		t.Run(shell.name, func(t *testing.T) {
			if _, err := exec.LookPath(shell.name); err != nil {
				t.Skipf("needs %s", shell.name)
			}
			term := openTerminal(t, shell.start, "SCRIPT="+scriptOf(t, shell.name, shell.file))
			term.enter(shell.load)
			for _, c := range completed {
				// The line becomes the arguments of another command, which prints them.
				got := term.enter(c.line + "\t\x01printf '<%s>' \x05")
				var words []string
				for _, m := range regexp.MustCompile(`<([^<>%]*)>`).FindAllStringSubmatch(got, -1) {
					words = append(words, m[1])
				}
				if strings.Join(words, " ") != c.want {
					t.Errorf("%q: %q, want %q\n%q", c.line, words, c.want, got)
				}
			}
		})
	}
}

// terminal is a shell on a terminal.
type terminal struct {
	*testing.T
	in  io.Writer
	out chan []byte
}

func openTerminal(t *testing.T, start string, env ...string) *terminal {
	t.Helper()
	cmd := exec.Command("script", "-qec", start, "/dev/null")
	cmd.Dir = folder(t)
	cmd.Env = append(append(os.Environ(), "TERM=dumb", "LC_ALL=C", "HISTFILE="), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term := &terminal{t, in, make(chan []byte)}
	go func() {
		defer close(term.out)
		for {
			buf := make([]byte, 4096)
			n, err := out.Read(buf)
			if n > 0 {
				term.out <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range term.out {
		}
		_ = cmd.Wait()
	})
	return term
}

// enter types a line and returns the output of the terminal until the shell is done.
func (t *terminal) enter(line string) string {
	t.Helper()
	if _, err := io.WriteString(t.in, line+"; echo DO''NE\n"); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for b := range t.out {
		if all = append(all, b...); bytes.Contains(all, []byte("DONE\r\n")) {
			return string(all)
		}
	}
	t.Fatalf("%q: the shell has ended: %q", line, all)
	return ""
}

func TestCompletionFish(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	if _, err := exec.LookPath("fish"); err != nil {
		t.Skip("needs fish")
	}
	script := scriptOf(t, "fish", "btfgen.fish")
	dir := folder(t)
	for _, c := range completed {
		cmd := exec.Command("fish", "-N", "-c", `source $argv[1]; complete -C $argv[2]`, script, c.line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.line, err, out)
		}
		word, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\t") // the word without its description
		if i := strings.LastIndexByte(c.line, ' ') + 1; word == "" {
			word = c.line[i:]
		} else if strings.Contains(word, "\n") {
			t.Errorf("%q: %q", c.line, out)
		}
		if got := c.line[:strings.LastIndexByte(c.line, ' ')+1] + word; got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}
