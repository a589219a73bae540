// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Ops is what programs for a struct_ops may write through pointers to structs of the kernel.
type Ops struct {
	Argument struct{ From, To string } // pointers to the struct From that are arguments lead to the struct To
	Fields   []Field
}

// Field is bytes of a struct of the kernel that programs may write.
type Field struct {
	Of string // the struct to which the pointer leads
	// Path is members. Their offsets are added, and the last one has the bytes. An empty path is the whole struct.
	Path   []Members
	Within bool  // a write may begin at each byte, else only at the first one
	Except int64 // how many bytes at the end are not written
	When   Period
}

// Members is a member of a struct of the kernel, and members in it. The struct is the first member of the one before it, or the first member of that,
// or a struct that is in memory there.
type Members struct {
	Struct string
	Names  []string
}

// OpsNamed returns what is known of a struct_ops, nil if it is not in the table.
func OpsNamed(name string) *Ops { return contextTable().ops[name] }

// Structs returns the structs that the table names for a struct_ops.
func (o *Ops) Structs() (l []string) {
	l = append(l, o.Argument.To)
	for i := range o.Fields {
		for _, p := range o.Fields[i].Path {
			l = append(l, p.Struct)
		}
	}
	slices.Sort(l)
	return slices.Compact(l)
}

// readArgument reads "sock tcp_sock".
func (o *Ops) readArgument(value string) (err error) {
	var ok bool
	o.Argument.From, o.Argument.To, ok = strings.Cut(value, " ")
	return unless(ok, "want STRUCT STRUCT")
}

// readFields reads "sk_buff sk_buff.tstamp sk_buff.cb+qdisc_skb_cb.data..", or "none".
func (o *Ops) readFields(when Period, value string) error {
	words := strings.Fields(value)
	if value == "none" {
		return nil
	}
	if len(words) < 2 {
		return errors.New("want STRUCT and fields")
	}
	for _, word := range words[1:] {
		f := Field{Of: words[0], When: when}
		var except string
		word, except, f.Within = strings.Cut(word, "..")
		if except != "" {
			if _, err := fmt.Sscanf(except, "-%d", &f.Except); err != nil {
				return errors.New("want ..-BYTES")
			}
		}
		for part := range strings.SplitSeq(word, "+") {
			names := strings.Split(part, ".")
			f.Path = append(f.Path, Members{names[0], names[1:]})
		}
		if len(f.Path) == 1 && len(f.Path[0].Names) == 0 {
			f.Path, f.Within = nil, true
		}
		o.Fields = append(o.Fields, f)
	}
	return nil
}
