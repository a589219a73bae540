// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/cilium/ebpf"
	cbtf "github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/workers"
)

// loader loads objects into the running kernel.
type loader struct {
	targets map[string]string
	kernel  *core.Kernel
	added   []*core.Kernel    // types that loaders add to the kernel's
	extra   []*cbtf.Spec      // the same for cilium/ebpf
	cache   *cbtf.Cache       // of the kernel's BTF
	config  map[string]string // the kernel's configuration, by name; nil until it is needed
}

// objects loads objects one after the other and reports each program.
func objects(j *Job, report func(Event)) error {
	ctx := context.Background()
	corp, err := corpus.Open(ctx, []string{"/sys/kernel/btf"}, corpus.Options{})
	if err != nil {
		return err
	}
	return corp.Files[0].Read(ctx, func(k *corpus.Kernel) error {
		l := &loader{targets: j.Targets, kernel: new(core.Kernel), cache: cbtf.NewCache()}
		if err := k.Load(ctx, l.kernel, k.Name); err != nil {
			return err
		}
		if err := l.kernel.CheckRecursion(ctx); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		for i := range j.Types {
			if err := l.add(ctx, file(typesPath, i)); err != nil {
				return err
			}
		}
		for i := range j.Objects {
			if err := l.object(ctx, i, report); err != nil {
				report(refused(Event{Kind: Object, Object: i}, err))
			}
			debug.FreeOSMemory()
		}
		return nil
	})
}

// add reads types that loaders add to the kernel's.
func (l *loader) add(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	t := new(core.Kernel)
	if err := t.Load(ctx, path, data); err != nil {
		return err
	}
	if err := t.CheckRecursion(ctx); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	spec, err := cbtf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	l.added, l.extra = append(l.added, t), append(l.extra, spec)
	return nil
}

// object loads each program of an object and reports it. The error says why the object cannot be read.
func (l *loader) object(ctx context.Context, i int, report func(Event)) error {
	data, err := os.ReadFile(file(objectsPath, i))
	if err != nil {
		return err
	}
	var o *object
	if d := workers.Catch(ctx, func() { o, err = l.read(ctx, data) }); d != nil || err != nil {
		return cmp.Or(d, err)
	}
	all := &ebpf.CollectionSpec{Maps: maps.Clone(o.spec.Maps), Types: o.spec.Types, ByteOrder: o.spec.ByteOrder}
	maps.DeleteFunc(all.Maps, func(_ string, m *ebpf.MapSpec) bool { return m.Type == ebpf.StructOpsMap }) // they need programs
	coll, err := l.load(all)
	e := Event{Kind: Object, Object: i}
	if o.unread != nil {
		e.Alone = o.unread.Error()
	}
	report(refused(e, cmp.Or(o.missing, err, createStructOps(o.spec))))
	coll.Close()
	for _, name := range slices.Sorted(maps.Keys(o.spec.Programs)) {
		report(l.program(Event{Kind: Program, Object: i, Name: name}, o))
	}
	return nil
}

// object is an object to load.
type object struct {
	spec      *ebpf.CollectionSpec // as libbpf has it, without CO-RE relocations
	relocator *relocator
	alone     *ebpf.CollectionSpec // as cilium/ebpf reads it; nil if it does not
	unread    error                // why it does not
	missing   error                // why libbpf loads nothing of it

	registered map[string]string // Event.Attach of struct_ops programs, by the struct's name; nil until it is needed
}

// read reads an object as both loaders do.
func (l *loader) read(ctx context.Context, data []byte) (*object, error) {
	parsed, err := check.Parse(ctx, "object", data)
	if err != nil {
		return nil, err
	}
	if own := parsed.Relocations().BTF(); own != nil {
		if err := btf.CheckRecursion(ctx, own); err != nil {
			return nil, err
		}
	}
	changed, err := readable(data, parsed)
	if err != nil {
		return nil, err
	}
	o := &object{}
	if o.spec, err = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(changed)); err != nil {
		return nil, err
	}
	if o.relocator, err = newRelocator(ctx, parsed, l.kernel, l.added...); err != nil {
		return nil, err
	}
	externs, err := l.resolve(parsed)
	if m := (*missing)(nil); err != nil && !errors.As(err, &m) {
		return nil, err
	}
	o.missing = cmp.Or(l.unopened(parsed), err, perfArrays(parsed))
	externs.complete(o.spec)
	l.prepare(o.spec)
	if o.alone = o.spec; !bytes.Equal(data, changed) {
		if o.alone, o.unread = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data)); o.unread == nil {
			l.prepare(o.alone)
		}
	}
	return o, nil
}

// unopened returns why libbpf gives up on an object before it creates a map, nil if it does not.
func (l *loader) unopened(o *check.Object) error {
	for _, f := range o.Unopened(check.Libbpf) {
		return fmt.Errorf("%s: libbpf does not open the object [%s]: %w", f.Subject, f.Code, syscall.ENOTSUP)
	}
	for _, m := range o.StructOps {
		if m.Optional {
			continue
		}
		kernel, err := l.cache.Kernel()
		if err != nil {
			return err
		}
		var t *cbtf.Struct
		if err := kernel.TypeByName(check.StructOpsPrefix+m.Type, &t); err != nil {
			return fmt.Errorf("map %s: the kernel has no struct_ops %s: %w", m.Name, m.Type, syscall.ENOENT)
		}
	}
	return nil
}

// perfArrays creates an object's perf event arrays as libbpf does, with the sizes of their definitions; cilium/ebpf corrects
// these. It returns the error of the first that the kernel refuses. The tool sets sizes of 0.
func perfArrays(o *check.Object) error {
	for i := range o.Maps {
		m := &o.Maps[i]
		if m.Type != uint32(ebpf.PerfEventArray) {
			continue
		}
		attr := struct{ kind, key, value, max, flags uint32 }{m.Type, cmp.Or(m.KeySize, 4), cmp.Or(m.ValueSize, 4), cmp.Or(m.MaxEntries, 1), m.Flags}
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno != 0 {
			return fmt.Errorf("map %s: libbpf cannot create a perf event array with keys of %d bytes and values of %d: %w", m.Name, attr.key, attr.value, errno)
		}
		unix.Close(int(fd))
	}
	return nil
}

// createStructOps creates the maps of struct_ops without their programs, as libbpf does. It returns the first error.
func createStructOps(spec *ebpf.CollectionSpec) error {
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		if spec.Maps[name].Type != ebpf.StructOpsMap {
			continue
		}
		empty := spec.Maps[name].Copy()
		empty.Contents = nil
		m, err := ebpf.NewMap(empty)
		if err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
		m.Close()
	}
	return nil
}

// register registers each struct_ops of an object, if all its programs load, and removes it. A struct in several maps is not tried:
// cilium/ebpf does not separate their programs.
func (l *loader) register(o *object) {
	o.registered = make(map[string]string)
	count := make(map[string]int)
	for _, m := range o.spec.Maps {
		if m.Type == ebpf.StructOpsMap {
			count[m.Value.TypeName()]++
		}
	}
	for name, m := range o.spec.Maps {
		if m.Type != ebpf.StructOpsMap || count[m.Value.TypeName()] > 1 {
			continue
		}
		ops := m.Value.TypeName()
		all := &ebpf.CollectionSpec{Maps: make(map[string]*ebpf.MapSpec), Programs: make(map[string]*ebpf.ProgramSpec), Types: o.spec.Types, ByteOrder: o.spec.ByteOrder}
		for program, p := range o.spec.Programs {
			if of, _, _ := strings.Cut(p.AttachTo, ":"); p.Type != ebpf.StructOps || of != ops {
				continue
			}
			maps.Copy(all.Maps, one(o.spec, program).Maps)
			all.Programs[program] = p
			if relocated, err := o.relocator.program(p); err == nil {
				all.Programs[program] = relocated
			}
		}
		coll, err := l.load(all)
		coll.Close()
		if err != nil {
			continue // reported with the program
		}
		all.Maps[name] = m
		o.registered[ops] = attached(func() (io.Closer, error) { return l.registerMap(all, name) })
	}
}

// registerMap loads a map of struct_ops with its programs, and registers it.
func (l *loader) registerMap(all *ebpf.CollectionSpec, name string) (io.Closer, error) {
	coll, err := l.load(all)
	defer coll.Close()
	switch {
	case err != nil:
		return nil, err
	case all.Maps[name].Flags&unix.BPF_F_LINK != 0:
		return link.AttachStructOps(link.StructOpsOptions{Map: coll.Maps[name]})
	}
	return nil, coll.Maps[name].Delete(uint32(0)) // loading has registered it
}

// program loads a program twice: as cilium/ebpf does by itself, and relocated as libbpf does.
func (l *loader) program(e Event, o *object) Event {
	p := o.spec.Programs[e.Name]
	if p.Type == ebpf.UnspecifiedProgram {
		return refused(e, errors.New("its section does not say what type of program it is"))
	}
	if o.alone != nil {
		coll, err := l.load(one(o.alone, e.Name))
		coll.Close()
		if e.Alone = "loads"; err != nil {
			e.Alone = err.Error()
		}
	}
	if o.missing != nil {
		return refused(e, o.missing)
	}
	own := one(o.spec, e.Name)
	relocated, err := o.relocator.program(p)
	if err != nil {
		e = refused(e, err)
		e.Errno = int(syscall.EINVAL)
		return e
	}
	own.Programs[e.Name] = relocated
	if p.Type == ebpf.Tracing { // cilium/ebpf looks in all modules
		_, relocated.AttachTo = check.CutModule(p.AttachTo)
	}
	coll, err := l.load(own)
	if err != nil {
		e = refused(e, err)
		e.Extern = missingExtern(err)
		return e
	}
	defer coll.Close()
	e.Attach = l.tryAttach(o, p, coll.Programs[e.Name])
	return e
}

// prepare sets targets that the user gives and sizes that tools set, and drops what would outlive the object.
func (l *loader) prepare(spec *ebpf.CollectionSpec) {
	for name, to := range l.targets {
		if p := spec.Programs[name]; p != nil {
			p.AttachTo = to
		}
	}
	for _, m := range spec.Maps {
		if m.MaxEntries == 0 && hasEntries(m.Type) {
			m.MaxEntries = 1
			if m.Type == ebpf.RingBuf || m.Type == ebpf.UserRingbuf {
				m.MaxEntries = uint32(os.Getpagesize())
			}
		}
		if m.ValueSize == 0 && m.KeySize != 0 && m.Type != ebpf.PerfEventArray {
			m.ValueSize = 8
		}
		m.Pinning = ebpf.PinNone
		if m.Type == ebpf.ProgramArray {
			m.Contents = nil // would load the programs in it
		}
	}
}

// hasEntries reports whether maps of a type need max_entries. Loaders set that of perf event arrays; local storage has none.
func hasEntries(t ebpf.MapType) bool {
	switch t {
	case ebpf.PerfEventArray, ebpf.StructOpsMap, ebpf.SkStorage, ebpf.InodeStorage, ebpf.TaskStorage, ebpf.CGroupStorage, ebpf.PerCPUCGroupStorage, ebpf.CgroupStorage:
		return false
	}
	return true
}

// one returns a program of an object with the maps that it needs.
func one(spec *ebpf.CollectionSpec, name string) *ebpf.CollectionSpec {
	p := spec.Programs[name]
	out := &ebpf.CollectionSpec{
		Maps: make(map[string]*ebpf.MapSpec), Programs: map[string]*ebpf.ProgramSpec{name: p},
		Types: spec.Types, ByteOrder: spec.ByteOrder,
	}
	for i := range p.Instructions {
		if in := &p.Instructions[i]; in.IsLoadFromMap() {
			addMap(out.Maps, spec.Maps, in.Reference())
		}
	}
	return out
}

// addMap adds a map and the maps in it.
func addMap(to, from map[string]*ebpf.MapSpec, name string) {
	m := from[name]
	if m == nil || to[name] != nil {
		return
	}
	to[name] = m
	for _, kv := range m.Contents {
		if inner, ok := kv.Value.(string); ok {
			addMap(to, from, inner)
		}
	}
}

// load loads a collection. A panic of the library becomes an error. The collection is never nil.
func (l *loader) load(spec *ebpf.CollectionSpec) (coll *ebpf.Collection, err error) {
	if d := workers.Catch(context.Background(), func() {
		coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{ExtraRelocationTargets: l.extra}, Cache: l.cache})
	}); d != nil {
		err = d
	}
	if coll == nil {
		coll = new(ebpf.Collection)
	}
	return coll, err
}

// refused adds an error to an event, if there is one.
func refused(e Event, err error) Event {
	if err == nil {
		return e
	}
	e.Error = err.Error()
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
		e.Errno = int(no)
	case e.Kind == Program && errors.Is(err, ebpf.ErrNotSupported):
		e.Errno = int(syscall.EOPNOTSUPP)
	}
	var v *ebpf.VerifierError
	if errors.As(err, &v) {
		e.Log = strings.Join(v.Log, "\n")
		e.Errno = cmp.Or(e.Errno, int(syscall.EINVAL)) // the library may hide it
	}
	return e
}

// missingExtern reports whether an error is about a missing strong extern. The library has no error value for it.
func missingExtern(err error) bool {
	text := err.Error()
	return strings.Contains(text, ": kfunc ") || strings.Contains(text, "resolve required ksyms") || strings.Contains(text, "kernel is missing symbol")
}

// errNotTried is returned if attaching needs something that the guest lacks or only the tool knows.
var errNotTried = errors.New("not tried")

// tryAttach attaches a program and detaches it. It returns Event.Attach.
func (l *loader) tryAttach(o *object, spec *ebpf.ProgramSpec, p *ebpf.Program) string {
	if spec.Type == ebpf.StructOps {
		if o.registered == nil {
			l.register(o)
		}
		ops, _, _ := strings.Cut(spec.AttachTo, ":")
		return o.registered[ops]
	}
	return attached(func() (io.Closer, error) { return attach(spec, p) })
}

// attached attaches something and detaches it. It returns Event.Attach.
func attached(attach func() (io.Closer, error)) string {
	var err error
	if d := workers.Catch(context.Background(), func() {
		var l io.Closer
		if l, err = attach(); l != nil {
			err = cmp.Or(err, l.Close())
		}
	}); d != nil {
		err = d
	}
	switch {
	case err == nil:
		return Attached
	case errors.Is(err, errNotTried):
		return ""
	}
	return fmt.Sprintf("not attached: %v", err)
}
