// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// finishKernel yields a kernel with its modules and extras.
func (a *assembler) finishKernel(b *blob, last bool) {
	a.found++
	single := last && (a.found == 1 || len(a.source.files) > 1) && a.kernelsIn(b.file) == 1
	key := a.key(b, single)
	if !a.source.opts.selectsMet(key) {
		a.takeModules(b, key)
		a.takeExtras(b, key)
		return
	}
	k := Kernel{
		Key: key, Name: key.String(), Path: b.path, Arch: kernel.CanonicalArch(b.arch),
		BTF: b.data, Made: b.made, From: b.from, mem: a.mem,
	}
	if !key.Known() {
		k.Name = b.path
		if single {
			k.Name = b.file.Path
		}
	}
	k.Modules = a.takeModules(b, key)
	if b.made.By != "" && len(k.Modules) > 0 {
		k.Modules = nil
		a.Fail(skip.Wrap(b.path, "", errors.New("its modules' BTF is left out: it goes with other BTF than what "+b.made.By+" makes")))
	}
	a.encodeModules(b, &k)
	k.Extras = a.takeExtras(b, key)
	k.shared = !a.alone(b)
	if !a.sized {
		k.SourceSize, a.sized = a.source.Size, true
	}
	a.Abort = a.give(&k)
	for _, err := range k.unfit {
		a.Fail(err)
	}
}

// give yields a kernel. A panic of yield is an error of this kernel; with mapped files, mappings.guard handles it.
func (a *assembler) give(k *Kernel) (err error) {
	if len(a.maps) > 0 {
		return a.yield(k)
	}
	if d := workers.Catch(a.Ctx, func() { err = a.yield(k) }); d != nil {
		a.Fail(skip.Wrap(k.Path, "", d))
	}
	return err
}

// alone reports whether a.mem has all of a kernel with its modules, and nothing else.
func (a *assembler) alone(b *blob) bool {
	for i := range a.pending {
		if o := &a.pending[i]; o.mapped || o != b && (!o.split || !o.used) {
			return false
		}
	}
	return len(a.extras) == 0
}

// kernelsIn counts the pending kernels of one file on disk.
func (a *assembler) kernelsIn(p *diskFile) (n int) {
	for i := range a.pending {
		if b := &a.pending[i]; !b.split && b.file == p {
			n++
		}
	}
	return n
}

// key returns the key of a kernel, from its path and its content. The path of a tree takes precedence over the names inside a file with
// a single kernel. The release in an image takes precedence over all names, unless the user says where names have it:
// vmlinuz-0-rescue-…, kernel8.img and vmlinuz-6.1.7.old have others.
func (a *assembler) key(b *blob, single bool) kernel.Key {
	k := b.file.key
	var member kernel.Key
	if b.member != b.file.Path {
		member = a.source.opts.key(b.member, b.member, "")
	}
	switch {
	case single && k.Known():
	case member.Known():
		k = member
	default:
		k.Release = cmp.Or(b.rel, member.Release, k.Release)
	}
	if k.Arch == "" {
		k.Arch = b.arch
	}
	if b.own != "" && !a.source.opts.namesRelease(b.file.Path) && !a.source.opts.namesRelease(b.member) {
		k.Release = b.own
	}
	if k.Release == "" && k.ID != "" && k.Arch != "" {
		k.Release = naming.ValidRelease(naming.Stem(path.Base(b.member))) // a tree's vmlinux.btf
	}
	return k.Canonical()
}

// takeModules returns the pending modules that belong to a kernel.
func (a *assembler) takeModules(of *blob, key kernel.Key) (modules []Module) {
	var taken []*blob
	for i := range a.pending {
		if b := &a.pending[i]; b.split && b.dwarf == nil && !b.used && a.belongs(b, of, key) {
			b.used, b.module = true, naming.ModuleName(b.member)
			taken = append(taken, b)
		}
	}
	slices.SortStableFunc(taken, func(x, y *blob) int {
		return cmp.Or(strings.Compare(x.module, y.module), strings.Compare(x.path, y.path))
	})
	var kernelBTF lazyBTF
	for _, b := range taken {
		if !a.source.opts.Modules.Has(b.module) {
			continue
		}
		if err := kernel.CheckName(b.module); err != nil {
			a.Fail(skip.Wrap(b.path, "", fmt.Errorf("module: %w", err)))
			continue
		}
		if n := len(modules); n > 0 && modules[n-1].Name == b.module {
			a.Fail(skip.Wrap(b.path, "", fmt.Errorf("second module %s", b.module)))
			continue
		}
		data := b.data
		if b.base != nil {
			var err error
			if data, err = kernelBTF.relocate(a.Ctx, of.data, data, b.base); err != nil {
				a.Fail(skip.Wrap(b.path, "", fmt.Errorf("%w: %w", ErrUnfit, err)))
				continue
			}
		}
		modules = append(modules, Module{Name: b.module, Path: b.path, BTF: data})
	}
	return modules
}

// lazyBTF is the BTF of a kernel, which is loaded for the first module with a base of its own.
type lazyBTF struct {
	loaded *btf.BTF
	err    error
}

// relocate is btf.Relocate on top of a kernel. A base that is all of the kernel's BTF needs no relocation.
func (l *lazyBTF) relocate(ctx context.Context, kernel, module, base []byte) ([]byte, error) {
	if bytes.Equal(base, kernel) {
		return module, nil
	}
	if l.loaded == nil && l.err == nil {
		l.loaded = new(btf.BTF)
		l.err = l.loaded.Load(ctx, kernel, nil)
	}
	if l.err != nil {
		return nil, l.err
	}
	return btf.Relocate(ctx, module, base, l.loaded)
}

// belongs reports whether a module in the same file, or in one of its modules, is the kernel's: by the release in a package's tree, else by
// its directory.
func (a *assembler) belongs(mod, kernel *blob, key kernel.Key) bool {
	if mod.file != kernel.file {
		return true
	}
	if mod.rel != "" && key.Release != "" {
		return mod.rel == key.Release || mod.rel == kernel.rel
	}
	dir := path.Dir(mod.member)
	return dir == path.Dir(kernel.member) || path.Base(dir) == key.Release || naming.Within(dir, path.Dir(kernel.member))
}

// takeExtras returns the pending extras that belong to a kernel.
func (a *assembler) takeExtras(b *blob, key kernel.Key) (x Extras) {
	a.extras = slices.DeleteFunc(a.extras, func(e extra) bool {
		if !e.belongs(b, key) {
			return false
		}
		switch {
		case e.kind == naming.Config && x.Config == nil:
			x.Config = e.data
		case e.kind == naming.Symbols && x.Symbols == nil:
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
		return e.rel == key.Release || e.rel == b.rel
	case e.file != b.file:
		return true
	}
	name := naming.StripCompression(e.member)
	name = strings.TrimSuffix(strings.TrimSuffix(name, naming.ConfigSuffix), naming.SymbolsSuffix)
	return name == path.Join(path.Dir(b.member), naming.Stem(path.Base(b.member)))
}
