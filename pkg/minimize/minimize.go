package minimize

import (
	"errors"
	"fmt"
	"time"

	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Padding says what stands where members were dropped.
type Padding int

// The kinds of padding. Offsets and sizes are the kernel's with either.
const (
	PadImplicit Padding = iota // nothing: offsets leave a gap
	PadExplicit                // named arrays of bytes in structs, for readers of a C dump
)

// Options change what a Minimizer emits. The zero value is ready for use.
type Options struct {
	Padding Padding
}

// Minimizer makes minimized BTFs for one set of relocations, one kernel after
// the other, and reuses its memory between them. It is not safe for concurrent
// use; every goroutine needs its own.
type Minimizer struct {
	set   *relolog.Set
	opts  Options
	marks *marks
	full  relolog.Table
	small relolog.Table
	proof relolog.Target
	times Times
}

// Times is what a Minimizer spent its time on, added up over all kernels.
type Times struct {
	Match time.Duration // relocations against kernels
	Emit  time.Duration // marking, merging, writing
	Prove time.Duration
}

// Times returns the times so far.
func (m *Minimizer) Times() Times { return m.times }

// New returns a Minimizer for the relocations in set.
func New(set *relolog.Set, opts Options) *Minimizer {
	return &Minimizer{set: set, opts: opts, marks: newMarks(set.Asks(relolog.KindTypeMatches))}
}

// Minimize returns the minimized BTF of a kernel, in the kernel's byte order
// and with a 24-byte header. It is proven before it is returned: every
// relocation has the same outcomes on it as on the kernel's own BTF. Where
// nothing matches, the result is a BTF without types. A kernel in which a
// needed typedef leads back to itself, so that loaders hang, is refused.
func (m *Minimizer) Minimize(t *relolog.Target) ([]byte, error) {
	out, err := m.minimize(t, false)
	if errors.Is(err, ErrProof) {
		return m.minimize(t, true)
	}
	return out, err
}

// minimize is Minimize; with whole, it drops no members of types that it keeps.
// That is for BTF that no compiler makes, in which members have the same name:
// which one a loader takes, or stumbles over, depends on all of them.
func (m *Minimizer) minimize(t *relolog.Target, whole bool) ([]byte, error) {
	start := time.Now()
	marks := m.marks
	marks.reset()
	marks.whole = whole
	m.full.Fill(m.set, t, marks.add)
	start = lap(&m.times.Match, start)
	marks.settle()
	if id := marks.endless; id != 0 {
		return nil, fmt.Errorf("type %d: typedefs and modifiers without end", id)
	}
	g := newGraph(marks, m.set, uint32(t.PointerSize()), m.opts.Padding)
	g.lowerAll()
	for i, n := range marks.nodes {
		if n.copies && g.types[i] != nil {
			g.types[i].Copies = 1
		}
	}
	out := canon.Write(canon.Merge(g.types), t.Order())
	start = lap(&m.times.Emit, start)
	err := m.prove(t, out)
	lap(&m.times.Prove, start)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// lap adds the time since start to sum and returns the time now.
func lap(sum *time.Duration, start time.Time) time.Time {
	now := time.Now()
	*sum += now.Sub(start)
	return now
}

// ErrProof says that a minimized BTF does not decide as the kernel's own does.
// It is a defect of this package; nothing is written then.
var ErrProof = errors.New("minimized BTF decides differently")

// prove relocates against the output and compares with the kernel.
func (m *Minimizer) prove(t *relolog.Target, out []byte) error {
	if err := m.proof.Load(t.Name(), out); err != nil {
		return fmt.Errorf("minimized BTF is unreadable: %w", err)
	}
	m.small.Fill(m.set, &m.proof, nil)
	if err := m.full.Same(&m.small); err != nil {
		return fmt.Errorf("%s: %w: %w", t.Name(), ErrProof, err)
	}
	return nil
}

// Decisions gives yield what a loader with libbpf's rules makes of each
// distinct relocation on the kernel that was minimized last.
func (m *Minimizer) Decisions(yield func(relolog.Decision)) { m.full.Decide(yield) }
