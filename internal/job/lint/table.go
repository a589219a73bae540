// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// WriteTable writes kernels as a table, with long what [Read] found in them. Columns that are empty for all kernels are omitted.
func WriteTable(w io.Writer, list []Entry, long bool) error {
	some := func(f func(d *Details) bool) bool {
		return slices.ContainsFunc(list, func(e Entry) bool { return e.Details != nil && f(e.Details) })
	}
	extras := some(func(d *Details) bool { return d.ConfigBytes+d.SymbolBytes > 0 })
	made := some(func(d *Details) bool { return d.Maker != "" })
	size := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return words.Bytes(n)
	}
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	head := escape.Own("KERNEL\tON DISK\t")
	if long {
		head += "BTF\tTYPES\tBYTE ORDER\tPOINTER\tMODULES\t"
	}
	if extras {
		head += "CONFIGURATION\tSYMBOLS\t"
	}
	if made {
		head += "MADE OF DWARF BY\t"
	}
	escape.Fprintf(tw, "%s\n", head+"PATH")
	for _, e := range list {
		escape.Fprintf(tw, "%s\t%s\t", e.Key(), words.Bytes(e.Disk))
		if long {
			escape.Fprintf(tw, "%s\t%d\t%s\t%d\t%d\t", words.Bytes(e.Bytes), e.Types, e.ByteOrder, e.Pointer, e.Modules)
		}
		if extras {
			escape.Fprintf(tw, "%s\t%s\t", size(e.ConfigBytes), size(e.SymbolBytes))
		}
		if made {
			escape.Fprintf(tw, "%s\t", cmp.Or(e.Maker, "-"))
		}
		escape.Fprintf(tw, "%s", e.Path)
		if long && e.AsBytes {
			escape.Fprintf(tw, " (kept as bytes)")
		}
		escape.Fprintf(tw, "\n")
	}
	return tw.Flush()
}
