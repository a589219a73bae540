// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Hooks of LSM, some of which newer kernels keep BPF programs from.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("lsm/file_open") int open(u64 *ctx)
{
	struct file *f = (void *)ctx[0];

	return BPF_CORE_READ(f, f_inode, i_ino) ? 0 : -1;
}

SEC("lsm/getprocattr") int getprocattr(u64 *ctx) { return 0; }

SEC("lsm/inode_listsecurity") int listsecurity(u64 *ctx) { return 0; }

SEC("lsm/file_alloc_security") int alloc_security(u64 *ctx) { return 0; }

SEC("lsm/xfrm_decode_session") int decode_session(u64 *ctx) { return 0; }

SEC("lsm/no_such_hook") int no_such_hook(u64 *ctx) { return 0; }

/* Errors are all that may be returned since Linux 6.12. */
SEC("lsm/file_open") int returns_1(u64 *ctx) { return 1; }

SEC("lsm/file_open") int returns_too_little(u64 *ctx) { return -4096; }

SEC("lsm/bprm_committed_creds") int returns_nothing(u64 *ctx) { return 1; }
