// SPDX-License-Identifier: Apache-2.0

package rule

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
)

// helperText says which helpers the programs of a type may call, and how that was
// found.
//
//go:embed helpers.txt
var helperText string

// permissions are by type of programs, with the type of attachment behind a
// slash where that counts, and by number of the helper.
type permissions map[string]map[int64]permission

// helperTable is helperText. A test reads it, so that there is no mistake in it.
var helperTable = sync.OnceValue(func() permissions {
	p, err := readPermissions(helperText)
	if err != nil {
		panic(err)
	}
	return p
})

// helpersRead is the newest release whose source was read for the table.
var helpersRead = Linux(7, 3)

// lastHelper is the last number in helperText. Since Linux 6.2 new functions for
// programs are kfuncs.
const lastHelper = int64(asm.FnCgrpStorageDelete)

// readPermissions reads lines "TYPES: HELPERS", in which a helper may be followed by @AFTER..BY, and lines "late TYPES: HELPERS" and
// "early TYPES: HELPERS", which say more of some helpers of earlier lines: since when, or that they were allowed up to AFTER.
func readPermissions(text string) (permissions, error) {
	numbers := make(map[string]int64, lastHelper)
	for id := range lastHelper + 1 {
		numbers[strings.TrimPrefix(helperName(id), "bpf_")] = id
	}
	all := make(permissions)
	err := readTable(text, func(types, helpers []string) error {
		of := make(map[int64]permission)
		for _, w := range helpers {
			name, p, err := parsePermission(w)
			if err != nil {
				return err
			}
			id, ok := numbers[name]
			if !ok {
				return fmt.Errorf("there is no helper %s", name)
			}
			p.withdrawn = types[0] == "early"
			of[id] = p
		}
		late := types[0] == "late" || types[0] == "early"
		for i, t := range types {
			switch {
			case late && i == 0:
			case late && all[t] == nil, !late && all[t] != nil:
				return fmt.Errorf("%s: missing or twice", t)
			case late:
				all[t] = maps.Clone(all[t]) // which others share
				maps.Copy(all[t], of)
			default:
				all[t] = of
			}
		}
		return nil
	})
	return all, err
}

// readTable calls f for each line "NAMES: WORDS" of a table, in which +NAME is replaced by the words of an earlier line. Lines that
// begin with two spaces continue the line before; # begins a comment.
func readTable(text string, f func(names, words []string) error) error {
	lines := make(map[string][]string)
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		line, _, _ = strings.Cut(line, "#")
		left, right, ok := strings.Cut(line, ":")
		if strings.TrimSpace(line) == "" {
			continue
		} else if !ok {
			return fmt.Errorf("%q: no colon", line)
		}
		var words []string
		for _, w := range strings.Fields(right) {
			if set, is := strings.CutPrefix(w, "+"); !is {
				words = append(words, w)
			} else if lines[set] == nil {
				return fmt.Errorf("%s: %s does not come before it", left, set)
			} else {
				words = append(words, lines[set]...)
			}
		}
		names := strings.Fields(left)
		for _, name := range names {
			lines[name] = words
		}
		if err := f(names, words); err != nil {
			return fmt.Errorf("%s: %w", left, err)
		}
	}
	return nil
}

// of returns what programs of a section may call, nil where that is not known,
// and what they are called.
func (p permissions) of(s *bpfobj.Section) (map[int64]permission, string) {
	if s == nil {
		return nil, ""
	}
	name := s.ProgType
	if t := name + "/" + strings.TrimPrefix(s.Type, "BPF_"); p[t] != nil {
		return p[t], t
	}
	return p[name], name
}

// sleeps are the helpers that only programs which may sleep can call.
func sleeps(id int64) bool {
	switch asm.BuiltinFunc(id) {
	case asm.FnCopyFromUser, asm.FnCopyFromUserTask, asm.FnImaInodeHash, asm.FnImaFileHash:
		return true
	}
	return false
}

// maySleep reports whether programs of a section are loaded as such that may sleep.
func maySleep(s *bpfobj.Section) bool {
	return s.ProgType == "SYSCALL" || strings.HasSuffix(s.Prefix, ".s")
}

// helperSettings are the settings of the kernel's build without which a kernel does not have a helper, though its BTF lists
// the helper's number: kprobe_prog_func_proto in kernel/trace/bpf_trace.c.
var helperSettings = map[asm.BuiltinFunc]string{
	asm.FnOverrideReturn: settingPrefix + "BPF_KPROBE_OVERRIDE",
}

// unset judges a helper that only kernels with a setting have, by the configuration, or by the function that implements it.
func (k *Inventory) unset(id int64) Finding {
	setting := helperSettings[asm.BuiltinFunc(id)]
	_, set := k.known.config[setting]
	_, compiled := k.find(helperName(id), btf.KindFunc)
	switch {
	case setting == "", set, compiled, k.known.symbols[helperName(id)].text > 0:
		return Finding{}
	case k.known.config == nil && !k.knowsSymbols():
		return Finding{Status: MayFail, Code: HelperSetting, Args: Args{Name: setting}}
	}
	return Finding{Status: Fails, Code: HelperUnset, Args: Args{Name: setting}}
}

// forbidden judges a call of a helper that the kernel has by the programs of a
// section.
func (k *Inventory) forbidden(s *bpfobj.Section, id int64) Finding {
	of, name := helperTable().of(s)
	if of == nil || id < 1 || id > lastHelper || k.lacksHelper(id) {
		return Finding{}
	}
	p, ok := of[id]
	switch {
	case !ok && k.atLeast(helpersRead.next()):
		return Finding{Status: MayFail, Code: HelperForbidden, Args: Args{Name: name, Until: helpersRead}}
	case !ok:
		return Finding{Status: Fails, Code: HelperForbidden, Args: Args{Name: name}}
	case sleeps(id) && !maySleep(s):
		return Finding{Status: Fails, Code: HelperSleeps, Args: Args{Name: s.Prefix}}
	}
	if f := k.unset(id); f.Status != OK {
		return f
	}
	f := k.permits(p, HelperForbidden)
	f.Name = name
	return f
}

// helperSet is a set of helpers, by number.
type helperSet [lastHelper/64 + 1]uint64

func (s *helperSet) add(id int64) {
	if id >= 0 && id <= lastHelper {
		s[id/64] |= 1 << (id % 64)
	}
}

func (s *helperSet) has(id int64) bool {
	return id >= 0 && id <= lastHelper && s[id/64]&(1<<(id%64)) != 0
}

// meets reports whether the sets have something in common.
func (s *helperSet) meets(o *helperSet) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// helpersOf returns the helpers that a program calls.
func (o *Object) helpersOf(pr *bpfobj.Program) (s helperSet) {
	for _, fn := range pr.Funcs {
		for i := range o.uses[fn] {
			if in := o.uses[fn][i].in; in.IsHelper() {
				s.add(in.Imm)
			}
		}
	}
	return s
}

// forbids returns the helpers that programs of a section may not call, or perhaps
// not.
func (k *Inventory) forbids(s *bpfobj.Section) *helperSet {
	set, ok := k.refuses[s]
	if !ok {
		set = new(helperSet)
		for id := int64(1); id <= lastHelper; id++ {
			if k.forbidden(s, id).Status != OK {
				set.add(id)
			}
		}
		if k.refuses == nil {
			k.refuses = make(map[*bpfobj.Section]*helperSet)
		}
		k.refuses[s] = set
	}
	return set
}

// iteratedHelpers is the function of the kernel that lets programs which iterate over something call more
// helpers than others do: get_func_proto of its struct bpf_iter_reg.
func iteratedHelpers(over string) string { return "bpf_iter_" + over + "_get_func_proto" }

// iterated reports whether the program may call a helper because of what it iterates over: sockets of TCP
// since "bpf: tcp: Support bpf_(get|set)sockopt in bpf tcp iter" (Linux 5.15), of Unix since
// "bpf: Support bpf_(get|set)sockopt() in bpf unix iter". None of these functions allows anything else.
func (e *Evaluation) iterated(helper int64) bool {
	s := e.pr.Attach
	if fn := asm.BuiltinFunc(helper); s.Kind != bpfobj.AttachIter || fn != asm.FnGetsockopt && fn != asm.FnSetsockopt {
		return false
	}
	_, ok := e.k.find(iteratedHelpers(s.Target(e.pr.Section)), btf.KindFunc)
	return ok
}

// isGPL reports whether the kernel takes the object's license for compatible with the GPL (license_is_gpl_compatible in
// include/linux/license.h).
func (o *Object) isGPL() bool {
	return slices.Contains([]string{"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"}, o.License)
}

// licensed judges a call of a helper by the object's license, where kernels differ in that.
func (e *Evaluation) licensed(id int64) Finding {
	if e.o.isGPL() || e.pr.Attach == nil {
		return Finding{}
	}
	name := "license " + strings.TrimPrefix(helperName(id), "bpf_")
	f := e.k.judgeAny(name, HelperLicense)
	if f.Status == OK {
		f = e.k.judgeAny(name+"/"+e.pr.Attach.ProgType, HelperLicense)
	}
	f.Name = e.o.License
	return f
}

// calls judges the helpers that program number n of the object calls by whether
// programs of its type may.
func (e *Evaluation) calls(n int) (l []absence) {
	forbids := e.k.forbids(e.pr.Attach)
	tail := Finding{}
	if e.o.called[n].has(int64(asm.FnTailCall)) && len(e.pr.Funcs) > 1 {
		tail = e.k.judgeAny("tail calls of programs with functions/"+e.k.Arch, FeatureMissing)
	}
	l = append(e.withMaps(n), e.sizes()...)
	if tail.Status == OK && e.o.isGPL() && !e.o.called[n].meets(forbids) && !e.o.called[n].has(int64(asm.FnKptrXchg)) {
		return l
	}
	e.eachUse(func(u *use) {
		id, f := u.in.Imm, Finding{}
		switch {
		case !u.in.IsHelper():
		case forbids.has(id) && !e.iterated(id):
			f = e.k.forbidden(e.pr.Attach, id)
			f.Subject = helperName(id)
		case id == int64(asm.FnTailCall):
			f = tail
		case id == int64(asm.FnKptrXchg) && !e.k.lacksHelper(id):
			f = e.exchanges(e.o.refers[n])
			f.Subject = helperName(id)
		case !e.k.lacksHelper(id):
			f = e.licensed(id)
			f.Subject = helperName(id)
		}
		if f.Status != OK {
			f.Source = e.o.Source(u.at)
			l = append(l, absence{at: u.at, f: f})
		}
	})
	return l
}
