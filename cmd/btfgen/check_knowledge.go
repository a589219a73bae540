// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
)

// typesFlag names types that the loader supplies and kernels do not have.
func typesFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "types", Usage: "add the types in `FILE`, BTF or ELF, to each kernel's, as the loader does"}
}

// readTypes reads the files of --types.
func readTypes(c *cli.Context) (all []check.Types, err error) {
	for _, path := range c.StringSlice("types") {
		corp, err := corpus.Open(c.Context, []string{path}, corpus.Options{})
		if err != nil {
			return nil, fmt.Errorf("--types: %w", err)
		}
		var s corpus.Scratch
		var found []check.Types
		for _, f := range corp.Files {
			if err := f.Read(c.Context, &s, func(k *corpus.Kernel) error {
				found = append(found, check.Types{Name: path, BTF: bytes.Clone(k.BTF)})
				return nil
			}); err != nil {
				return nil, fmt.Errorf("--types: %w", err)
			}
		}
		if len(found) != 1 {
			return nil, usagef("--types %s: holds %d BTFs, want one", path, len(found))
		}
		all = append(all, found...)
	}
	return all, nil
}
