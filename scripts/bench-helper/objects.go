// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/core"
)

// objects writes every little-endian object with relocations that is found in
// the given files and trees into a directory, each content once, as 01.o, ….
func objects(args []string) error {
	if len(args) < 2 {
		return errors.New("want OUT and at least one SOURCE")
	}
	seen := make(map[string]bool)
	for _, source := range args[1:] {
		err := filepath.WalkDir(source, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			found, err := embedded.ReadFile(path)
			if errors.Is(err, embedded.ErrNone) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, f := range found {
				o, err := core.ParseObject(path, f.Data)
				if err != nil || o.Empty() != "" || o.Order() != binary.LittleEndian || seen[string(f.Data)] {
					continue
				}
				seen[string(f.Data)] = true
				name := filepath.Join(args[0], fmt.Sprintf("%02d.o", len(seen)))
				if err := os.WriteFile(name, f.Data, 0o644); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(seen) == 0 {
		return fmt.Errorf("%s: no BPF object with relocations", strings.Join(args[1:], ", "))
	}
	return nil
}
