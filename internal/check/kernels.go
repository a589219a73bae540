// SPDX-License-Identifier: Apache-2.0

package check

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// kernelText says what kernels are known to do and BTF does not show.
//
//go:embed kernels.txt
var kernelText string

// kernelFacts are the lines of kernelText by the names of paragraphs, as words. Tests read each, so that there is no mistake in them.
var kernelFacts = sync.OnceValue(func() map[string][][]string {
	all := make(map[string][][]string)
	name := ""
	for line := range strings.Lines(strings.ReplaceAll(kernelText, "\n  ", " ")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			name = strings.Trim(line, "[]")
		default:
			all[name] = append(all[name], strings.Fields(line))
		}
	}
	return all
})

// release is a version of Linux, as LINUX_KERNEL_VERSION without the patch level.
type release uint32

func linux(major, minor uint64) release { return release(major<<16 | minor<<8) }

func (r release) String() string { return fmt.Sprintf("%d.%d", r>>16, r>>8&255) }

// parseRelease reads "6.1".
func parseRelease(text string) release {
	var major, minor uint64
	if n, err := fmt.Sscanf(text, "%d.%d", &major, &minor); n != 2 {
		panic(err)
	}
	return linux(major, minor)
}

// permission is since when something is allowed: not up to after, and from by on. Both are 0 if it always is.
type permission struct{ after, by release }

// parsePermission cuts @AFTER..BY from a word, if it has that.
func parsePermission(word string) (name string, p permission, err error) {
	name, when, ok := strings.Cut(word, "@")
	if !ok {
		return name, p, nil
	}
	var major, minor, byMajor, byMinor uint64
	if _, err := fmt.Sscanf(when, "%d.%d..%d.%d", &major, &minor, &byMajor, &byMinor); err != nil {
		return name, p, fmt.Errorf("%s: want @AFTER..BY: %w", word, err)
	}
	return name, permission{linux(major, minor), linux(byMajor, byMinor)}, nil
}

// readTable calls f for each line "NAMES: WORDS" of a table, in which +NAME stands for the words of an earlier line. Lines that
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

// releases are those with which parts of the kernel's interface came, by name.
var releases = sync.OnceValue(func() map[string]release {
	m := factsBy("came", parseRelease)
	last := release(0)
	for id := int64(1); ; id++ {
		name := helperName(id)
		if name[0] == '#' {
			return m
		}
		if r, ok := m[name]; ok {
			last = r
		} else if last != 0 {
			m[name] = last
		}
	}
})

// witness is an enumerator that no older kernel has without most of its release's BPF.
type witness struct {
	came release
	enum int
	name string
}

var witnesses = sync.OnceValue(func() (all []witness) {
	enums := map[string]int{"helper": enumHelper, "attach": enumAttach, "map": enumMap, "field": enumField}
	for _, words := range kernelFacts()["witnesses"] {
		all = append(all, witness{parseRelease(words[0]), enums[words[1]], words[2]})
	}
	return all
})

// factsBy returns a paragraph of kernelText by the words of its lines, each with the value of the line's first word.
func factsBy[V any](paragraph string, value func(first string) V) map[string]V {
	all := make(map[string]V)
	for _, words := range kernelFacts()[paragraph] {
		for _, name := range words[1:] {
			all[name] = value(words[0])
		}
	}
	return all
}

// has says whether a kernel has a feature of a release that its BTF does not show.
func (k *inventory) has(came release) presence {
	newest := release(0)
	for _, w := range witnesses() {
		if _, ok := k.enums[w.enum][w.name]; ok {
			newest = w.came
		}
	}
	switch {
	case !k.dated() && newest >= came:
		return present
	case !k.dated():
		return untold
	case !k.before(came):
		return present
	case k.before(newest):
		return older
	}
	return lacking
}

// since judges by code what kernels refuse before a release.
func (k *inventory) since(came release, code Code) Finding {
	f := Finding{Status: MayFail, Code: code, Args: Args{Since: came}}
	switch k.has(came) {
	case present:
		return Finding{}
	case lacking:
		f.Status = Fails
	case older:
		f.Doubt = NewerBTF
	default:
		f.Doubt = NoRelease
	}
	return f
}
