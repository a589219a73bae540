// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command benchhelper measures programs for scripts/bench.sh, and makes some of its inputs:
//
//	benchhelper turns -program BTFGEN -before BTFGEN -out DIRECTORY ROUNDS <PLAN >MEASURED
//	benchhelper line FIGURE TEXT <MEASURED
//	benchhelper compare FIGURE SPEED <MEASURED
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
		"turns":    runTurns,
		"line":     printLine,
		"compare":  compareVersions,
		"objects":  objects,
		"variants": variants,
		"another":  another,
		"large":    large,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "benchhelper: want turns, line, compare, objects, variants, another or large; scripts/bench.sh calls this")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "benchhelper %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
