// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Questions about typedefs that lead through pointers: to a struct, to a function, and to a struct that the
// kernel only declares (a FWD), at which `bpftool gen min_core_btf` gives up.
#include "kernel.h"

struct work_struct;
typedef struct __key_reference_with_attributes *key_ref_t;
typedef void (*work_func_t)(struct work_struct *);
typedef int (*initcall_t)(void);
typedef struct cpumask {
	unsigned long bits[1];
} cpumask_t;
typedef cpumask_t cpumask_var_t[1];
typedef u64 phys_addr_t;
typedef phys_addr_t resource_size_t;
typedef struct {
	int counter;
} atomic_t___flavor;

u64 out[12];

SEC("raw_tp/sys_enter")
int typedefs(void *ctx)
{
	out[0] = bpf_core_type_exists(key_ref_t);
	out[1] = bpf_core_type_exists(work_func_t);
	out[2] = bpf_core_type_exists(initcall_t);
	out[3] = bpf_core_type_exists(cpumask_t);
	out[4] = bpf_core_type_size(cpumask_t);
	out[5] = bpf_core_type_exists(cpumask_var_t);
	out[6] = bpf_core_type_size(resource_size_t);
	out[7] = bpf_core_type_exists(atomic_t___flavor);
	out[8] = bpf_core_type_size(key_ref_t);
	out[9] = bpf_core_type_id_kernel(work_func_t);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
