// SPDX-License-Identifier: Apache-2.0

// Package program starts other programs: no other package does. A program gets its words from a [Command], without a shell. Words from
// outside are checked and follow "--", so that no program takes one for an option. Of the environment, a program gets only the
// variables in its line of the table, so that it does not see a pipeline's passwords.
package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/limits"
)

// properties are what Start knows about a program.
type properties struct {
	install   string   // how to get it
	inherits  []string // variables of the environment, in small letters, as patterns
	interrupt bool     // a program that should end by itself gets INT; others are killed
	beside    bool     // it is searched for in the folder of btfgen's own executable first
}

// Variables of the environment.
var (
	own     = []string{"path", "home", "tmpdir", "ld_library_path"}
	clients = slices.Concat(own, []string{"*_proxy", "ssl_cert_file", "ssl_cert_dir", "curl_ca_bundle", "apt_config", "pythonpath", "user", "logname", "tz"})

	// Docker's programs for credentials read the others.
	registry = slices.Concat(own, []string{"*_proxy", "ssl_cert_file", "ssl_cert_dir", "docker_config", "xdg_runtime_dir", "dbus_session_bus_address",
		"aws_*", "azure_*", "google_*", "cloudsdk_*"})
)

// programs are the programs that btfgen runs. SECURITY.md lists them.
var programs = map[string]properties{
	"apt-get":             {"package apt", clients, true, false},
	"apt-cache":           {"package apt", clients, true, false},
	"dnf":                 {"packages dnf and dnf-plugins-core", clients, true, false},
	"rpmkeys":             {"package rpm", clients, true, false},
	"pahole":              {"package pahole or dwarves", nil, false, false}, // gets no variables: DEBUGINFOD_URLS would make it contact a server
	"qemu-system-x86_64":  {"package qemu-system-x86 or qemu-kvm", own, false, false},
	"qemu-system-aarch64": {"package qemu-system-arm or qemu-system-aarch64", own, false, false},
	"xz":                  {"package xz-utils or xz", own[:1], false, false},
	"btfgen-registry":     {"part of releases and packages of btfgen; or run: go install github.com/btfgen/btfgen/cmd/btfgen-registry@latest", registry, true, true},
}

// Names returns the names of all programs, in order.
func Names() []string { return slices.Sorted(maps.Keys(programs)) }

// Find returns the path of a program, or an error that says how to install it. It finds none in the working directory.
func Find(name string) (string, error) {
	if filepath.IsAbs(name) && os.Getpid() == 1 {
		return name, nil // btfgen is the init process of a booted machine
	}
	p, ok := programs[name]
	if !ok {
		return "", fmt.Errorf("%q is not a program that btfgen runs", name)
	}
	if self, err := os.Executable(); err == nil && p.beside {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrDot):
		return "", fmt.Errorf("%s: found in the working directory only, by a PATH with a relative folder", name)
	case err != nil:
		return "", fmt.Errorf("needs %s (%s)", name, p.install)
	}
	return filepath.Abs(path)
}

// Command is a program with its words.
type Command struct {
	Name           string     // one of Names; the first process of a booted machine may also start a file, by its absolute path
	Options        []string   // words that btfgen writes
	Words          []string   // words from outside, such as names of packages
	Dir            string     // working directory; "" for btfgen's own
	Env            []string   // variables in addition to those that the program inherits
	Files          []*os.File // descriptors from 3
	Stdin          io.Reader  // nil for none
	Stdout, Stderr io.Writer  // nil to discard
	Memory         uint64     // bytes that it may map, on Linux; 0 for no limit
	FileSize       uint64     // bytes of the files that it may write, on Linux; 0 for no limit
}

// args returns the words of the command line.
func (c *Command) args() ([]string, error) {
	for _, w := range c.Words {
		if err := check(w); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(c.Name), err)
		}
	}
	if len(c.Words) == 0 {
		return c.Options, nil
	}
	return slices.Concat(c.Options, []string{"--"}, c.Words), nil
}

// check returns an error for a word that is not the name of something.
func check(word string) error {
	switch {
	case word == "":
		return errors.New("a word is empty")
	case len(word) > limits.ProgramWord:
		return &limits.Exceeded{Max: limits.ProgramWord, What: "bytes of a word"}
	case word[0] == '-':
		return fmt.Errorf("%q would be an option", word)
	case !utf8.ValidString(word) || strings.ContainsFunc(word, unicode.IsControl):
		return fmt.Errorf("%q has control characters", word)
	}
	return nil
}

// environment returns the variables of a program.
func (c *Command) environment() []string {
	p, ok := programs[c.Name]
	if !ok {
		return c.Env // a program of a booted machine, named by its path
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToLower(v), "=")
		return !slices.ContainsFunc(p.inherits, func(pattern string) bool {
			ok, err := path.Match(pattern, name)
			return ok && err == nil
		})
	})
	return append(append(env, "LC_ALL=C"), c.Env...)
}

// Process is a program that runs.
type Process struct{ cmd *exec.Cmd }

// Start starts a program, which ends with its context and with btfgen. The goroutine that calls Start must call [Process.Wait]; until then,
// it keeps its thread.
func Start(ctx context.Context, c *Command) (*Process, error) {
	path, err := Find(c.Name)
	if err != nil {
		return nil, err
	}
	args, err := c.args()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = c.Dir, c.environment(), c.Files
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	// Processes that the program started may keep its output open.
	cmd.WaitDelay = time.Second
	last := syscall.SIGKILL
	if programs[c.Name].interrupt {
		last = syscall.SIGTERM
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = 5 * time.Second
	}
	apart(cmd, last)
	runtime.LockOSThread() // the program ends with the thread that starts it
	if err := cmd.Start(); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	limit(cmd.Process.Pid, c.Memory, c.FileSize)
	return &Process{cmd}, nil
}

// Wait waits until the program has ended and its output is written.
func (p *Process) Wait() error {
	defer runtime.UnlockOSThread()
	return p.cmd.Wait()
}

// ExitCode returns the exit status after Wait, or -1 if a signal ended the program.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Error is returned if a program fails.
type Error struct {
	Name string
	Said string // the program's standard error
	Err  error  // the reason, such as the first error that it printed
}

func (e *Error) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Run runs a program and returns what it prints to standard output. If it fails, the error is an [Error].
func Run(ctx context.Context, c *Command) (stdout string, err error) {
	run, out, said := *c, new(bounded), new(bounded)
	run.Stdout, run.Stderr = out, said
	p, err := Start(ctx, &run)
	if err == nil {
		if err = p.Wait(); err != nil {
			err = &Error{filepath.Base(c.Name), said.String(), cmp.Or(out.err, said.err, reason(said.String()), err)}
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return out.String(), err
}

// bounded is output of a program. Writing more than the limit fails, which ends the program. It does not embed its buffer, whose ReadFrom has
// no limit.
type bounded struct {
	buf bytes.Buffer
	err error // the error of Write
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > limits.ProgramOutput {
		b.err = &limits.Exceeded{Max: limits.ProgramOutput, What: "bytes of output"}
		return 0, b.err
	}
	return b.buf.Write(p)
}

func (b *bounded) String() string { return b.buf.String() }

// reason returns the first line of a program's messages that is an error, or else the last line.
func reason(said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	isError := func(l string) bool {
		return strings.HasPrefix(l, "E: ") || strings.HasPrefix(l, "Error: ") || strings.HasPrefix(l, "error: ")
	}
	line := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, isError); i >= 0 {
		line = lines[i]
	}
	if line == "" {
		return nil
	}
	return errors.New(line)
}
