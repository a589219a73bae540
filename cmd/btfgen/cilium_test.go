// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf/btf"
)

// relocateAsCilium is the command cj OBJECT BTF [MODULE...]. It prints how cilium/ebpf resolves the relocations of an object, as its loader
// relocates a program with one local type.
func relocateAsCilium(args []string) error {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	_, ext, err := btf.LoadSpecAndExtInfosFromReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	var specs []*btf.Spec
	for _, path := range args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		load := func() (*btf.Spec, error) { return btf.LoadSpecFromReader(bytes.NewReader(data)) }
		if len(specs) > 0 {
			load = func() (*btf.Spec, error) { return btf.LoadSplitSpecFromReader(bytes.NewReader(data), specs[0]) }
		}
		s, err := load()
		if err != nil {
			return err
		}
		specs = append(specs, s)
	}
	for _, section := range slices.Sorted(maps.Keys(ext.CORERelos)) {
		var relos []*btf.CORERelocation
		for _, r := range ext.CORERelos[section] {
			relos = append(relos, r.Relo)
		}
		fixups, err := btf.CORERelocate(relos, specs, binary.LittleEndian, func(btf.Type) (btf.TypeID, error) { return 1, nil })
		if err != nil {
			fmt.Printf("%s: %v\n", section, err)
		}
		for i := range fixups {
			fmt.Printf("%s: %s\n", section, &fixups[i])
		}
	}
	return nil
}
