// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
)

// glob is a pattern of functions as libbpf reads it (attach_kprobe_multi and glob_match in its src/libbpf.c): * is any bytes, ? is one byte,
// and the others are themselves.
type glob struct {
	text  string
	least int // bytes of the shortest name that matches
}

func newGlob(text string) glob { return glob{text, len(text) - strings.Count(text, "*")} }

// multiPattern returns the part of the target of a section kprobe.multi that libbpf reads. It ends at the first byte that cannot be in a
// pattern.
func multiPattern(target string) string {
	end := strings.IndexFunc(target, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_.*?", c)
	})
	if end > 0 {
		return target[:end]
	}
	return target
}

// matches reports whether a name matches. It tries the bytes between two * at each place of the name, and takes a step of the meter for
// each byte that it compares.
func (g *glob) matches(name []byte, meter *limits.Meter) bool {
	if len(name) < g.least {
		return false
	}
	i, j, steps := 0, 0, 1
	// star is the index of the last * of the pattern, from the offset in the name of what follows it.
	star, from := -1, 0
	for ; i < len(name); steps++ {
		switch {
		case j < len(g.text) && g.text[j] == '*':
			star, from = j, i
			j++
		case j < len(g.text) && (g.text[j] == '?' || g.text[j] == name[i]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = from, star+1
		default:
			meter.Step(steps)
			return false
		}
	}
	meter.Step(steps)
	return strings.Trim(g.text[j:], "*") == ""
}
