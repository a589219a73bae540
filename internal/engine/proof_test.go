package engine

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/testbtf"
)

// proofCase is a kernel and what a minimizer that goes wrong could make of it,
// in the notation of testbtf.
type proofCase struct {
	name        string
	local       string
	asks        string
	full, small string
	want        Difference
}

// The proof must see each of these.
var proofRefuses = []proofCase{
	// Members.
	{
		name:  "member dropped",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n field_exists struct foo.b",
		full:  "struct foo 8: a int 0, b int 4",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "field_exists struct foo.b", Candidate: "struct foo", Full: "a match at bit 32, field_exists 1", Minimized: "no match"},
	},
	{
		name:  "member moved",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a int 4",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, signed int of 4 bytes", Minimized: "a match at bit 32, byte_off 4, signed int of 4 bytes"},
	},
	{
		name:  "member renamed",
		local: "struct foo 8: a int 0", asks: "field_exists struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: A int 0",
		want:  Difference{Relocation: "field_exists struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, field_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "member becomes a pointer",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a *void 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, signed int of 4 bytes", Minimized: "no such candidate"},
	},
	{
		name:  "member appears",
		local: "struct foo 8: a int 0", asks: "field_exists struct foo.a",
		full:  "struct foo 8: b int 0",
		small: "struct foo 8: a int 0, b int 0",
		want:  Difference{Relocation: "field_exists struct foo.a", Candidate: "struct foo", Full: "no such candidate", Minimized: "a match at bit 0, field_exists 1"},
	},
	{
		name:  "anonymous member moved",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 16: # #in 4\n struct #in 8: a int 4",
		small: "struct foo 16: # #in 0\n struct #in 8: a int 4",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 64, byte_off 8, signed int of 4 bytes", Minimized: "a match at bit 32, byte_off 4, signed int of 4 bytes"},
	},
	{
		name:  "members of one name change places",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0, a int 4",
		small: "struct foo 8: a int 4, a int 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, signed int of 4 bytes", Minimized: "a match at bit 32, byte_off 4, signed int of 4 bytes"},
	},
	{
		name:  "struct becomes a union",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "union foo 8: a int 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, signed int of 4 bytes", Minimized: "a match for other loaders than libbpf at bit 0, byte_off 0, signed int of 4 bytes"},
	},

	// Sizes and loads.
	{
		name:  "size of a struct",
		local: "struct foo 8: a int 0", asks: "type_size struct foo",
		full:  "struct foo 8: a int 0",
		small: "struct foo 16: a int 0",
		want:  Difference{Relocation: "type_size struct foo", Candidate: "struct foo", Full: "a match, type_size 8", Minimized: "a match, type_size 16"},
	},
	{
		name:  "size of an element",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo[2].a",
		full:  "struct foo 8: a int 0",
		small: "struct foo 16: a int 0",
		want:  Difference{Relocation: "byte_off struct foo[2].a", Candidate: "struct foo", Full: "a match at bit 128, byte_off 16, signed int of 4 bytes", Minimized: "a match at bit 256, byte_off 32, signed int of 4 bytes"},
	},
	{
		name:  "size of a field",
		local: "struct foo 8: a int 0", asks: "byte_sz struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a u64 0",
		want:  Difference{Relocation: "byte_sz struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_sz 4", Minimized: "a match at bit 0, byte_sz 8"},
	},
	{
		name:  "width of a load",
		local: "struct foo 8: a u32 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a u32 0",
		small: "struct foo 8: a u64 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, int of 4 bytes", Minimized: "a match at bit 0, byte_off 0, int of 8 bytes"},
	},
	{
		name:  "sign of a field",
		local: "struct foo 8: a u32 0", asks: "signed struct foo.a",
		full:  "struct foo 8: a u32 0",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "signed struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, signed 0", Minimized: "a match at bit 0, signed 1"},
	},
	{
		name:  "sign of an enum",
		local: "struct foo 8: a e 0\n enum e 4: X 1", asks: "signed struct foo.a",
		full:  "struct foo 8: a e 0\n enum e 4 signed: X 1",
		small: "struct foo 8: a e 0\n enum e 4: X 1",
		want:  Difference{Relocation: "signed struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, signed 1", Minimized: "a match at bit 0, signed 0"},
	},
	{
		name:  "size of pointers",
		local: "struct foo 8: a *void 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a *void 0\n int long 4 signed",
		small: "struct foo 8: a *void 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, ptr of 4 bytes", Minimized: "a match at bit 0, byte_off 0, ptr of 8 bytes"},
	},
	{
		name:  "width of a bitfield",
		local: "struct foo 4: a u32 @0:3", asks: "rshift_u64 struct foo.a",
		full:  "struct foo 4: a u32 @5:3",
		small: "struct foo 4: a u32 @5:4",
		want:  Difference{Relocation: "rshift_u64 struct foo.a", Candidate: "struct foo", Full: "a match at bit 5, rshift_u64 61, bitfield of a type of 4 bytes", Minimized: "a match at bit 5, rshift_u64 60, bitfield of a type of 4 bytes"},
	},
	{
		name:  "place of a bitfield",
		local: "struct foo 4: a u32 @0:3", asks: "lshift_u64 struct foo.a",
		full:  "struct foo 4: a u32 @5:3",
		small: "struct foo 4: a u32 @6:3",
		want:  Difference{Relocation: "lshift_u64 struct foo.a", Candidate: "struct foo", Full: "a match at bit 5, lshift_u64 56, bitfield of a type of 4 bytes", Minimized: "a match at bit 6, lshift_u64 55, bitfield of a type of 4 bytes"},
	},
	{
		name:  "bitfield becomes a field",
		local: "struct foo 4: a u32 @0:3", asks: "byte_off struct foo.a\n rshift_u64 struct foo.a",
		full:  "struct foo 4: a u32 @0:3",
		small: "struct foo 4: a u32 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, rshift_u64 61, bitfield of a type of 4 bytes", Minimized: "a match at bit 0, byte_off 0, rshift_u64 32, int of 4 bytes"},
	},

	// Arrays.
	{
		name:  "array becomes shorter",
		local: "struct foo 16: a int[4] 0", asks: "byte_off struct foo.a[3]",
		full:  "struct foo 16: a int[4] 0",
		small: "struct foo 16: a int[3] 0",
		want:  Difference{Relocation: "byte_off struct foo.a[3]", Candidate: "struct foo", Full: "a match at bit 96, byte_off 12, signed int of 4 bytes", Minimized: "no such candidate"},
	},
	{
		name:  "number of elements, as part of a size",
		local: "struct foo 16: a int[4] 0", asks: "byte_sz struct foo.a",
		full:  "struct foo 16: a int[4] 0",
		small: "struct foo 16: a int[5] 0",
		want:  Difference{Relocation: "byte_sz struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_sz 16", Minimized: "a match at bit 0, byte_sz 20"},
	},
	{
		name:  "flexible array is one no more",
		local: "struct foo 4: a int[0] 4", asks: "byte_off struct foo.a[2]",
		full:  "struct foo 4: b int 0, a int[0] 4",
		small: "struct foo 4: a int[0] 4, b int 0",
		want:  Difference{Relocation: "byte_off struct foo.a[2]", Candidate: "struct foo", Full: "a match at bit 96, byte_off 12, signed int of 4 bytes", Minimized: "cilium/ebpf gives up"},
	},
	{
		name:  "array becomes a flexible one",
		local: "struct foo 4: a int[0] 4", asks: "byte_off struct foo.a[2]",
		full:  "struct foo 4: a int[0] 0, b int 0",
		small: "struct foo 4: a int[0] 0",
		want:  Difference{Relocation: "byte_off struct foo.a[2]", Candidate: "struct foo", Full: "cilium/ebpf gives up", Minimized: "a match at bit 64, byte_off 8, signed int of 4 bytes"},
	},
	{
		name:  "element of an array",
		local: "struct foo 16: a int[4] 0", asks: "byte_off struct foo.a[1]",
		full:  "struct foo 16: a int[4] 0",
		small: "struct foo 16: a u64[4] 0",
		want:  Difference{Relocation: "byte_off struct foo.a[1]", Candidate: "struct foo", Full: "a match at bit 32, byte_off 4, signed int of 4 bytes", Minimized: "a match at bit 64, byte_off 8, int of 8 bytes"},
	},

	// Candidates.
	{
		name:  "candidates swap members",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 12: a int 0, b int 4\n struct foo#2 12: b int 8",
		small: "struct foo 12: a int 0, b int 8\n struct foo#2 12: b int 4",
		want:  Difference{Relocation: "byte_off struct foo.b", Candidate: "struct foo", Full: "a match at bit 64, byte_off 8, signed int of 4 bytes", Minimized: "a match at bit 32, byte_off 4, signed int of 4 bytes"},
	},
	{
		name:  "candidates merged",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 8: a int 0\n struct foo#2 8: b int 4",
		small: "struct foo 8: a int 0, b int 4",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "no match", Minimized: "a match at bit 0, byte_off 0, signed int of 4 bytes"},
	},
	{
		name:  "candidate split",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 8: a int 0, b int 4",
		small: "struct foo 8: a int 0\n struct foo#2 8: b int 4",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, signed int of 4 bytes", Minimized: "no match"},
	},
	{
		name:  "candidate dropped",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 4",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 32, byte_off 4, signed int of 4 bytes", Minimized: "no such candidate"},
	},
	{
		name:  "candidate added",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a int 0\n struct foo#2 8: a int 4",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "no such candidate", Minimized: "a match at bit 32, byte_off 4, signed int of 4 bytes"},
	},
	{
		name:  "candidate dropped, which cilium/ebpf alone takes",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n union foo#2 8: a u64 0",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "union foo", Full: "a match for other loaders than libbpf at bit 0, byte_off 0, int of 8 bytes", Minimized: "no such candidate"},
	},
	{
		name:  "candidate dropped on which libbpf gives up",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n struct foo#2 8: # foo#2 0",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "libbpf gives up", Minimized: "no such candidate"},
	},
	{
		name:  "one of two equal candidates dropped, type IDs asked for",
		local: "struct foo 8: a int 0", asks: "target_type_id struct foo",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 0",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "target_type_id struct foo", Candidate: "struct foo", Full: "a match", Minimized: "no such candidate"},
	},
	{
		name:  "one candidate becomes two, type IDs asked for",
		local: "struct foo 8: a int 0", asks: "target_type_id struct foo",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a int 0\n struct foo#2 8: a int 0",
		want:  Difference{Relocation: "target_type_id struct foo", Candidate: "struct foo", Full: "no such candidate", Minimized: "a match"},
	},

	// Order of candidates.
	{
		name:  "libbpf takes the width of a load from the first",
		local: "struct foo 8: a u32 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a u32 0\n struct foo#2 8: a u64 0",
		small: "struct foo 8: a u64 0\n struct foo#2 8: a u32 0",
		want:  Difference{Relocation: "byte_off struct foo.a", Full: "0, int of 4 bytes", Minimized: "0, int of 8 bytes"},
	},
	{
		name:  "the best candidate for cilium/ebpf comes after two that disagree",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 12: a int 4, b int 8\n struct foo#2 12: a int 0\n struct foo#3 12: a int 8",
		small: "struct foo 12: a int 0\n struct foo#2 12: a int 8\n struct foo#3 12: a int 4, b int 8",
		want:  Difference{Relocation: "byte_off struct foo.a", Full: "cilium/ebpf: 4, 8", Minimized: "ambiguous"},
	},
	{
		name:  "the same for one function, though not for the object",
		local: "struct foo 12: a int 0, b int 4, c int 8",
		asks: `program one
			byte_off struct foo.a
			byte_off struct foo.b
			program two
			byte_off struct foo.c`,
		full:  "struct foo 16: a int 4, b int 8\n struct foo#2 16: a int 0, c int 12\n struct foo#3 16: a int 8, c int 4",
		small: "struct foo 16: a int 0, c int 12\n struct foo#2 16: a int 8, c int 4\n struct foo#3 16: a int 4, b int 8",
		want:  Difference{Relocation: "byte_off struct foo.a", Full: "cilium/ebpf: 4, 8", Minimized: "ambiguous"},
	},

	// Enumerators.
	{
		name:  "value of an enumerator",
		local: "enum foo 4: X 1", asks: "enumval_value enum foo::X",
		full:  "enum foo 4: X 1",
		small: "enum foo 4: X 2",
		want:  Difference{Relocation: "enumval_value enum foo::X", Candidate: "enum foo", Full: "a match, enumval_value 1", Minimized: "a match, enumval_value 2"},
	},
	{
		name:  "upper half of a value",
		local: "enum64 foo 8: X 1", asks: "enumval_value enum foo::X",
		full:  "enum64 foo 8: X 0x100000001",
		small: "enum64 foo 8: X 1",
		want:  Difference{Relocation: "enumval_value enum foo::X", Candidate: "enum foo", Full: "a match, enumval_value 4294967297", Minimized: "a match, enumval_value 1"},
	},
	{
		name:  "enumerator renamed",
		local: "enum foo 4: X 1", asks: "enumval_exists enum foo::X",
		full:  "enum foo 4: X 1",
		small: "enum foo 4: Y 1",
		want:  Difference{Relocation: "enumval_exists enum foo::X", Candidate: "enum foo", Full: "a match, enumval_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "enumerator dropped",
		local: "enum foo 4: X 1, Y 2", asks: "enumval_exists enum foo::X\n enumval_value enum foo::Y",
		full:  "enum foo 4: X 1, Y 2",
		small: "enum foo 4: X 1",
		want:  Difference{Relocation: "enumval_value enum foo::Y", Candidate: "enum foo", Full: "a match, enumval_value 2", Minimized: "no match"},
	},
	{
		name:  "enumerators of one essential name change places",
		local: "enum foo 4: X 1", asks: "enumval_value enum foo::X",
		full:  "enum foo 4: X___old 1, X 2",
		small: "enum foo 4: X 2, X___old 1",
		want:  Difference{Relocation: "enumval_value enum foo::X", Candidate: "enum foo", Full: "a match, enumval_value 1", Minimized: "a match, enumval_value 2"},
	},
	{
		name:  "name of a field's enum",
		local: "struct foo 4: a e 0\n enum e 4: X 1", asks: "byte_off struct foo.a",
		full:  "struct foo 4: a e 0\n enum e 4: X 1",
		small: "struct foo 4: a f 0\n enum f 4: X 1",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, enum of 4 bytes", Minimized: "no such candidate"},
	},

	// Whole types.
	{
		name:  "pointee",
		local: "typedef foo *int", asks: "type_exists foo",
		full:  "typedef foo *int",
		small: "typedef foo *void",
		want:  Difference{Relocation: "type_exists foo", Candidate: "foo", Full: "a match, type_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "parameter of a function",
		local: "typedef foo *fn\n proto fn int: *void, u64", asks: "type_exists foo",
		full:  "typedef foo *fn\n proto fn int: *void, u64",
		small: "typedef foo *fn\n proto fn int: *void, *void",
		want:  Difference{Relocation: "type_exists foo", Candidate: "foo", Full: "a match, type_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "number of parameters",
		local: "typedef foo *fn\n proto fn int: *void, u64", asks: "type_exists foo",
		full:  "typedef foo *fn\n proto fn int: *void, u64",
		small: "typedef foo *fn\n proto fn int: *void",
		want:  Difference{Relocation: "type_exists foo", Candidate: "foo", Full: "a match, type_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "what a function returns",
		local: "typedef foo *fn\n proto fn int:", asks: "type_exists foo",
		full:  "typedef foo *fn\n proto fn int:",
		small: "typedef foo *fn\n proto fn void:",
		want:  Difference{Relocation: "type_exists foo", Candidate: "foo", Full: "a match, type_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "name of an integer",
		local: "struct foo 8: a u64 0", asks: "type_matches struct foo",
		full:  "struct foo 8: a size_t 0\n int size_t 8",
		small: "struct foo 8: a u64 0",
		want:  Difference{Relocation: "type_matches struct foo", Candidate: "struct foo", Full: "no such candidate", Minimized: "a match, type_matches 1"},
	},
	{
		name:  "number of elements",
		local: "struct foo 16: a int[4] 0", asks: "type_matches struct foo",
		full:  "struct foo 16: a int[4] 0",
		small: "struct foo 16: a int[5] 0",
		want:  Difference{Relocation: "type_matches struct foo", Candidate: "struct foo", Full: "a match, type_matches 1", Minimized: "no such candidate"},
	},
	{
		name:  "number of members",
		local: "struct foo 8: a int 0, a___2 int 4", asks: "type_matches struct foo",
		full:  "struct foo 8: a int 0, b int 4",
		small: "struct foo 8: a int 0",
		want:  Difference{Relocation: "type_matches struct foo", Candidate: "struct foo", Full: "a match for libbpf alone, type_matches 1", Minimized: "no such candidate"},
	},
	{
		name:  "number of enumerators",
		local: "enum foo 4: X 0, X___2 1", asks: "type_matches enum foo",
		full:  "enum foo 4: X 0, Y 1",
		small: "enum foo 4: X 0",
		want:  Difference{Relocation: "type_matches enum foo", Candidate: "enum foo", Full: "a match, type_matches 1", Minimized: "no such candidate"},
	},
	{
		name:  "forward declaration of a struct becomes one of a union",
		local: "struct foo 8: a *bar 0\n fwd bar struct", asks: "type_matches struct foo",
		full:  "struct foo 8: a *bar 0\n fwd bar struct",
		small: "struct foo 8: a *bar 0\n fwd bar union",
		want:  Difference{Relocation: "type_matches struct foo", Candidate: "struct foo", Full: "a match, type_matches 1", Minimized: "no such candidate"},
	},
	{
		name:  "forward declaration becomes a struct",
		local: "typedef foo *bar\n fwd bar struct", asks: "type_exists foo",
		full:  "typedef foo *bar\n fwd bar struct",
		small: "typedef foo *bar\n struct bar 0:",
		want:  Difference{Relocation: "type_exists foo", Candidate: "foo", Full: "a match, type_exists 1", Minimized: "no such candidate"},
	},
	{
		name:  "sign of a load",
		local: "struct foo 8: a u32 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a u64 0",
		small: "struct foo 8: a s64 0\n int s64 8 signed",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 0, byte_off 0, int of 8 bytes", Minimized: "a match at bit 0, byte_off 0, signed int of 8 bytes"},
	},
	{
		name:  "index type of an array, which cilium/ebpf compares",
		local: "typedef foo int[4]", asks: "type_exists foo",
		full:  "typedef foo int[4]",
		small: "typedef foo int[4 of void]",
		want:  Difference{Relocation: "type_exists foo", Candidate: "foo", Full: "a match, type_exists 1", Minimized: "a match for libbpf alone, type_exists 1"},
	},
	{
		name:  "member of a struct behind a pointer, where cilium/ebpf goes",
		local: "struct foo 8: a *bar 0\n struct bar 4: x int 0", asks: "type_matches struct foo",
		full:  "struct foo 8: a *bar 0\n struct bar 4: x int 0",
		small: "struct foo 8: a *bar 0\n struct bar 4:",
		want:  Difference{Relocation: "type_matches struct foo", Candidate: "struct foo", Full: "a match, type_matches 1", Minimized: "a match for libbpf alone, type_matches 1"},
	},
	{
		name:  "the last of several anonymous members, which cilium/ebpf compares",
		local: "struct foo 8: # #in 0\n struct #in 4: a int 0", asks: "type_matches struct foo",
		full:  "struct foo 8: # #one 0, # #two 4\n struct #one 4: a int 0\n struct #two 4: b int 0",
		small: "struct foo 8: # #one 0\n struct #one 4: a int 0",
		want:  Difference{Relocation: "type_matches struct foo", Candidate: "struct foo", Full: "a match for libbpf alone, type_matches 1", Minimized: "a match, type_matches 1"},
	},
	{
		name:  "sign of an enum whose value is asked for, by which cilium/ebpf extends it",
		local: "enum foo 4: X 1", asks: "enumval_value enum foo::X",
		full:  "enum foo 4 signed: X 0xffffffff",
		small: "enum foo 4: X 0xffffffff",
		want:  Difference{Relocation: "enumval_value enum foo::X", Candidate: "enum foo", Full: "a match, enumval_value 18446744073709551615", Minimized: "a match, enumval_value 18446744073709551615, for cilium/ebpf 4294967295"},
	},
	{
		name:  "enum64 becomes an enum, whose values cilium/ebpf does not extend",
		local: "enum foo 4: X 1", asks: "enumval_value enum foo::X",
		full:  "enum64 foo 8: X 0xfffffffffffffe00",
		small: "enum foo 8: X 0xfffffe00",
		want:  Difference{Relocation: "enumval_value enum foo::X", Candidate: "enum foo", Full: "a match, enumval_value 18446744073709551104", Minimized: "a match, enumval_value 18446744073709551104, for cilium/ebpf 4294966784"},
	},
	{
		name:  "anonymous member that is no struct or union, at which cilium/ebpf gives up",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: # #in 0, a int 4\n struct #in 4: b int 0",
		small: "struct foo 8: # void 0, a int 4",
		want:  Difference{Relocation: "byte_off struct foo.a", Candidate: "struct foo", Full: "a match at bit 32, byte_off 4, signed int of 4 bytes", Minimized: "cilium/ebpf gives up"},
	},
	{
		name:  "array without elements before another member, at which cilium/ebpf gives up",
		local: "struct foo 8: a int[4] 0", asks: "field_exists struct foo.a[1]",
		full:  "struct foo 8: a int[0] 0, b int 0",
		small: "struct foo 8: b int 0",
		want:  Difference{Relocation: "field_exists struct foo.a[1]", Candidate: "struct foo", Full: "cilium/ebpf gives up", Minimized: "no such candidate"},
	},
	{
		name:  "type of a bitfield for which libbpf takes a wider load, and cilium/ebpf does not",
		local: "struct foo 4: a u32 @0:4", asks: "byte_sz struct foo.a",
		full:  "struct foo 8: a u32 @30:4",
		small: "struct foo 8: a u64 @30:4",
		want:  Difference{Relocation: "byte_sz struct foo.a", Candidate: "struct foo", Full: "a match at bit 30, byte_sz 8, bitfield of a type of 4 bytes", Minimized: "a match at bit 30, byte_sz 8, bitfield of a type of 8 bytes"},
	},
	{
		name:  "for cilium/ebpf 0 and no match are equal, and the first candidate counts",
		local: "union foo 4: a int 0, b int 0", asks: "byte_off union foo.a\n byte_off union foo.b",
		full:  "union foo 4: a int 0\n union foo#2 4: b int 0",
		small: "union foo 4: b int 0\n union foo#2 4: a int 0",
		want:  Difference{Relocation: "byte_off union foo.a", Full: "cilium/ebpf: 0, no match", Minimized: "no match, 0"},
	},
	{
		name:  "equal candidates with type IDs asked for, after a better one",
		local: "struct foo 8: a int 0, b int 4", asks: "target_type_id struct foo\n byte_off struct foo.b",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 0, b int 4\n struct foo#3 8: a int 0",
		small: "struct foo 8: a int 0\n struct foo#2 8: a int 0\n struct foo#3 8: a int 0, b int 4",
		want:  Difference{Relocation: "target_type_id struct foo", Full: "cilium/ebpf: a type ID, 4", Minimized: "ambiguous"},
	},
}

// Nobody notices any of these.
var proofAccepts = []proofCase{
	{
		name:  "nothing changed",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a\n type_matches struct foo\n target_type_id struct foo",
		full:  "struct foo 8: a int 0",
		small: "struct foo 8: a int 0",
	},
	{
		name:  "members that nobody asks for are missing",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a\n type_size struct foo",
		full:  "struct foo 8: a int 0, b int 4, # #in 0\n struct #in 4: c int 0",
		small: "struct foo 8: a int 0",
	},
	{
		name:  "candidate of which nobody makes anything is missing",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: b int 0\n struct foo#2 8: a int 4\n typedef foo#3 int",
		small: "struct foo 8: a int 4",
	},
	{
		name:  "no candidate instead of one that does not match",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a\n field_exists struct foo.a",
		full:  "struct foo 8: b int 0",
		small: "",
	},
	{
		name:  "equal candidates merged",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 4\n struct foo#3 8: a int 0\n struct foo#4 8: a int 4, b int 0",
		small: "struct foo 8: a int 0\n struct foo#2 8: a int 4",
	},
	{
		name:  "equal candidates stay two where type IDs are asked for",
		local: "struct foo 8: a int 0", asks: "target_type_id struct foo",
		full:  "struct foo 8: a int 0\n struct foo#2 8: b int 0",
		small: "struct foo 8:\n struct foo#2 8:",
	},
	{
		name:  "other type IDs",
		local: "struct foo 8: a int 0", asks: "target_type_id struct foo\n byte_off struct foo.a",
		full:  "struct foo 8: a int 0",
		small: "union other 4: x int 0\n fwd more union\n struct foo 8: a int 0",
	},
	{
		name:  "other order, libbpf and cilium/ebpf fail with either",
		local: "struct foo 8: a int 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a int 0\n struct foo#2 8: a int 4",
		small: "struct foo 8: a int 4\n struct foo#2 8: a int 0",
	},
	{
		name:  "other order, one candidate is ruled out in either",
		local: "struct foo 8: a int 0, b int 4", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 12: a int 4, b int 8\n struct foo#2 12: b int 4",
		small: "struct foo 12: b int 4\n struct foo#2 12: a int 4, b int 8",
	},
	{
		name:  "other order, neither asked for what differs",
		local: "struct foo 8: a int 0, b int 4", asks: "program one\n field_exists struct foo.a\n program two\n field_exists struct foo.b",
		full:  "struct foo 8: a int 0, b int 4\n struct foo#2 8: b int 0, a int 4",
		small: "struct foo 8: b int 0, a int 4\n struct foo#2 8: a int 0, b int 4",
	},
	{
		name:  "names of integers, sizes and what pointers lead to, where only offsets are asked for",
		local: "struct foo 16: a u64 0, b *bar 8\n fwd bar struct", asks: "byte_off struct foo.a\n byte_off struct foo.b",
		full:  "struct foo 24: a size_t 0, b *bar 16\n int size_t 8\n struct bar 4: x int 0",
		small: "struct foo 20: a u64 0, b *void 16",
	},
	{
		name:  "typedefs on the way",
		local: "struct foo 8: a u64 0", asks: "byte_off struct foo.a",
		full:  "struct foo 8: a size_t 0\n typedef size_t u64",
		small: "struct foo 8: a u64 0",
	},
	{
		name:  "value of an enumerator that is asked whether it exists",
		local: "enum foo 4: X 1", asks: "enumval_exists enum foo::X",
		full:  "enum foo 4: X 1, Y 2",
		small: "enum foo 4: X 5",
	},
}

// set returns the questions of an object.
func (c *proofCase) set(t *testing.T) *Set {
	t.Helper()
	o, err := ParseObject("o", testbtf.Object(t, binary.LittleEndian, c.local, c.asks))
	if err != nil {
		t.Fatal(err)
	}
	return o.Set()
}

// outcomes returns those of a set on a kernel.
func outcomes(t *testing.T, s *Set, types string) *Table {
	t.Helper()
	var k Kernel
	if err := k.Load("k", testbtf.Types(t, binary.LittleEndian, types)); err != nil {
		t.Fatal(err)
	}
	tb := new(Table)
	if err := tb.Fill(t.Context(), s, &k, nil); err != nil {
		t.Fatal(err)
	}
	return tb
}

func difference(t *testing.T, full, small *Table) *Difference {
	t.Helper()
	d, err := Compare(t.Context(), full, small)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestProofRefuses(t *testing.T) {
	for _, c := range proofRefuses {
		t.Run(c.name, func(t *testing.T) {
			s := c.set(t)
			full := outcomes(t, s, c.full)
			if d := difference(t, full, outcomes(t, s, c.full)); d != nil {
				t.Fatalf("the kernel is not the same as itself: %v", d)
			}
			c.want.Object = "o"
			switch d := difference(t, full, outcomes(t, s, c.small)); {
			case d == nil:
				t.Error("no difference")
			case *d != c.want:
				t.Errorf("\nhave %#v\nwant %#v", *d, c.want)
			}
		})
	}
}

func TestProofAccepts(t *testing.T) {
	for _, c := range proofAccepts {
		t.Run(c.name, func(t *testing.T) {
			s := c.set(t)
			if d := difference(t, outcomes(t, s, c.full), outcomes(t, s, c.small)); d != nil {
				t.Errorf("difference: %#v", d)
			}
		})
	}
}
