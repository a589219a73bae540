// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestUnprintable compares the table with Unicode's.
func TestUnprintable(t *testing.T) {
	for r := range rune(utf8.MaxRune + 1) {
		if want := r == ' ' || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs); isPrintable(r) != want {
			t.Errorf("isPrintable(%U) = %v", r, !want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "",
		`a\b é漢 “x” 🛡️`:       `a\b é漢 “x” 🛡️`,
		"a\x1b[31m\n\x00\x7f": `a\x1b[31m\n\x00\x7f`,
		"\u009b\u202e\u3000":  `\u009b\u202e\u3000`,
		"\U000e0041\ufffd":    "\\U000e0041\ufffd",
		"\xff\xe2\x82":        `\xff\xe2\x82`,
	} {
		got := Printable(in)
		if again := Printable(got); got != want || again != want {
			t.Errorf("Printable(%q) = %q and then %q, want %q", in, got, again, want)
		}
	}
}
