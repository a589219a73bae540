// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// debian is the BTF of a kernel of Debian.
type debian struct {
	release Release
	structs map[string]map[string]bool // members by struct
	funcs   map[string]bool
	enums   map[string]map[string]uint64
}

func (k *debian) Struct(name, member string) bool {
	members, ok := k.structs[name]
	return ok && (member == "" || members[member])
}
func (k *debian) Function(name string) bool     { return k.funcs[name] }
func (k *debian) Functions() bool               { return true }
func (k *debian) Enum(e Enum) map[string]uint64 { return k.enums[e.String()] }
func (k *debian) Settings() map[string]string   { return nil }
func (k *debian) Newest() Release               { return k.release }

// readDebians reads the kernels of Debian for x86_64 in testdata/vmlinux, by release.
func readDebians(t *testing.T) map[string]*debian {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{testinput.Path(t, "testdata", "vmlinux", "debian")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*debian)
	testinput.Each(t, c, func(it *corpus.Kernel) {
		if it.Key.Arch != "x86_64" {
			return
		}
		tg := new(core.Target)
		if why := tg.Load(t.Context(), it.Name, it.BTF); why != nil {
			t.Fatal(it.Name, why)
		}
		var major, minor uint64
		if _, err := fmt.Sscanf(it.Key.Release, "%d.%d", &major, &minor); err != nil {
			t.Fatal(err)
		}
		k := &debian{release: Linux(major, minor), structs: make(map[string]map[string]bool), funcs: make(map[string]bool), enums: make(map[string]map[string]uint64)}
		for _, b := range tg.Views() {
			k.read(b)
		}
		all[k.release.String()] = k
	})
	return all
}

// read adds what BTF has.
func (k *debian) read(b *btf.BTF) {
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		switch t := b.Type(id); t.Kind() {
		case btf.KindFunc:
			k.funcs[string(t.Name())] = true
		case btf.KindStruct:
			if t.NameOff != 0 && k.structs[string(t.Name())] == nil {
				members := make(map[string]bool)
				addMembers(members, t, 3)
				k.structs[string(t.Name())] = members
			}
		case btf.KindEnum, btf.KindEnum64:
			l := make(map[string]uint64)
			for i := range t.Vlen() {
				e := t.Enumerator(i)
				l[string(b.Name(e.NameOff))] = e.Value
			}
			name := string(t.Name())
			if first := EnumMapFlag.String(); name == "" && t.Vlen() > 0 && b.NameIs(t.Enumerator(0).NameOff, first) {
				name = first
			}
			k.enums[name] = l
		}
	}
}

// addMembers adds the names of the members of a struct and of its anonymous members.
func addMembers(to map[string]bool, t btf.Type, depth int) {
	for i := range t.Vlen() {
		m := t.Member(i)
		if m.NameOff != 0 {
			to[string(t.BTF().Name(m.NameOff))] = true
		} else if in, ok := t.BTF().SkipMods(m.Type); ok && in.Kind().IsComposite() && depth > 0 {
			addMembers(to, in, depth-1)
		}
	}
}

// wrong returns the examples of a row that a kernel contradicts. Without kernels of Debian their examples are not tried.
func (t *table) wrong(r *row, debians map[string]*debian) (l []string) {
	for i := range r.examples {
		x := &r.examples[i]
		var k Evidence = x
		if x.debian {
			d := debians[x.release.String()]
			if debians == nil {
				continue
			} else if d == nil {
				l = append(l, x.text+": no such kernel")
				continue
			}
			k = d
		}
		a := t.evidence(k)
		if got := a.During(&r.Period); got.Presence != x.want {
			l = append(l, fmt.Sprintf("%s: %+v", x.text, got))
		}
	}
	return l
}

// evidence returns the answers of a kernel before any fact is decided.
func (t *table) evidence(k Evidence) *Answers {
	return &Answers{k: k, whole: Whole(k), statics: k.Function(staticFunction)}
}

// TestExamples tries the examples of every entry. Each has one of a kernel that has the fact, and one of a kernel that does not, or perhaps.
func TestExamples(t *testing.T) {
	raceflag.SkipSerial(t)
	table, debians := the(), readDebians(t)
	for _, r := range table.rows {
		for _, why := range table.wrong(r, debians) {
			t.Errorf("%s: %s", r.entry.name, why)
		}
	}
	for _, r := range table.rows {
		yes, other := 0, 0
		for _, x := range r.examples {
			if x.want == Yes {
				yes++
			} else {
				other++
			}
		}
		since, until := r.Since != Change{}, r.Until != Change{}
		if r.entry.file != "interface.txt" && r.only == nil && (yes == 0 && !until || other == 0 && (since || until)) {
			t.Errorf("%s: %d examples of kernels that have it, %d of others", r.entry.name, yes, other)
		}
	}
}

// TestTablesRefused checks that entries with a mistake are refused.
func TestTablesRefused(t *testing.T) {
	for _, bad := range []string{
		"a\n", "\tsince: 6.1\n", "a\n\t\tb\n", "a\n\tsince 6.1\n", "a\n\tsince:\n", "a\n\tsince: six\n", "a\n\tsince: 6.1\n\tsince: 6.2\n",
		"a\n\tsince: 6.2..6.1\n", "a\n\tsince: 6.1\n\twitness: foo(\n", "a\n\tsince: 6.1\n\twitness: no_enum:X\n", "a\n\tsince: 6.1\n\twitness: static foo\n",
		"a\n\tsince: 6.1\n\tsetting: BPF\n", "a\n\tsince: 6.1\n\tyes: Debian\n", "a\n\tsince: 6.1\n\tno: 6.1 but foo\n", "a\n\tsince: 6.1\n\tbecause: 6.1\n",
		"a\n\tsince: 6.1\n\tsetting: CONFIG_A\n\tno: 6.1 without CONFIG_B\n", "a\n\tsince: 6.1\n\tmachine: vax\n", "map-type SOCKMAPS\n\tsince: 6.1\n", "sleepable UNSPEC\n\tsince: 6.1\n", "call map_find HASH\n\tsince: 6.1\n",
		"call map_lookup_elem MASH\n\tsince: 6.1\n", "license loops\n\tsince: 6.1\n", "license loop/X\n\tsince: 6.1\n", "call loop HASH\n\tuntil: 6.1\n\tprograms: X\n",
		"a\n\tsince: 6.1\na\n\tsince: 6.1\n", "a\n\tsince: 6.1\n\tprograms: XDP\n", "returns A\n\tsince: 6.1\n\tvalues: 1\n",
	} {
		_, err := readTables(func(name string) string {
			if name == "facts.txt" {
				return bad
			}
			return ""
		})
		if err == nil {
			t.Errorf("%q is no mistake", bad)
		} else if !strings.HasPrefix(err.Error(), "facts.txt:") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
