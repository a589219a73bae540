// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// optionError is a mistake in an option.
type optionError struct {
	name  string  // name of the option
	value *string // wrong value, nil if the mistake is not in a value
	from  string  // option.from, or "" before commandLine.locate sets it
	err   error
}

// optionf returns a usage error about an option.
func optionf(name, format string, args ...any) error {
	return usageError{&optionError{name: name, err: fmt.Errorf(format, args...)}}
}

// valuef returns a usage error about a value of an option.
func valuef(name, value, format string, args ...any) error {
	return usageError{&optionError{name: name, value: &value, err: fmt.Errorf(format, args...)}}
}

// Error names the option as the user did, or the place in the file: `btfgen.yaml:3:12: --shard "3": want I/N`.
func (e *optionError) Error() string {
	text := "--" + e.name
	switch {
	case strings.HasPrefix(e.from, "-"):
		text = e.from
	case e.from != "":
		text = e.from + ": " + text
	}
	if e.value != nil {
		text += fmt.Sprintf(" %q:", *e.value)
	}
	return text + " " + e.err.Error()
}

func (e *optionError) Unwrap() error { return e.err }

// locate adds to an error about an option where its value comes from.
func (l *commandLine) locate(err error) {
	var e *optionError
	if !errors.As(err, &e) || e.from != "" {
		return
	}
	for _, o := range l.options {
		if o.name() == e.name && (e.value == nil || *e.value == o.value) {
			e.from = o.from
		}
	}
}
