// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/kerneltree"
)

// trees reads testdata/trees.txt: which kernel trees have which facts, witnesses, helpers and kfuncs.
func trees(t *testing.T) *kerneltree.Matrix { t.Helper(); return matrix(t, "testdata/trees.txt") }

// accesses reads testdata/accesses.txt: which accesses to contexts kernel trees allow, and which calls of kfuncs their
// filters refuse.
func accesses(t *testing.T) *kerneltree.Matrix { t.Helper(); return matrix(t, "testdata/accesses.txt") }

// rhel reads testdata/rhel.txt: trees.txt and accesses.txt for each release of RHEL 8.4 to 10.0.
func rhel(t *testing.T) *kerneltree.Matrix { t.Helper(); return matrix(t, "testdata/rhel.txt") }

func matrix(t *testing.T, name string) *kerneltree.Matrix {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := kerneltree.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Columns) < 13 {
		t.Fatalf("%d trees", len(m.Columns))
	}
	return m
}

// treeRelease returns the release of a tree.
func treeRelease(t *testing.T, c *kerneltree.Column) Release {
	t.Helper()
	numbers := strings.SplitN(c.Release, ".", 3)
	r, err := parseRelease(strings.Join(numbers[:min(2, len(numbers))], "."))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inTrees returns which trees have a fact by their sources, nil if no pattern finds it.
func inTrees(m *kerneltree.Matrix, name string) []bool {
	none := make([]bool, len(m.Columns))
	words := strings.Fields(name)
	last := words[len(words)-1]
	found := m.Has["fact"][name]
	switch {
	case words[0] == "struct_ops" && words[1] == "on": // they are called by trampolines alone
		found = m.Has["fact"]["trampolines on "+last]
	case words[0] == "sleepable":
		found = m.Has["sleepable"][last]
	case words[0] == "call" && words[1] == "kptr_xchg" && strings.ToUpper(last) == last:
		found = m.Has["kptr"][last]
	case words[0] == "call" && words[1] == "map_update_elem":
		found = m.Has["with "+last]["map_update_elem of some programs"]
	case words[0] == "call" && words[1] != "kptr_xchg":
		found = m.Has["with "+last][words[1]]
	case found == nil && !slices.Contains(kerneltree.Facts(), name):
		return nil
	}
	if found == nil {
		found = none
	}
	if machine, ok := strings.CutPrefix(name, "trampolines on "); ok { // functions of the kernel also need direct calls
		calls := m.Has["fact"]["direct calls on "+machine]
		for i := range none {
			none[i] = found[i] && calls != nil && calls[i]
		}
		return none
	}
	return found
}

// unread are facts that no one place in the sources shows, or only a setting.
var unread = []string{"context moved", "function tracer", "program type LIRC_MODE2"}

// inAccesses are facts for which fewer trees were read.
var inAccesses = []string{"structs for the GPL alone", "trusted pointers", "two references", "whole pointers", "programs of any kernel version",
	"numbers in contexts", "real-time timers", "sleeping tracepoints", "sleeping tracing programs", "stacks of late callbacks", "call kptr_xchg kptr_ref"}

// late are facts that the first kernels with a witness lack, and their updates have: kernels of distributions are such
// updates.
var late = map[string]Release{"argument pointer to a typedef of a number": Linux(6, 3)}

// TestTreesFacts compares the facts with kernel trees: a fact is in Linux from its release on, in no tree that lacks it
// by a witness, and in each that has it by a witness.
func TestTreesFacts(t *testing.T) {
	all, some := trees(t), accesses(t)
	for _, f := range All() {
		name, m := f.String(), all
		if slices.Contains(inAccesses, name) {
			m = some
		}
		has := inTrees(m, name)
		if (has == nil) != slices.Contains(unread, name) {
			t.Errorf("%s: read from trees: %t", name, has != nil)
		}
		if has == nil {
			continue
		}
		r := f.row()
		for j := range m.Columns {
			c := &m.Columns[j]
			release := treeRelease(t, c)
			if kind, ok := strings.CutPrefix(name, "map-type "); ok && !enumerated(m, "BPF_MAP_TYPE_"+strings.Fields(kind)[0], j) {
				continue // the enum shows it
			}
			if release >= r.Since.By && release < late[name] {
				continue
			}
			is := release >= r.Since.By && r.Until == Change{}
			if p, _ := treeShows(m, r, j); len(r.witnesses) > 0 && r.Until != (Change{}) {
				is = p != No && release < r.Until.By
			}
			if is && !has[j] && release == r.Since.By && updated(m, has, c.Release) {
				continue // it came with an update of the release
			}
			if c.Mainline() && has[j] != is && !(release > r.Since.After && release < r.Since.By && r.Since.After != 0) {
				t.Errorf("%s, since %s: %t in %s", name, r.Since, has[j], c.Name)
			}
			if c.Vendor == "stable" && !has[j] && is && r.Until == (Change{}) {
				t.Errorf("%s, since %s, is not in %s", name, r.Since, c.Name)
			}
			if p, by := treeShows(m, r, j); p.contradicts(has[j]) {
				t.Errorf("%s: %t in %s, but %s", name, has[j], c.Name, by)
			}
		}
	}
}

// updated reports whether an update of a release has a fact.
func updated(m *kerneltree.Matrix, has []bool, release string) bool {
	major, minor, _ := strings.Cut(release, ".")
	minor, _, _ = strings.Cut(minor, ".")
	for j := range m.Columns {
		if has[j] && strings.HasPrefix(m.Columns[j].Release+".", major+"."+minor+".") {
			return true
		}
	}
	return false
}

// treeShows returns what the witnesses of a row say of a tree, and the one that decides, as Answers.witnessed does of a
// BTF.
func treeShows(m *kerneltree.Matrix, r *row, tree int) (Presence, string) {
	p, by := Perhaps, ""
	for _, w := range r.witnesses {
		name := strings.TrimPrefix(strings.TrimPrefix(w.text, "!"), "static:")
		has := false
		for relation, names := range m.Has {
			of, ok := strings.CutPrefix(relation, "witness ")
			if list := names[name]; list != nil && (relation == "witness" && w.name != "ftrace_ops" || ok && (of == r.machine || r.machine == "")) {
				has = has || list[tree]
			}
		}
		switch {
		case has && w.role == against, !has && (w.role == certain || w.role == needed):
			if p == Perhaps {
				p, by = No, w.text
			}
		case has && w.role != needed:
			return Yes, w.text
		}
	}
	return p, by
}

// TestRHEL compares the facts with trees of RHEL: where a witness or the release decides, the tree agrees.
func TestRHEL(t *testing.T) {
	m := rhel(t)
	for _, f := range All() {
		name, r := f.String(), f.row()
		has := inTrees(m, name)
		if has == nil {
			continue
		}
		for j := range m.Columns {
			c := &m.Columns[j]
			if kind, ok := strings.CutPrefix(name, "map-type "); ok && !enumerated(m, "BPF_MAP_TYPE_"+strings.Fields(kind)[0], j) {
				continue // the enum shows it
			}
			p, by := treeShows(m, r, j)
			if p == Perhaps {
				p, by = claims(&r.Period, true, treeRelease(t, c)), "by its release"
			}
			if p.contradicts(has[j]) {
				t.Errorf("%s: %t in %s, but %s", name, has[j], c.Name, by)
			}
		}
	}
}

// contradicts reports whether a kernel that has something, or does not, shows that what is said of it is wrong.
func (p Presence) contradicts(has bool) bool { return p == Yes && !has || p == No && has }

// claims returns what is said of a kernel of which only the release decides whether it has something, as Answers.unwitnessed does. A
// program that is not listed can do it on no kernel.
func claims(p *Period, listed bool, release Release) Presence {
	switch {
	case !listed, p.Until != Change{} && release >= p.Until.By:
		return No
	case p.Until != Change{}, p.Since != Change{} && release < p.Since.By:
		return Perhaps
	}
	return Yes
}

// TestRHELHelpers compares which programs may call helpers with trees of RHEL.
func TestRHELHelpers(t *testing.T) {
	m, compared := rhel(t), 0
	for id := int64(1); id <= LastHelper; id++ {
		wrong, n := vendorDisagrees(t, m, id, HelperNumbered(id))
		for _, why := range wrong {
			t.Error(why)
		}
		compared += n
	}
	if compared < 50000 {
		t.Errorf("%d comparisons", compared)
	}
}

// vendorDisagrees returns in what the callers of a helper differ from trees of a vendor, and the number of comparisons.
func vendorDisagrees(t *testing.T, m *kerneltree.Matrix, id int64, h *Helper) (wrong []string, n int) {
	helper := HelperName(id)
	for j := range m.Columns {
		c := &m.Columns[j]
		if !enumerated(m, helper, j) {
			continue
		}
		for _, caller := range Callers() {
			allowed := m.Has["helper "+caller]
			if !anyIn(allowed, j) {
				continue
			}
			p, listed := h.Callable(caller)
			has := allowed[strings.TrimPrefix(helper, "bpf_")]
			is := has != nil && has[j]
			if said := claims(&p, listed, treeRelease(t, c)); said.contradicts(is) {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %t in %s, but since %s, until %s, %t", helper, caller, is, c.Name, p.Since, p.Until, listed))
			}
			n++
		}
	}
	return wrong, n
}

// TestRHELKfuncs compares since when programs of each type can call a kfunc with trees of RHEL.
func TestRHELKfuncs(t *testing.T) {
	m, compared := rhel(t), 0
	in := func(relation, name string, tree int) bool {
		l := m.Has[relation][name]
		return l != nil && l[tree]
	}
	for name, callers := range the().kfuncs {
		for kind, period := range callers {
			if kind == NotSleeping {
				continue
			}
			for j := range m.Columns {
				c := &m.Columns[j]
				if !isKfunc(m, name, j) {
					continue
				}
				is := in("kfunc "+kind, name, j) || in("kfunc any", name, j)
				if said := claims(&period, true, treeRelease(t, c)); said.contradicts(is) {
					t.Errorf("%s of %s: %t in %s, but since %s, until %s", name, kind, is, c.Name, period.Since, period.Until)
				}
				compared++
			}
		}
	}
	if compared < 500 {
		t.Errorf("%d comparisons", compared)
	}
}

// TestRHELFilters wants no tree of RHEL to let programs call a kfunc that no kernel is said to let them call.
func TestRHELFilters(t *testing.T) {
	m, compared := rhel(t), 0
	for name, only := range the().only {
		can := kfuncTypes(m, name)
		if l := filteredTypes(t, m, m, name); l != nil {
			can = l
		}
		for _, kind := range can {
			progType, attach, _ := strings.Cut(kind, "/")
			if attach != "" && !slices.Contains(m.Has["enumerator"]["BPF_"+attach], true) {
				continue
			}
			if !slices.Contains(only, kind) && !slices.Contains(only, progType) {
				t.Errorf("%s: programs of type %s can call it, but only %v", name, kind, only)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("%d comparisons", compared)
	}
}

// TestRHELHooks compares what is known of hooks of LSM with trees of RHEL.
func TestRHELHooks(t *testing.T) {
	m, compared := rhel(t), 0
	for _, r := range the().rows {
		sets := hookSets[r.entry.name]
		if r.entry.file != "hooks.txt" || sets == nil {
			continue
		}
		for _, name := range r.names {
			exists := m.Has["hook"][name]
			for j := range m.Columns {
				c := &m.Columns[j]
				if exists == nil || !exists[j] || !anyIn(m.Has["set "+sets[0]], j) {
					continue
				}
				is := inSets(m, sets, name, j)
				if said := claims(&r.Period, true, treeRelease(t, c)); said.contradicts(is) {
					t.Errorf("%s %s: %t in %s, but since %s, until %s", r.entry.name, name, is, c.Name, r.Since, r.Until)
				}
				compared++
			}
		}
	}
	if compared < 500 {
		t.Errorf("%d comparisons", compared)
	}
}

// TestTreesHelpers compares the helpers that programs of each type may call with kernel trees.
func TestTreesHelpers(t *testing.T) {
	m := trees(t)
	compared := 0
	for _, caller := range Callers() {
		if m.Has["helper "+caller] == nil && !slices.Contains(booted, caller) {
			t.Errorf("no tree knows %s", caller)
		}
	}
	for id := int64(1); id <= LastHelper; id++ {
		wrong, n := helperDisagrees(t, m, id, HelperNumbered(id))
		for _, why := range wrong {
			t.Error(why)
		}
		compared += n
	}
	if compared < 100000 {
		t.Errorf("%d comparisons", compared)
	}
}

// booted are types of programs that are newer than the trees. Linux 7.2.12 and 7.3.4, booted, let them call the helpers of fentry, and of them
// those of fsession the kfuncs of fsession.
var booted = []string{"TRACING/TRACE_FENTRY_MULTI", "TRACING/TRACE_FEXIT_MULTI", "TRACING/TRACE_FSESSION_MULTI"}

// TestBootedHelpers wants the helpers of fentry for the types of programs that no tree has.
func TestBootedHelpers(t *testing.T) {
	for id := int64(1); id <= LastHelper; id++ {
		for _, why := range bootedDisagree(id, HelperNumbered(id)) {
			t.Error(why)
		}
	}
}

func bootedDisagree(id int64, h *Helper) (wrong []string) {
	want, ok := h.Callable("TRACING/TRACE_FENTRY")
	for _, caller := range booted {
		if got, listed := h.Callable(caller); listed != ok || !reflect.DeepEqual(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s of %s: %t, %v, want %t, %v", HelperName(id), caller, listed, got, ok, want))
		}
	}
	return wrong
}

// updatedHelpers are helpers whose callers an update changed, with the release of the update.
var updatedHelpers = map[string]Release{"bpf_ktime_get_coarse_ns": Linux(5, 15)}

// helperDisagrees returns in what a helper differs from kernel trees, and the number of comparisons.
func helperDisagrees(t *testing.T, m *kerneltree.Matrix, id int64, h *Helper) (wrong []string, n int) {
	helper := HelperName(id)
	for j := range m.Columns {
		c := &m.Columns[j]
		release, exists := treeRelease(t, c), enumerated(m, helper, j)
		if c.Mainline() && exists != (release >= h.since) {
			wrong = append(wrong, fmt.Sprintf("%s, since %s: %t in %s", helper, h.since, exists, c.Name))
		}
		if !c.Mainline() && c.Vendor != "stable" || !exists {
			continue
		}
		for _, caller := range Callers() {
			allowed := m.Has["helper "+caller]
			if !anyIn(allowed, j) {
				continue
			}
			period, listed := h.Callable(caller)
			has := allowed[strings.TrimPrefix(helper, "bpf_")]
			if updatedHelpers[helper] == release && within(period.Until, release) {
				continue
			}
			if c.Vendor == "stable" && listed && period.Until.By == 0 && has != nil && has[j] {
				continue // updates can have more than the release
			}
			if !agrees(&period, listed, release, has != nil && has[j]) {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %t in %s, but since %s, until %s, %t", helper, caller, has != nil && has[j], c.Name, period.Since, period.Until, listed))
			}
			n++
		}
	}
	return wrong, n
}

// enumerated reports whether a tree has a part of the kernel's interface.
func enumerated(m *kerneltree.Matrix, name string, tree int) bool {
	l := m.Has["enumerator"][name]
	return l != nil && l[tree]
}

// anyIn reports whether a tree has something of a relation: some trees lack folders.
func anyIn(relation map[string][]bool, tree int) bool {
	for _, has := range relation {
		if has[tree] {
			return true
		}
	}
	return false
}

// agrees reports whether a tree's release and what it allows agree with a period. Of a release within a change the tree
// shows more.
func agrees(p *Period, listed bool, release Release, has bool) bool {
	switch {
	case !listed:
		return !has
	case p.Since != Change{} && (release <= p.Since.After || p.Since.After == 0 && release < p.Since.By):
		return !has
	case p.Until != Change{} && release >= p.Until.By:
		return !has
	case within(p.Since, release), within(p.Until, release):
		return false
	}
	return has
}

// within reports whether a release is between the last without a change and the first with it.
func within(c Change, release Release) bool {
	return release < c.By && release > c.After && c.After != 0
}

// TestTreesKfuncs compares since when programs of each type can call a kfunc with kernel trees.
func TestTreesKfuncs(t *testing.T) {
	m := trees(t)
	names := make(map[string]bool)
	for _, m := range []*kerneltree.Matrix{m, accesses(t)} {
		for relation, of := range m.Has {
			for name := range of {
				if strings.HasPrefix(relation, "kfunc ") {
					names[name] = true
				}
			}
		}
	}
	compared := 0
	for name := range names {
		wrong, n := kfuncDisagrees(t, m, name, the())
		for _, why := range wrong {
			t.Error(why)
		}
		compared += n
	}
	for _, name := range slices.AppendSeq(Kfuncs(), maps.Keys(the().only)) {
		if !names[name] {
			t.Errorf("no tree has %s", name)
		}
	}
	if compared < 10000 {
		t.Errorf("%d comparisons", compared)
	}
}

// kfuncDisagrees returns in what the callers of a kfunc differ from kernel trees, and the number of comparisons.
func kfuncDisagrees(t *testing.T, m *kerneltree.Matrix, name string, table *table) (wrong []string, n int) {
	if strings.HasPrefix(name, "hid_bpf_") || name == "name" { // since 6.11 only struct_ops call the former; the latter is an argument of a macro
		return nil, 0
	}
	callers, can := table.kfuncs[name], kfuncTypes(m, name)
	if l := filteredTypes(t, accesses(t), m, name); l != nil {
		can = l
	}
	for _, caller := range booted {
		if slices.Contains(can, strings.TrimSuffix(caller, "_MULTI")) {
			can = append(can, caller)
		}
	}
	only := table.only[name]
	if !slices.Equal(slices.Sorted(slices.Values(only)), slices.Sorted(slices.Values(can))) {
		wrong = append(wrong, fmt.Sprintf("%s: programs of the types %v can call it in trees, but only %v", name, can, only))
	}
	compare := func(kind string, in func(tree int) bool) {
		period := callers[kind]
		for j := range m.Columns {
			c := &m.Columns[j]
			if !c.Mainline() || !isKfunc(m, name, j) {
				continue
			}
			if has := in(j); !agrees(&period, true, treeRelease(t, c), has) {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %t in %s, but since %s", name, kind, has, c.Name, period.Since))
			}
			n++
		}
	}
	in := func(relation string, tree int) bool {
		l := m.Has[relation][name]
		return l != nil && l[tree]
	}
	for relation, names := range m.Has {
		kind, ok := strings.CutPrefix(relation, "kfunc ")
		_, listed := callers[kind]
		if ok && kind != "any" && kind != "STRUCT_OPS" && (names[name] != nil || listed) {
			compare(kind, func(j int) bool { return in(relation, j) || in("kfunc any", j) })
		}
	}
	if _, ok := callers[NotSleeping]; ok || m.Has["sleeps"][name] != nil && !isAlwaysSleeping(m, name) {
		compare(NotSleeping, func(j int) bool { return !in("sleeps", j) })
	}
	return wrong, n
}

// isKfunc reports whether programs of any type can call a function in a tree.
func isKfunc(m *kerneltree.Matrix, name string, tree int) bool {
	for relation, names := range m.Has {
		if has := names[name]; strings.HasPrefix(relation, "kfunc ") && has != nil && has[tree] {
			return true
		}
	}
	return false
}

// kfuncTypes returns the types of programs that can call a kfunc in any tree, nil if all types can in one.
func kfuncTypes(m *kerneltree.Matrix, name string) (types []string) {
	for _, relation := range slices.Sorted(maps.Keys(m.Has)) {
		kind, ok := strings.CutPrefix(relation, "kfunc ")
		if !ok || m.Has[relation][name] == nil {
			continue
		}
		if kind == "any" {
			return nil
		}
		types = append(types, kind)
	}
	return types
}

// filteredTypes returns the types of programs that can call a kfunc in any tree, with the types of attachment behind a
// slash if the filter of its set refuses others; nil if no filter refuses it.
func filteredTypes(t *testing.T, m, all *kerneltree.Matrix, name string) (types []string) {
	t.Helper()
	refused := false
	for _, relation := range slices.Sorted(maps.Keys(m.Has)) {
		kind, ok := strings.CutPrefix(relation, "kfunc ")
		if !ok || m.Has[relation][name] == nil {
			continue
		}
		attaches := kerneltree.FilteredAttachments[kind]
		if attaches == nil {
			attaches = []string{""}
		}
		var can []string
		for _, attach := range attaches {
			refuses := m.Has["refuses "+strings.TrimSuffix(kind+"/"+attach, "/")][name]
			refused = refused || refuses != nil
			for j := range m.Columns {
				if m.Has[relation][name][j] && treeRelease(t, &m.Columns[j]) >= cameWith(t, all, "BPF_"+attach) && (refuses == nil || !refuses[j]) {
					can = append(can, strings.TrimSuffix(kind+"/"+attach, "/"))
					break
				}
			}
		}
		if len(can) == len(attaches) {
			can = []string{kind}
		}
		types = append(types, can...)
	}
	if !refused {
		return nil
	}
	return types
}

// cameWith returns the release of the first tree that has a part of the kernel's interface, 0 if none has it.
func cameWith(t *testing.T, m *kerneltree.Matrix, name string) Release {
	t.Helper()
	for j := range m.Columns {
		if enumerated(m, name, j) {
			return treeRelease(t, &m.Columns[j])
		}
	}
	return 0
}

// isAlwaysSleeping reports whether a kfunc may sleep in every tree that has it.
func isAlwaysSleeping(m *kerneltree.Matrix, name string) bool {
	for j := range m.Columns {
		if isKfunc(m, name, j) && !m.Has["sleeps"][name][j] {
			return false
		}
	}
	return true
}

// TestTreesInterface compares the releases of parts of the kernel's interface with kernel trees.
func TestTreesInterface(t *testing.T) {
	m := trees(t)
	n := 0
	for name, came := range Interface() {
		has := m.Has["enumerator"][name]
		for j := range m.Columns {
			c := &m.Columns[j]
			if release := treeRelease(t, c); c.Mainline() && (has != nil && has[j]) != (release >= came) {
				t.Errorf("%s, since %s: %t in %s", name, came, has != nil && has[j], c.Name)
			}
			n++
		}
	}
	if n < 5000 {
		t.Errorf("%d comparisons", n)
	}
}

// hookSets are the sets of hooks that kinds of entries in hooks.txt are about. Linux 5.10 had another name for one of
// them.
var hookSets = map[string][]string{
	"disabled":  {"bpf_lsm_disabled_hooks"},
	"sleepable": {"sleepable_lsm_hooks", "btf_sleepable_lsm_hooks"},
	"boolean":   {"bool_lsm_hooks"},
}

// report reports in what a table disagrees with kernel trees, and fewer comparisons than least.
func report(t *testing.T, wrong []string, comparisons, least int) {
	t.Helper()
	for _, why := range wrong {
		t.Error(why)
	}
	if comparisons < least {
		t.Errorf("%d comparisons", comparisons)
	}
}

// TestTreesHooks compares the sets of hooks of LSM with kernel trees.
func TestTreesHooks(t *testing.T) {
	wrong, n := hooksDisagree(t, trees(t), the())
	report(t, wrong, n, 15000)
}

// hooksDisagree returns in what the sets of hooks differ from kernel trees, and the number of comparisons.
func hooksDisagree(t *testing.T, m *kerneltree.Matrix, table *table) (wrong []string, n int) {
	periods := make(map[string]map[string]Period) // by kind and hook
	for _, r := range table.rows {
		if r.entry.file != "hooks.txt" {
			continue
		}
		kind := r.entry.name
		if periods[kind] == nil {
			periods[kind] = make(map[string]Period)
		}
		for _, name := range r.names {
			if _, twice := periods[kind][name]; twice || m.Has["hook"][name] == nil {
				wrong = append(wrong, fmt.Sprintf("%s %s: in two entries, or no hook", kind, name))
			}
			periods[kind][name] = r.Period
		}
	}
	for kind, sets := range hookSets {
		for name, exists := range m.Has["hook"] {
			period, listed := periods[kind][name]
			for j := range m.Columns {
				c := &m.Columns[j]
				if !c.Mainline() || !exists[j] || treeRelease(t, c) < Linux(5, 10) {
					continue // programs that may sleep came with 5.10
				}
				has, release := inSets(m, sets, name, j), treeRelease(t, c)
				backport := within(period.Since, release) && backported(t, m, sets, name, period.Since) ||
					within(period.Until, release) && backported(t, m, sets, name, period.Until)
				if !agrees(&period, listed, release, has) && !backport {
					wrong = append(wrong, fmt.Sprintf("%s %s: %t in %s, but since %s, until %s, %t", kind, name, has, c.Name, period.Since, period.Until, listed))
				}
				n++
			}
		}
	}
	return wrong, n
}

// inSets reports whether a hook is in one of some sets of a tree.
func inSets(m *kerneltree.Matrix, sets []string, hook string, tree int) bool {
	return slices.ContainsFunc(sets, func(set string) bool {
		in := m.Has["set "+set]["bpf_lsm_"+hook]
		return in != nil && in[tree]
	})
}

// backported reports whether updates of a release took over a change of a set: an update of another release does not
// show when it came.
func backported(t *testing.T, m *kerneltree.Matrix, sets []string, hook string, change Change) bool {
	for i := range m.Columns {
		for j := range m.Columns {
			a, b := &m.Columns[i], &m.Columns[j]
			if treeRelease(t, a) == treeRelease(t, b) && treeRelease(t, a) <= change.After && m.Has["hook"][hook][i] &&
				inSets(m, sets, hook, i) != inSets(m, sets, hook, j) {
				return true
			}
		}
	}
	return false
}
