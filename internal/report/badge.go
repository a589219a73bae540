// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Colours of badges, on which white can be read.
const (
	Blue   = "#07689f"
	green  = "#2f7d32"
	yellow = "#8a6100"
	red    = "#b3261e"
	grey   = "#555"
)

// DrawBadge returns an SVG of two words side by side, the second on a colour.
func DrawBadge(label, value, color string) string {
	const wide, margin = 7, 8
	width := func(s string) int { return utf8.RuneCountInString(s)*wide + 2*margin }
	left, right := width(label), width(value)
	text := func(x, w int, s string) string {
		return fmt.Sprintf("<text x=\"%d\" y=\"14\" textLength=\"%d\">%s</text>\n", x+margin, w-2*margin, html.EscapeString(s))
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\" aria-label=\"%s: %s\">\n", left+right, html.EscapeString(label), html.EscapeString(value)) +
		"<style>text{font:11px Verdana,'DejaVu Sans',sans-serif;fill:#fff}</style>\n" +
		fmt.Sprintf("<rect width=\"%d\" height=\"20\" fill=\"%s\"/>\n<rect x=\"%d\" width=\"%d\" height=\"20\" fill=\"%s\"/>\n", left, grey, left, right, color) +
		text(0, left, label) + text(left, right, value) + "</svg>\n"
}

// Badge writes an SVG with the first release of Linux from which all objects work, for each machine if they differ. It is green if this is
// certain, yellow if some kernels are uncertain or newer ones fail, and red if an object works on no line of a machine.
func Badge(w io.Writer, r *verdict.Report, _ Options) error {
	value, color := badge(r)
	_, err := io.WriteString(w, DrawBadge("Linux", value, color))
	return err
}

// badge returns the value of the badge and its colour.
func badge(r *verdict.Report) (value, color string) {
	var machines []string
	values := make(map[string]verdict.Minimum) // minimum of all objects, keyed by machine
	unloaded, undated := false, false
	for _, o := range r.Whole() {
		c := o.Sum()
		unloaded = unloaded || c.NeverLoaded()
		undated = undated || c.Judged() > 0 && len(o.Minima) == 0
		for _, m := range o.Minima {
			old, ok := values[m.Machine]
			if !ok {
				machines = append(machines, m.Machine)
				values[m.Machine] = m
				continue
			}
			values[m.Machine] = both(old, m)
		}
	}
	color = green
	var texts []string
	for _, machine := range machines {
		m := values[machine]
		if m.Until != "" && kernel.CompareVersions(m.Until, latest(m.Since, m.Perhaps)) < 0 {
			m.Since, m.Perhaps = "", ""
		}
		text := releases(m.Since, m.Until)
		switch {
		case m.Since == "" && m.Perhaps == "":
			text, color = "none", red
		case m.Since == "":
			text = releases(m.Perhaps, m.Until) + "?"
		case m.Until == "":
			text += "+"
		}
		if color == green && (m.Since == "" || m.Perhaps != "" || m.Until != "") {
			color = yellow
		}
		texts = append(texts, text)
	}
	switch {
	case len(machines) == 0 && undated:
		return "some kernels", yellow
	case len(machines) == 0 && unloaded:
		return "not loaded", grey
	case len(machines) == 0:
		return "unknown", grey
	case len(slices.Compact(slices.Clone(texts))) == 1:
		return texts[0], color
	}
	for i := range texts {
		texts[i] = machines[i] + " " + texts[i]
	}
	return strings.Join(texts, ", "), color
}

// both is the minimum of two objects that are needed.
func both(a, b verdict.Minimum) verdict.Minimum {
	out := verdict.Minimum{Machine: a.Machine, Until: a.Until}
	if a.Since != "" && b.Since != "" {
		out.Since = latest(a.Since, b.Since)
	}
	sure := func(m verdict.Minimum) string {
		if m.Perhaps != "" {
			return m.Perhaps
		}
		return m.Since
	}
	if x, y := sure(a), sure(b); x != "" && y != "" {
		if out.Perhaps = latest(x, y); out.Perhaps == out.Since {
			out.Perhaps = ""
		}
	} else {
		out.Since = ""
	}
	if out.Until == "" || b.Until != "" && kernel.CompareVersions(b.Until, out.Until) < 0 {
		out.Until = b.Until
	}
	return out
}

func latest(a, b string) string {
	if kernel.CompareVersions(a, b) < 0 {
		return b
	}
	return a
}
