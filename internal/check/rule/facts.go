// SPDX-License-Identifier: Apache-2.0

package rule

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// factText says what kernels differ in, and how a kernel shows whether it has it.
//
//go:embed facts.txt
var factText string

// fact is something that not every kernel has.
type fact struct {
	name    string
	usedBy  string // in words, "" if findings have words of their own
	witness []witness
	setting string // of the kernel's build, without which a kernel does not have it; "" for none
	since   Release
	at      int // in facts.all
}

// witness is something in the BTF of the kernels that have a fact.
type witness struct {
	text    string
	name    string // of a struct, enum or function
	part    string // member or enumerator, "" for the whole
	kind    btf.Kind
	unsure  bool // kernels may have the fact without it
	static  bool // a function that not every BTF with functions lists
	without bool // kernels that have it do not have the fact
}

// factTable is factText.
type factTable struct {
	all     []*fact
	named   map[string]*fact
	came    map[string]Release // with which parts of the kernel's interface came, by name
	structs []string           // and functions: names of witnesses
	hooks   map[string]hookFact
	returns map[string]returnFact // by type of attachment
	kfuncs  kindTable
	calls   kindTable // of helpers with maps of a type, by "map_delete_elem SOCKMAP"
}

// kindTable says since or up to when programs of a type can do something: by what it is, then by type of programs, notSleeping for those that
// may not sleep.
type kindTable map[string]map[string]permission

// anyType stands for programs of every type.
const anyType = "any"

// add adds a line: the types of programs, with commas between them, and what they do.
func (t kindTable) add(when permission, types string, names []string) {
	for _, name := range names {
		if t[name] == nil {
			t[name] = make(map[string]permission)
		}
		for kind := range strings.SplitSeq(types, ",") {
			t[name][kind] = when
		}
	}
}

// hookFact is what is known of a hook of LSM.
type hookFact struct {
	disabled  Release    // since when programs cannot be attached, 0 for never
	sleepable bool       // programs that may sleep can be attached
	sleeps    permission // since when
	withdrawn bool       // but not on some newer kernels
	yesOrNo   bool       // it returns a boolean
}

// facts returns the table. A test reads it, so that there is no mistake in it.
var facts = sync.OnceValue(func() *factTable {
	t, err := readFacts(factText)
	if err != nil {
		panic(err)
	}
	return t
})

func readFacts(text string) (*factTable, error) {
	t := &factTable{named: make(map[string]*fact), came: make(map[string]Release), hooks: make(map[string]hookFact), returns: make(map[string]returnFact), kfuncs: make(kindTable), calls: make(kindTable)}
	paragraph := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			paragraph = line
			continue
		}
		if paragraph != "" {
			if err := t.list(paragraph, strings.Fields(line)); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			continue
		}
		f, err := parseFact(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		if strings.HasPrefix(f.name, "returns ") {
			attach, r, err := parseReturn(f)
			if err != nil || t.returns[attach].fact != nil {
				return nil, fmt.Errorf("%s: want a type of attachment, once, and LO..HI", line)
			}
			t.returns[attach] = r
		}
		f.at = len(t.all)
		t.all = append(t.all, f)
		for _, name := range f.names() {
			if t.named[name] != nil {
				return nil, fmt.Errorf("%s: twice", name)
			}
			t.named[name] = f
		}
		for _, w := range f.witness {
			if w.kind != btf.KindEnum {
				t.structs = append(t.structs, w.name)
			}
		}
	}
	last := Release(0)
	for id := int64(1); helperName(id)[0] != '#'; id++ {
		name := helperName(id)
		if r, ok := t.came[name]; ok {
			last = r
		} else if last != 0 {
			t.came[name] = last
		}
	}
	return t, nil
}

// list reads a line of a paragraph: when, and names.
func (t *factTable) list(paragraph string, words []string) error {
	_, when, err := parsePermission("@" + words[0])
	if err != nil {
		when.by, err = parseRelease(words[0])
	}
	if paragraph == "[kfuncs]" || paragraph == "[calls with maps]" {
		if err != nil || len(words) < 3 {
			return errors.New("want AFTER..BY TYPES NAMES")
		}
		if paragraph == "[kfuncs]" {
			t.kfuncs.add(when, words[1], words[2:])
			return nil
		}
		when.withdrawn = true
		if len(words) != 4 {
			return errors.New("want AFTER..BY TYPES HELPER MAPS")
		}
		for kind := range strings.SplitSeq(words[3], ",") {
			t.calls.add(when, words[1], []string{words[2] + " " + kind})
		}
		return nil
	}
	for _, name := range words[1:] {
		h := t.hooks[name]
		switch paragraph {
		case "[enumerators]":
			t.came[name] = when.by
			continue
		case "[disabled hooks]":
			h.disabled = when.by
		case "[sleepable hooks]":
			h.sleepable, h.sleeps = true, when
		case "[no longer sleepable]":
			h.withdrawn = true
		case "[boolean hooks]":
			h.yesOrNo = true
		default:
			return errors.New("unknown paragraph")
		}
		t.hooks[name] = h
	}
	return err
}

func parseFact(line string) (*fact, error) {
	var c []string
	for column := range strings.SplitSeq(line, "  ") {
		if column = strings.TrimSpace(column); column != "" {
			c = append(c, column)
		}
	}
	if len(c) != 6 {
		return nil, errors.New("want six columns")
	}
	since, err := parseRelease(c[4])
	f := &fact{name: c[0], since: since}
	for i, to := range map[int]*string{1: &f.usedBy, 3: &f.setting} {
		if c[i] != "-" {
			*to = c[i]
		}
	}
	for _, word := range strings.Fields(c[2]) {
		if word != "-" {
			f.witness = append(f.witness, parseWitness(word))
		}
	}
	return f, err
}

// names returns the names of a fact: of several, what differs is at the end, with commas between.
func (f *fact) names() []string {
	at := strings.LastIndexByte(f.name, ' ') + 1
	l := strings.Split(f.name[at:], ",")
	for i := range l {
		l[i] = f.name[:at] + l[i]
	}
	return l
}

func parseWitness(word string) witness {
	w := witness{kind: btf.KindStruct}
	word, w.unsure = strings.CutSuffix(word, "?")
	w.text = word
	word, w.without = strings.CutPrefix(word, "!")
	word, w.static = strings.CutPrefix(word, "static:")
	w.name = word
	if name, ok := strings.CutSuffix(word, "()"); ok {
		w.name, w.kind = name, btf.KindFunc
	} else if name, part, ok := strings.Cut(word, ":"); ok {
		w.name, w.part, w.kind = name, part, btf.KindEnum
	} else {
		w.name, w.part, _ = strings.Cut(word, ".")
	}
	return w
}

// staticFunction is a static function of every kernel with BPF, which compilers cannot inline: where it is missing, the BTF lists no such functions,
// as that which pahole 1.20 and older wrote for arm64.
const staticFunction = "array_map_alloc"

// presence is whether a kernel has something, as far as that is known.
type presence uint8

const (
	untold presence = iota
	present
	lacking
)

// wholeBTF is a struct of every kernel with BPF. If the BTF has it, what the BTF does not have is not in the kernel.
const wholeBTF = "bpf_verifier_env"

// shows says whether a kernel's BTF has a witness.
func (k *Inventory) shows(w *witness) presence {
	has, whole := false, k.whole
	if w.kind == btf.KindEnum {
		enum := enumNumber(w.name)
		_, has = k.enums[enum][w.part]
		whole = whole || k.enums[enum] != nil
	} else if y, ok := k.find(w.name, w.kind); ok {
		has = w.part == "" || hasMember(y.typ(), w.part, 3)
	}
	switch {
	case has && w.without, !has && !w.without && !w.unsure && whole && (w.kind != btf.KindFunc || k.funcs > 0 && (k.statics || !w.static)):
		return lacking
	case has:
		return present
	}
	return untold
}

// hasMember reports whether a struct or its anonymous members have a member.
func hasMember(t btf.Type, name string, depth int) bool {
	for i := range t.Vlen() {
		m := t.Member(i)
		if t.BTF().NameIs(m.NameOff, name) {
			return true
		}
		if in, ok := t.BTF().SkipMods(m.Type); m.NameOff == 0 && ok && in.Kind().IsComposite() && depth > 0 && hasMember(in, name, depth-1) {
			return true
		}
	}
	return false
}

// witnessed says whether a kernel's BTF shows that it has a fact, and the witness that decides.
func (k *Inventory) witnessed(f *fact) (presence, string) {
	p, by := untold, ""
	for i := range f.witness {
		w := &f.witness[i]
		switch s := k.shows(w); {
		case s == present:
			return present, w.text
		case s == lacking && p == untold:
			p, by = lacking, w.text
		}
	}
	return p, by
}

// ruling is whether a kernel has a fact, and how that was decided.
type ruling struct {
	presence
	decided Decided
	witness string
}

// settle decides all facts, and which abilities of verifiers guards may depend on.
func (k *Inventory) settle() {
	all := facts().all
	_, k.statics = k.find(staticFunction, btf.KindFunc)
	k.facts, k.shown = make([]ruling, len(all)), 0
	for i, f := range all {
		r := &k.facts[i]
		r.decided = ByWitness
		if r.presence, r.witness = k.witnessed(f); r.presence == present {
			k.shown = max(k.shown, f.since)
		}
	}
	for name, came := range facts().came {
		enum, enumerator := enumeratorOf(name)
		if _, ok := k.enums[enum][enumerator]; ok {
			k.shown = max(k.shown, came)
		}
	}
	for i, f := range all {
		if r := &k.facts[i]; r.presence == untold {
			r.presence, r.decided = k.unwitnessed(f)
		}
	}
	k.setFeatures()
}

// setFeatures finds the abilities of the kernel's verifier among its facts.
func (k *Inventory) setFeatures() {
	k.features = 0
	for f, name := range features {
		if k.has(name) {
			k.features |= f
		}
	}
	if k.facts[facts().named[features[interp.Rodata]].at].presence == untold {
		k.features |= interp.MaybeRodata
	}
}

// unwitnessed decides a fact by the kernel's configuration, then by its release. An older release decides nothing, as distributions
// take over what is newer.
func (k *Inventory) unwitnessed(f *fact) (presence, Decided) {
	switch {
	case f.setting != "" && k.known.config != nil && k.known.config[f.setting] == "":
		return lacking, ByConfig
	case f.setting != "" && k.known.config != nil:
		return present, ByConfig
	case k.atLeast(f.since):
		return present, ByRelease
	}
	return untold, ByRelease
}

// atLeast reports whether a kernel is certainly not older than a release: by its name, or by what its BTF shows if that does not say.
func (k *Inventory) atLeast(r Release) bool {
	if k.dated() {
		return !k.before(r)
	}
	return k.shown >= r
}

// has reports whether a kernel certainly has a fact.
func (k *Inventory) has(name string) bool { return k.facts[facts().named[name].at].presence == present }

// judge returns a finding if a kernel does not have a fact, or perhaps not.
func (k *Inventory) judge(name string, code Code) Finding {
	f := facts().named[name]
	r := &k.facts[f.at]
	out := Finding{Status: Fails, Code: code, Subject: f.usedBy, Args: Args{Since: f.since, Decided: r.decided, Witness: r.witness}}
	switch {
	case r.presence == present:
		return Finding{}
	case r.presence == lacking:
	case k.dated():
		out.Status, out.Doubt = MayFail, OlderRelease
	default:
		out.Status, out.Doubt = MayFail, NoRelease
	}
	return out
}

// judgeAny is judge for a use that may be no fact: then every kernel has it.
func (k *Inventory) judgeAny(name string, code Code) Finding {
	if facts().named[name] == nil {
		return Finding{}
	}
	return k.judge(name, code)
}

// strict is the verdict on what verifiers refuse only if they check global functions on their own; older ones check them where they are called.
func (k *Inventory) strict() Status {
	switch k.facts[facts().named["verifier global functions"].at].presence {
	case present:
		return Fails
	case lacking:
		return OK
	}
	return MayFail
}
