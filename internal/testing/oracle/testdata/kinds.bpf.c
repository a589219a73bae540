// An object with a CO-RE relocation of every kind, for what target.c declares.
// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause

#define CORE __attribute__((preserve_access_index))
#define SEC(name) __attribute__((section(name), used))

typedef unsigned long long u64;

struct inner {
	int x;
	int y[4];
} CORE;

struct root {
	struct inner in;
	unsigned int low : 3;
	signed int high : 4;
	unsigned char *gone;
	long tail[];
} CORE;

struct root___flavor {
	int moved;
} CORE;

typedef struct {
	int t;
} CORE named_t;

enum state { IDLE, BUSY = 7, LOST = 9 };
enum wide { SMALL, BIG = 0x123456789abcdef };
enum signed_state { BELOW = -5, ABOVE };

struct absent {
	int a;
} CORE;

enum field { BYTE_OFF, BYTE_SZ, FIELD_EXISTS, SIGNED, LSHIFT, RSHIFT };
enum type { TYPE_EXISTS, TYPE_SIZE, TYPE_MATCHES };
enum value { VALUE_EXISTS, VALUE };
enum id { ID_LOCAL, ID_TARGET };

#define FIELD(what, f) __builtin_preserve_field_info(f, what)
#define TYPE(what, t) __builtin_preserve_type_info(*(typeof(t) *)0, what)
#define ENUM(what, t, v) __builtin_preserve_enum_value(*(typeof(t) *)v, what)
#define ID(what, t) __builtin_btf_type_id(*(typeof(t) *)0, what)

u64 sink;
#define USE(v) sink += (v)

SEC("kprobe/fields") int fields(struct root *r)
{
	USE(FIELD(BYTE_OFF, r->in.y[2]));
	USE(FIELD(BYTE_SZ, r->in));
	USE(FIELD(BYTE_SZ, r->low));
	USE(FIELD(BYTE_OFF, r->high));
	USE(FIELD(SIGNED, r->high));
	USE(FIELD(LSHIFT, r->high));
	USE(FIELD(RSHIFT, r->high));
	USE(FIELD(FIELD_EXISTS, r->gone));
	USE(FIELD(BYTE_OFF, r->gone));
	USE(FIELD(BYTE_OFF, r->tail[5]));
	USE(FIELD(BYTE_OFF, r[1].in.x));
	return 0;
}

SEC("kprobe/flavor") int flavor(struct root___flavor *r, named_t *n)
{
	USE(FIELD(BYTE_OFF, r->moved));
	USE(FIELD(BYTE_OFF, n->t));
	return 0;
}

SEC("kprobe/types") int types(void *ctx)
{
	USE(TYPE(TYPE_EXISTS, struct root));
	USE(TYPE(TYPE_EXISTS, struct absent));
	USE(TYPE(TYPE_SIZE, struct inner));
	USE(TYPE(TYPE_MATCHES, struct inner));
	USE(TYPE(TYPE_MATCHES, enum signed_state));
	USE(ID(ID_LOCAL, struct inner));
	USE(ID(ID_TARGET, named_t));
	USE(ID(ID_TARGET, unsigned long));
	return 0;
}

SEC("kprobe/enums") int enums(void *ctx)
{
	USE(ENUM(VALUE_EXISTS, enum state, BUSY));
	USE(ENUM(VALUE, enum state, BUSY));
	USE(ENUM(VALUE_EXISTS, enum state, LOST));
	USE(ENUM(VALUE, enum wide, BIG));
	USE(ENUM(VALUE, enum signed_state, BELOW));
	return 0;
}
