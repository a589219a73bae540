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

// targets are libbpf's names of architectures (__TARGET_ARCH_powerpc) that pkg/kernel lacks, because they mean several.
var targets = map[string][]string{
	"loongarch": {"loongarch64"},
	"mips":      {"mips", "mipsel", "mips64", "mips64el"},
	"powerpc":   {"ppc64", "ppc64le"},
	"s390":      {"s390x"},
	"sparc":     {"sparc64"},
}

// spelled returns the machines that a word means: an architecture in any spelling of pkg/kernel, or libbpf's name. It
// returns nil for other words.
func spelled(word string) []string {
	if targets[word] == nil && kernel.KnownArch(word) {
		return []string{kernel.CanonicalArch(word)}
	}
	return targets[word]
}

// Any means all machines.
const Any = "any"

// Cut splits an argument such as x86_64=probe.o into machines and path. Before the = are architectures separated by commas,
// or [Any], for which machines is nil. It reports false if the part before the = is anything else, which then belongs to
// the path.
func Cut(arg string) (machines []string, path string, ok bool) {
	names, path, ok := strings.Cut(arg, "=")
	if !ok {
		return nil, arg, false
	}
	if names == Any {
		return nil, path, true
	}
	for n := range strings.SplitSeq(names, ",") {
		l := spelled(n)
		if l == nil {
			return nil, arg, false
		}
		machines = append(machines, l...)
	}
	return machines, path, true
}

// OfOrder returns the machines that have a byte order.
func OfOrder(machines []string, order binary.ByteOrder) []string {
	return slices.DeleteFunc(slices.Clone(machines), func(arch string) bool {
		m := Named(arch)
		return m != nil && m.Order != order
	})
}

// OfFileName returns the machines that an object is for by the name of its file, nil if the name has none. It knows these
// names, where x86 may be any architecture:
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
	n := len(words)
	if n > 2 && isBPF(words[n-2]) && words[n-2] != "bpf" {
		if l := ofWord(words[n-3], order); len(l) > 0 {
			return l // the last word is bpf2go's -output-suffix
		}
	}
	for n > 0 && isBPF(words[n-1]) {
		n--
	}
	if n == 0 {
		return nil
	}
	return ofWord(words[n-1], order)
}

func ofWord(word string, order binary.ByteOrder) []string {
	if word == "386" { // more often a number
		return nil
	}
	return OfOrder(spelled(word), order)
}
