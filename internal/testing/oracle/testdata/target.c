// The kernel's side of kinds.bpf.c and, with CASE set, of errors.bpf.c.
// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause

struct inner {
	long pad;
	int y[8];
	int x;
};

struct root {
	struct {
		long pad;
		struct inner in;
	};
	unsigned int other : 5;
	unsigned int low : 3;
	signed int high : 4;
	int moved;
	long tail[];
};

#ifndef CASE
struct root___narrow { // has none of root's fields: out after the first
	int none;
} *narrow;
struct inner___twin { // agrees with inner: stays
	long pad;
	int y[8];
	int x;
} *twin;
#elif CASE == 1 || CASE == 2
struct root___2 {
	struct inner in;
};
struct root___2 *second;
#elif CASE == 5
#define NEST4(x) struct { struct { struct { struct { x } ; } ; } ; } ;
#define NEST16(x) NEST4(NEST4(NEST4(NEST4(x))))
struct deep {
	NEST16(NEST16(NEST16(NEST16(int x;))))
} *deep;
#elif CASE == 8
#define LONG \
	a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_
struct long_names {
	struct { int LONG; } LONG;
} *long_names;
#elif CASE == 6
typedef double number_t;
number_t number;
#elif CASE == 7
struct opaque *opaque;
#endif

typedef struct {
	long pad;
	int t;
} named_t;

enum state { IDLE, BUSY = 8 };
enum wide { SMALL, BIG = 0xfedcba987654321 };
enum signed_state { BELOW = -6, ABOVE };

struct root *root;
named_t *named;
enum state state;
enum wide wide;
enum signed_state signed_state;
unsigned long word;
