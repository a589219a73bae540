// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// word is the value of an option that takes one of several words or, without words, a number of 1 or more.
type word struct {
	text  string
	words []string
	other map[string]string // other spellings of words
}

// plain returns a word in the spelling that words has.
func (w *word) plain(text string) string {
	if s, ok := w.other[text]; ok {
		return s
	}
	return text
}

func (w *word) check(text string) error {
	if n, err := strconv.Atoi(text); w.words == nil && (err != nil || n < 1) {
		return errors.New("want a number of 1 or more")
	}
	if w.words != nil && !slices.Contains(w.words, w.plain(text)) {
		return fmt.Errorf("want %s", listOr(w.words))
	}
	return nil
}

// Set and String implement cli.Generic.
func (w *word) Set(text string) error {
	if n, err := strconv.Atoi(text); w.words == nil && err == nil {
		text = strconv.Itoa(n) // cli.Context.Int would take 010 for 8
	}
	w.text = w.plain(text)
	return w.check(text)
}

func (w *word) String() string { return w.text }

// newFlag returns an option. Its usage has a placeholder in backquotes, as in package flag, if it takes a
// value.
func newFlag(name, usage string, short ...string) cli.Flag {
	if !strings.Contains(usage, "`") {
		return &cli.BoolFlag{Name: name, Usage: usage, Aliases: short}
	}
	return &cli.StringFlag{Name: name, Usage: usage, Aliases: short}
}

// listFlag returns an option that may be repeated.
func listFlag(name, usage string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: usage}
}

// choiceFlag returns an option that takes one of several words. The first is the default.
func choiceFlag(name, usage string, words ...string) *cli.GenericFlag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &word{text: words[0], words: words}}
}

// loaderFlag returns the option --loader of a command. The first word is the default.
func loaderFlag(usage string, words ...string) cli.Flag {
	f := choiceFlag("loader", usage, words...)
	f.Value.(*word).other = map[string]string{"cilium/ebpf": "ebpf-go"}
	return f
}

// hidden returns an option that help and documentation leave out, because another one does nearly the same.
func hidden(f *cli.BoolFlag) cli.Flag {
	f.Hidden = true
	return f
}

// countFlag returns an option that takes a number of 1 or more.
func countFlag(name, usage string, value int) *cli.GenericFlag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &word{text: strconv.Itoa(value)}}
}

// checkValue returns an error if an option cannot have a value.
func checkValue(f cli.Flag, text string) error {
	switch f := f.(type) {
	case *cli.GenericFlag:
		return f.Value.(*word).check(text)
	case *cli.BoolFlag:
		if _, err := strconv.ParseBool(text); err != nil {
			return errors.New("want true or false")
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool { return f.(cli.DocGenerationFlag).TakesValue() }

func isRepeatable(f cli.Flag) bool {
	_, ok := f.(*cli.StringSliceFlag)
	return ok
}
