// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Types of attachment that came after Linux 6.2. Old libbpf does not know their sections.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("netfilter") int filters(void *ctx) { return 1; }

SEC("tcx/ingress") int tcx(void *ctx) { return 0; }

SEC("netkit/primary") int netkit(void *ctx) { return 0; }

SEC("uprobe.multi") int uprobes(void *ctx) { return 0; }

SEC("kprobe.session/vfs_read") int session(void *ctx) { return 0; }

SEC("uprobe.session") int uprobe_session(void *ctx) { return 0; }

SEC("cgroup/connect_unix") int connects(void *ctx) { return 1; }
