// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Instructions since Linux 6.6, 6.9 and 6.15, one in each program; -mcpu=v4.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static s64 number;

SEC("raw_tp/sys_enter") int loads(void *ctx)
{
	s64 r;

	asm volatile("%[r] = *(s32 *)(%[p] + 0)" : [r] "=r"(r) : [p] "r"(&number));
	return r & 1;
}

SEC("raw_tp/sys_enter") int moves(void *ctx)
{
	s64 r;

	asm volatile("%[r] = (s8)%[n]" : [r] "=r"(r) : [n] "r"((u64)bpf_get_prandom_u32()));
	return r & 1;
}

SEC("raw_tp/sys_enter") int swaps(void *ctx)
{
	u64 r = bpf_get_prandom_u32();

	asm volatile("%[r] = bswap32 %[r]" : [r] "+r"(r));
	return r & 1;
}

SEC("raw_tp/sys_enter") int divides(void *ctx)
{
	s64 r = bpf_get_prandom_u32();

	asm volatile("%[r] s/= 3" : [r] "+r"(r));
	return r & 1;
}

SEC("raw_tp/sys_enter") int remains(void *ctx)
{
	s64 r = bpf_get_prandom_u32();

	asm volatile("%[r] s%%= 3" : [r] "+r"(r));
	return r & 1;
}

SEC("raw_tp/sys_enter") int goes_far(void *ctx)
{
	u64 r = bpf_get_prandom_u32();

	asm volatile("if %[r] > 7 goto 1f; gotol 2f; 1: %[r] = 1; 2:" : [r] "+r"(r));
	return r & 1;
}

SEC("raw_tp/sys_enter") int may_go(void *ctx)
{
	u64 r = 0;

	asm volatile("1: may_goto 2f; %[r] += 1; goto 1b; 2:" : [r] "+r"(r));
	return r & 1;
}

/* clang 19 does not know load-acquire and store-release: code 0xdb of r0 and r1 with the numbers 0x100 and 0x110. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ACQUIRE ".8byte 0x00000100000010db;"
#define RELEASE ".8byte 0x00000110000001db;"
#else
#define ACQUIRE ".8byte 0xdb01000000000100;"
#define RELEASE ".8byte 0xdb10000000000110;"
#endif

SEC("raw_tp/sys_enter") int acquires(void *ctx)
{
	u64 r;

	asm volatile("r1 = %[p];" ACQUIRE "%[r] = r0" : [r] "=r"(r) : [p] "r"(&number) : "r0", "r1");
	return r & 1;
}

SEC("raw_tp/sys_enter") int releases(void *ctx)
{
	asm volatile("r1 = %[p]; r0 = 1;" RELEASE : : [p] "r"(&number) : "r0", "r1", "memory");
	return 0;
}
