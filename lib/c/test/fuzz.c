/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target for libFuzzer. The first byte of an input says what the others are: 0 a file, 1 the payload of one,
 * which no checksum keeps changes out of, 2 an os-release file, 3 a BPF object. Whatever is opened gives all its BTF,
 * finds each of its kernels, and lists the objects that it was made for.
 */
#include "../btfa.c"

/* The sum of all BTF, which makes sure that it is read. */
static volatile unsigned sum;

static void take_all(const struct btfa *a)
{
	struct btfa_error e;
	size_t i;

	if (btfa_covers(a, "", 0, "x86_64", &e) != BTFA_NOT_COVERED)
		abort();
	for (i = 0; i < btfa_kernels(a); i++) {
		static struct btfa_system host;
		struct btfa_key k;
		struct btfa_match m;
		long n, j;
		uint8_t *btf;

		btfa_kernel(a, i, &host.key);
		if (btfa_lookup(a, &host, 0, &m) != BTFA_EXACT)
			abort();
		host.key.release[0]++;
		btfa_lookup(a, &host, 1 + (unsigned)i % 3, &m);
		n = btfa_btf(a, &m.want, NULL, 0, NULL);
		if (m.rule == BTFA_EXACT && n == BTFA_NO_KERNEL)
			abort();
		btfa_kernel(a, i, &k);
		n = btfa_btf(a, &k, NULL, 0, NULL);
		btf = malloc(n > 0 ? (size_t)n : 1);
		if (n > 0 && btfa_btf(a, &k, btf, (size_t)n, NULL) != n)
			abort();
		for (j = 0; j < n; j++)
			sum += btf[j];
		free(btf);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct btfa *a = NULL;
	struct btfa_error e;
	static struct btfa_system k;

	if (!size)
		return 0;
	switch (*data) {
	case 0:
		btfa_open_mem(&a, data + 1, size - 1, NULL, &e);
		break;
	case 1:
		a = calloc(1, sizeof(*a));
		a->memory = allocator_or_malloc(NULL);
		if (read_streams(a, data + 1, size - 1, &e)) {
			btfa_close(a);
			a = NULL;
		}
		break;
	case 2:
		memset(&k, 0, sizeof(k));
		parse_os_release((const char *)data + 1, size - 1, &k, &e);
		break;
	case 3:
		a = calloc(1, sizeof(*a));
		a->memory = allocator_or_malloc(NULL);
		btfa_covers(a, data + 1, size - 1, "x86_64", &e);
		break;
	}
	if (a)
		take_all(a);
	btfa_close(a);
	return 0;
}
