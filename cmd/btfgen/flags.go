// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"
)

// choice is the value of an option that takes one of several words.
type choice struct {
	words []string
	value string
}

// choiceFlag returns an option that takes one of several words. The first is the default.
func choiceFlag(name, usage string, words ...string) *cli.GenericFlag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &choice{words, words[0]}}
}

func (c *choice) check(text string) error {
	if !slices.Contains(c.words, text) {
		return fmt.Errorf("want %s", listOr(c.words))
	}
	return nil
}

func (c *choice) Set(text string) error {
	c.value = text
	return c.check(text)
}

func (c *choice) String() string { return c.value }

// count is the value of an option that takes a number of 1 or more.
type count int

// countFlag returns an option that takes a number of 1 or more.
func countFlag(name, usage string, value int) *cli.GenericFlag {
	n := count(value)
	return &cli.GenericFlag{Name: name, Usage: usage, Value: &n}
}

func (n *count) check(text string) error {
	if v, err := strconv.Atoi(text); err != nil || v < 1 {
		return errors.New("want a number of 1 or more")
	}
	return nil
}

func (n *count) Set(text string) error {
	v, _ := strconv.Atoi(text)
	*n = count(v)
	return n.check(text)
}

func (n *count) String() string { return strconv.Itoa(int(*n)) }

// checkValue returns an error if an option cannot have a value.
func checkValue(f cli.Flag, text string) error {
	switch f := f.(type) {
	case *cli.GenericFlag:
		return f.Value.(interface{ check(string) error }).check(text)
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
