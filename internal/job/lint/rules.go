// SPDX-License-Identifier: Apache-2.0

package lint

// Severity says how serious a finding is.
type Severity int

// The severities. Notes need not be acted on.
const (
	Error Severity = iota
	Warning
	Note
)

var severities = [...]string{"error", "warning", "note"}

func (s Severity) String() string { return severities[s] }

// Code says what kind a finding is of. Codes are never renamed.
type Code string

// The codes; rules says what each means.
const (
	Empty          Code = "empty"
	Damaged        Code = "damaged"
	WrongArch      Code = "wrong-arch"
	KeyConflict    Code = "key-conflict"
	Lost           Code = "lost"
	NoKey          Code = "no-key"
	Undeduplicated Code = "undeduplicated"
	DebugKernel    Code = "debug-kernel"
	NoFunctions    Code = "no-functions"
	NoModules      Code = "no-modules"
	StrayModules   Code = "stray-modules"
	DanglingLink   Code = "dangling-link"
	KeyRepeated    Code = "key-repeated"
	ModuleCopies   Code = "module-copies"
	Link           Code = "link"
)

type rule struct {
	severity Severity
	text     string // what it means and what to do
	place    int    // in the order of a report
}

var rules = func() map[Code]rule {
	all := make(map[Code]rule)
	add := func(s Severity, c Code, text string) { all[c] = rule{s, text, len(all)} }

	add(Error, Empty, "the file holds nothing; fetch it again, or remove it")
	add(Error, Damaged, "the file cannot be read, and its kernel is left out everywhere; fetch it again")
	add(Error, WrongArch, "the BTF is not for the machine that its path names; move it, or it is used where it is wrong")
	add(Error, KeyConflict, "files with different BTF for one kernel, of which one is used; remove the others")
	add(Error, Lost, "in the earlier listing, but not here any more; hosts with this kernel lose their BTF")
	add(Warning, NoKey, "the path does not tell which kernel it is, so no host finds it; put it at ID/VERSION_ID/ARCH/RELEASE.btf")
	add(Warning, Undeduplicated, "types were not merged: slow to read, and relocations may be ambiguous; encode it again with a newer pahole")
	add(Warning, DebugKernel, "offsets are those of a debug kernel; take the production kernel's BTF")
	add(Warning, NoFunctions, "no functions: whether fentry, fexit, kfuncs and LSM hooks exist cannot be checked; encode it again with a newer pahole")
	add(Warning, NoModules, "no BTF of modules, which the kernel could have and others here do; types of modules stay unresolved")
	add(Warning, StrayModules, "modules whose vmlinux is not here are of no use; add it, or put them where it is")
	add(Warning, DanglingLink, "a link that leads nowhere; remove it")
	add(Note, KeyRepeated, "more than one file with the same BTF for one kernel; one is enough")
	add(Note, ModuleCopies, "modules repeat structs of their vmlinux; harmless, but they take more space than they need")
	add(Note, Link, "a second name for what is read anyway, so it is not followed")
	return all
}()

// Codes returns all codes in the order in which a report has them.
func Codes() []Code {
	list := make([]Code, len(rules))
	for c, r := range rules {
		list[r.place] = c
	}
	return list
}

// Severity returns how serious findings with the code are.
func (c Code) Severity() Severity { return rules[c].severity }

// Text says in one line what the code means and what to do.
func (c Code) Text() string { return rules[c].text }
