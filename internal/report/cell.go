// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// word is a cell of the matrix in a word: "ok", "fails", "1 of 3", "?".
func word(c verdict.Cell) string {
	switch n := c.Judged(); {
	case c.NeverLoaded():
		return notLoaded
	case n == 0:
		return otherMachine
	case c.Works == n:
		return "ok"
	case c.Fails == n:
		return "fails"
	case c.Uncertain == n:
		return uncertain
	default:
		return fmt.Sprintf("%d of %d", c.Works, n)
	}
}

// Words of cells that need an explanation.
const (
	notLoaded    = "off"
	otherMachine = "–"
	uncertain    = "?"
)

// signOf returns the cell of a single kernel whose colour and icon a cell of the matrix has.
func signOf(c verdict.Cell) cell {
	switch n := c.Judged(); {
	case c.NeverLoaded():
		return cellUnloaded
	case n == 0:
		return cellOther
	case c.Works == n:
		return cellOK
	case c.Fails == n:
		return cellFails
	}
	return cellMayFail
}

// cell is a verdict on one kernel as tables show it: a status that is only about attaching is one
// of its own. Greater is worse.
type cell uint8

const (
	cellOK cell = iota
	cellGuarded
	cellUnloaded
	cellOther
	cellUnknown
	cellMayFailToAttach
	cellMayFail
	cellFailsToAttach
	cellFails
	numCell
)

// cellTexts has the cells in words, their signs and their colours on terminals.
var cellTexts = [numCell]struct {
	name  string
	sign  escape.Own
	color string
	icon  string // sign in Markdown
}{
	{"ok", "·", "32", "✅"},
	{"guarded", "g", "36", "🛡️"},
	{"not loaded", "o", "", "➖"},
	{"for other machines", "-", "", "–"},
	{"unknown", "u", "35", "❔"},
	{"loads, may fail to attach", "a", "33", "🔸"},
	{"may fail", "?", "33", "⚠️"},
	{"loads, fails to attach", "A", "31", "🔻"},
	{"fails", "X", "31", "❌"},
}

// paint colours a text for a terminal as a cell is.
func (c cell) paint(text string, color bool) string {
	if code := cellTexts[c].color; color && code != "" {
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	return text
}

// cellOf returns the cell of a program or an object on kernel k from its verdicts
// by kernel. Those of loading may be absent.
func cellOf(status, load []rule.Status, k int) cell {
	loads := k < len(load) && load[k] <= rule.Guarded
	switch s := status[k]; {
	case s == rule.Fails && loads:
		return cellFailsToAttach
	case s == rule.MayFail && loads:
		return cellMayFailToAttach
	default:
		return cellFor(s)
	}
}

// cellFor returns the cell of a status alone.
func cellFor(s rule.Status) cell {
	switch s {
	case rule.Fails:
		return cellFails
	case rule.MayFail:
		return cellMayFail
	}
	return cell(s) // the constants are alike up to Unknown
}

func cells(status, load []rule.Status) []cell {
	out := make([]cell, len(status))
	for k := range out {
		out[k] = cellOf(status, load, k)
	}
	return out
}

// cellOfFinding is how tables show a finding.
func cellOfFinding(status rule.Status, attach bool) cell {
	loads := rule.OK
	if !attach {
		loads = status
	}
	if status == rule.OK {
		return cellMayFail
	}
	return cellOf([]rule.Status{status}, []rule.Status{loads}, 0)
}
