// SPDX-License-Identifier: Apache-2.0

/*
 * load BTF OBJECT...: has libbpf load every program of some BPF objects,
 * each alone, with BTF in place of the running kernel's own, and prints what
 * came of it:
 *
 *	object PATH
 *	program NAME SECTION
 *	error N			negative errno of the load, 0 if it loaded
 *	warning TEXT		libbpf's first, if it did not load
 *	log TEXT		the verifier's line that says why, if it was asked
 *	relocated HEX		instructions as they were given to the kernel
 *	xlated HEX		instructions as the kernel has them, if it loaded
 *
 * load --whole OBJECT...: loads all programs of each object that libbpf loads
 * unless it is told otherwise, and prints "N PATH", N as above.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char verifier[16 << 20];

static char warning[4096];

static int print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN && !warning[0]) {
		vsnprintf(warning, sizeof(warning), fmt, args);
		warning[strcspn(warning, "\n")] = 0;
	}
	return 0;
}

static void hex(const char *what, const void *data, size_t size)
{
	const unsigned char *p = data;

	printf("%s ", what);
	for (size_t i = 0; i < size; i++)
		printf("%02x", p[i]);
	putchar('\n');
}

/* The last line of the log but for the statistics. */
static void reason(char *log)
{
	char *last = NULL, *save;

	for (char *l = strtok_r(log, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (strncmp(l, "processed ", 10))
			last = l;
	if (last)
		printf("log %s\n", last);
}

/* What a tool sets at run time, or nothing loads; and nothing is pinned. */
static void complete(struct bpf_map *m)
{
	bpf_map__set_pin_path(m, NULL);
	if (bpf_map__max_entries(m))
		return;
	switch (bpf_map__type(m)) {
	case BPF_MAP_TYPE_RINGBUF:
		bpf_map__set_max_entries(m, 1 << 16);
		break;
	case BPF_MAP_TYPE_STACK_TRACE:
		bpf_map__set_max_entries(m, 64);
		if (!bpf_map__value_size(m))
			bpf_map__set_value_size(m, 127 * 8);
		break;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_PERCPU_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
	case BPF_MAP_TYPE_DEVMAP:
	case BPF_MAP_TYPE_DEVMAP_HASH:
	case BPF_MAP_TYPE_CPUMAP:
		bpf_map__set_max_entries(m, 64);
		break;
	default:
		break;
	}
}

static void xlated(int fd)
{
	static unsigned char insns[8 << 20];
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	info.xlated_prog_len = sizeof(insns);
	info.xlated_prog_insns = (unsigned long)insns;
	if (bpf_obj_get_info_by_fd(fd, &info, &len)) {
		printf("info failed: %s\n", strerror(errno));
		return;
	}
	hex("xlated", insns, info.xlated_prog_len);
}

/* Loads the program of the given number and reports whether there is one. */
static int load(const char *path, const char *btf, int number)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf);
	struct bpf_object *obj = bpf_object__open_file(path, &opts);
	struct bpf_program *p, *it;
	struct bpf_map *m;
	int err, i = 0;

	if (!obj) {
		printf("open failed: %s\n", strerror(errno));
		return 0;
	}
	p = NULL;
	bpf_object__for_each_program(it, obj) {
		bpf_program__set_autoload(it, i == number);
		if (i++ == number)
			p = it;
	}
	if (!p) {
		bpf_object__close(obj);
		return 0;
	}
	bpf_object__for_each_map(m, obj)
		complete(m);
	verifier[0] = warning[0] = 0;
	bpf_program__set_log_buf(p, verifier, sizeof(verifier));
	bpf_program__set_log_level(p, 1);
	err = bpf_object__load(obj);
	printf("program %s %s\nerror %d\n", bpf_program__name(p), bpf_program__section_name(p), err);
	if (err) {
		printf("warning %s\n", warning);
		reason(verifier);
	}
	hex("relocated", bpf_program__insns(p), bpf_program__insn_cnt(p) * sizeof(struct bpf_insn));
	if (!err)
		xlated(bpf_program__fd(p));
	bpf_object__close(obj);
	return 1;
}

static int whole(const char *path)
{
	struct bpf_object *obj = bpf_object__open(path);
	struct bpf_map *m;
	int err;

	if (!obj)
		return -errno;
	bpf_object__for_each_map(m, obj)
		complete(m);
	err = bpf_object__load(obj);
	bpf_object__close(obj);
	return err;
}

int main(int argc, char **argv)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	if (argc < 3) {
		fprintf(stderr, "usage: load BTF|--whole OBJECT...\n");
		return 2;
	}
	setrlimit(RLIMIT_MEMLOCK, &all);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(print);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[1], "--whole")) {
			printf("%d %s\n", whole(argv[i]), argv[i]);
			continue;
		}
		printf("object %s\n", argv[i]);
		for (int number = 0; load(argv[i], argv[1], number); number++)
			;
	}
	return 0;
}
