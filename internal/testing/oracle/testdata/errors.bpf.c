// Relocations that libbpf refuses or stumbles over, one per value of CASE. The target is
// target.c compiled with the same value.
// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause

#define CORE __attribute__((preserve_access_index))

typedef unsigned long long u64;
u64 sink;

#define FIELD_BYTE_OFF 0
#define FIELD_SIGNED 3
#define TYPE_EXISTS 0
#define TYPE_SIZE 1

#define LONG \
	a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_a_long_name_

__attribute__((section("kprobe/f"), used)) int f(void *ctx)
{
#if CASE == 1 // an offset that candidates disagree on
	struct root { struct { int x; } in; } CORE *r = ctx;
	sink += __builtin_preserve_field_info(r->in.x, FIELD_BYTE_OFF);
#elif CASE == 2 // a value that candidates disagree on
	struct root { int x; } CORE;
	sink += __builtin_preserve_type_info(*(struct root *)0, TYPE_SIZE);
#elif CASE == 3 // a type without a name
	struct { int x; } CORE *r = ctx;
	sink += __builtin_preserve_field_info(r->x, FIELD_BYTE_OFF);
#elif CASE == 4 // an array element's signedness
	struct root { long tail[4]; } CORE *r = ctx;
	sink += __builtin_preserve_field_info(r->tail[1], FIELD_SIGNED);
#elif CASE == 5 // a target nested deeper than 64 levels
	struct deep { int x; } CORE *d = ctx;
	sink += __builtin_preserve_field_info(d->x, FIELD_BYTE_OFF);
#elif CASE == 6 // a kind of type that libbpf does not compare: no error, but a warning
	typedef double number_t;
	sink += __builtin_preserve_type_info(*(number_t *)0, TYPE_EXISTS);
#elif CASE == 7 // a kind of type that bpftool does not record
	struct opaque;
	sink += __builtin_preserve_type_info(*(struct opaque *)0, TYPE_EXISTS);
#elif CASE == 8 // names longer than libbpf's buffer: no error
	struct long_names { struct { int LONG; } LONG; } CORE *r = ctx;
	sink += __builtin_preserve_field_info(r->LONG.LONG, FIELD_BYTE_OFF);
#endif
	return 0;
}
