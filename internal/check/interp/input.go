// SPDX-License-Identifier: Apache-2.0

package interp

import "github.com/btfgen/btfgen/internal/bpfobj"

// Features are abilities of a verifier that decide what it can reach. Without any it is that of Linux 4.14.
type Features uint16

// The features. A release is that of the mainline commit; package rule decides which of them a kernel has.
const (
	// Spilled constants keep their value, and branches are decided by registers, JSET and order, not by == and !=
	// with an immediate alone (5.3). Before, some releases decide by order, keep spilled zeros and 32-bit moves.
	Constants   Features = 1 << iota
	Rodata               // frozen maps, with read-only data and .kconfig, are constants (5.5)
	Globals              // global functions are verified on their own (5.6)
	NonNull              // branches on whether a pointer is null are decided if it is not (5.8)
	Partly               // spills of partly known numbers keep what is known, and XOR is computed (5.10)
	Partial              // spills of less than 8 bytes keep their value (5.16)
	StImm                // stores of an immediate keep their value (6.3)
	LazyGlobals          // global functions are verified only if they are called (6.8)
	Narrow               // fills of a part of a spill keep their value (6.9)
	MaybeRodata          // the verifier may or may not have Rodata
	Halves               // the lower half of a number has bounds of its own (5.7)
	Unequal              // a number that is not the least or greatest has closer bounds (6.8)
)

// Has reports whether all of o are in f.
func (f Features) Has(o Features) bool { return f&o == o }

// Input is everything that an exploration depends on, except the program.
type Input struct {
	Features

	// Record returns what the loader writes into the instruction of a CO-RE record, false if that is unknown or the
	// instruction is made invalid.
	Record func(record int) (v uint64, known bool)

	// Precise keeps more states apart. It takes many times as long, and some of what is Imprecise otherwise becomes certain.
	Precise bool

	Summaries Summaries // known summaries from earlier explorations; may be nil

	Ksym     func(e *bpfobj.Extern) Number // 1 if the kernel has the symbol, 0 if not
	Kconfig  func(e *bpfobj.Extern) Number // value that the loader writes
	Settable func(variable string) bool    // whether the loader may set a read-only variable, which may lack a name
}

// Number is what is known of a number that the loader supplies. If it is not completely known it may differ between loads, but
// is constant in each.
type Number struct {
	V, Unknown uint64 // unknown bits are 1 in Unknown and 0 in V
}

func (n Number) value() value { return value{bits: n.V, mask: n.Unknown, taint: n.Unknown != 0} }
