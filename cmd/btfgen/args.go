package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// optionsFirst puts the options of a command before its arguments, because the
// library stops looking for options at the first argument and would take the
// rest for arguments without a word. What follows "--" is never an option.
func optionsFirst(cmds []*cli.Command, flags []cli.Flag, args []string) ([]string, error) {
	var options, rest []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(a) > 1 && a[0] == '-' {
			options = append(options, a)
			if takesValue(flags, a) {
				if i++; i == len(args) {
					return nil, usagef("option %s needs a value", a)
				}
				options = append(options, args[i])
			}
			continue
		}
		if c := find(cmds, a); c != nil && len(rest) == 0 {
			sub, err := optionsFirst(c.Subcommands, c.Flags, args[i+1:])
			return append(append(options, a), sub...), err
		}
		rest = append(rest, a)
	}
	if len(rest) > 0 && len(cmds) == 0 {
		options = append(options, "--")
	}
	return append(options, rest...), nil
}

func find(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// takesValue reports whether the next argument belongs to option a.
func takesValue(flags []cli.Flag, a string) bool {
	name := strings.TrimLeft(a, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			d, ok := f.(cli.DocGenerationFlag)
			return ok && d.TakesValue()
		}
	}
	return false
}
