// SPDX-License-Identifier: Apache-2.0

package facts

// Evidence is what is known of a kernel.
type Evidence interface {
	// Struct reports whether the kernel's BTF has a struct, with a member unless that is "".
	Struct(name, member string) bool

	// Function reports whether the kernel's BTF has a function.
	Function(name string) bool

	// Enum returns the enumerators of an enum with their values, nil if the BTF does not have the enum.
	Enum(e Enum) map[string]uint64

	// Functions reports whether the BTF lists functions.
	Functions() bool

	// Settings returns the settings of the kernel's build that are on, nil if these are not known.
	Settings() map[string]string

	// Newest returns the newest release that the kernel can be by its name, with the patch level, 0 if the name does not show it.
	Newest() Release
}

// Presence is whether a kernel has something, as far as that is known.
type Presence uint8

// The presences.
const (
	Perhaps Presence = iota
	Yes
	No
)

// Decided says from what it is known whether a kernel has something.
type Decided string

// The ways to decide.
const (
	ByWitness Decided = "witness"
	ByConfig  Decided = "configuration"
	ByRelease Decided = "release"
)

// Answer is whether a kernel has a fact, and how that was decided.
type Answer struct {
	Presence
	Decided Decided
	// Witness is the deciding name: STRUCT.MEMBER, FUNCTION(), static:FUNCTION() or ENUM:ENUMERATOR, behind a ! if kernels with the fact do not
	// have it.
	Witness string
}

// wholeBTF is a struct of every kernel with BPF. If the BTF has it, what the BTF does not have is not in the kernel.
const wholeBTF = "bpf_verifier_env"

// staticFunction is a static function of every kernel with BPF. Compilers cannot inline it: a BTF without it lists no
// static functions. pahole 1.20 and older wrote such BTF for arm64.
const staticFunction = "array_map_alloc"

// Whole reports whether a kernel's BTF is that of a whole kernel.
func Whole(k Evidence) bool { return k.Struct(wholeBTF, "") }

// Types returns the names of the structs and functions that decide facts. [Evidence] has to know them.
func Types() []string { return append([]string{wholeBTF, staticFunction}, the().types...) }

// Settings returns the settings that decide facts. [Evidence] has to know them.
func Settings() (l []string) {
	for _, r := range the().rows {
		if r.Setting != "" {
			l = append(l, r.Setting)
		}
	}
	return l
}

// Answers are which facts a kernel has.
type Answers struct {
	k       Evidence
	rows    []Answer // by row
	whole   bool
	statics bool    // the BTF lists static functions
	shown   Release // the newest release that the BTF shows
}

// Has returns whether a kernel has a fact.
func Has(k Evidence, f Fact) Answer {
	a := Decide(k)
	return a.Has(f)
}

// Decide decides all facts of a kernel.
func Decide(k Evidence) Answers {
	rows := the().rows
	a := Answers{k: k, rows: make([]Answer, len(rows)), whole: Whole(k), statics: k.Function(staticFunction)}
	for i, r := range rows {
		if a.rows[i] = a.witnessed(&r.Period); a.rows[i].Presence == Yes {
			a.shown = max(a.shown, r.Since.By)
		}
	}
	for name, came := range Interface() {
		enum, enumerator := Enumerator(name)
		if _, ok := k.Enum(enum)[enumerator]; ok {
			a.shown = max(a.shown, came)
		}
	}
	for i, r := range rows {
		if a.rows[i].Presence == Perhaps {
			a.rows[i] = a.unwitnessed(&r.Period)
		}
	}
	return a
}

// During returns whether the kernel has something that kernels have in a period.
func (a *Answers) During(p *Period) Answer {
	if out := a.witnessed(p); out.Presence != Perhaps {
		return out
	}
	return a.unwitnessed(p)
}

// Has returns whether the kernel has a fact.
func (a *Answers) Has(f Fact) Answer {
	if f == Every {
		return Answer{Presence: Yes, Decided: ByRelease}
	}
	return a.rows[the().rowOf[f]]
}

// Shown returns the newest release of what the kernel's BTF shows, 0 if it shows nothing.
func (a *Answers) Shown() Release { return a.shown }

// AtLeast reports whether the kernel is certainly not older than a release: by its name, or by what its BTF shows if
// the name does not say.
func (a *Answers) AtLeast(r Release) bool {
	if newest := a.k.Newest(); newest != 0 {
		return newest >= r
	}
	return a.shown >= r
}

// witnessed returns whether the kernel's BTF shows that it has a fact, and the witness that decides.
func (a *Answers) witnessed(p *Period) Answer {
	out := Answer{Decided: ByWitness}
	for i := range p.witnesses {
		w := &p.witnesses[i]
		switch s := a.shows(w); {
		case s == Yes:
			return Answer{Yes, ByWitness, w.text}
		case s == No && out.Presence == Perhaps:
			out.Presence, out.Witness = No, w.text
		}
	}
	return out
}

// shows returns whether the kernel's BTF has a witness.
func (a *Answers) shows(w *witness) Presence {
	has, shown := false, a.whole // shown is whether the BTF would have it
	switch w.kind {
	case enumerator:
		enum := a.k.Enum(w.enum)
		_, has = enum[w.part]
		shown = shown || enum != nil
	case function, static:
		has = a.k.Function(w.name)
		shown = shown && a.k.Functions() && (a.statics || w.kind != static)
	default:
		has = a.k.Struct(w.name, w.part)
	}
	switch {
	case has && w.role == against, !has && shown && (w.role == certain || w.role == needed):
		return No
	case has && w.role != needed:
		return Yes
	}
	return Perhaps
}

// unwitnessed decides a fact by the kernel's configuration, then by its release. A setting that is on decides nothing,
// as it may be older than the fact. An older release decides nothing, as distributions take over what is newer.
func (a *Answers) unwitnessed(p *Period) Answer {
	settings := a.k.Settings()
	switch {
	case p.Setting != "" && settings != nil && settings[p.Setting] == "":
		return Answer{No, ByConfig, ""}
	case p.Until != Change{} && a.AtLeast(p.Until.By):
		return Answer{No, ByRelease, ""}
	case p.Until != Change{}, p.Since != Change{} && !a.AtLeast(p.Since.By):
		return Answer{Perhaps, ByRelease, ""}
	}
	return Answer{Yes, ByRelease, ""}
}

// Age removes what came after a release, so that tests have older kernels than their corpus.
func (a *Answers) Age(to Release) {
	for i, r := range the().rows {
		if out := &a.rows[i]; r.Since.By > to && out.Decided == ByWitness {
			if out.Presence, out.Witness = No, r.witnesses[0].text; r.witnesses[0].role == hint {
				out.Presence = Perhaps
			}
		}
	}
}
