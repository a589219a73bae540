// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// unprintable are the characters that Printable escapes: controls, those that hide or reorder text, and spaces other than ' '. In
// Unicode's words they are Cc, Cf, Zl, Zp and Zs. lib/c has the same table.
var unprintable = [...][2]rune{
	{0, 0x1f}, {0x7f, 0xa0}, {0xad, 0xad}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd}, {0x70f, 0x70f}, {0x890, 0x891},
	{0x8e2, 0x8e2}, {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x2064}, {0x2066, 0x206f},
	{0x3000, 0x3000}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
}

func isPrintable(r rune) bool {
	for _, u := range unprintable {
		if u[0] <= r && r <= u[1] {
			return false
		}
	}
	return true
}

// Printable returns s as one line of text for a message: characters that could control a terminal or hide text become Go's escapes,
// such as \n and \x1b, and so do bytes that are not UTF-8. Other text does not change, so Printable may be applied twice.
func Printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isPrintable(r):
			b.WriteString(s[i : i+n])
		default:
			q := strconv.AppendQuoteRuneToASCII(nil, r)
			b.Write(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

// KeyName returns the name of a kernel for messages.
func KeyName(k kernel.Key) string { return Printable(k.String()) }
