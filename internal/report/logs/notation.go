// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"

	"github.com/btfgen/btfgen/pkg/relo"
)

// Offset returns the offset of a field in bytes or, in libbpf's way, in bytes
// and bits ("20.3"), and "" for what is no field.
func Offset(s *relo.Spec) string {
	switch {
	case s.BitOffset != nil:
		return fmt.Sprintf("%d.%d", *s.BitOffset/8, *s.BitOffset%8)
	case s.Offset != nil:
		return fmt.Sprint(*s.Offset)
	}
	return ""
}

// Spec returns a spec in libbpf's notation:
// "[86] struct task_struct.fs (0:121 @ offset 1960)". Types of a module are
// followed by its name in brackets.
func Spec(kind relo.Kind, s *relo.Spec) string {
	return fmt.Sprintf("[%d] %s", s.TypeID, specText(kind, s))
}

// specText is Spec without the type ID.
func specText(kind relo.Kind, s *relo.Spec) string {
	out := s.Name(kind)
	if off := Offset(s); off != "" {
		out += fmt.Sprintf(" (%s @ offset %s)", s.Raw, off)
	}
	if s.Module != nil && *s.Module != "" {
		out += " [" + *s.Module + "]"
	}
	return out
}

// signed kinds are read as numbers with a sign.
func value(kind relo.Kind, v uint64) string {
	if kind == relo.EnumvalValue && int64(v) < 0 {
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(v)
}

// change returns "1960 → 1816", or "" where nothing is put in.
func change(e *relo.Entry) string {
	if e.New == nil {
		return ""
	}
	return value(e.Kind, e.Old) + " → " + value(e.Kind, *e.New)
}
