// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The tracer of ../go-tracer with libbpf: tells of every program that is executed, on kernels without BTF
// as well.
//
//   tracer OBJECT BTF [COUNT]
//
// BTF is what `btfgen archive extract` or `lookup -o` wrote for this kernel; or a min_core_btfs.tar.gz
// (`btfgen archive convert --layout bcc`), in which the kernel's is looked up; or "" for the kernel's own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>
#include <bpf/libbpf.h>

struct event {
	unsigned int pid, ppid;
	char comm[16];
};

static int seen;

static int on_event(void *ctx, void *data, size_t size)
{
	struct event *e = data;

	(void)ctx;
	if (size < sizeof(*e))
		return 0;
	printf("%u %u %.16s\n", e->pid, e->ppid, e->comm);
	fflush(stdout);
	seen++;
	return 0;
}

// os_release finds the value of a variable, without its quotes.
static void os_release(const char *name, char *value, size_t size)
{
	char line[512];
	size_t n = strlen(name);
	FILE *f = fopen("/etc/os-release", "r");

	value[0] = 0;
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, n) || line[n] != '=')
			continue;
		char *v = line + n + 1;
		v[strcspn(v, "\r\n")] = 0;
		if (*v == '"' || *v == '\'') {
			char quote[] = { *v++, 0 };
			v[strcspn(v, quote)] = 0;
		}
		snprintf(value, size, "%s", v);
	}
	fclose(f);
}

// unpack copies this kernel's BTF out of a min_core_btfs.tar.gz into a file,
// whose name it puts into path.
static int unpack(const char *archive, char *path)
{
	char want[100], id[65], version[65], header[512], block[512];
	struct utsname u;
	int err = -1;

	uname(&u);
	os_release("ID", id, sizeof(id));
	os_release("VERSION_ID", version, sizeof(version));
	if (snprintf(want, sizeof(want), "./%s/%s/%s/%s.btf", id, version, u.machine, u.release) >= (int)sizeof(want))
		return -1;
	gzFile in = gzopen(archive, "rb");
	if (!in)
		return -1;
	while (err && gzread(in, header, sizeof(header)) == sizeof(header) && header[0]) {
		header[135] = 0;
		long size = strtol(header + 124, NULL, 8);
		int match = !strncmp(header, want, sizeof(want));
		FILE *out = NULL;
		if (match) {
			int fd = mkstemp(path);
			out = fd < 0 ? NULL : fdopen(fd, "wb");
			if (!out)
				break;
		}
		for (; size > 0; size -= sizeof(block)) {
			if (gzread(in, block, sizeof(block)) != sizeof(block))
				break;
			if (out)
				fwrite(block, 1, size < (long)sizeof(block) ? size : (long)sizeof(block), out);
		}
		if (out)
			err = fclose(out) || size > 0 ? -1 : 0;
	}
	gzclose(in);
	if (err)
		fprintf(stderr, "%s: no %s\n", archive, want);
	return err;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/tracer.XXXXXX";
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	int count = argc > 3 ? atoi(argv[3]) : 0, err = 1;

	if (argc < 3) {
		fprintf(stderr, "usage: %s OBJECT BTF [COUNT]\n", argv[0]);
		return 2;
	}
	size_t n = strlen(argv[2]);
	int packed = n > 7 && !strcmp(argv[2] + n - 7, ".tar.gz");
	if (packed && unpack(argv[2], path))
		return 1;
	if (n)
		opts.btf_custom_path = packed ? path : argv[2];

	struct bpf_object *obj = bpf_object__open_file(argv[1], &opts);
	struct ring_buffer *ring = NULL;
	struct bpf_link *link = NULL;
	int failed = !obj || bpf_object__load(obj);
	if (packed)
		unlink(path); // not at the end, which an interrupt forestalls
	if (failed)
		goto out;
	link = bpf_program__attach(bpf_object__find_program_by_name(obj, "handle_exec"));
	ring = ring_buffer__new(bpf_object__find_map_fd_by_name(obj, "events"), on_event, NULL, NULL);
	if (!link || !ring)
		goto out;
	fprintf(stderr, "ready\n");
	while ((err = ring_buffer__poll(ring, 1000)) >= 0 && (!count || seen < count))
		;
	err = err < 0;
out:
	ring_buffer__free(ring);
	bpf_link__destroy(link);
	bpf_object__close(obj);
	return err;
}
