// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Package is a package of a distribution that kernels of the file were looked for in.
type Package struct {
	Series        string // ID/VERSION_ID/ARCH of its repository
	Name, Version string
	Sum           [SumSize]byte // SHA-256 of the package
	Kernel        kernel.Key    // the kernel of the file that it belongs to, or zero
	Reason        string        // why it has no usable kernel, if Kernel is zero
}

// texts returns the package's texts, in the order of the index.
func (p *Package) texts() []*string { return []*string{&p.Series, &p.Name, &p.Version, &p.Reason} }

// appendPackages appends packages to the index of entries. It leaves out those whose kernel is not in the file, and adds
// nothing without packages.
func appendPackages(b []byte, entries []Entry, packages []Package) []byte {
	number := make(map[kernel.Key]int, len(entries))
	for i := range entries {
		number[entries[i].Key.Canonical()] = i + 1
	}
	n, list := 0, []byte(nil)
	for _, p := range packages {
		k := number[p.Kernel.Canonical()]
		if k == 0 && p.Kernel != (kernel.Key{}) {
			continue
		}
		n++
		for _, text := range p.texts() {
			list = append(append(list, strings.ReplaceAll(*text, "\x00", " ")...), 0)
		}
		list = binary.AppendUvarint(append(list, p.Sum[:]...), uint64(k))
	}
	if n == 0 {
		return b
	}
	return append(binary.AppendUvarint(b, uint64(n)), list...)
}

// minPackage is the minimum of bytes of a package in the index.
const minPackage = 4 + SumSize + 1

// parsePackages is the inverse of appendPackages.
func parsePackages(c *btfa.Cursor, entries []Entry) ([]Package, error) {
	if c.Err != nil || c.Len() == 0 {
		return nil, nil
	}
	n := c.Count(min(limits.CorpusPackages, c.Len()), "packages")
	packages := make([]Package, 0, min(n, c.Len()/minPackage))
	for range n {
		var p Package
		for _, text := range p.texts() {
			*text = string(c.Text())
		}
		copy(p.Sum[:], c.Bytes(SumSize))
		k := c.Uvarint()
		switch {
		case c.Err != nil:
			return nil, c.Err
		case k > uint64(len(entries)):
			return nil, fmt.Errorf("package %s: kernel %d of %d", p.Name, k, len(entries))
		case k > 0:
			p.Kernel = entries[k-1].Key
		}
		packages = append(packages, p)
	}
	if n == 0 {
		return nil, errors.New("an empty list of packages")
	}
	return packages, nil
}

// Note adds packages to those that the file was made from. The later of two notes of one package counts.
func (w *Writer) Note(packages ...Package) {
	type id struct{ series, name, version string }
	at := make(map[id]int, len(w.packages))
	for i, p := range w.packages {
		at[id{p.Series, p.Name, p.Version}] = i
	}
	for _, p := range packages {
		here := id{p.Series, p.Name, p.Version}
		if i, ok := at[here]; ok {
			w.packages[i] = p
		} else {
			at[here] = len(w.packages)
			w.packages = append(w.packages, p)
		}
	}
}
