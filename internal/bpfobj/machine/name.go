// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// targets are libbpf's names of architectures (__TARGET_ARCH_powerpc) that pkg/kernel has no spelling of,
// because they stand for several.
var targets = map[string][]string{
	"loongarch": {"loongarch64"},
	"mips":      {"mips", "mipsel", "mips64", "mips64el"},
	"powerpc":   {"ppc64", "ppc64le"},
	"s390":      {"s390x"},
	"sparc":     {"sparc64"},
}

// Spelled returns the machines that a word stands for: an architecture in any spelling of pkg/kernel, or as
// libbpf calls it. It returns nil for other words.
func Spelled(word string) []string {
	if l := targets[word]; l != nil {
		return slices.Clone(l)
	}
	if kernel.KnownArch(word) {
		return []string{kernel.CanonicalArch(word)}
	}
	return nil
}

// Any stands for all machines.
const Any = "any"

// Cut cuts MACHINE= off an argument such as x86_64=probe.o, MACHINE being Any, or words of [Spelled] with commas
// between them, and returns the machines, none for Any. It reports false if what is before the = is none: then
// that is part of the path.
func Cut(arg string) (machines []string, path string, ok bool) {
	names, path, ok := strings.Cut(arg, "=")
	if !ok {
		return nil, arg, false
	}
	if names == Any {
		return nil, path, true
	}
	for n := range strings.SplitSeq(names, ",") {
		l := Spelled(n)
		if l == nil {
			return nil, arg, false
		}
		machines = append(machines, l...)
	}
	return machines, path, true
}

// OfOrder returns those of machines that have a byte order.
func OfOrder(machines []string, order binary.ByteOrder) []string {
	return slices.DeleteFunc(slices.Clone(machines), func(arch string) bool {
		m := Named(arch)
		return m != nil && m.Order != order
	})
}

// OfFileName returns the machines that an object is for by its file's name, nil if that has none. These
// are the names that have one, x86 standing for any architecture:
//
//	probe_x86_bpfel.o probe_x86_bpfel_test.o    bpf2go
//	probe_bpfel_x86.o                           bpf2go up to 0.11
//	x86.bpf.o probe_x86.bpf.o probe.bpf.x86.o   libbpf's users; also with - for _
//	probe_x86.o probe.x86.o
func OfFileName(name string, order binary.ByteOrder) []string {
	name = strings.TrimSuffix(path.Base(filepath.ToSlash(name)), ".o")
	name = strings.NewReplacer("x86_64", "amd64", "x86-64", "amd64").Replace(name)
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("._-", r) })
	isBPF := func(w string) bool { return w == "bpf" || w == "bpfel" || w == "bpfeb" }
	end := len(words)
	if i := slices.IndexFunc(words, func(w string) bool { return w == "bpfel" || w == "bpfeb" }); i > 0 && i == len(words)-2 {
		if l := ofWord(words[i-1], order); l != nil {
			return l // what follows is bpf2go's -output-suffix
		}
	}
	for end > 0 && isBPF(words[end-1]) {
		end--
	}
	if end == 0 {
		return nil
	}
	return ofWord(words[end-1], order)
}

func ofWord(word string, order binary.ByteOrder) []string {
	if word == "386" { // a number, more often than not
		return nil
	}
	if l := OfOrder(Spelled(word), order); len(l) > 0 {
		return l
	}
	return nil
}
