// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The tracer of ../go-tracer in C. It prints every program that is executed. It also runs on kernels without BTF,
// because it embeds their minimized BTF.
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <btfa.h>
#include "exec.skel.h"

// ARCHIVE is a file, from the Makefile.
__asm__(".section .rodata\n"
	"archive: .incbin \"" ARCHIVE "\"\n"
	"archive_end:\n"
	".previous\n");
extern const unsigned char archive[], archive_end[];

struct event {
	unsigned int pid, ppid;
	char comm[16];
};

static int seen;
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static int on_event(void *context, void *data, size_t size)
{
	struct event *e = data;

	(void)context;
	if (size < sizeof(*e))
		return 0;
	printf("%u %u %.16s\n", e->pid, e->ppid, e->comm);
	fflush(stdout);
	seen++;
	return 0;
}

// load opens and loads the programs, with the types that find allows. The archive must be for the programs.
static struct exec_bpf *load(struct btfa_find_options *find)
{
	struct btfa *a;
	struct btfa_error error;
	struct btfa_found found;
	struct exec_bpf *skel = NULL;
	LIBBPF_OPTS(bpf_object_open_opts, opts);

	find->object = exec_bpf__elf_bytes(&find->object_size);
	if (btfa_open_mem(&a, archive, archive_end - archive, NULL, &error) ||
	    btfa_find(a, find, &opts.btf_custom_path, &found, &error)) {
		fprintf(stderr, "c-tracer: %s\n", error.text);
		btfa_close(a);
		return NULL;
	}
	if (found.source == BTFA_FROM_ARCHIVE)
		fprintf(stderr, "types from: archive %s/%s/%s/%s (%s)\n", found.match.key.id, found.match.key.version_id,
			found.match.key.arch, found.match.key.release, found.match.reason);
	else
		fprintf(stderr, "types from: %s\n", found.source == BTFA_FROM_KERNEL ? "kernel" : find->file);
	skel = exec_bpf__open_opts(&opts);
	if (skel && exec_bpf__load(skel)) {
		exec_bpf__destroy(skel);
		skel = NULL;
	}
	btfa_release(&found);
	btfa_close(a);
	return skel;
}

static int trace(struct exec_bpf *skel, int count)
{
	struct ring_buffer *ring = ring_buffer__new(bpf_map__fd(skel->maps.events), on_event, NULL, NULL);
	struct sigaction action = { .sa_handler = stop };
	int err = -1;

	if (ring && !exec_bpf__attach(skel)) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		fprintf(stderr, "ready\n");
		do
			err = ring_buffer__poll(ring, 1000);
		while (err >= 0 && !stopped && (!count || seen < count));
	}
	ring_buffer__free(ring);
	return err < 0 && !stopped;
}

int main(int argc, char **argv)
{
	struct btfa_find_options find = { 0 };
	const struct option options[] = {
		{ "btf", required_argument, NULL, 'b' },
		{ "root", required_argument, NULL, 'r' },
		{ "os-release", required_argument, NULL, 'o' },
		{ "ignore-kernel-btf", no_argument, &find.ignore_kernel, 1 },
		{ "count", required_argument, NULL, 'c' },
		{ 0 },
	};
	int c, count = 0, failed;
	struct exec_bpf *skel;

	while ((c = getopt_long_only(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'b':
			find.file = optarg;
			break;
		case 'r':
			find.host.root = optarg;
			break;
		case 'o':
			find.host.os_release = optarg;
			break;
		case 'c':
			count = atoi(optarg);
			break;
		case '?':
			fprintf(stderr, "usage: %s [-btf FILE] [-root DIR] [-os-release FILE] [-ignore-kernel-btf] [-count N]\n", argv[0]);
			return 2;
		}
	}
	skel = load(&find);
	if (!skel)
		return 1;
	failed = trace(skel, count);
	exec_bpf__destroy(skel);
	return failed;
}
