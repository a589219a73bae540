// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command bench-helper does for scripts/bench.sh what a shell does badly:
//
//	bench-helper measure [-each FILE] [-jobs N] COMMAND ARG...
//	bench-helper objects OUT SOURCE...
//	bench-helper variants COUNT OUT KERNELS
//	bench-helper another IN OUT
//	bench-helper large RECORDS QUESTIONS OUT
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
		fmt.Fprintln(os.Stderr, "bench-helper: want measure, objects, variants, another or large; scripts/bench.sh calls this")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench-helper %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
