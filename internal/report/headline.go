// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/words"
)

// Headline says on which releases of Linux an object works, and why not on others: "Linux 5.8 and later; 22 of 25 kernels. Older ones
// lack BPF_MAP_TYPE_RINGBUF (5.8)."
func Headline(r *verdict.Report, row *verdict.ObjectRow) string { return headline(r, row, "kernel") }

// headline is the Headline of an object. Where a view counts only the kernels that are required, these are what is counted.
func (v *view) headline(row *verdict.ObjectRow) string {
	if v.required == nil {
		return Headline(v.Report, row)
	}
	return headline(v.Report, v.counted(row), "required kernel")
}

// counted returns an object as if it were for no kernel that is not required, where a view counts only these.
func (v *view) counted(row *verdict.ObjectRow) *verdict.ObjectRow {
	if v.required == nil {
		return row
	}
	counted := *row
	counted.Status = v.onlyRequired(row.Status)
	counted.Loaders = slices.Clone(row.Loaders)
	for i := range counted.Loaders {
		counted.Loaders[i].Status = v.onlyRequired(counted.Loaders[i].Status)
	}
	h := &counted.Headline
	h.Gap, h.Works, h.MayFail, h.Total, h.Unloaded = "", 0, 0, 0, 0
	for _, s := range counted.Status {
		h.Count(s)
	}
	var exceptions []verdict.Exception
	for _, x := range h.Exceptions {
		if x.Kernels = slices.DeleteFunc(slices.Clone(x.Kernels), func(k int) bool { return !v.counts(k) }); len(x.Kernels) > 0 {
			exceptions = append(exceptions, x)
		}
	}
	h.Exceptions = exceptions
	return &counted
}

// onlyRequired returns verdicts by kernel, as if the object were for no kernel that is not required.
func (v *view) onlyRequired(all []rule.Status) []rule.Status {
	some := slices.Clone(all)
	for k := range some {
		if !v.counts(k) {
			some[k] = rule.Other
		}
	}
	return some
}

// headline is Headline with a name for the kernels that the row counts.
func headline(r *verdict.Report, row *verdict.ObjectRow, kernel string) string {
	var b strings.Builder
	h := &row.Headline
	var doubt string
	var decided map[int]bool // kernels on which the loader decides
	if h.MayFail > 0 {
		if doubt = uncertain(r, row); h.Works == 0 {
			decided = loaderDecides(r, row)
		}
	}
	kernels := workingKernels(row, kernel)
	if h.Gap != "" && h.Works > 0 {
		kernels += fmt.Sprintf(", none between %s and %s", h.Gap, h.Since)
	}
	switch {
	case h.NeverLoaded():
		return fmt.Sprintf("Not loaded on any of %s.", words.Plural(h.Unloaded, kernel))
	case h.Total == 0:
		return fmt.Sprintf("No %s here is one that it is for.", kernel)
	case len(decided) > 0:
		b.WriteString(fmt.Sprintf("The loader decides on %d of %s", len(decided), words.Plural(h.Total, kernel)))
		if h.Since != "" && h.MayFail < h.Total {
			b.WriteString(fmt.Sprintf(" (Linux %s)", workingReleases(h)))
		}
		if names := doubtsOn(r, row, func(k int) bool { return decided[k] }); len(names) > 0 {
			b.WriteString(": " + some(names))
		}
		doubt = ""
		if n := h.MayFail - len(decided); n > 0 {
			doubt = uncertainKernels(fmt.Sprint(n), n, doubtsOn(r, row, func(k int) bool { return !decided[k] }))
		}
	case h.Works == 0:
		b.WriteString(kernels)
		if doubt != "" {
			b.WriteString(" for certain")
		}
	case h.Since == "":
		b.WriteString(kernels)
	default:
		b.WriteString(fmt.Sprintf("Linux %s; %s", workingReleases(h), lower(kernels)))
	}
	if doubt != "" {
		b.WriteString("; " + doubt)
	}
	if h.Unloaded > 0 {
		b.WriteString(fmt.Sprintf("; not loaded on %d", h.Unloaded))
	}
	if len(decided) > 0 && loadersDiffer(row) {
		b.WriteString("; it works on " + lower(kernels))
	}
	b.WriteString(".")
	who := "Older ones"
	if h.Since == "" {
		who = "They"
		if h.Works+h.MayFail > 0 {
			who = "The others"
		}
	}
	for _, text := range defectTexts(h.Defects) {
		b.WriteString(" " + text + ".")
	}
	for _, t := range []struct {
		who   string
		newer bool
	}{{who, false}, {"Newer ones", true}} {
		for _, text := range lackTexts(slices.DeleteFunc(slices.Clone(h.Lacks), func(l verdict.Lack) bool { return l.Newer != t.newer }), h.Since, false) {
			b.WriteString(" " + t.who + " " + text + ".")
		}
	}
	except(&b, r, h, "Works on ", true)
	except(&b, r, h, "Fails on ", false)
	return b.String()
}

// workingKernels says on how many kernels an object works, for each loader where that differs: "3 of 5 kernels with libbpf and 4 with ebpf-go".
func workingKernels(row *verdict.ObjectRow, kernel string) string {
	h := &row.Headline
	kernels := words.Plural(h.Total, kernel)
	count := func(n int) string {
		if n == 0 {
			return "None"
		}
		return fmt.Sprint(n)
	}
	if !loadersDiffer(row) {
		return count(h.Works) + " of " + kernels
	}
	var loaders []rule.Loader
	var counts []string
	for _, l := range row.Loaders {
		loaders, counts = append(loaders, l.Loader), append(counts, count(countWorks(l.Status)))
	}
	return perLoader(loaders, counts, " of "+kernels)
}

// perLoader gives each loader a count, the first with what is counted: "3 of 5 kernels with libbpf and none with ebpf-go".
func perLoader(loaders []rule.Loader, counts []string, of string) string {
	parts := []string{counts[0] + of + " with " + string(loaders[0])}
	for i, l := range loaders[1:] {
		parts = append(parts, lower(counts[i+1]+" with "+string(l)))
	}
	return strings.Join(parts, " and ")
}

// loadersDiffer reports whether an object works on more kernels with one loader than with another.
func loadersDiffer(row *verdict.ObjectRow) bool {
	return slices.ContainsFunc(row.Loaders, func(l verdict.LoaderRow) bool { return countWorks(l.Status) != row.Headline.Works })
}

// workingReleases are those on which it works or, if it certainly works on none, may work.
func workingReleases(h *verdict.Headline) string {
	switch h.Until {
	case "":
		return h.Since + " and later"
	case h.Since:
		return h.Since
	}
	return h.Since + " to " + h.Until
}

// uncertain says on how many kernels an object may fail, and why: "18 are uncertain [attach-target-from-loader]". It is "" if that is for
// what is wrong with the object itself.
func uncertain(r *verdict.Report, row *verdict.ObjectRow) string {
	h := &row.Headline
	names := doubtsOn(r, row, func(int) bool { return true })
	n := fmt.Sprint(h.MayFail)
	switch {
	case len(names) == 0 && len(h.Defects) > 0:
		return ""
	case h.MayFail == h.Total && h.Total > 1:
		n = "all"
	case h.Works == 0 && h.Since != "":
		n += " (Linux " + workingReleases(h) + ")"
	}
	return uncertainKernels(n, h.MayFail, names)
}

// uncertainKernels says that so many kernels are uncertain, and why.
func uncertainKernels(text string, n int, why []string) string {
	if n == 1 {
		text += " is uncertain"
	} else {
		text += " are uncertain"
	}
	if len(why) > 0 {
		text += ": " + some(why)
	}
	return text
}

// doubtsOn names for what an object may fail on some kernels, what is on most first, without what is wrong with the object itself.
func doubtsOn(r *verdict.Report, row *verdict.ObjectRow, on func(kernel int) bool) (names []string) {
	kernels, defects := make(map[rule.Code]map[int]bool), make(map[rule.Code]bool)
	for _, f := range row.Headline.Defects {
		defects[f.Code] = true
	}
	for _, d := range row.Decides {
		for _, f := range r.Programs[d.Program].Findings {
			if f.Status != rule.MayFail && f.Status != rule.Unknown {
				continue
			}
			for _, k := range f.Kernels {
				if _, decides := slices.BinarySearch(d.Kernels, k); !decides || row.Status[k] == rule.Fails || !row.Status[k].Judged() || defects[f.Code] || !on(k) {
					continue
				}
				if kernels[f.Code] == nil {
					kernels[f.Code] = make(map[int]bool)
				}
				kernels[f.Code][k] = true
			}
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(kernels), func(a, b rule.Code) int {
		return cmp.Or(-cmp.Compare(len(kernels[a]), len(kernels[b])), cmp.Compare(a, b))
	}) {
		names = append(names, fmt.Sprintf("%s [%s]", title(c), c))
	}
	return names
}

// loaderDecides returns the kernels on which an object is uncertain and the loader sets something.
func loaderDecides(r *verdict.Report, row *verdict.ObjectRow) map[int]bool {
	decided := make(map[int]bool)
	for _, d := range row.Decides {
		for _, f := range r.Programs[d.Program].Findings {
			if !slices.Contains(fromLoader, f.Code) && !nowhere(r, row, &f.Finding) {
				continue
			}
			for _, k := range f.Kernels {
				if s := row.Status[k]; s == rule.MayFail || s == rule.Unknown {
					decided[k] = true
				}
			}
		}
	}
	return decided
}

// title is the title of a code, as in the middle of a sentence.
func title(c rule.Code) string {
	if e := codes.Of(c); e != nil {
		return lower(e.Title)
	}
	return string(c)
}

// lower returns a sentence as in the middle of another.
func lower(s string) string {
	if s[1] >= 'a' { // not LSM
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

func countWorks(l []rule.Status) (n int) {
	for _, s := range l {
		if s <= rule.Guarded {
			n++
		}
	}
	return n
}

// defectTexts say what is wrong with the object itself, a sentence for each kind.
func defectTexts(l []rule.Finding) (out []string) {
	for _, alike := range words.Group(l, func(f *rule.Finding) any { return why(f) }) {
		f := &alike[0]
		var names []string
		for i := range alike {
			names = append(names, alike[i].Subject)
		}
		names = sorted(names)
		switch g := groupOf(f); {
		case f.Code == rule.KsymUndeclared:
			out = append(out, fmt.Sprintf("It is not linked: it refers to %s, which other objects define ('bpftool gen object' links them) or the loader adds [%s]", some(names), f.Code))
		case rule.FamilyOf(f.Code) == rule.FamilyObject:
			out = append(out, g.reason()) // begins with the name of the loader
		default:
			g.what = names
			text := g.Subject(3) + ": " + g.reason()
			if text[:1] != names[0][:1] {
				text = capital(text)
			}
			out = append(out, text)
		}
	}
	if n := len(out) - 2; n > 1 {
		out = append(out[:2], fmt.Sprintf("%d more such reasons", n))
	}
	return out
}

// capital returns a sentence with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// lackTexts say what kernels lack, and what they do not allow: "lack bpf_loop (5.17)". since is the release of the headline, which
// need not be repeated; one says that it is a single kernel.
func lackTexts(l []verdict.Lack, since string, one bool) (out []string) {
	lack, forbid := "lack ", "do not allow "
	if one {
		lack, forbid = "lacks ", "does not allow "
	}
	names := make(map[string][]string)
	for _, alike := range words.Group(l, func(l *verdict.Lack) any { // definitions of maps of one release are one
		if l.Family == rule.FamilyMapDef {
			return [...]string{l.Came, l.Seen}
		}
		return *l
	}) {
		l, verb := &alike[0], lack
		if l.Refused {
			verb = forbid
		}
		names[verb] = append(names[verb], lackName(l, len(alike), since, one))
	}
	for _, verb := range []string{lack, forbid} {
		if len(names[verb]) > 0 {
			out = append(out, verb+some(names[verb]))
		}
	}
	return out
}

// lackName names something that kernels lack, or several such things, with the release that has it.
func lackName(l *verdict.Lack, several int, since string, one bool) string {
	name := l.Subject
	switch l.Family {
	case rule.FamilyMapDef:
		if name = "the definition of map " + name; several > 1 {
			name = fmt.Sprintf("the definitions of %s such as %s", words.Plural(several, "map"), l.Subject)
		}
	case rule.FamilyContext:
		if name = "reading " + name; l.Subject == "context" {
			name = "access of the context at a moved address"
		}
	case rule.FamilyRunning:
		if name = "BTF of their own"; one {
			name = "BTF of its own"
		}
	}
	if l.Differs {
		name += " as declared"
	}
	switch {
	case l.Came != "":
		name += " (" + l.Came + ")"
	case l.Seen != "" && l.Seen != since:
		name += " (seen in " + l.Seen + ")"
	}
	return name
}

// except names the exceptions of one kind, and what those lack that fail.
func except(b *strings.Builder, r *verdict.Report, h *verdict.Headline, verb string, works bool) {
	var names []string
	reasons := false
	for _, x := range h.Exceptions {
		if x.Works != works {
			continue
		}
		name := label(r, x.Kernels)
		if texts := lackTexts(x.Lacks, h.Since, len(x.Kernels) == 1); len(texts) > 0 {
			name, reasons = name+", which "+strings.Join(texts, " and "), true
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return
	}
	text := some(names)
	if n := len(names) - 1; n > 0 && reasons {
		text = strings.Replace(text, " and "+names[n], ", and "+names[n], 1)
	}
	b.WriteString(fmt.Sprintf(" %s%s.", verb, text))
}

// label names kernels of one family: "debian x86_64 5.10.0-30-amd64 … 6.1.0-47-amd64 (3)".
func label(r *verdict.Report, kernels []int) string {
	first, last := &r.Kernels[kernels[0]], &r.Kernels[kernels[len(kernels)-1]]
	switch f := first.Family(); {
	case f == "":
		return first.Name
	case len(kernels) == 1:
		return f + " " + first.Key().Release
	default:
		return fmt.Sprintf("%s %s … %s (%d)", f, first.Key().Release, last.Key().Release, len(kernels))
	}
}

// some lists names, the first few of many.
func some(names []string) string {
	const few = 3
	if len(names) > few+1 {
		names = append(slices.Clone(names[:few]), fmt.Sprintf("%d more", len(names)-few))
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
