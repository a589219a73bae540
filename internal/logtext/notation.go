package logtext

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/pkg/relolog"
)

// Name returns a type and what is meant inside it, as C and libbpf write it:
// "struct task_struct.mm.pgd", "struct pair[2].a", "enum pid_type::PIDTYPE_SID".
func Name(kind string, s *relolog.Spec) string {
	switch {
	case s.Path == "":
		return s.Type
	case strings.HasPrefix(kind, "enumval_"):
		return s.Type + "::" + s.Path
	case s.Path[0] == '[':
		return s.Type + s.Path
	}
	return s.Type + "." + s.Path
}

// Relocation returns what an entry asks: "byte_off struct task_struct.mm.pgd".
func Relocation(e *relolog.Entry) string { return e.Kind + " " + Name(e.Kind, &e.Local) }

// Offset returns the offset of a field in bytes or, in libbpf's way, in bytes
// and bits ("20.3"), and "" for what is no field.
func Offset(s *relolog.Spec) string {
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
func Spec(kind string, s *relolog.Spec) string {
	return fmt.Sprintf("[%d] %s", s.TypeID, specText(kind, s))
}

// specText is Spec without the type ID.
func specText(kind string, s *relolog.Spec) string {
	out := Name(kind, s)
	if off := Offset(s); off != "" {
		out += fmt.Sprintf(" (%s @ offset %s)", s.Spec, off)
	}
	if s.Module != nil && *s.Module != "" {
		out += " [" + *s.Module + "]"
	}
	return out
}

// signed kinds are read as numbers with a sign.
func value(kind string, v uint64) string {
	if kind == relolog.KindEnumvalValue.String() && int64(v) < 0 {
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(v)
}

// change returns "1960 → 1816", or "" where nothing is put in.
func change(e *relolog.Entry) string {
	if e.New == nil {
		return ""
	}
	return value(e.Kind, e.Old) + " → " + value(e.Kind, *e.New)
}
