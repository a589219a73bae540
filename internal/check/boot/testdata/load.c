// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Loads every program of objects with libbpf and prints what the running kernel does: all programs of an object together, so that
// libbpf reads the kernel's BTF once, and if that fails each program alone. For each program it prints a line
//
//	OBJECT \t PROGRAM \t ERRNO \t LIBBPF \t VERIFIER
//
// LIBBPF and VERIFIER are the ends of libbpf's messages and of the verifier's log, with escaped line ends; both are empty if the program
// loads. PROGRAM is "-" if libbpf does not open the object.
//
//	load [--btf FILE] OBJECT...
//
// --btf names the kernel's types for relocations, for kernels without BTF.
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the ends of messages and of the log that are printed. */
#define MESSAGES_END 400
#define LOG_END 1200

static char messages[64 << 10];
static size_t used;

/* Kernels before 6.4 stop when the log is full. This is the largest that they take. */
static char verifier[(1 << 24) - 1];

static const char *btf;

/* Keeps the last messages. One that is too long is cut. */
static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[4096];
	int n;

	if (level == LIBBPF_DEBUG)
		return 0;
	n = vsnprintf(line, sizeof(line), format, args);
	if (n < 0)
		return 0;
	if (n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	if (used + n > sizeof(messages)) {
		used = sizeof(messages) / 2 - n;
		memmove(messages, messages + sizeof(messages) / 2, used);
	}
	memcpy(messages + used, line, n);
	used += n;
	return 0;
}

static void print_end(const char *s, size_t n, size_t end)
{
	if (n > end) {
		s += n - end;
		n = end;
	}
	while (n && s[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\n')
			fputs("\\n", stdout);
		else
			putchar(s[i] < ' ' || s[i] > '~' || s[i] == '\\' ? '?' : s[i]);
	}
}

static void report(const char *path, const char *program, int err)
{
	printf("%s\t%s\t%d\t", path, program, err);
	if (err)
		print_end(messages, used, MESSAGES_END);
	putchar('\t');
	if (err)
		print_end(verifier, strlen(verifier), LOG_END);
	putchar('\n');
	fflush(stdout);
}

/* Local storage has as many entries as what it belongs to; libbpf sets the first. */
static int has_entries(enum bpf_map_type type)
{
	switch ((int)type) {
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

static struct bpf_object *open_object(const char *path)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf);

	used = 0;
	verifier[0] = 0;
	return bpf_object__open_file(path, &opts);
}

static int load_all(const char *path)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	int err;

	obj = open_object(path);
	if (!obj)
		return 0;
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, true);
	prepare(obj);
	err = bpf_object__load(obj);
	if (!err) {
		bpf_object__for_each_program(prog, obj)
			report(path, bpf_program__name(prog), 0);
	}
	bpf_object__close(obj);
	return !err;
}

/* Loads one program of an object alone. Returns 0 if it has no such program. */
static int load(const char *path, int which)
{
	struct bpf_program *prog, *chosen = NULL;
	struct bpf_object *obj;
	int i = 0, err;

	obj = open_object(path);
	if (!obj) {
		report(path, "-", errno);
		return 0;
	}
	bpf_object__for_each_program(prog, obj) {
		bpf_program__set_autoload(prog, i == which);
		if (i++ == which)
			chosen = prog;
	}
	prepare(obj);
	if (chosen) {
		/* At level 0, libbpf asks for a log only after a failure. */
		bpf_program__set_log_buf(chosen, verifier, sizeof(verifier));
		bpf_program__set_log_level(chosen, 0);
		err = bpf_object__load(obj);
		report(path, bpf_program__name(chosen), -err);
	}
	bpf_object__close(obj);
	return chosen != NULL;
}

int main(int argc, char **argv)
{
	int first = 1;

	if (argc > 2 && !strcmp(argv[1], "--btf")) {
		btf = argv[2];
		first = 3;
	}
	if (first >= argc) {
		fprintf(stderr, "usage: %s [--btf FILE] OBJECT...\n", argv[0]);
		return 2;
	}
	libbpf_set_print(print);
	for (int i = first; i < argc; i++) {
		if (load_all(argv[i]))
			continue;
		for (int n = 0; load(argv[i], n); n++)
			;
	}
	return 0;
}
