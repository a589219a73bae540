// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Extras are the configuration and the symbols of a kernel. They are read only with Options.Extras.
//
// Packages have them as boot/config-RELEASE and boot/System.map-RELEASE, or as lib/modules/RELEASE/config and System.map. A directory has
// them next to the kernel's file under these names, or under its name with .config or .kallsyms instead of .btf. They may be compressed.
// Corpora in one file and the running kernel have them, too.
//
// Config has the lines of the kernel's configuration that set something, and the one with its version. Symbols has a line for each function
// and variable, "t NAME" or "d NAME", followed by " [MODULE]" for those of a loaded module. Nil is unknown: the System.map of some
// distributions only says where the real one is.
type Extras = btfc.Extras

// extraKind identifies one of the extras.
type extraKind uint8

const (
	noExtra extraKind = iota
	extraConfig
	extraSymbols
)

var extraNames = [...]string{"", "config", "symbols"}

// Suffixes of the names of extras beside a kernel's file.
const (
	ConfigSuffix  = ".config"
	SymbolsSuffix = ".kallsyms"
)

// extraOf returns the kind of extra that a file is, by its name, and the release in its path, if any.
func extraOf(name string) (kind extraKind, release string) {
	base := stripCompression(path.Base(name))
	for prefix, kind := range map[string]extraKind{"config": extraConfig, "System.map": extraSymbols} {
		if r, ok := strings.CutPrefix(base, prefix+"-"); ok {
			return kind, validRelease(startsWithDigit(r))
		}
		if rel := releaseFromTree(name); base == prefix && rel != "" {
			return kind, rel
		}
	}
	switch {
	case strings.HasSuffix(base, ConfigSuffix):
		return extraConfig, ""
	case strings.HasSuffix(base, SymbolsSuffix):
		return extraSymbols, ""
	}
	return noExtra, ""
}

// extraFiles returns the files with the extras of the kernel in a file.
func extraFiles(f *part) (parts []part) {
	dir, base := filepath.Dir(f.path), path.Base(f.abs)
	names := map[extraKind][]string{
		extraConfig:  {filepath.Join(dir, stem(base)+ConfigSuffix)},
		extraSymbols: {filepath.Join(dir, stem(base)+SymbolsSuffix)},
	}
	if rel := f.key.Release; rel != "" && validRelease(rel) == rel {
		names[extraConfig] = append(names[extraConfig], filepath.Join(dir, "config-"+rel))
		names[extraSymbols] = append(names[extraSymbols], filepath.Join(dir, "System.map-"+rel))
		if releaseFromTree(f.abs) == rel { // lib/modules/RELEASE/vmlinuz
			names[extraConfig] = append(names[extraConfig], filepath.Join(dir, "config"))
			names[extraSymbols] = append(names[extraSymbols], filepath.Join(dir, "System.map"))
		}
	}
	if f.abs == kernel.HostBTF {
		names[extraConfig] = []string{"/proc/config.gz", "/boot/config-" + f.key.Release}
		names[extraSymbols] = []string{"/proc/kallsyms"}
	}
	for _, kind := range []extraKind{extraConfig, extraSymbols} {
		if p, ok := firstFile(names[kind]); ok {
			p.extra = kind
			parts = append(parts, p)
		}
	}
	return parts
}

// firstFile returns the first file of these names that exists, compressed or not.
func firstFile(names []string) (part, bool) {
	for _, name := range names {
		for _, suffix := range append([]string{""}, suffixes[:6]...) {
			if fi, err := os.Stat(name + suffix); err == nil && fi.Mode().IsRegular() {
				return part{path: name + suffix, size: fi.Size()}, true
			}
		}
	}
	return part{}, false
}

// extra is an extra that was read.
type extra struct {
	kind   extraKind
	part   *part
	member string
	rel    string
	data   []byte
}

// addExtra reads a stream with an extra.
func (a *assembler) addExtra(in *input) error {
	var data []byte
	var err error
	what := extraNames[in.extra]
	if in.extra == extraConfig {
		data, err = readConfig(in.r)
	} else {
		data, err = readSymbols(in.r)
	}
	if err != nil {
		return wrap(in.path, what, err)
	}
	if data == nil {
		return nil
	}
	if n := len(a.extras); n >= limits.Extras {
		return wrap(in.path, what, fmt.Errorf("left out: more than %d wait for their kernels", limits.Extras))
	}
	if err := a.s.task.Take(int64(len(data))); err != nil {
		return err
	}
	_, rel := extraOf(in.member)
	a.extras = append(a.extras, extra{in.extra, a.current, in.member, cmp.Or(rel, in.rel), data})
	return nil
}

// lines calls f for each line, whose bytes are valid until it returns.
func lines(r *bufio.Reader, f func(line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4<<10), limits.ExtraLine)
	for s.Scan() {
		if bytes.IndexByte(s.Bytes(), 0) >= 0 {
			return errors.New("a NUL byte in a line")
		}
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line of more than %d bytes", limits.ExtraLine)
	} else if err != nil {
		return err
	}
	return nil
}

// room returns an error if n bytes more are more than most.
func room(have []byte, n, most int) error {
	if len(have)+n > most {
		return fmt.Errorf("more than %d MiB", most>>20)
	}
	return nil
}

// readConfig returns the lines of a configuration that are kept, or nil.
func readConfig(r *bufio.Reader) (out []byte, err error) {
	any := false
	err = lines(r, func(line []byte) error {
		sets := bytes.HasPrefix(line, []byte("CONFIG_")) && bytes.IndexByte(line, '=') > 0
		if !sets && !bytes.HasSuffix(line, []byte(" Kernel Configuration")) {
			return nil
		}
		any = any || sets
		if err := room(out, len(line)+1, limits.KconfigBytes); err != nil {
			return err
		}
		out = append(append(out, line...), '\n')
		return nil
	})
	if err != nil || !any {
		return nil, err
	}
	return out, nil
}

// uselessSymbols are prefixes of symbols that are not kept.
var uselessSymbols = []string{"__ksymtab_", "__kstrtab_", "__kstrtabns_", "__crc_", "__pfx_"}

// readSymbols returns the symbols of a System.map or /proc/kallsyms, or those in the form of Extras; nil if they are not a kernel's.
func readSymbols(r *bufio.Reader) (out []byte, err error) {
	whole := false
	err = lines(r, func(line []byte) error {
		fields := bytes.Fields(line)
		if len(fields) > 2 && len(fields[0]) > 1 { // an address
			fields = fields[1:]
		}
		if len(fields) < 2 || len(fields[0]) != 1 || len(fields) > 3 || len(fields) == 3 && fields[2][0] != '[' {
			return nil
		}
		kind, name := byte('d'), fields[1]
		switch fields[0][0] {
		case 'T', 't', 'W', 'w', 'i':
			kind = 't'
		case 'U', 'N', 'n':
			return nil
		}
		if slices.ContainsFunc(uselessSymbols, func(p string) bool { return bytes.HasPrefix(name, []byte(p)) }) {
			return nil
		}
		module := []byte(nil)
		if len(fields) == 3 {
			if module = fields[2]; string(module) == "[bpf]" || bytes.HasPrefix(module, []byte("[__builtin__")) {
				return nil // of loaded programs and probes
			}
		}
		whole = whole || kind == 't' && (string(name) == "_stext" || string(name) == "_text")
		if err := room(out, len(name)+len(module)+4, limits.SymbolBytes); err != nil {
			return err
		}
		out = append(append(out, kind, ' '), name...)
		if module != nil {
			out = append(append(out, ' '), module...)
		}
		out = append(out, '\n')
		return nil
	})
	if err != nil || !whole {
		return nil, err
	}
	return out, nil
}

// takeExtras returns the pending extras that belong to a kernel.
func (a *assembler) takeExtras(b *blob, key kernel.Key) (x Extras) {
	a.extras = slices.DeleteFunc(a.extras, func(e extra) bool {
		if !e.belongs(b, key) {
			return false
		}
		switch {
		case e.kind == extraConfig && x.Config == nil:
			x.Config = e.data
		case e.kind == extraSymbols && x.Symbols == nil:
			x.Symbols = e.data
		}
		return true
	})
	return x
}

// belongs says whether extras found in the same file, or in one that goes with it, are the kernel's.
func (e *extra) belongs(b *blob, key kernel.Key) bool {
	switch {
	case e.rel != "" && key.Release != "":
		return e.rel == key.Release
	case e.part != b.part:
		return true
	}
	name := stripCompression(e.member)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ConfigSuffix), SymbolsSuffix)
	return name == path.Join(path.Dir(b.member), stem(path.Base(b.member)))
}
