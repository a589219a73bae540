// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

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
		all := &ebpf.CollectionSpec{
			Maps: make(map[string]*ebpf.MapSpec), Programs: make(map[string]*ebpf.ProgramSpec),
			Types: o.spec.Types, ByteOrder: o.spec.ByteOrder,
		}
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
		coll, err := l.load(all, &l.own)
		coll.Close()
		if err != nil {
			continue // the program's own event reports it
		}
		all.Maps[name] = m
		o.registered[ops] = attached(func() (io.Closer, error) { return l.registerMap(all, name) })
	}
}

// registerMap loads a map of struct_ops with its programs, and registers it.
func (l *loader) registerMap(all *ebpf.CollectionSpec, name string) (io.Closer, error) {
	coll, err := l.load(all, &l.own)
	if err != nil {
		return nil, err
	}
	defer coll.Close()
	if all.Maps[name].Flags&unix.BPF_F_LINK != 0 {
		return link.AttachStructOps(link.StructOpsOptions{Map: coll.Maps[name]})
	}
	return nil, coll.Maps[name].Delete(uint32(0)) // loading the map registered it
}
