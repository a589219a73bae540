// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readMeasured reads what turns printed. Empty input has no measurements.
func readMeasured(r io.Reader) (measured, error) {
	m := make(measured)
	err := json.NewDecoder(r).Decode(&m)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return m, err
}

// printLine prints a line of a figure, with the values of the measurements on standard input in place of expressions in braces.
func printLine(args []string) error {
	if len(args) != 2 {
		return errors.New("want FIGURE TEXT")
	}
	m, err := readMeasured(os.Stdin)
	if err != nil {
		return err
	}
	text, err := m.expand(args[1])
	if err != nil {
		return err
	}
	return writeLine(os.Stdout, args[0], text)
}

func writeLine(w io.Writer, figure, text string) error {
	_, err := fmt.Fprintf(w, "%-9s %s\n", figure, text)
	return err
}

var braces = regexp.MustCompile(`\{[^{}]*\}`)

// expand replaces all expressions in a text.
func (m measured) expand(text string) (string, error) {
	var errs []error
	text = braces.ReplaceAllStringFunc(text, func(s string) string {
		value, err := m.format(s[1 : len(s)-1])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s, err))
		}
		return value
	})
	return text, errors.Join(errs...)
}

// format returns the text of an expression:
//
//	memory SIDE      the largest peak memory, in MB
//	failed SIDE      a note on failed runs, or nothing
//	VALUE            in ms
//	FORMAT: VALUE    in the format of package fmt
func (m measured) format(expr string) (string, error) {
	if format, expr, ok := strings.Cut(expr, ": "); ok {
		v, err := m.value(strings.Fields(expr))
		return fmt.Sprintf(format, v), err
	}
	words := strings.Fields(expr)
	if len(words) == 2 && m[words[1]] != nil {
		switch list := m[words[1]].Now; words[0] {
		case "memory":
			return megabytes(list), nil
		case "failed":
			return failures(list), nil
		}
	}
	v, err := m.value(words)
	return milliseconds(v), err
}

// value computes a VALUE from left to right: TERM [OPERATOR TERM]..., with the operators * and /. A TERM is a number, or the median
// of 'cpu SIDE' or 'wall SIDE' in seconds.
func (m measured) value(words []string) (float64, error) {
	v, operator := 1.0, "*"
	for {
		term, rest, err := m.term(words)
		if err != nil {
			return 0, err
		}
		if operator == "/" {
			term = 1 / term
		}
		v *= term
		if len(rest) == 0 {
			return v, nil
		}
		if operator = rest[0]; operator != "*" && operator != "/" {
			return 0, fmt.Errorf("%q is not an operator", operator)
		}
		words = rest[1:]
	}
}

func (m measured) term(words []string) (value float64, rest []string, err error) {
	if len(words) == 0 {
		return 0, nil, errors.New("an operand is missing")
	}
	of := map[string]func(usage) float64{"cpu": cpu, "wall": wall}[words[0]]
	if of == nil {
		v, err := strconv.ParseFloat(words[0], 64)
		return v, words[1:], err
	}
	if len(words) < 2 || m[words[1]] == nil {
		return 0, nil, fmt.Errorf("no measurement for %q", words)
	}
	return median(m[words[1]].Now, of), words[2:], nil
}

func milliseconds(v float64) string { return fmt.Sprintf("%.1f ms", v*1e3) }

func megabytes(list []usage) string {
	return fmt.Sprintf("%.0f MB", slices.Max(sorted(list, memory))/1e6)
}

// failures returns a note on failed runs, or "".
func failures(list []usage) string {
	runs, failed := 0, 0
	for _, u := range list {
		runs += u.Runs
		failed += u.Failed
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf(" (failed in %d of %d runs)", failed, runs)
}

// compareVersions prints how the measurements on standard input compare with those of the earlier version.
func compareVersions(args []string) error {
	if len(args) != 2 {
		return errors.New("want FIGURE SPEED")
	}
	m, err := readMeasured(os.Stdin)
	if err != nil {
		return err
	}
	speed, err := os.OpenFile(args[1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(m.compare(args[0], os.Stdout, speed), speed.Close())
}

// compare writes a line for each name with measurements of both versions. It writes the ratios to speed, too. It compares the
// quickest runs, because other programs and idle workers of Go's garbage collector only add to CPU time.
func (m measured) compare(figure string, w, speed io.Writer) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(m)) {
		s := m[name]
		if len(s.Before) == 0 {
			continue
		}
		if now, before := failures(s.Now), failures(s.Before); now+before != "" {
			errs = append(errs, writeLine(w, figure, fmt.Sprintf("%s: not compared, now%s, before%s", name, now, before)))
			continue
		}
		now, before := sorted(s.Now, cpu)[0], sorted(s.Before, cpu)[0]
		errs = append(errs, writeLine(w, figure, fmt.Sprintf(
			"%s: CPU time at least %s, before %s: %.3f times as much; peak memory %s, before %s", name, milliseconds(now),
			milliseconds(before), now/before, megabytes(s.Now), megabytes(s.Before))))
		_, err := fmt.Fprintf(speed, "%s %s %.3f\n", figure, name, now/before)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
