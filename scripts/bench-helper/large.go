// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"os"
	"strconv"

	"github.com/btfgen/btfgen/internal/testinput"
)

// large writes a made-up object with that many relocation records.
func large(args []string) error {
	if len(args) != 2 {
		return errors.New("want RECORDS OUT")
	}
	records, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], testinput.Large(testinput.LargeConfig{Records: records}), 0o644)
}
