// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/verdict"
)

// programs names some programs, by object: "a.o: p, q; b.o: r".
func programs(r *verdict.Report, list []int, most int) string {
	parts := make([][2]string, len(list))
	for i, p := range list {
		parts[i] = [2]string{r.Programs[p].Object, r.Programs[p].Name}
	}
	return grouped(parts, ": ", most)
}

// sorted sorts a list and removes duplicates.
func sorted[T cmp.Ordered](l []T) []T {
	slices.Sort(l)
	return slices.Compact(l)
}

// listed names things one after the other, without what those after the first
// share with it: "struct s.a, .b". Of more than most it has the first and the last.
func listed(names []string, most int) string {
	if len(names) == 1 {
		return names[0]
	}
	shared := names[0] // up to the last separator
	for _, n := range names[1:] {
		i := 0
		for i < min(len(n), len(shared)) && n[i] == shared[i] {
			i++
		}
		shared = shared[:i]
	}
	shared = shared[:strings.LastIndexAny(shared, " ./:")+1]
	short := func(n string) string {
		if strings.HasSuffix(shared, ".") {
			return "." + n[len(shared):]
		}
		return n[len(shared):]
	}
	if len(names) > most {
		return fmt.Sprintf("%s … %s (%d)", names[0], short(names[len(names)-1]), len(names))
	}
	parts := []string{names[0]}
	for _, n := range names[1:] {
		parts = append(parts, short(n))
	}
	return strings.Join(parts, ", ")
}

// lines lists lines of sources, by file: "x.bpf.c:12, 14; y.bpf.c:7".
func lines(sources []string, most int) string {
	parts := make([][2]string, len(sources))
	for i, s := range sources {
		parts[i][0], parts[i][1], _ = cutLine(s)
	}
	return grouped(parts, ":", most)
}

// grouped lists names by what they belong to: "a: p, q; b: r". Of more than most it says how many there are.
func grouped(parts [][2]string, colon string, most int) string {
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == most && len(parts) > most+1:
			return b.String() + fmt.Sprintf(" and %d more", len(parts)-most)
		case i > 0 && p[0] == parts[i-1][0] && p[1] != "":
			b.WriteString(", " + p[1])
			continue
		case i > 0:
			b.WriteString("; ")
		}
		b.WriteString(p[0])
		if p[1] != "" {
			b.WriteString(colon + p[1])
		}
	}
	return b.String()
}

// comparePlaces orders lines of sources by number.
func comparePlaces(a, b string) int {
	fa, la, _ := cutLine(a)
	fb, lb, _ := cutLine(b)
	return cmp.Or(cmp.Compare(fa, fb), cmp.Compare(len(la), len(lb)), cmp.Compare(la, lb))
}

// cutLine splits file:line.
func cutLine(source string) (file, line string, ok bool) {
	if i := strings.LastIndexByte(source, ':'); i >= 0 {
		return source[:i], source[i+1:], true
	}
	return source, "", false
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

// lower returns a sentence as in the middle of another.
func lower(s string) string {
	if s[1] >= 'a' { // not LSM
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// short lists names, fewer if they are long.
func short(names []string) string {
	const most = 60
	if text := some(names); len(text) <= most || len(names) < 3 {
		return text
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}
