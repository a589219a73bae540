// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Types of maps that programs which may sleep can use since some release, one in each program.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAP(name, kind, n) \
	struct { \
		__uint(type, kind); \
		__uint(max_entries, n); \
		__type(key, u32); \
		__type(value, u64); \
	} name SEC(".maps")
#define LPM_TRIE 11
#define ARRAY_OF_MAPS 12
#define HASH_OF_MAPS 13
#define QUEUE 22
#define STACK 23
#define INODE_STORAGE 28
#define BPF_F_NO_PREALLOC 1

MAP(hash, BPF_MAP_TYPE_HASH, 1);
MAP(lru, BPF_MAP_TYPE_LRU_HASH, 1);
MAP(percpu_hash, BPF_MAP_TYPE_PERCPU_HASH, 1);
MAP(percpu_array, BPF_MAP_TYPE_PERCPU_ARRAY, 1);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, QUEUE);
	__uint(max_entries, 1);
	__uint(key_size, 0);
	__type(value, u64);
} queue SEC(".maps");

struct {
	__uint(type, STACK);
	__uint(max_entries, 1);
	__uint(key_size, 0);
	__type(value, u64);
} stack SEC(".maps");

struct {
	__uint(type, LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u64);
} trie SEC(".maps");

struct {
	__uint(type, ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__type(key, u32);
		__type(value, u64);
	});
} outer SEC(".maps");

struct {
	__uint(type, INODE_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} inodes SEC(".maps");

#define LOOKUP(name, map, type) \
	SEC("lsm.s/bprm_committed_creds") int name(u64 *ctx) \
	{ \
		type key = 0; \
		return bpf_map_lookup_elem(&map, &key) ? 0 : 0; \
	}

LOOKUP(uses_hash, hash, u32)
LOOKUP(uses_lru, lru, u32)
LOOKUP(uses_percpu_hash, percpu_hash, u32)
LOOKUP(uses_percpu_array, percpu_array, u32)
LOOKUP(uses_outer, outer, u32)
LOOKUP(uses_trie, trie, u64)

SEC("lsm.s/bprm_committed_creds") int uses_ring(u64 *ctx)
{
	u64 value = 0;

	bpf_ringbuf_output(&ring, &value, sizeof(value), 0);
	return 0;
}

SEC("lsm.s/bprm_committed_creds") int uses_queue(u64 *ctx)
{
	u64 value = 0;

	bpf_map_push_elem(&queue, &value, 0);
	return 0;
}

SEC("lsm.s/bprm_committed_creds") int uses_stack(u64 *ctx)
{
	u64 value = 0;

	bpf_map_push_elem(&stack, &value, 0);
	return 0;
}

SEC("lsm.s/file_open") int uses_inodes(u64 *ctx)
{
	struct inode *inode = ((struct file *)ctx[0])->f_inode;

	bpf_inode_storage_get(&inodes, inode, 0, 0);
	return 0;
}

/* Memory of a ring buffer as value or key of a map, since Linux 6.2, and as both, of which 6.12 does not take the references. */
#define RING(name, key, value) \
	SEC("raw_tp/sys_enter") int name(void *ctx) \
	{ \
		u64 k = 0, *m = bpf_ringbuf_reserve(&ring, 16, 0); \
		if (!m) \
			return 0; \
		m[0] = m[1] = k; \
		bpf_map_update_elem(&hash, key, value, 0); \
		bpf_ringbuf_discard(m, 0); \
		return 0; \
	}

RING(ring_value, &k, m)
RING(ring_key, m, &k)
RING(ring_both, m, m + 1)
