// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What programs that may sleep can be attached to.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Hooks of LSM: one that kernels have always let them have, two since a release, and one not at all. */
SEC("lsm.s/bprm_committed_creds") int committed(u64 *ctx) { return 0; }

SEC("lsm.s/file_open") int open(u64 *ctx) { return 0; }

SEC("lsm.s/path_mkdir") int mkdir(u64 *ctx) { return 0; }

SEC("lsm.s/file_permission") int permission(u64 *ctx) { return 0; }

/* Functions that are made for error injection, such as those of system calls, in kernels that have it. */
SEC("fentry.s/__x64_sys_getpgid") int of_call(u64 *ctx) { return 0; }

SEC("fexit.s/vfs_open") int of_function(u64 *ctx) { return 0; }
