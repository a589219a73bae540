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
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	cbtf "github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// loader loads objects into the running kernel.
type loader struct {
	targets map[string]string
	own     types             // the kernel's types; from a file if it has no BTF
	archive *types            // the archive's types for the kernel; nil without an archive
	added   []types           // types that loaders add to the kernel's
	cache   *cbtf.Cache       // cache of the kernel's BTF
	config  map[string]string // settings of the kernel by name; nil until needed
	noData  bool              // the kernel is older than 5.2, and has no maps for data sections
}

// types are BTF to relocate programs against.
type types struct {
	core *core.Target // types for libbpf's rules
	spec *cbtf.Spec   // types for cilium/ebpf; nil for the running kernel's BTF
}

// kernelBTF is the directory with the BTF of the kernel and its modules.
const kernelBTF = "/sys/kernel/btf"

// objects loads objects one after the other and reports each program.
func objects(j *Job, report func(Event)) (err error) {
	ctx := context.Background()
	l := &loader{targets: j.Targets, cache: cbtf.NewCache(), noData: !mapsData()}
	if j.BTF {
		if l.own, err = readTypes(ctx, "/"+btfPath); err != nil {
			return err
		}
		return l.objects(ctx, j, report)
	}
	corp, err := corpus.Open(ctx, []string{kernelBTF}, corpus.Options{})
	if err != nil {
		return err
	}
	return corp.Files[0].Read(ctx, func(k *corpus.Kernel) error {
		l.own.core = new(core.Target)
		if err := k.Load(ctx, l.own.core, k.Name); err != nil {
			return err
		}
		if err := l.own.core.CheckRecursion(ctx); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		return l.objects(ctx, j, report)
	})
}

// objects is objects after the kernel's types were read.
func (l *loader) objects(ctx context.Context, j *Job, report func(Event)) error {
	if j.Archive {
		t, err := readTypes(ctx, "/"+archivePath)
		if err != nil {
			return err
		}
		l.archive = &t
	}
	for i := range j.Types {
		t, err := readTypes(ctx, file(typesPath, i))
		if err != nil {
			return err
		}
		l.added = append(l.added, t)
	}
	for i := range j.Objects {
		if err := l.object(ctx, i, j.Skip[i], report); err != nil {
			report(refused(Event{Kind: Object, Object: i}, err))
		}
		debug.FreeOSMemory()
	}
	return nil
}

// readTypes reads a file of BTF.
func readTypes(ctx context.Context, path string) (t types, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	t.core = new(core.Target)
	if err := t.core.Load(ctx, path, data); err != nil {
		return t, err
	}
	t.core.SetMachine(kernel.CanonicalArch(runtime.GOARCH))
	if err := t.core.CheckRecursion(ctx); err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	if t.spec, err = cbtf.LoadSpecFromReader(bytes.NewReader(data)); err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// object loads each program of an object, except some, and reports it. The error says why the object cannot be read.
func (l *loader) object(ctx context.Context, i int, skip []string, report func(Event)) error {
	data, err := os.ReadFile(file(objectsPath, i))
	if err != nil {
		return err
	}
	var o *object
	if d := workers.Catch(ctx, func() { o, err = l.read(ctx, data) }); d != nil || err != nil {
		return cmp.Or(d, err)
	}
	programs := slices.DeleteFunc(slices.Sorted(maps.Keys(o.spec.Programs)), func(name string) bool {
		return slices.Contains(skip, name)
	})
	if len(programs) == 0 {
		return nil
	}
	all := &ebpf.CollectionSpec{Maps: maps.Clone(o.spec.Maps), Types: o.spec.Types, ByteOrder: o.spec.ByteOrder}
	// struct_ops maps need programs.
	maps.DeleteFunc(all.Maps, func(_ string, m *ebpf.MapSpec) bool { return m.Type == ebpf.StructOpsMap })
	coll, err := l.load(all, &l.own)
	e := Event{Kind: Object, Object: i}
	if o.unread != nil {
		e.Alone = o.unread.Error()
	}
	report(refused(e, cmp.Or(o.missing, err, createStructOps(o.spec))))
	coll.Close()
	for _, name := range programs {
		report(l.program(Event{Kind: Program, Object: i, Name: name}, o))
	}
	return nil
}

// object is an object to load.
type object struct {
	spec      *ebpf.CollectionSpec // object as libbpf reads it, without CO-RE relocations
	relocator *relocator
	archived  *relocator           // relocator with the archive's types; nil without an archive
	alone     *ebpf.CollectionSpec // object as cilium/ebpf reads it; nil if it fails to
	unread    error                // why cilium/ebpf fails to read it
	missing   error                // why libbpf does not load the object
	untyped   map[string]error     // why libbpf knows no type for a program, by its name
	unlike    map[string]error     // why a program would load with libbpf but not here, by its name

	registered map[string]string // Event.Attach of struct_ops programs, by name of the struct; nil until needed
}

// read reads an object as both loaders do.
func (l *loader) read(ctx context.Context, data []byte) (*object, error) {
	parsed, err := rule.Parse(ctx, "object", data)
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
	if o.relocator, err = newRelocator(ctx, parsed, l.own.core, l.added...); err != nil {
		return nil, err
	}
	if l.archive != nil {
		if o.archived, err = newRelocator(ctx, parsed, l.archive.core, l.added...); err != nil {
			return nil, err
		}
	}
	externs, err := l.resolve(parsed)
	if m := (*missing)(nil); err != nil && !errors.As(err, &m) {
		return nil, err
	}
	o.missing = cmp.Or(l.unopened(parsed), err, perfArrays(parsed), innerNames(parsed))
	o.untyped, o.unlike = untyped(parsed), unlike(parsed)
	externs.complete(o.spec)
	l.prepare(o.spec)
	o.alone = o.spec
	o.spec = withTypes(o.spec, parsed)
	if l.noData {
		o.spec = withoutData(o.spec)
	}
	if !bytes.Equal(data, changed) {
		if o.alone, o.unread = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data)); o.unread == nil {
			l.prepare(o.alone)
		}
	}
	return o, nil
}

// mapsData reports whether the kernel has flags of maps for read-only data, which came with maps for data sections.
func mapsData() bool {
	attr := struct{ kind, key, value, max, flags uint32 }{uint32(ebpf.Array), 4, 4, 1, unix.BPF_F_RDONLY_PROG}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == 0 {
		unix.Close(int(fd))
	}
	return errno == 0
}

// withoutData returns a copy of an object as libbpf loads it where the kernel has no maps for data sections: it creates none, and the
// kernel sees instructions that refer to them, which it does not know. cilium/ebpf stops at the maps.
func withoutData(spec *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	spec = spec.Copy()
	maps.DeleteFunc(spec.Maps, func(name string, _ *ebpf.MapSpec) bool { return strings.HasPrefix(name, ".") })
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			if in := &p.Instructions[i]; in.OpCode.IsDWordLoad() && in.Src == asm.PseudoMapValue {
				*in = asm.LoadMapValue(in.Dst, math.MaxInt32, 0).WithSymbol(in.Symbol())
			}
		}
	}
	return spec
}

// program loads a program twice: as cilium/ebpf does by itself, and relocated as libbpf does. With an archive it does so again with
// the archive's types, and compares.
func (l *loader) program(e Event, o *object) Event {
	p := o.spec.Programs[e.Name]
	if p.Type == ebpf.UnspecifiedProgram {
		return refused(e, errors.New("its section does not say what type of program it is"))
	}
	alone, libbpf := l.alone(e.Name, o, &l.own), l.libbpf(e.Name, o, &l.own, o.relocator)
	if l.archive != nil {
		again, theirs := l.alone(e.Name, o, l.archive), l.libbpf(e.Name, o, l.archive, o.archived)
		ids := o.relocator.typeIDs(o.archived)
		if e.Archive = libbpf.differs(&theirs, ids); e.Archive == "" {
			if e.Archive = alone.differs(&again, ids); e.Archive != "" {
				e.Archive = "with ebpf-go " + e.Archive
			}
		}
		e.Archive = cmp.Or(e.Archive, Same)
	}
	if o.alone != nil {
		if e.Alone = Loads; alone.err != nil {
			e.Alone = alone.err.Error()
		}
	}
	e.Extern = libbpf.err != nil && missingExtern(libbpf.err)
	e.Attach = libbpf.attach
	return refused(e, libbpf.err)
}

// alone loads a program as cilium/ebpf does.
func (l *loader) alone(name string, o *object, t *types) (r result) {
	if o.alone == nil {
		return r
	}
	if o.alone.Programs[name].Type == ebpf.UnspecifiedProgram {
		r.err = fmt.Errorf("ebpf-go leaves the program out: it knows no type of programs for section %s", o.alone.Programs[name].SectionName)
		return r
	}
	coll, err := l.load(one(o.alone, name), t)
	if r.err = err; err != nil {
		return r
	}
	defer coll.Close()
	if l.archive != nil {
		r.read(coll.Programs[name])
	}
	return r
}

// libbpf loads a program as libbpf does, and attaches it. What fails is not reported as the kernel's answer if libbpf does something that is
// not done here.
func (l *loader) libbpf(name string, o *object, t *types, by *relocator) result {
	r := l.likeLibbpf(name, o, t, by)
	if r.err != nil && o.unlike[name] != nil {
		r.err = o.unlike[name]
	}
	return r
}

func (l *loader) likeLibbpf(name string, o *object, t *types, by *relocator) (r result) {
	if r.err = cmp.Or(o.missing, o.untyped[name]); r.err != nil {
		return r
	}
	p, own := o.spec.Programs[name], one(o.spec, name)
	relocated, err := by.program(p)
	if r.err = err; err != nil {
		return r
	}
	own.Programs[name] = relocated
	if p.Type == ebpf.Tracing { // cilium/ebpf looks in all modules
		_, relocated.AttachTo = rule.CutModule(p.AttachTo)
	}
	coll, err := l.load(own, t)
	if r.err = err; err != nil {
		return r
	}
	defer coll.Close()
	r.attach = l.tryAttach(o, p, coll.Programs[name])
	if l.archive != nil {
		r.read(coll.Programs[name])
	}
	return r
}

// prepare sets the user's targets and, as tools do, missing sizes. It drops pins and other things that would
// outlive the object.
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
		if m.Pinning == ebpf.PinByName { // cilium/ebpf fails for objects that pin
			m.Pinning = ebpf.PinNone
		}
		if m.Type == ebpf.ProgramArray {
			m.Contents = nil // loading contents would load other programs
		}
	}
}

// hasEntries reports whether maps of a type need max_entries. Loaders set that of perf event arrays; local storage has none.
func hasEntries(t ebpf.MapType) bool {
	switch t {
	case ebpf.PerfEventArray, ebpf.StructOpsMap,
		ebpf.SkStorage, ebpf.InodeStorage, ebpf.TaskStorage,
		ebpf.CGroupStorage, ebpf.PerCPUCGroupStorage, ebpf.CgroupStorage:
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
func (l *loader) load(spec *ebpf.CollectionSpec, t *types) (coll *ebpf.Collection, err error) {
	opts := ebpf.ProgramOptions{KernelTypes: t.spec}
	for i := range l.added {
		opts.ExtraRelocationTargets = append(opts.ExtraRelocationTargets, l.added[i].spec)
	}
	if d := workers.Catch(context.Background(), func() {
		coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: opts, Cache: l.cache})
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
	case errors.Is(err, ebpf.ErrNotSupported): // the library asked the kernel
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
	return strings.Contains(text, ": kfunc ") || strings.Contains(text, "resolve required ksyms") ||
		strings.Contains(text, "kernel is missing symbol")
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

// attached attaches something and detaches it. It returns Event.Attach. What comes with an error is not closed: it may be a nil pointer.
func attached(attach func() (io.Closer, error)) string {
	var err error
	if d := workers.Catch(context.Background(), func() {
		var l io.Closer
		if l, err = attach(); err == nil {
			err = l.Close()
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
