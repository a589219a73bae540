// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Masks of an index into a map's value that are larger than the value.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

volatile const bool never = false;

struct text {
	u8 bytes[501];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct text);
} texts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} lengths SEC(".maps");

#define PROGRAM(name) SEC("raw_tp/sys_enter") int name(void *ctx)

#define LOOK_UP                                                       \
	u32 zero = 0;                                                 \
	struct text *text = bpf_map_lookup_elem(&texts, &zero);       \
	u64 *length = bpf_map_lookup_elem(&lengths, &zero), n;        \
	if (!text || !length)                                         \
		return 0;                                             \
	n = *(volatile u64 *)length

PROGRAM(too_wide)
{
	LOOK_UP;
	text->bytes[n & 511] = 1;
	return 0;
}

PROGRAM(too_wide_guarded)
{
	if (never) {
		LOOK_UP;
		text->bytes[n & 511] = 1;
	}
	return 0;
}

PROGRAM(too_wide_behind)
{
	LOOK_UP;
	return text->bytes[250 + (n & 255)];
}

PROGRAM(too_wide_for_helper)
{
	LOOK_UP;
	bpf_probe_read_kernel(text->bytes, n & 511, ctx);
	return 0;
}

PROGRAM(narrow)
{
	LOOK_UP;
	text->bytes[n & 255] = 1;
	bpf_probe_read_kernel(text->bytes + 1, n & 255, ctx);
	return text->bytes[245 + (n & 255)];
}

PROGRAM(compared)
{
	LOOK_UP;
	n &= 511;
	hide(n);
	if (n > 500)
		return 0;
	text->bytes[n] = 1;
	return 0;
}

PROGRAM(compared_before)
{
	LOOK_UP;
	if (n > 500)
		return 0;
	hide(n);
	text->bytes[n & 511] = 1;
	return 0;
}
