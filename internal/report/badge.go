// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"io"
	"slices"
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

// Badge writes an SVG that says on which releases of Linux all objects work: green where that
// is so on every kernel here of these releases, yellow where on some it is not so or not certain, red where there is no such release.
func Badge(w io.Writer, r *verdict.Report, _ Options) error {
	since, until, color := "", "", ""
	sure, none, some := true, false, false
	unloaded := false
	for _, o := range r.Whole() {
		h := &o.Headline
		if h.Total == 0 {
			unloaded = unloaded || h.Unloaded > 0
			continue
		}
		if color == "" {
			color = green
		}
		if h.MayFail > 0 || slices.ContainsFunc(h.Exceptions, func(x verdict.Exception) bool { return !x.Works }) {
			color = yellow
		}
		sure = sure && h.Works > 0
		if h.Since == "" { // it works on no kernel, or only on kernels whose release is not known
			none = none || h.Works+h.MayFail == 0
			some = true
		}
		since = latest(since, h.Since)
		if h.Until != "" && (until == "" || kernel.CompareVersions(h.Until, until) < 0) {
			until = h.Until
		}
	}
	value := since + "+"
	switch {
	case color == "" && unloaded:
		value, color = "not loaded", grey
	case color == "":
		value, color = "unknown", grey
	case none || until != "" && kernel.CompareVersions(until, since) < 0:
		value, color = "none", red
	case some:
		value, color = "some kernels", yellow
	case since == until:
		value = since
	case until != "":
		value = since + " to " + until
	}
	if color != red && color != grey && !sure {
		value, color = value+"?", yellow
	}
	_, err := io.WriteString(w, DrawBadge("Linux", value, color))
	return err
}

func latest(a, b string) string {
	if kernel.CompareVersions(a, b) < 0 {
		return b
	}
	return a
}
