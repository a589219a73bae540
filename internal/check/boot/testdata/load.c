// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Loads every program of the objects given and says what the running kernel
// makes of it: all of an object together, which spares libbpf reading the
// kernel's BTF for each, and where that fails one at a time. Per program it prints a line "PROGRAM ERRNO
// BYTES", then so many bytes of the verifier's log and of libbpf's messages.
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char messages[1 << 20];
static size_t used;

static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	int n;

	if (level == LIBBPF_DEBUG || used >= sizeof(messages))
		return 0;
	n = vsnprintf(messages + used, sizeof(messages) - used, format, args);
	used += n > 0 ? n : 0;
	if (used > sizeof(messages))
		used = sizeof(messages);
	return 0;
}

/* Local storage has as many entries as what it belongs to; of the first, libbpf knows. */
static int has_entries(enum bpf_map_type type)
{
	switch (type) {
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
	case BPF_MAP_TYPE_SK_STORAGE:
	case BPF_MAP_TYPE_INODE_STORAGE:
	case BPF_MAP_TYPE_TASK_STORAGE:
	case BPF_MAP_TYPE_CGROUP_STORAGE:
	case BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE:
	case 32: /* BPF_MAP_TYPE_CGRP_STORAGE, which older headers do not have */
		return 0;
	default:
		return 1;
	}
}

/* Sizes that the tools themselves set before they load. */
static void prepare(struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj) {
		if (!bpf_map__max_entries(map) && has_entries(bpf_map__type(map)))
			bpf_map__set_max_entries(map, bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF ? 4096 : 1);
		if (!bpf_map__value_size(map) && bpf_map__key_size(map))
			bpf_map__set_value_size(map, 8);
	}
}

static int load_all(const char *path)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	int err;

	obj = bpf_object__open(path);
	if (!obj)
		return 0;
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, true);
	prepare(obj);
	err = bpf_object__load(obj);
	if (!err) {
		bpf_object__for_each_program(prog, obj)
			printf("%s 0 0\n", bpf_program__name(prog));
		fflush(stdout);
	}
	bpf_object__close(obj);
	return !err;
}

static int load(const char *path, int which)
{
	static char log[1 << 20];
	struct bpf_program *prog, *chosen = NULL;
	struct bpf_object *obj;
	int i = 0, err;

	used = 0;
	obj = bpf_object__open(path);
	if (!obj) {
		printf("- %d %zu\n", errno, used);
		fwrite(messages, 1, used, stdout);
		return 0;
	}
	bpf_object__for_each_program(prog, obj) {
		bpf_program__set_autoload(prog, i == which);
		if (i++ == which)
			chosen = prog;
	}
	prepare(obj);
	if (chosen) {
		log[0] = 0;
		bpf_program__set_log_buf(chosen, log, sizeof(log));
		bpf_program__set_log_level(chosen, 1);
		err = bpf_object__load(obj);
		printf("%s %d %zu\n", bpf_program__name(chosen), -err, used + strlen(log));
		fwrite(messages, 1, used, stdout);
		fwrite(log, 1, strlen(log), stdout);
		fflush(stdout);
	}
	bpf_object__close(obj);
	return chosen != NULL;
}

int main(int argc, char **argv)
{
	libbpf_set_print(print);
	for (int i = 1; i < argc; i++) {
		if (load_all(argv[i]))
			continue;
		for (int n = 0; load(argv[i], n); n++)
			;
	}
	return 0;
}
