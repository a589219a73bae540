// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command benchhelper does the parts of scripts/bench.sh that are hard in a shell:
//
//	benchhelper measure [-each FILE] [-jobs N] COMMAND ARG...
//	benchhelper objects OUT SOURCE...
//	benchhelper variants COUNT OUT KERNELS
//	benchhelper another IN OUT
//	benchhelper large RECORDS QUESTIONS OUT
package main

import (
	"fmt"
	"os"
)

func main() {
	commands := map[string]func(args []string) error{
		"measure":  measure,
		"objects":  objects,
		"variants": variants,
		"another":  another,
		"large":    large,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "benchhelper: want measure, objects, variants, another or large; scripts/bench.sh calls this")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "benchhelper %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
