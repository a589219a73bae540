/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions about archives, for the tests that compare this reader with the one in Go. Questions come
 * on standard input and answers go to standard output, both without end. All is made of numbers, 4 bytes in
 * little-endian order, and strings, a number of bytes and the bytes. The first number of a question says
 * which one it is:
 *
 *	0  open STRING: a status, an error, the most memory that it took and, if it was opened: what it has kept,
 *	   in bytes; the number of kernels, and for each its key and the status and BTF; the most memory
 *	   that there was when they were made
 *	1  look KEY up in the archive opened last, with NUMBER distributions like its own, for each ID and version, and
 *	   NUMBER neighbours: rule, want, key, below, above, whether
 *	   these have one BTF, reason
 *	2  the host, with root, os_release, release and arch as STRINGs: a status, an error, a key, and the
 *	   distributions like its own as in 1
 *	3  find, with file, root, release, arch and object as STRINGs, and neighbours and whether to look for an installed
 *	   vmlinux as NUMBERs, without the kernel's own BTF: a status, an error, the source, the rule, and what is in the file at the path
 *	4  the canonical spelling of KEY
 *	5  whether allocations fail well: opens STRING and takes the BTF of all kernels as often as there are
 *	   allocations, each time without one more: how often, and a complaint or an empty string
 *	6  whether the archive opened last covers the object STRING on the arch STRING: a status and an error
 */
#include "../btfa.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An allocator that counts, and fails when it is to. */
struct meter {
	size_t now, most;
	long calls, fail_at; /* -1 never */
};

/* Every block begins with its size. */
union block {
	size_t size;
	long double align;
};

static void *metered(void *context, void *old, size_t size)
{
	struct meter *m = context;
	union block *b = old;

	if (!size) {
		m->now -= b[-1].size;
		free(b - 1);
		return NULL;
	}
	if (m->calls++ == m->fail_at)
		return NULL;
	if (old)
		m->now -= b[-1].size;
	b = realloc(old ? b - 1 : NULL, sizeof(*b) + size);
	if (!b)
		abort();
	if (!old)
		memset(b + 1, 0xa5, size);
	b->size = size;
	m->now += size;
	if (m->now > m->most)
		m->most = m->now;
	return b + 1;
}

static void get(void *p, size_t n)
{
	if (fread(p, 1, n, stdin) != n)
		exit(feof(stdin) ? 0 : 1);
}

static uint32_t get_number(void)
{
	uint8_t b[4];

	get(b, 4);
	return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Returns a string with a NUL behind it, in memory that has not a byte more: reading beyond it shows. */
static char *get_string(uint32_t *size)
{
	uint32_t n = get_number();
	char *s = malloc((size_t)n + 1);

	get(s, n);
	s[n] = 0;
	if (size)
		*size = n;
	return s;
}

static void get_key(struct btfa_key *k)
{
	char *parts[4] = { k->id, k->version_id, k->arch, k->release };
	int i;

	for (i = 0; i < 4; i++) {
		char *s = get_string(NULL);

		snprintf(parts[i], 256, "%s", s);
		free(s);
	}
}

static void put_number(uint32_t v)
{
	uint8_t b[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };

	fwrite(b, 1, 4, stdout);
}

static void put_bytes(const void *p, size_t n)
{
	put_number((uint32_t)n);
	fwrite(p, 1, n, stdout);
}

static void put_string(const char *s)
{
	put_bytes(s, strlen(s));
}

static void put_key(const struct btfa_key *k)
{
	put_string(k->id);
	put_string(k->version_id);
	put_string(k->arch);
	put_string(k->release);
}

static void put_btf(const struct btfa *a, const struct btfa_key *k, struct btfa_error *e)
{
	long n = btfa_btf(a, k, NULL, 0, e);
	char *btf;

	put_number((uint32_t)(n < 0 ? n : 0));
	if (n < 0) {
		put_string(e->text);
		return;
	}
	btf = malloc((size_t)n);
	if (btfa_btf(a, k, btf, (size_t)n, e) != n)
		abort();
	put_bytes(btf, (size_t)n);
	free(btf);
}

static struct btfa *opened;
static struct meter meter = { 0, 0, 0, -1 };
static const struct btfa_allocator allocator = { metered, &meter };

static void answer_open(void)
{
	struct btfa_error e = { "" };
	uint32_t size;
	char *s = get_string(&size), *data;
	size_t i;
	int status;

	btfa_close(opened);
	if (meter.now)
		abort();
	meter.most = 0;
	data = malloc(size); /* an exact copy, gone before anything is asked */
	memcpy(data, s, size);
	free(s);
	status = btfa_open_mem(&opened, data, size, &allocator, &e);
	free(data);
	put_number((uint32_t)status);
	put_string(e.text);
	put_number((uint32_t)meter.most);
	if (status) {
		if (opened || meter.now || !*e.text)
			abort();
		return;
	}
	put_number((uint32_t)meter.now);
	meter.most = meter.now;
	put_number((uint32_t)btfa_kernels(opened));
	for (i = 0; i < btfa_kernels(opened); i++) {
		struct btfa_key k;
		size_t before = meter.now;

		btfa_kernel(opened, i, &k);
		put_key(&k);
		put_btf(opened, &k, &e);
		if (meter.now != before)
			abort();
	}
	put_number((uint32_t)meter.most);
}

static void answer_lookup(void)
{
	struct btfa_system want;
	struct btfa_match m;
	uint32_t neighbours, i, n;

	memset(&want, 0, sizeof(want));
	get_key(&want.key);
	n = get_number();
	for (i = 0; i < n; i++) {
		char *id = get_string(NULL), *version = get_string(NULL);

		snprintf(want.like[i].id, 256, "%s", id);
		snprintf(want.like[i].version_id, 256, "%s", version);
		free(id);
		free(version);
	}
	neighbours = get_number();
	if (btfa_lookup(opened, &want, neighbours, &m) != m.rule)
		abort();
	put_number(m.rule);
	put_key(&m.want);
	put_key(&m.key);
	put_key(&m.below);
	put_key(&m.above);
	put_number((uint32_t)m.same_btf);
	put_string(m.reason);
}

static void answer_host(void)
{
	struct btfa_host_options o;
	struct btfa_error e = { "" };
	struct btfa_system k;
	uint32_t n = 0, i;
	char *root = get_string(NULL), *file = get_string(NULL), *release = get_string(NULL), *arch = get_string(NULL);

	memset(&o, 0, sizeof(o));
	o.root = root;
	o.os_release = file;
	o.release = release;
	o.arch = arch;
	put_number((uint32_t)btfa_host(&k, &o, &e));
	put_string(e.text);
	put_key(&k.key);
	while (n < 8 && *k.like[n].id)
		n++;
	put_number(n);
	for (i = 0; i < n; i++) {
		put_string(k.like[i].id);
		put_string(k.like[i].version_id);
	}
	free(root);
	free(file);
	free(release);
	free(arch);
}

static void answer_find(void)
{
	struct btfa_find_options o;
	struct btfa_found found;
	struct btfa_error e = { "" };
	const char *path;
	uint32_t object_size;
	char *file = get_string(NULL), *root = get_string(NULL), *release = get_string(NULL), *arch = get_string(NULL);
	char *object = get_string(&object_size);
	static char btf[1 << 20];
	size_t n = 0;
	FILE *f;

	memset(&o, 0, sizeof(o));
	o.file = file;
	o.ignore_kernel = 1;
	o.host.release = release;
	o.host.arch = arch;
	o.host.root = root;
	o.neighbours = get_number();
	o.installed = (int)get_number();
	o.object = object_size ? object : NULL;
	o.object_size = object_size;
	put_number((uint32_t)btfa_find(opened, &o, &path, &found, &e));
	put_string(e.text);
	put_number(found.source);
	put_number(found.match.rule);
	f = path ? fopen(path, "rb") : NULL;
	if (f) {
		n = fread(btf, 1, sizeof(btf), f);
		fclose(f);
	}
	put_bytes(btf, n);
	btfa_release(&found);
	btfa_release(&found);
	if (found.source == BTFA_FROM_ARCHIVE && (f = fopen(path, "rb")))
		abort();
	free(file);
	free(root);
	free(release);
	free(arch);
	free(object);
}

static void answer_failures(void)
{
	uint32_t size;
	char *s = get_string(&size);
	const char *complaint = "";
	struct meter m = { 0, 0, 0, 0 };
	struct btfa_allocator failing = { metered, &m };
	int done = 0;

	for (; !done && !*complaint; m.fail_at++) {
		struct btfa *a;
		struct btfa_error e = { "" };
		long status;
		size_t i;

		m.calls = 0;
		status = btfa_open_mem(&a, s, size, &failing, &e);
		for (i = 0; status >= 0 && i < btfa_kernels(a); i++) {
			struct btfa_key k;

			btfa_kernel(a, i, &k);
			status = btfa_btf(a, &k, NULL, 0, &e);
		}
		if (status < 0 && status != BTFA_NO_MEMORY)
			complaint = "another error than out of memory";
		else if (status < 0 && strcmp(e.text, "out of memory"))
			complaint = "another text than out of memory";
		btfa_close(a);
		if (m.now)
			complaint = "memory is lost";
		done = m.calls <= m.fail_at; /* what did not fail may be memory that was to shrink */
	}
	put_number((uint32_t)m.fail_at);
	put_string(complaint);
	free(s);
}

static void answer_covers(void)
{
	struct btfa_error e = { "" };
	uint32_t size;
	char *s = get_string(&size), *arch = get_string(NULL), *object = malloc(size ? size : 1);
	size_t before = meter.now;
	int status;

	memcpy(object, s, size); /* which has not a byte more: reading beyond it shows */
	do { /* without memory for each allocation in turn */
		meter.calls = 0;
		meter.fail_at++;
		status = btfa_covers(opened, object, size, arch, &e);
		if (meter.now != before)
			abort();
	} while (status == BTFA_NO_MEMORY && meter.fail_at < meter.calls);
	meter.fail_at = -1;
	put_number((uint32_t)status);
	put_string(e.text);
	free(object);
	free(arch);
	free(s);
}

int main(void)
{
	for (;;) {
		struct btfa_key k;

		switch (get_number()) {
		case 0:
			answer_open();
			break;
		case 1:
			answer_lookup();
			break;
		case 2:
			answer_host();
			break;
		case 3:
			answer_find();
			break;
		case 4:
			get_key(&k);
			btfa_canonical(&k);
			put_key(&k);
			break;
		case 5:
			answer_failures();
			break;
		case 6:
			answer_covers();
			break;
		default:
			return 1;
		}
		fflush(stdout);
	}
}
