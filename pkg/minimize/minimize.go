// SPDX-License-Identifier: Apache-2.0

// Package minimize reduces the BTF of a kernel to the types and members that the
// CO-RE relocations of some BPF objects depend on. Loaders take the same
// decisions on the result as on the kernel's own BTF: every match of every
// candidate type is kept, and each result is proven before it is returned.
//
// For example, an object that reads task->mm->pgd and task->comm leaves of a
// kernel's 140,000 types
//
//	struct task_struct { struct mm_struct *mm; char comm[16]; };  /* size 9792 */
//	struct mm_struct { struct { pgd_t *pgd; }; };                 /* size 1344 */
//
// as STRUCT task_struct with its size and two members at their offsets, an
// anonymous struct inside STRUCT mm_struct, one PTR to void, one ARRAY of 16
// and one INT.
//
// The same relocations and the same types give the same bytes, in whatever order
// the kernel has its types.
package minimize

import (
	"context"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/core/facade"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/pkg/relo"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Options change what a Minimizer emits. The zero value is ready for use.
type Options struct {
	Keep *Keep // types to keep that relocations do not need; nil for none
}

// Minimizer makes minimized BTF for the relocations of some objects, for one
// kernel after another, and reuses its memory between them. It is not safe for
// concurrent use: each goroutine needs its own.
type Minimizer struct{ m *minimize.Minimizer }

// New returns a Minimizer for the relocations of objects of either byte order and
// for any machines. Without objects, the minimized BTF has the types of Options.Keep.
func New(objects []*relolog.Object, opts Options) *Minimizer {
	return &Minimizer{minimize.New(internal(objects), minimize.Options{Keep: opts.Keep.internal()})}
}

// ErrNoObject is returned if none of the objects is for the kernel, by byte order
// and machine.
var ErrNoObject = minimize.ErrNoObject

// ErrTooLarge is returned for a kernel on which the relocations take more memory or
// time than a limit allows: [relolog.ErrTooLarge].
var ErrTooLarge = relolog.ErrTooLarge

// ErrProof is returned if loaders would decide differently on the minimized BTF. It
// is a defect of this module, except if no BTF can give all loaders the decisions
// that they make on the kernel's modules, or if a decision depends on the order of
// types whose names differ in what only some loaders take for a flavor. [ProofError]
// has the details.
var ErrProof = relo.ErrProof

// ProofError says where a minimized BTF decides differently. errors.Is reports
// that it is an [ErrProof].
type ProofError = relo.ProofError

// Result is the minimized BTF of one kernel and the decisions that it preserves.
type Result struct {
	BTF       []byte     // encoded in the kernel's byte order, with a 24-byte header; has no types if nothing matches
	Decisions []Decision // each relocation of each object once for each result that it has
	Unmatched []string   // patterns of Options.Keep that match nothing in the kernel
}

// Decision is the result of a relocation by libbpf's rules.
type Decision struct {
	Object     string // its name
	Relocation string // "byte_off struct task_struct.mm.pgd"
	Result     relo.Result
}

// Minimize returns the minimized BTF of a kernel for the objects that are for it
// ([relolog.Object.IsFor]). The error is [ErrNoObject], [ErrTooLarge], a
// [*ProofError], the context's, or one that names a type of the kernel whose size
// loaders cannot compute.
func (m *Minimizer) Minimize(ctx context.Context, t *relolog.Target) (*Result, error) {
	res, err := m.m.Minimize(ctx, facade.Target(t))
	if err != nil {
		return nil, err
	}
	out := &Result{BTF: res.BTF, Unmatched: res.Unmatched}
	for _, d := range res.Decisions {
		out.Decisions = append(out.Decisions, Decision{d.Object, d.Relocation(), d.Result})
	}
	return out, nil
}

func internal(objects []*relolog.Object) []*core.Object {
	all := make([]*core.Object, len(objects))
	for i, o := range objects {
		all[i] = facade.Object(o)
	}
	return all
}

// Keep is a list of patterns of types that a tracer decodes in user space, which
// are kept as the kernel has them. It is immutable and safe for use by many
// goroutines. A nil Keep, and the zero value, have no patterns.
type Keep struct{ k *core.KeepPatterns }

// ParseKeep parses patterns. Each is KIND:NAME with a kind of enum (64-bit enums
// too), struct, union, typedef, func or var, and a name that may be a shell
// pattern as in [path.Match]. A type is kept with all its members and with the
// types that these have by value. The target of a pointer is kept by its name
// alone, unless something else needs it.
//
// For structs and unions, KIND:NAME.MEMBER,MEMBER… keeps some members, and for
// enums some enumerators. Members are found inside anonymous ones, too. These names
// may be patterns as well. NAME is empty for anonymous enums: "enum:.TCP_*".
func ParseKeep(patterns ...string) (*Keep, error) {
	k, err := core.ParseKeep(patterns...)
	if err != nil {
		return nil, err
	}
	return &Keep{k}, nil
}

func (k *Keep) internal() *core.KeepPatterns {
	if k == nil {
		return nil
	}
	return k.k
}
