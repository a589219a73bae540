// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// The rules by which loaders decide, one scenario a file in testdata/rules: the
// rule in words, the types on either side as C has them (cdecl_test.go), and
// under "decisions" the relocations of an object in their order with what
// becomes of them:
//
//	byte_off 0:1 struct task.pid by ldxw    kind, access string, what it means; the instruction
//		resolved 4 -> 8                     the value here and there; or absent, poisoned, …: why
//		+ 0:2 struct task.pid 8             a candidate that matches, and the value
//		- struct task___old: no member pid  one that does not: why
//		~ union task                        one that only other loaders match
//		ebpf-go: poisoned                   what cilium/ebpf does, where that is something else
//		aya: resolved 4 -> 8                and aya
//
// A scenario is one program of one object. An error of one relocation ends the load with each loader; what is said
// of the others is their result without it, except for cilium/ebpf, which decides about all relocations of a local type at once.
// Candidates that earlier relocations of the type have ruled out are not listed. The
// instruction is "by mov" if nothing else is said; "by mov of 7" holds another
// value than the local one. Modules follow vmlinux, the section "kernel", as
// "module NAME". A paragraph "Byte order: big." is about both sides, one that
// begins with "Not compared with bpftool: " says why TestRulesBpftool leaves a
// scenario out.
//
// With -update the answers of the other loaders are written into the files.
func TestRules(t *testing.T) {
	for _, r := range readRules(t) {
		t.Run(r.name, func(t *testing.T) {
			var tb Table
			if err := new(Filler).Fill(t.Context(), &tb, NewSet(r.object), r.kernel, nil); err != nil {
				t.Fatal(err)
			}
			got := r.decided(&tb)
			if *update {
				r.update(t, got)
			}
			if d := cmp.Diff(strings.Split(r.want, "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

var update = flag.Bool("update", false, "write the answers of other loaders than libbpf into the scenarios")

// update writes a scenario with what is decided, if that is the same for libbpf.
func (r *rule) update(t *testing.T, got string) {
	libbpf := func(s string) string {
		return regexp.MustCompile(`(?m)^\t(ebpf-go:|aya:|~) .*\n`).ReplaceAllString(s, "")
	}
	if libbpf(got) != libbpf(r.want) {
		return
	}
	path := filepath.Join("testdata", "rules", r.name+".txtar")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), r.want, got, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	r.want = got
}

// rule is a scenario.
type rule struct {
	name    string
	without string // why bpftool has no part in it
	elf     []byte // the object
	object  *Object
	local   string // types of the object
	vmlinux []byte
	modules [][]byte
	kernel  *Target
	asks    []ruleAsk
	want    string
}

// ruleAsk is a relocation of a scenario.
type ruleAsk struct {
	kind   relo.Kind
	text   string // access string as the scenario has it
	access string
	insn   string
	holds  string // the operand, "" for the local value
	root   btf.TypeID
}

func readRules(t *testing.T) (rules []*rule) {
	t.Helper()
	files, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules in testdata/rules: %v", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := &rule{name: strings.TrimSuffix(filepath.Base(f), ".txtar")}
		if err := r.parse(txtar.Parse(data)); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		rules = append(rules, r)
	}
	return rules
}

func (r *rule) parse(ar *txtar.Archive) (err error) {
	var order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	} = binary.LittleEndian
	if strings.Contains(string(ar.Comment), "Byte order: big.") {
		order = binary.BigEndian
	}
	if _, why, ok := strings.Cut(string(ar.Comment), "Not compared with bpftool: "); ok {
		r.without = strings.TrimSpace(why)
	}
	r.kernel = new(Target)
	var strSize uint32
	for _, f := range ar.Files {
		src := string(f.Data)
		module, isModule := strings.CutPrefix(f.Name, "module ")
		switch {
		case f.Name == "local":
			r.local = src
		case f.Name == "decisions":
			r.want = src
		case f.Name == "kernel":
			if r.vmlinux, err = builtBTF(src, order, nil, 0, nil); err == nil {
				strSize = order.Uint32(r.vmlinux[20:])
				err = r.kernel.Load(context.Background(), "vmlinux", r.vmlinux)
			}
		case isModule && r.vmlinux != nil:
			var raw []byte
			if raw, err = builtBTF(src, order, &r.kernel.views[0].BTF, strSize, nil); err == nil {
				r.modules = append(r.modules, raw)
				err = r.kernel.load(context.Background(), module, raw, &r.kernel.views[0].BTF)
			}
		default:
			err = fmt.Errorf("unknown, or too early")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if r.vmlinux == nil || r.local == "" || r.want == "" {
		return fmt.Errorf("no local, kernel or decisions")
	}
	local, err := builtBTF(r.local, order, nil, 0, nil)
	if err != nil {
		return fmt.Errorf("local: %w", err)
	}
	btf, err := btf.New(local, nil)
	if err != nil {
		return fmt.Errorf("local: %w", err)
	}
	if r.asks, err = readAsks(btf, r.want); err != nil {
		return err
	}
	if r.elf, err = ruleObject(order, r.local, r.asks, false); err != nil {
		return err
	}
	r.object, err = ParseObject(r.name, r.elf)
	return err
}

var askLine = regexp.MustCompile(`^(\w+) ((?:__x\([^)]*\)|\S)+) (.+?)(?: by (\w+)(?: of (-?\d+))?)?$`)

// readAsks returns the relocations among the decisions, which are about types of
// local.
func readAsks(local *btf.BTF, text string) (asks []ruleAsk, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '\t' {
			continue
		}
		m := askLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("no relocation: %s", line)
		}
		a := ruleAsk{text: m[2], access: crepeats(m[2]), insn: m[4], holds: m[5]}
		if a.kind.UnmarshalText([]byte(m[1])) != nil {
			a.kind = relo.TypeMatches + 1
		}
		if a.insn == "" {
			a.insn = "mov"
		}
		if ruleInsns[a.insn] == 0 && a.insn != "nothing" {
			return nil, fmt.Errorf("no instruction: %s", a.insn)
		}
		typ := m[3]
		if end := strings.IndexAny(typ, ".[:"); end >= 0 {
			typ = typ[:end]
		}
		for id := 1; id < local.NumTypes(); id++ {
			if t := local.Type(btf.TypeID(id)); typeName(t) == typ {
				a.root = t.ID
			}
		}
		if a.root == 0 {
			return nil, fmt.Errorf("no local type %s", typ)
		}
		asks = append(asks, a)
	}
	return asks, nil
}

// ruleInsns are the instructions that relocations are for, by their first byte.
var ruleInsns = map[string]byte{
	"mov": 0xb7, "movreg": 0xbf, "add": 0x07, "ldimm64": 0x18, "ldabs": 0x20, "ja": 0x05,
	"ldmap": 0x18, "ldoff": 0x18, "ldsecond": 0x18, // 64-bit loads with a source register, an offset, and a second slot that has one
	"ldxb": 0x71, "ldxh": 0x69, "ldxw": 0x61, "ldxdw": 0x79,
	"stb": 0x72, "sth": 0x6a, "stw": 0x62, "stdw": 0x7a,
	"stxb": 0x73, "stxh": 0x6b, "stxw": 0x63, "stxdw": 0x7b,
}

const ruleSection = "kprobe/f"

// ruleObject returns a BPF object with these types and relocations. Its
// instructions come in pairs, because ldimm64 is one; the second is a zero. infos
// says that there are sections of functions and lines, which are empty:
// cilium/ebpf wants them, and libbpf refuses them.
func ruleObject(order binary.ByteOrder, local string, asks []ruleAsk, infos bool) ([]byte, error) {
	var code, relos []byte
	word := func(b []byte, v uint32) []byte { return order.(binary.AppendByteOrder).AppendUint32(b, v) }
	section := uint32(0)
	raw, err := builtBTF(local, order, nil, 0, func(b *btf.Builder) {
		section = b.String(ruleSection)
		for i, a := range asks {
			at := uint32(i) * 2 * insnSize
			if a.insn == "nothing" { // behind the section's end
				at = uint32(len(asks)) * 2 * insnSize
			}
			code = append(code, make([]byte, 2*insnSize)...)
			relos = word(word(word(word(relos, at), uint32(a.root)), b.String(a.access)), uint32(a.kind))
		}
	})
	if err != nil {
		return nil, err
	}
	btf, err := btf.New(raw, nil)
	if err != nil {
		return nil, err
	}
	for i := range asks {
		if err := asks[i].write(code[i*2*insnSize:], btf); err != nil {
			return nil, err
		}
	}
	size := 4 + 8 + uint32(len(relos))
	ext := []byte{0x9f, 0xeb, 1, 0}
	order.PutUint16(ext, 0xeb9f)
	head := []uint32{32, 0, 0, 0, 0, 0, size}
	if infos {
		head = []uint32{32, 0, 4, 4, 4, 8, size, 8, 16}
	}
	for _, v := range append(head, 16, section, uint32(len(asks))) {
		ext = word(ext, v)
	}
	f := testelf.File{Order: order, Type: elf.ET_REL, Machine: elf.EM_BPF, Sections: []testelf.Section{
		{Name: ruleSection, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code},
		{Name: ".BTF", Data: raw},
		{Name: ".BTF.ext", Data: append(ext, relos...)},
	}}
	f.Symbols = []testelf.Symbol{{Name: "f", Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}}
	data, _ := f.Build()
	return data, nil
}

// write writes the instruction of a relocation.
func (a *ruleAsk) write(insn []byte, local *btf.BTF) error {
	insn[0] = ruleInsns[a.insn]
	v := parseSpec(local, a.kind, a.root, a.access).local().val
	if a.holds != "" {
		n, err := strconv.ParseInt(a.holds, 0, 64)
		if err != nil {
			return err
		}
		v = uint64(n)
	}
	switch insn[0] & 7 {
	case classLDX, classST, classSTX:
		local.Order().PutUint16(insn[2:], uint16(v))
	case classLD:
		switch a.insn {
		case "ldmap":
			insn[1] = 1 << 4
		case "ldoff":
			local.Order().PutUint16(insn[2:], 1)
		case "ldsecond":
			local.Order().PutUint16(insn[insnSize+2:], 1)
		}
		local.Order().PutUint32(insn[insnSize+4:], uint32(v>>32))
		fallthrough
	default:
		local.Order().PutUint32(insn[4:], uint32(v))
	}
	return nil
}

// decided writes the decisions of the table as scenarios have them.
func (r *rule) decided(tb *Table) string {
	var b strings.Builder
	n := 0
	for _, d := range tb.Libbpf().Decisions(0) {
		a, local := r.asks[n], d.resolution.spec.entry()
		kind := a.kind.String()
		if a.kind >= relo.TypeMatches+1 {
			kind = "unknown"
		}
		fmt.Fprintf(&b, "%s %s %s", kind, a.text, relo.Name(a.kind, local.Type, local.Path))
		if a.insn != "mov" || a.holds != "" {
			fmt.Fprintf(&b, " by %s", a.insn)
		}
		if a.holds != "" {
			fmt.Fprintf(&b, " of %s", a.holds)
		}
		switch why := d.Reason(); {
		case d.Result == relo.Resolved:
			fmt.Fprintf(&b, "\n\tresolved %d -> %d\n", int64(d.Old()), int64(d.New))
		case why == relo.Reason{}:
			fmt.Fprintf(&b, "\n\t%s\n", d.Result)
		default:
			fmt.Fprintf(&b, "\n\t%s: %s\n", d.Result, why)
		}
		for _, c := range d.resolution.candidates(context.Background(), &explainer{tb: tb}) {
			where := c.Type
			if *c.Module != "" {
				where = *c.Module + ": " + c.Type
			}
			if c.Match {
				fmt.Fprintf(&b, "\t+ %s %s %d\n", c.Raw, relo.Name(a.kind, where, c.Path), int64(*c.Value))
			} else {
				fmt.Fprintf(&b, "\t- %s: %s\n", where, c.Reason)
			}
		}
		if q := d.resolution.question; q >= 0 {
			for i, cand := range tb.candidates(q) {
				if c := tb.outcome(q, i); !c.libbpf.matches && (c.aya.matches || c.cilium.matches != 0) {
					where := typeName(cand.view.Type(cand.id))
					if cand.view.module != "" {
						where = cand.view.module + ": " + where
					}
					fmt.Fprintf(&b, "\t~ %s\n", where)
				}
			}
		}
		for loader, other := range r.others(tb, n) {
			if other != ruleAnswer(d.Result, d.Old(), d.New) {
				fmt.Fprintf(&b, "\t%s: %s\n", loader, other)
			}
		}
		n++
	}
	return b.String()
}

// ruleAnswer is what becomes of a relocation, without why.
func ruleAnswer(r relo.Result, old, val uint64) string {
	switch r {
	case relo.Resolved:
		return fmt.Sprintf("resolved %d -> %d", int64(old), int64(val))
	case relo.Ambiguous:
		return "error"
	}
	return r.String()
}

// others yields the answers of the other loaders on relocation n.
func (r *rule) others(tb *Table, n int) iter.Seq2[string, string] {
	return func(yield func(loader, answer string) bool) {
		if answer := r.cilium(tb, n); !yield("ebpf-go", answer) {
			return
		}
		a := tb.Aya().Decision(0, n)
		m := &tb.set.objects[0]
		for rec, d := range tb.Aya().Decisions(0) {
			if rec != &m.records[n] {
				continue
			}
			if d.Result != a.Result || d.New != a.New || (d.Reason() == relo.Reason{}) != (d.Result == relo.Resolved) {
				yield("aya", fmt.Sprintf("%s %d, as a decision %s %d: %s", a.Result, a.New, d.Result, d.New, d.Reason()))
				return
			}
			switch why := d.Reason(); why.Code {
			case relo.InvalidRelocation, relo.LoadNotResizable, relo.UnpatchableInsn:
				if why.Cause == "" {
					yield("aya", "no cause: "+why.String())
					return
				}
			}
			if d.Unresizable() || d.HiddenIn() != nil || d.Modules() != nil || d.Disagreeing() != nil || d.NoCandidate() {
				yield("aya", "a decision that depends on modules or other loaders")
				return
			}
		}
		yield("aya", ruleAnswer(a.Result, m.local[m.records[n].spec].val, a.New))
	}
}

// cilium returns cilium/ebpf's decision on relocation n: the group of its local
// type, or that of the kind that does not depend on the kernel.
func (r *rule) cilium(tb *Table, n int) string {
	m := &tb.set.objects[0]
	rec := &m.records[n]
	sp := rec.spec
	if l := &m.local[sp]; l.err != nil {
		return "error"
	} else if m.question[sp] < 0 {
		f := fixup{local: l.val, target: l.val}
		if rec.insn.cilium(&f) != nil {
			return "error"
		}
		return ruleAnswer(relo.Resolved, l.val, l.val)
	}
	programs, err := m.LinkedPrograms()
	if err != nil || len(programs) != 1 {
		return fmt.Sprintf("%d programs: %v", len(programs), err)
	}
	for _, g := range m.groupsOf(programs[0].Records) {
		if g.root != m.rootOf[sp] {
			continue
		}
		cilium := tb.Cilium(context.Background())
		c := cilium.calculateFixups(m, &g)
		if c.err != nil {
			return "error"
		}
		if !slices.Contains(g.specs, sp) {
			continue
		}
		f := cilium.fixup(m, sp, c.place)
		switch {
		case rec.insn.cilium(&f) != nil:
			return "error"
		case f.poison:
			return relo.Poisoned.String()
		case f.failed(rec.Kind):
			return relo.Absent.String()
		}
		val := f.target
		if f.id {
			cand := tb.candidates(m.question[sp])[val-1]
			val = uint64(cand.id)
		}
		return ruleAnswer(relo.Resolved, m.local[sp].val, val)
	}
	return "not seen" // no instruction has it
}
