// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// An Inventory is the evidence by which package facts decides what a kernel has.

// Struct reports whether the kernel has a struct, with a member unless that is "".
func (k *Inventory) Struct(name, member string) bool {
	y, ok := k.find(name, btf.KindStruct)
	return ok && (member == "" || hasMember(y.typ(), member, deepest))
}

// deepest is how deep anonymous members are searched.
const deepest = 3

// memberNamed returns the member of a struct with a name, not those of its anonymous members.
func memberNamed(t btf.Type, name string) (m btf.Member, ok bool) {
	for i := range t.Vlen() {
		if m = t.Member(i); t.BTF().NameIs(m.NameOff, name) {
			return m, true
		}
	}
	return btf.Member{}, false
}

// hasMember reports whether a struct or its anonymous members have a member.
func hasMember(t btf.Type, name string, depth int) bool {
	_, ok := memberWithin(t, name, depth)
	return ok
}

// memberWithin returns the member of a struct, or of its anonymous members, with a name. Its offset is that in the struct.
func memberWithin(t btf.Type, name string, depth int) (m btf.Member, ok bool) {
	if m, ok = memberNamed(t, name); ok {
		return m, true
	}
	for i := range t.Vlen() {
		outer := t.Member(i)
		in, ok := t.BTF().SkipMods(outer.Type)
		if outer.NameOff != 0 || !ok || !in.Kind().IsComposite() || depth == 0 {
			continue
		}
		if m, ok = memberWithin(in, name, depth-1); ok {
			m.BitOffset += outer.BitOffset
			return m, true
		}
	}
	return btf.Member{}, false
}

// Function reports whether the kernel has a function.
func (k *Inventory) Function(name string) bool {
	_, ok := k.find(name, btf.KindFunc)
	return ok
}

// Enum returns an enum's values by name, nil if the BTF does not have it.
func (k *Inventory) Enum(e facts.Enum) map[string]uint64 { return k.enums[e] }

// Functions reports whether the BTF lists functions.
func (k *Inventory) Functions() bool { return k.funcs > 0 }

// Settings returns the settings of the kernel's build that are on, nil if these are not known.
func (k *Inventory) Settings() map[string]string { return k.known.config }

// Newest returns the newest release that the kernel can be by its name, 0 if the name does not show it.
func (k *Inventory) Newest() Release {
	if !k.dated() {
		return 0
	}
	return Release(k.version.V | k.version.Unknown)
}

// settle decides all facts, and which abilities of verifiers guards may depend on.
func (k *Inventory) settle() {
	k.facts = facts.Decide(k)
	k.setFeatures()
}

// setFeatures finds the abilities of the kernel's verifier among its facts.
func (k *Inventory) setFeatures() {
	k.features = 0
	for feature, fact := range features {
		if k.has(fact) {
			k.features |= feature
		}
	}
	if k.facts.Has(features[interp.Rodata]).Presence == facts.Perhaps {
		k.features |= interp.MaybeRodata
	}
}

// atLeast reports whether a kernel is certainly not older than a release: by its name, or by what its BTF shows if that does not say.
func (k *Inventory) atLeast(r Release) bool { return k.facts.AtLeast(r) }

// has reports whether a kernel certainly has a fact.
func (k *Inventory) has(f facts.Fact) bool { return k.facts.Has(f).Presence == facts.Yes }

// judge returns a finding if a kernel does not have a fact, or perhaps not.
func (k *Inventory) judge(fact facts.Fact, code Code) Finding {
	a := k.facts.Has(fact)
	if a.Presence == facts.Yes {
		return Finding{}
	}
	out := Finding{
		Status: Fails, Code: code, Subject: fact.UsedBy(),
		Args: Args{Since: fact.Since(), Decided: a.Decided, Witness: a.Witness},
	}
	switch {
	case a.Presence == facts.No:
	case k.dated():
		out.Status, out.Doubt = MayFail, OlderRelease
	default:
		out.Status, out.Doubt = MayFail, NoRelease
	}
	return out
}

// judgeLater is judge for a fact without a witness. It came later than the fact earlier, and the source of the release without does not have it. A
// kernel that certainly lacks earlier lacks the fact, and so does a kernel whose name and BTF show nothing newer than without.
func (k *Inventory) judgeLater(fact, earlier facts.Fact, without Release, code Code) Finding {
	f := k.judge(fact, code)
	if f.Status != MayFail {
		return f
	}
	if a := k.facts.Has(earlier); a.Presence == facts.No && a.Decided == facts.ByWitness {
		f.Status, f.Doubt, f.Decided, f.Witness = Fails, NoDoubt, a.Decided, a.Witness
	} else if k.before(without.Next()) && k.facts.Shown() <= without {
		f.Status, f.Doubt = Fails, NoDoubt
	}
	return f
}

// permits judges by code what is allowed in a period, as far as that is known.
func (k *Inventory) permits(p facts.Period, code Code) Finding {
	switch a := k.facts.During(&p); {
	case a.Presence == facts.Yes:
		return Finding{}
	case a.Presence == facts.No:
		return Finding{Status: Fails, Code: code}
	case p.Until != facts.Change{}:
		return Finding{Status: MayFail, Code: code, Args: Args{Decided: ByRelease, Doubt: NotShown}}
	}
	return Finding{Status: MayFail, Code: code, Args: Args{Since: p.Since.After, Until: p.Since.By, Decided: ByRelease}}
}

// strict is the verdict on what verifiers refuse only if they check global functions on their own; older ones check them where they are called.
func (k *Inventory) strict() Status {
	switch k.facts.Has(facts.VerifierGlobalFunctions).Presence {
	case facts.Yes:
		return Fails
	case facts.No:
		return OK
	}
	return MayFail
}
