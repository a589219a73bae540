// SPDX-License-Identifier: Apache-2.0

// Package store writes the kernels of a corpus to files: Pack and Fetch to a .btfc file, Extract to a tree of raw BTF.
//
// Files are read by several workers at once, but their kernels are taken in order, so results do not depend on the number of workers. Of
// several kernels with one key the first is stored, and those with other BTF are reported.
package store

import "github.com/btfgen/btfgen/internal/corpus"

// Contents counts kernels by what is stored with them.
type Contents struct {
	WithModules int            `json:"with_modules"`
	WithConfig  int            `json:"with_config"`
	WithSymbols int            `json:"with_symbols"`
	Made        map[string]int `json:"made_of_dwarf,omitempty"` // kernels by the program that made their BTF
}

// add adds what is stored with a kernel.
func (c *Contents) add(k *corpus.Kernel) {
	if len(k.Modules) > 0 {
		c.WithModules++
	}
	if len(k.Config) > 0 {
		c.WithConfig++
	}
	if len(k.Symbols) > 0 {
		c.WithSymbols++
	}
	if k.Made.By != "" {
		if c.Made == nil {
			c.Made = make(map[string]int)
		}
		c.Made[k.Made.By]++
	}
}
