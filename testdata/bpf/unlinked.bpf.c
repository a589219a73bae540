// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// An object of a library, which refers to functions of other objects and is not linked yet.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

extern int lib_init(int n);
extern int lib_alloc(int n);

SEC("socket") int starts(void *ctx)
{
	return lib_init(1) + lib_alloc(2);
}
