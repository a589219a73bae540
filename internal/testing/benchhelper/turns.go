// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A step is one line of a plan.
type step struct {
	rounds int // number of rounds, the first ones, in which the step runs; 0 means all
	kind   string
	args   []string
}

// kinds are the steps of a plan, with the number of arguments that each needs.
var kinds = map[string]struct {
	need int
	do   func(*turns, []string) error
}{
	"ours": {2, (*turns).ours}, // SIDE ARG...
	"run":  {2, (*turns).run},  // SIDE COMMAND ARG...
	"each": {4, (*turns).each}, // SIDE LIST JOBS COMMAND ARG...
	"drop": {1, (*turns).drop}, // NAME...
	"copy": {2, (*turns).copy}, // FILE NAME
}

// parsePlan reads steps. A step is a list of words: the number of rounds, the kind and its arguments. Each word ends with a NUL byte,
// and an empty word ends the step.
func parsePlan(plan string) ([]step, error) {
	var steps []step
	var words []string
	for word := range strings.SplitSeq(plan, "\x00") {
		if word != "" {
			words = append(words, word)
			continue
		}
		if len(words) == 0 { // the end of the plan
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("step %q: want a number of rounds and a kind", words)
		}
		rounds, err := strconv.Atoi(words[0])
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", words, err)
		}
		s := step{rounds, words[1], words[2:]}
		if k, ok := kinds[s.kind]; !ok || len(s.args) < k.need {
			return nil, fmt.Errorf("step %q: unknown, or too few arguments", words)
		}
		steps = append(steps, s)
		words = nil
	}
	if words != nil {
		return nil, fmt.Errorf("step %q: has no end", words)
	}
	return steps, nil
}

// turns runs the steps of a plan in turns.
type turns struct {
	program  string // btfgen
	before   string // its earlier version; "" if there is none
	out      string // the directory of the program's outputs; those of the earlier version are in its subdirectory "before"
	measured measured
}

// runTurns runs the plan on standard input and prints what it measured.
func runTurns(args []string) error {
	t := turns{measured: make(measured)}
	fs := flag.NewFlagSet("turns", flag.ContinueOnError)
	fs.StringVar(&t.program, "program", "", "")
	fs.StringVar(&t.before, "before", "", "")
	fs.StringVar(&t.out, "out", "", "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 || t.program == "" || t.out == "" {
		return errors.New("want -program, -out and ROUNDS")
	}
	rounds, err := strconv.Atoi(fs.Arg(0))
	if err != nil {
		return err
	}
	plan, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	steps, err := parsePlan(string(plan))
	if err != nil {
		return err
	}
	if err := t.rounds(rounds, steps); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t.measured)
}

func (t *turns) rounds(n int, steps []step) error {
	for round := range n {
		for _, s := range steps {
			if s.rounds != 0 && round >= s.rounds {
				continue
			}
			if err := kinds[s.kind].do(t, s.args); err != nil {
				return fmt.Errorf("%s %s: %w", s.kind, s.args[0], err)
			}
		}
	}
	return nil
}

// ours measures the program, and the earlier version with its own outputs. They alternate in which is first, because the first run
// leaves its files in the processor's caches.
func (t *turns) ours(args []string) error {
	s := t.measured.side(args[0])
	now := func() error {
		return measure(&s.Now, [][]string{append([]string{t.program}, args[1:]...)}, 1)
	}
	before := func() error {
		if t.before == "" {
			return nil
		}
		command := []string{t.before}
		for _, arg := range args[1:] {
			if name, ok := strings.CutPrefix(arg, t.out+"/"); ok {
				arg = t.outputs(name)[1]
			}
			command = append(command, arg)
		}
		return measure(&s.Before, [][]string{command}, 1)
	}
	first, second := now, before
	if len(s.Now)%2 == 1 {
		first, second = before, now
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

// run measures another program.
func (t *turns) run(args []string) error {
	return measure(&t.measured.side(args[0]).Now, [][]string{args[1:]}, 1)
}

// each measures a command that runs for each line of a list, some at a time. The line replaces {} in the arguments.
func (t *turns) each(args []string) error {
	jobs, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	list, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var commands [][]string
	for line := range strings.Lines(string(list)) {
		var command []string
		for _, arg := range args[3:] {
			command = append(command, strings.ReplaceAll(arg, "{}", strings.TrimSuffix(line, "\n")))
		}
		commands = append(commands, command)
	}
	return measure(&t.measured.side(args[0]).Now, commands, jobs)
}

// outputs returns the paths of an output of both versions.
func (t *turns) outputs(name string) []string {
	return []string{filepath.Join(t.out, name), filepath.Join(t.out, "before", name)}
}

// drop removes outputs of both versions.
func (t *turns) drop(names []string) error {
	var errs []error
	for _, name := range names {
		for _, path := range t.outputs(name) {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// copy replaces an output of both versions with a copy of a file. It does not read the file into memory, as the peak memory of a
// program is at least that of its parent.
func (t *turns) copy(args []string) error {
	for _, path := range t.outputs(args[1]) {
		if err := copyFile(args[0], path); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
