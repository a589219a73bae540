// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// large writes a made-up object with that many relocation records, which ask
// that many questions.
func large(args []string) error {
	if len(args) != 3 {
		return errors.New("want RECORDS QUESTIONS OUT")
	}
	var c testinput.LargeConfig
	for i, to := range []*int{&c.Records, &c.Questions} {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			return fmt.Errorf("%q is no number: %w", args[i], err)
		}
		*to = n
	}
	return os.WriteFile(args[2], testinput.Large(c), 0o644)
}
