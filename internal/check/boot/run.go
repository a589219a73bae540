// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/btfgen/btfgen/internal/bpfobj/elffile"
	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Config describes a run: which kernels boot, and what each of them does.
type Config struct {
	Corpus  *corpus.Corpus // packages and images
	BTF     *corpus.Corpus // types for kernels without BTF; may be nil
	Jobs    int            // number of kernels that run side by side, at least 1
	Timeout time.Duration  // limit for each kernel
	Init    *Executable    // btfgen itself

	// Objects, with Data as their files, are checked and loaded. Targets overrides attach targets, by program.
	Objects []*rule.Object
	Data    [][]byte
	Types   []check.Types
	Rodata  []string       // see check.Config
	Policy  verdict.Policy // --when of the policy says which programs are loaded on a kernel
	Targets map[string]string

	// Archive has types to load the objects with again; may be nil.
	Archive *archive.Archive

	// Command runs instead, if it is not empty. Tool is its program, the first of Files.
	Command []string
	Env     []string
	Tool    *Executable
	Files   []File
}

// Executable is a statically linked program for Linux.
type Executable struct {
	Path, Arch string
	Data       []byte
}

// ParseExecutable checks that a program can run in a machine without libraries.
func ParseExecutable(path string, data []byte) (*Executable, error) {
	f, err := elffile.New(bytes.NewReader(data), limits.ELFSections)
	if err != nil {
		return nil, fmt.Errorf("%s is no program for Linux: %w", path, err)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, fmt.Errorf("%s is dynamically linked, and there are no libraries in the booted machine", path)
	}
	return &Executable{path, machine.OfELF(f.Machine, f.Class, f.Data), data}, nil
}

// Kernel is a kernel of a run. Its fields are set when they are known.
type Kernel struct {
	Path     string        // path of the kernel's file
	Name     string        // name in the report of check, else the path
	Modules  []string      // loaded modules
	Release  string        // release that the booted kernel reports
	Emulated string        // why KVM did not run the kernel, "" if it did
	Up, Done time.Duration // time until the guest's first event, 0 if it did not boot, and until the end
	Match    archive.Match // kernel of the archive, if there is an archive
	Trial    *Trial        // nil if a command runs
	Exit     *Event        // exit of the command; nil if no event arrived
}

// Watcher receives what happens in a run, one call at a time. Calls about a kernel wait until all kernels before it in the corpus
// have ended, except for Progress.
type Watcher interface {
	Skipped(k *Kernel, errs []*corpus.Error) // files that could not be checked
	Note(k *Kernel, text string)
	Begin(k *Kernel)
	// Stopped is called when the machine crashed or was silent while it tried program. It boots again without that.
	Stopped(k *Kernel, program string, why error)
	Object(k *Kernel, i int)       // k.Trial.Of(i) is complete
	Output(k *Kernel, text string) // text from the command
	End(k *Kernel, err error)      // err is why the kernel did not boot or did not finish

	Progress(k *Kernel, tried int) // tried is the number of programs, 0 while the kernel boots
}

// Run boots the kernels of a corpus. An error that affects only a kernel is passed to Watcher.End.
func Run(ctx context.Context, cfg Config, w Watcher) error {
	n := len(cfg.Corpus.Files)
	r := &run{Config: cfg, w: w, waiting: make([][]func(), n), ended: make([]bool, n)}
	return workers.Each(ctx, cfg.Jobs, n, func(i int) error {
		path := cfg.Corpus.Files[i].Path
		k := &kernelRun{run: r, index: i, types: cfg.Corpus.Files[i], Kernel: &Kernel{Path: path, Name: path}}
		err := k.boot(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k.call(func() {
			r.w.End(k.Kernel, err)
			r.ended[i] = true
		})
		return nil
	})
}

// run is the state that kernels share.
type run struct {
	Config
	predict sync.Mutex // held while objects are checked

	mu      sync.Mutex // held for calls of w
	w       Watcher
	waiting [][]func() // calls that wait, per kernel
	ended   []bool     // whether the kernel has ended, per kernel
	first   int        // first kernel that has not ended
}

// kernelRun is the run of one kernel.
type kernelRun struct {
	*run
	*Kernel
	index   int
	types   *corpus.File // file with the kernel's BTF
	started time.Time
	done    int // number of complete objects
	tried   int // number of programs tried
}

// call makes a call of the watcher when it is the kernel's turn.
func (k *kernelRun) call(f func()) {
	r := k.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[k.index] = append(r.waiting[k.index], f)
	for ; r.first < len(r.waiting); r.first++ {
		for _, f := range r.waiting[r.first] {
			f()
		}
		r.waiting[r.first] = nil
		if !r.ended[r.first] {
			return
		}
	}
}

// progress reports how many programs were tried.
func (k *kernelRun) progress() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.w.Progress(k.Kernel, k.tried)
}

// boot boots the kernel.
func (k *kernelRun) boot(ctx context.Context) error {
	m := &Machine{Init: k.Init.Data, Files: k.Files, Job: Job{Command: k.Command, Env: k.Env, Targets: k.Targets}}
	var modules []string
	var key kernel.Key
	if len(k.Command) == 0 {
		rep, err := k.predictions(ctx, m)
		if rep == nil || err != nil {
			return err
		}
		modules, key = rep.Modules(), rep.Kernels[0].Key()
		if k.Archive != nil { // an archive has the types of modules that are not loaded, too
			modules = append(modules, rep.Kernels[0].Modules...)
		}
	}
	if err := k.equip(ctx, m, key, modules); err != nil {
		return err
	}
	k.progress()
	return k.runMachine(ctx, m)
}

// predictions checks the objects against the kernel, and passes those that are tried to the machine. It returns libbpf's report, nil
// without an error if the kernel was skipped.
func (k *kernelRun) predictions(ctx context.Context, m *Machine) (*verdict.Report, error) {
	if err := k.findTypes(ctx, m); err != nil {
		return nil, err
	}
	rep, err := k.check(ctx, rule.Libbpf)
	if rep == nil || err != nil {
		return nil, err
	}
	var other *verdict.Report
	if len(k.Types) == 0 { // cilium/ebpf would also use added types whose names the kernel has
		if other, err = k.check(ctx, rule.EbpfGo); err != nil {
			return nil, err
		}
	}
	if name := rep.Kernels[0].Name; name != k.types.Path { // the name of a kernel without a key is a path
		k.Name = name
	}
	k.Trial = NewTrial(rep, other, k.Objects)
	for _, i := range k.Trial.Objects {
		m.Objects = append(m.Objects, k.Data[i])
	}
	m.Job.Skip = k.Trial.skip()
	switch {
	case len(m.Objects) == 0 && k.Trial.Unloaded > 0:
		return nil, Unused("no program is loaded on it")
	case len(m.Objects) == 0:
		return nil, Unused("no object is for its machine")
	}
	for _, t := range k.Types {
		m.Types = append(m.Types, t.BTF)
	}
	return rep, nil
}

// Unused is the reason for which a kernel is not booted although it can be: there is nothing to load on it.
type Unused string

func (u Unused) Error() string { return string(u) }

// equip gives the machine the kernel, with its modules, and the archive's types for it.
func (k *kernelRun) equip(ctx context.Context, m *Machine, key kernel.Key, modules []string) error {
	b, err := k.Corpus.Files[k.index].Bootable(ctx, modules)
	if err != nil {
		return err
	}
	for _, p := range []*Executable{k.Init, k.Tool} {
		if p != nil && p.Arch != b.Machine {
			return fmt.Errorf("the kernel is for %s, and %s for %s", b.Machine, p.Path, cmp.Or(p.Arch, "another machine"))
		}
	}
	m.Arch, m.Kernel, m.Config = b.Machine, b.Image, b.Config
	if k.Archive != nil {
		key.Arch, key.Release = cmp.Or(key.Arch, b.Machine), cmp.Or(key.Release, b.Release)
		if k.Match = k.Archive.Lookup(key, 0); k.Match.Found() {
			if m.Archive, err = k.Archive.BTF(k.Match.Key); err != nil {
				return err
			}
		}
	}
	for _, mod := range b.Modules {
		m.Modules, k.Modules = append(m.Modules, mod.ELF), append(k.Modules, mod.Name)
	}
	k.call(func() {
		if len(b.Missing) > 0 {
			k.w.Note(k.Kernel, "has no module "+strings.Join(b.Missing, ", "))
		}
		k.w.Begin(k.Kernel)
	})
	return nil
}

// runMachine boots the machine, and again without a program that stops it.
func (k *kernelRun) runMachine(ctx context.Context, m *Machine) (err error) {
	k.started = time.Now()
	boots, silent := 1, k.Timeout/4
	if k.Trial == nil { // a command may say nothing for long
		silent = k.Timeout
	}
	for left := k.Timeout; ; boots++ {
		k.Emulated, err = Boot(ctx, m, left, silent, k.take)
		left = (k.Timeout - time.Since(k.started)).Truncate(time.Second)
		ended := err == nil || ctx.Err() != nil || k.Trial == nil
		if ended || boots == limits.GuestBoots || left <= 0 || !k.without(m, err) {
			break
		}
	}
	k.Done = time.Since(k.started)
	if k.Trial != nil && k.Up > 0 {
		k.complete(len(k.Trial.Objects))
	}
	return err
}

// without prepares another boot after one that ended early. It leaves out the programs that have results and the program that was being tried. It
// reports false if there is no such program.
func (k *kernelRun) without(m *Machine, why error) bool {
	object, program := k.Trial.next()
	if k.Up == 0 || program == "" {
		return false
	}
	e := Event{Kind: Program, Object: object, Name: program, Error: "the machine stopped: " + why.Error()}
	k.take(e)
	name := k.Trial.Of(object)[0].Program.Object + ": " + program
	k.call(func() { k.w.Stopped(k.Kernel, name, why) })
	m.Job.Skip = k.Trial.skip()
	return true
}

// findTypes finds the types of a kernel without BTF, for its release and machine, and passes them to the guest.
func (k *kernelRun) findTypes(ctx context.Context, m *Machine) error {
	if k.BTF == nil {
		return nil
	}
	own := false
	_ = k.types.Read(ctx, func(*corpus.Kernel) error { own = true; return nil }) // check reports the error
	if own || ctx.Err() != nil {
		return ctx.Err()
	}
	b, err := k.types.Bootable(ctx, nil)
	if err != nil {
		return err
	}
	fits := func(f *corpus.File) bool {
		return f.Key.Release == b.Release && (f.Key.Arch == "" || kernel.CanonicalArch(f.Key.Arch) == b.Machine)
	}
	files := slices.DeleteFunc(slices.Clone(k.BTF.Files), func(f *corpus.File) bool { return !fits(f) })
	if all := k.BTF.Files; len(all) == 1 && all[0].Key.Release == "" {
		files = all
	}
	if len(files) != 1 {
		return fmt.Errorf("no BTF in it, and --btf has %d kernels %s for %s, not one",
			len(files), cmp.Or(b.Release, "without a release"), b.Machine)
	}
	if k.types, err = files[0].WithConfig(b.Config); err != nil {
		return err
	}
	return k.types.Read(ctx, func(t *corpus.Kernel) error {
		m.BTF = bytes.Clone(t.BTF)
		return nil
	})
}

var errManyKernels = errors.New("holds several kernels; one at a time can be booted")

// check checks the objects against the kernel, as a loader loads them. It returns nil without an error if the kernel was skipped
// and, for libbpf, the reason passed on.
func (k *kernelRun) check(ctx context.Context, l rule.Loader) (*verdict.Report, error) {
	k.predict.Lock()
	defer k.predict.Unlock()
	one := *k.Corpus
	one.Files, one.Skipped = []*corpus.File{k.types}, nil
	rep, err := check.Run(ctx, check.Config{
		Objects: k.Objects, Corpus: &one, Jobs: 1, Loaders: []rule.Loader{l},
		Policy: k.Policy, Rodata: k.Rodata, Types: k.Types,
		NoOwnBTF: k.types != k.Corpus.Files[k.index],
	})
	if err != nil {
		return nil, err
	}
	skipped := len(rep.Skipped) > 0
	// Objects for other machines may be for the machine of another kernel.
	rest := slices.DeleteFunc(rep.Skipped, func(e *corpus.Error) bool { return errors.Is(e, corpus.ErrUnmet) })
	if len(rest) > 0 && l == rule.Libbpf {
		k.call(func() {
			k.w.Skipped(k.Kernel, rest)
			if k.BTF == nil && len(rep.Kernels) == 0 {
				k.w.Note(k.Kernel, "if the kernel has no BTF, name its types with --btf")
			}
		})
	}
	switch {
	case len(rep.Kernels) > 1:
		return nil, errManyKernels
	case len(rep.Kernels) == 1:
		return rep, nil
	case skipped:
		return nil, nil
	}
	return nil, errors.New("no kernel in it")
}

// take handles an event of the guest.
func (k *kernelRun) take(e Event) {
	switch e.Kind {
	case Hello:
		if k.Up == 0 {
			k.Up, k.Release = time.Since(k.started), e.Name
		}
	case Module:
		if e.Error != "" && 0 <= e.Object && e.Object < len(k.Modules) {
			k.call(func() { k.w.Note(k.Kernel, "module "+k.Modules[e.Object]+": "+e.Error) })
		}
	case Output:
		k.call(func() { k.w.Output(k.Kernel, e.Output) })
	case Exit:
		k.Exit = &e
	default:
		if k.Trial == nil || e.Object < k.done {
			return
		}
		k.complete(e.Object) // the guest finishes an object before the next
		k.Trial.Take(e)
		if e.Kind == Program {
			k.tried++
			k.progress()
		}
	}
}

// complete reports the objects before the given one that were not reported yet.
func (k *kernelRun) complete(object int) {
	for ; k.done < min(object, len(k.Trial.Objects)); k.done++ {
		i := k.done
		k.call(func() { k.w.Object(k.Kernel, i) })
	}
}
