/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of .btfa archives. docs/archive-format.md specifies the format, in whose words this file is
 * written; pkg/archive is the reader in Go, and both give the same answers and the same bytes. In this order:
 *
 *	memory, text		what all else uses
 *	frame, streams		from the bytes of a file to numbers and text
 *	pool, layouts, kernels	reading them, and every check; then the archive never changes
 *	keys, lookup		which kernel serves a host
 *	types, merge, write	from a layout to BTF
 *	host			which kernel is running
 *	covers			whether the archive was made for an object
 *	find			the types for a host
 */
#ifdef __cplusplus
#error "btfa.c is C99: compile it with a C compiler"
#else
#undef _GNU_SOURCE /* whose strerror_r is not that of POSIX */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* syscall */

#include "btfa.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ZSTD_createDCtx_advanced is what lets zstd take its memory from our allocator. */
#ifdef BTFA_ZSTDDECLIB /* the name of zstd's single-file decoder */
#include BTFA_ZSTDDECLIB
#else
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "btfa_dictionary.h"

/* The limits of a file, and of one layout. */
#define MAX_PAYLOAD (8u << 20) /* bytes */
#define MAX_FILE (MAX_PAYLOAD + (1u << 16))
#define MAX_STREAMS 64
#define MAX_KERNELS (1u << 18)
#define MAX_KEY_BYTES (16u << 20)
#define MAX_OBJECTS (1u << 16)
#define MAX_MACHINES 64
#define MAX_TYPES (1u << 16)
#define MAX_CONTENT (8u << 20)
#define MAX_FIELDS 65535
#define MAX_ITEMS (1u << 20)

#define PART 256 /* bytes of a part of a key, with its NUL */
#define KEY_TEXT (4 * PART)
#define NONE UINT32_MAX

enum { ID, VERSION_ID, ARCH, RELEASE };

/* The kinds of BTF that an archive may hold. */
enum {
	KIND_INT = 1, KIND_PTR = 2, KIND_ARRAY = 3, KIND_STRUCT = 4, KIND_UNION = 5, KIND_ENUM = 6, KIND_FWD = 7,
	KIND_TYPEDEF = 8, KIND_VOLATILE = 9, KIND_CONST = 10, KIND_RESTRICT = 11, KIND_FUNC = 12, KIND_FUNC_PROTO = 13,
	KIND_VAR = 14, KIND_FLOAT = 16, KIND_TYPE_TAG = 18, KIND_ENUM64 = 19
};

/* A type without numbers. Only the first node of a shape has a name, which is that of the slot. */
struct node {
	uint8_t kind;
	unsigned flag : 1; /* kind_flag */
	unsigned last : 1; /* of its shape */
	uint16_t count;    /* of fields that have names */
	uint32_t fields, refs; /* where they start */
};

/* The nodes and numbers of a definition: where each start. */
struct variant {
	uint32_t nodes, numbers;
};

/* A layout, as changes to its parent, up to the changes of the next layout. */
struct layout {
	uint32_t parent; /* or NONE */
	uint32_t changes;
	uint8_t big_endian;
};

struct change {
	uint32_t slot;
	uint32_t variant; /* of the slot, from 1; 0 for none */
};

struct kernel {
	uint32_t key; /* where its four parts start in keys, each with a NUL */
	uint32_t layout;
};

/* What the archive was made for: its groups of objects, and the hashes and fingerprints of the objects. */
struct made {
	uint8_t *data; /* the streams that the others are in */
	const uint8_t *groups, *sums, *fingerprints;
	uint32_t n_groups, n_objects, sum_size, fingerprint_size;
};

struct btfa {
	struct btfa_allocator memory;
	struct made made;
	/* The pool. The code that reads fields, refs and numbers describes them. */
	char *text; /* the stream of names */
	uint32_t *names, *slots, *fields, *refs, *numbers;
	struct variant *variants;
	struct node *nodes;
	uint32_t n_names, n_slots, n_fields, n_refs, n_numbers, n_variants, n_nodes;
	uint32_t max_numbers; /* that fit */
	uint32_t known;       /* names of fields that a shape has used */

	struct layout *layouts;
	struct change *changes;
	uint32_t n_layouts, n_changes;

	struct kernel *kernels; /* in the order of the archive */
	uint32_t *order;        /* of keys, as numbers of kernels */
	char *keys;
	uint32_t n_kernels, n_keys, max_keys;
};

/* -- memory, text -- */

static void *from_malloc(void *context, void *old, size_t size)
{
	(void)context;
	if (size)
		return realloc(old, size);
	free(old);
	return NULL;
}

static struct btfa_allocator allocator_or_malloc(const struct btfa_allocator *m)
{
	struct btfa_allocator usual = { from_malloc, NULL };

	return m ? *m : usual;
}

/* Resizes the memory at p to n elements. On failure p does not change. */
static void *resize(const struct btfa_allocator *m, void *p, size_t n, size_t size)
{
	if (n > SIZE_MAX / size)
		return NULL;
	return m->resize(m->context, p, n ? n * size : 1);
}

static void give_back(const struct btfa_allocator *m, void *p)
{
	if (p)
		m->resize(m->context, p, 0);
}

static void *zstd_alloc(void *memory, size_t size)
{
	return resize(memory, NULL, size, 1);
}

static void zstd_free(void *memory, void *p)
{
	give_back(memory, p);
}

/* The characters that messages escape: controls, those that hide or reorder text, and spaces other than ' '. The table
 * in internal/btfa is the same. */
static const uint32_t unprintable[][2] = {
	{ 0, 0x1f }, { 0x7f, 0xa0 }, { 0xad, 0xad }, { 0x600, 0x605 }, { 0x61c, 0x61c }, { 0x6dd, 0x6dd }, { 0x70f, 0x70f },
	{ 0x890, 0x891 }, { 0x8e2, 0x8e2 }, { 0x1680, 0x1680 }, { 0x180e, 0x180e }, { 0x2000, 0x200f }, { 0x2028, 0x202f },
	{ 0x205f, 0x2064 }, { 0x2066, 0x206f }, { 0x3000, 0x3000 }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
	{ 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0001, 0xe0001 }, { 0xe0020, 0xe007f }
};

/* Decodes the UTF-8 character at s, and returns its bytes, or 0 if they are none. */
static unsigned decode(const char *s, uint32_t *character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint8_t b = (uint8_t)*s;
	unsigned n = b < 0x80 ? 1 : b < 0xc0 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0, i;
	uint32_t c = n < 2 ? b : b & (0x7fu >> n);

	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) /* also a NUL */
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	*character = c;
	return c < least[n] || c > 0x10ffff || (c >> 11 == 0x1b) ? 0 : n;
}

static int is_printable(uint32_t c)
{
	size_t i;

	for (i = 0; i < sizeof(unprintable) / sizeof(*unprintable); i++)
		if (unprintable[i][0] <= c && c <= unprintable[i][1])
			return 0;
	return 1;
}

/* Appends text to the text s, which has room for size bytes, as one line: with the escapes of Go for characters that are
 * not printable and for bytes that are not UTF-8. If the room is too small, the text ends with a whole character. */
static void append_printable(char *s, size_t size, const char *text)
{
	size_t at = strlen(s), n;
	unsigned bytes;
	uint32_t c;

	for (; *text; text += bytes ? bytes : 1, at += n) {
		char escaped[12];
		const char *out = escaped;

		bytes = decode(text, &c);
		if (bytes && is_printable(c)) {
			out = text;
			n = bytes;
		} else if (bytes && '\a' <= c && c <= '\r') {
			n = (size_t)sprintf(escaped, "\\%c", "abtnvfr"[c - '\a']);
		} else if (!bytes || c < 0x80) {
			n = (size_t)sprintf(escaped, "\\x%02x", (uint8_t)*text);
		} else {
			n = (size_t)sprintf(escaped, c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
		}
		if (n >= size - at)
			break;
		memcpy(s + at, out, n);
	}
	s[at] = 0;
}

/* Appends to the text s, as append_printable does. Every message is made by it. */
static void append_args(char *s, size_t size, const char *format, va_list args)
{
	char text[sizeof(((struct btfa_match *)0)->reason)];

	vsnprintf(text, sizeof(text), format, args);
	append_printable(s, size, text);
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void append(char *s, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append_args(s, size, format, args);
	va_end(args);
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int fail(struct btfa_error *e, int status, const char *format, ...)
{
	va_list args;

	if (e) {
		va_start(args, format);
		*e->text = 0;
		append_args(e->text, sizeof(e->text), format, args);
		va_end(args);
	}
	return status;
}

static int fail_memory(struct btfa_error *e)
{
	return fail(e, BTFA_NO_MEMORY, "out of memory");
}

/* Fails with errno for a file or system call. */
static int fail_system(struct btfa_error *e, const char *prefix, const char *what)
{
	char why[128];

	if (strerror_r(errno, why, sizeof(why)))
		snprintf(why, sizeof(why), "error %d", errno);
	return fail(e, BTFA_NO_HOST, "%s%s: %s", prefix, what, why);
}

typedef int compare_fn(const void *context, uint32_t a, uint32_t b);

/* Sorts by merging, which takes n log n comparisons whatever the input, and keeps the order of equals. */
static void sort(uint32_t *v, uint32_t n, uint32_t *spare, compare_fn *compare, const void *context)
{
	uint32_t half = n / 2, i, j, k;

	if (n < 2)
		return;
	sort(v, half, spare, compare, context);
	sort(v + half, n - half, spare, compare, context);
	if (compare(context, v[half - 1], v[half]) <= 0)
		return;
	memcpy(spare, v, half * sizeof(*v));
	for (i = 0, j = half, k = 0; i < half;)
		v[k++] = j < n && compare(context, spare[i], v[j]) > 0 ? v[j++] : spare[i++];
}

/* -- frame, streams -- */

/* The unread part of a stream. After an error it is empty. */
struct cursor {
	const uint8_t *at, *end;
	const char *error;
};

static const char cut_short[] = "cut short";

static void bad(struct cursor *c, const char *error)
{
	if (!c->error)
		c->error = error;
	c->at = c->end;
}

/* Reads an unsigned LEB128 of at most 64 bits. */
static uint64_t number(struct cursor *c)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; c->at < c->end; shift += 7) {
		uint8_t b = *c->at++;

		if (shift == 63 && b > 1) {
			bad(c, "number of more than 64 bits");
			return 0;
		}
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
	bad(c, cut_short);
	return 0;
}

/* Reads the number of things that follow. Each takes a byte or more. */
static uint32_t count(struct cursor *c, uint64_t limit, const char *error)
{
	uint64_t v = number(c);

	if (v <= limit)
		return (uint32_t)v;
	bad(c, error);
	return 0;
}

static size_t left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

static const uint8_t *bytes(struct cursor *c, size_t n)
{
	const uint8_t *p = c->at;

	if (n > left(c)) {
		bad(c, cut_short);
		return NULL;
	}
	c->at += n;
	return p;
}

/* Reads up to a NUL. */
static const char *text(struct cursor *c)
{
	const uint8_t *p = c->at, *end = left(c) ? memchr(p, 0, left(c)) : NULL;

	if (!end) {
		bad(c, cut_short);
		return NULL;
	}
	c->at = end + 1;
	return (const char *)p;
}

/* The number of numbers in the rest of a stream that has only numbers. */
static uint32_t numbers_in(const struct cursor *c)
{
	const uint8_t *p;
	uint32_t n = 0;

	for (p = c->at; p < c->end; p++)
		n += *p < 0x80;
	return n;
}

static uint64_t little_endian(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n)
		v = v << 8 | p[--n];
	return v;
}

/* Reports whether the reserved bits of a compressed block are zero. Not all versions of zstd look. */
static int reserved_bits_zero(const uint8_t *p, size_t size)
{
	static const uint8_t raw_header[] = { 1, 2, 1, 3 }, header[] = { 3, 3, 4, 5 };
	static const uint8_t raw_bits[] = { 3, 4, 3, 4 }, bits[] = { 10, 10, 14, 18 };
	unsigned type = p[0] & 3, format = p[0] >> 2 & 3;
	size_t n = type < 2 ? raw_header[format] : header[format];
	uint64_t literals;

	if (size < n)
		return 0;
	literals = little_endian(p, (unsigned)n);
	if (type < 2)
		literals = type ? 1 : literals >> raw_bits[format];
	else
		literals = literals >> (4 + bits[format]) & ((1u << bits[format]) - 1);
	n += (size_t)literals;
	if (size <= n)
		return 0;
	if (!p[n]) /* no sequences */
		return 1;
	n += p[n] < 128 ? 1 : p[n] < 255 ? 2 : 3;
	return n < size && !(p[n] & 3);
}

/* Checks that the data is exactly one zstd frame with a checksum and without a dictionary's ID, and that it claims
 * nothing beyond the limits. Returns what is wrong. *room is at least what it decompresses to. */
static const char *check_frame(const uint8_t *p, size_t size, size_t *room)
{
	static const uint8_t dictionary_bytes[] = { 0, 1, 2, 4 }, size_bytes[] = { 0, 2, 4, 8 };
	const uint8_t *end = p + size;
	unsigned head, d, s;
	uint64_t content, window = 0, most = 0;
	int single, last;

	if (size < 5)
		return cut_short;
	if (little_endian(p, 4) != 0xfd2fb528 || !(p[4] & 4))
		return "want one zstd frame with a checksum and without the ID of a dictionary";
	head = p[4];
	if (head & 8)
		return "reserved bit set";
	p += 5;
	single = head >> 5 & 1;
	d = dictionary_bytes[head & 3];
	s = size_bytes[head >> 6];
	if (!s)
		s = (unsigned)single;
	if ((size_t)(end - p) < !single + d + s)
		return cut_short;
	if (!single) {
		window = (uint64_t)1 << (10 + (*p >> 3));
		window += window / 8 * (*p & 7);
		p++;
	}
	if (little_endian(p, d))
		return "want one zstd frame with a checksum and without the ID of a dictionary";
	p += d;
	content = little_endian(p, s) + (s == 2 ? 256 : 0);
	p += s;
	if (single)
		window = content > 1024 ? content : 1024;
	if (content > MAX_PAYLOAD || window > MAX_PAYLOAD)
		return "too many bytes decompressed";
	do {
		uint32_t block, n;
		unsigned type;

		if (end - p < 3)
			return cut_short;
		block = (uint32_t)little_endian(p, 3);
		last = block & 1;
		type = block >> 1 & 3;
		n = block >> 3;
		if (type == 3 || n > 128 << 10 || n > window || (type == 2 && n < 2))
			return "bad block";
		most += type == 2 ? 128 << 10 : n;
		if (type == 1) /* one byte, repeated */
			n = 1;
		p += 3;
		if ((size_t)(end - p) < n)
			return cut_short;
		if (type == 2 && !reserved_bits_zero(p, n))
			return "bad block";
		p += n;
	} while (!last);
	if (end - p < 4)
		return cut_short;
	if (end - p > 4)
		return "bytes follow the frame";
	if (s)
		most = content;
	*room = most < MAX_PAYLOAD ? most : MAX_PAYLOAD;
	return NULL;
}

/* Says why zstd refuses a frame. zstd's own decoder in one file lacks its texts. */
static const char *zstd_text(size_t result)
{
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_checksum_wrong:
		return "wrong checksum";
	case ZSTD_error_frameParameter_windowTooLarge:
		return "needs too much memory";
	case ZSTD_error_dstSize_tooSmall:
		return "longer than its header says";
	default:
		return "damaged, or not compressed with this dictionary";
	}
}

/* Decompresses the frame into memory that the caller frees. */
static int unpack(const struct btfa_allocator *m, const uint8_t *frame, size_t size, uint8_t **payload,
		  size_t *payload_size, struct btfa_error *e)
{
	struct btfa_allocator copy = *m;
	ZSTD_customMem memory = { zstd_alloc, zstd_free, &copy };
	ZSTD_DCtx *zstd;
	uint8_t *dictionary;
	size_t room, n;
	const char *wrong = check_frame(frame, size, &room);

	if (wrong)
		return fail(e, BTFA_DAMAGED, "archive: frame: %s", wrong);
	*payload = resize(m, NULL, room, 1);
	dictionary = resize(m, NULL, DICTIONARY_SIZE, 1);
	zstd = *payload && dictionary ? ZSTD_createDCtx_advanced(memory) : NULL;
	if (!zstd) {
		give_back(m, dictionary);
		return fail_memory(e);
	}
	n = ZSTD_decompressDCtx(zstd, dictionary, DICTIONARY_SIZE, dictionary_frame, sizeof(dictionary_frame));
	if (!ZSTD_isError(n))
		n = ZSTD_decompress_usingDict(zstd, *payload, room, frame, size, dictionary, n);
	ZSTD_freeDCtx(zstd);
	give_back(m, dictionary);
	if (ZSTD_isError(n))
		return fail(e, BTFA_DAMAGED, "archive: frame: %s", zstd_text(n));
	*payload_size = n;
	return BTFA_OK;
}

/* The streams that this version knows, in the order of the file. */
enum { META, KERNELS, NAMES, SHAPES, PARENTS, NUMBERS, LAYOUTS, FINGERPRINTS, STREAMS, MIN_STREAMS = FINGERPRINTS };

/* Cuts the payload into its streams. One that is absent is empty. */
static const char *split(struct cursor c, struct cursor *streams)
{
	uint64_t lengths[MAX_STREAMS], total = 0;
	uint64_t n = number(&c), i;

	if (c.error)
		return c.error;
	if (n < MIN_STREAMS || n > MAX_STREAMS)
		return "want 7 to 64 streams";
	for (i = 0; i < n; i++) {
		lengths[i] = number(&c);
		if (lengths[i] > MAX_PAYLOAD)
			lengths[i] = MAX_PAYLOAD + 1;
		total += lengths[i];
	}
	if (c.error)
		return c.error;
	if (total != left(&c))
		return "streams have other lengths";
	for (i = 0; i < STREAMS; i++) {
		streams[i].at = c.at;
		streams[i].end = c.at += i < n ? lengths[i] : 0;
		streams[i].error = NULL;
	}
	return NULL;
}

/* -- pool -- */

static const char no_memory[] = "out of memory", no_slot[] = "slot does not exist", no_name[] = "name does not exist",
		  no_variant[] = "variant does not exist",
		  too_many_items[] = "too many slots, variants, types, fields and references";

/* Allocates n elements at *p, a pointer to any type, and reports success. */
#define MAKE_ROOM(a, c, p, n) \
	((*(p) = resize(&(a)->memory, NULL, (n), sizeof(**(p)))) != NULL || (bad((c), no_memory), 0))

/* Frees the memory beyond n elements. */
#define FIT(a, p, n)                                                               \
	do {                                                                       \
		void *fit_ = resize(&(a)->memory, *(p), (n), sizeof(**(p)));       \
		if (fit_)                                                          \
			*(p) = fit_;                                               \
	} while (0)

static int is_composite(unsigned kind)
{
	return kind == KIND_STRUCT || kind == KIND_UNION;
}

/* Reports whether a kind refers to one type and has no fields. */
static int is_link(unsigned kind)
{
	switch (kind) {
	case KIND_PTR:
	case KIND_TYPEDEF:
	case KIND_VOLATILE:
	case KIND_CONST:
	case KIND_RESTRICT:
	case KIND_TYPE_TAG:
	case KIND_FUNC:
	case KIND_VAR:
		return 1;
	}
	return 0;
}

static unsigned count_refs(const struct node *n)
{
	if (is_link(n->kind))
		return 1;
	switch (n->kind) {
	case KIND_ARRAY:
		return 2;
	case KIND_STRUCT:
	case KIND_UNION:
		return n->count;
	case KIND_FUNC_PROTO:
		return n->count + 1u;
	}
	return 0;
}

static unsigned count_numbers(const struct node *n)
{
	switch (n->kind) {
	case KIND_STRUCT:
	case KIND_UNION:
	case KIND_ENUM:
	case KIND_ENUM64:
		return n->count + 1u;
	case KIND_INT:
		return 2;
	case KIND_ARRAY:
	case KIND_FLOAT:
	case KIND_FUNC:
	case KIND_VAR:
		return 1;
	}
	return 0;
}

/* An archive's numbers are kept in 32 bits: sizes in bytes, enumerators of 64 bits in two words. */
static unsigned words_of(const struct node *n, int last)
{
	return n->kind == KIND_ENUM64 && !last ? 2 : 1;
}

static uint64_t load_number(const struct node *n, int last, const uint32_t *w)
{
	if (is_composite(n->kind) && last)
		return (uint64_t)*w * 8;
	if (n->kind == KIND_ENUM && !last)
		return *w | (*w >> 31 ? (uint64_t)UINT32_MAX << 32 : 0);
	if (n->kind == KIND_ENUM64 && !last)
		return *w | (uint64_t)w[1] << 32;
	return *w;
}

/* Reports whether a number is in its range. The last number of a node is its size, if it has one. */
static int store_number(const struct node *n, int last, uint32_t *w, uint64_t x)
{
	*w = (uint32_t)x;
	if (is_composite(n->kind) && last) {
		*w = (uint32_t)(x / 8);
		return x % 8 == 0 && x / 8 <= UINT32_MAX;
	}
	if ((is_composite(n->kind) && n->flag) || n->kind == KIND_FUNC)
		return x < 1 << 24;
	if (n->kind == KIND_ENUM64 && !last) {
		w[1] = (uint32_t)(x >> 32);
		return 1;
	}
	return load_number(n, last, w) == x;
}

/* Reads a distance between two numbers. Those of offsets have a unit. */
static uint64_t distance(struct cursor *c, int offset)
{
	static const uint8_t units[] = { 1, 8, 32, 64 };
	uint64_t v = number(c), unit = 1;

	if (offset) {
		unit = units[v & 3];
		v >>= 2;
	}
	return (v >> 1 ^ (0 - (v & 1))) * unit;
}

/* Appends the numbers of a variant, which are deltas against those at base, or against zeros if base is NONE. */
static void read_numbers(struct btfa *a, struct cursor *c, const struct variant *v, uint32_t base)
{
	const struct node *n = &a->nodes[v->nodes];

	for (;; n++) {
		unsigned i, numbers = count_numbers(n), words = numbers * words_of(n, 0);
		uint64_t shift = 0;

		if (a->max_numbers - a->n_numbers < words) { /* there is one for each in the stream */
			uint32_t most = a->max_numbers + a->max_numbers / 4 + words, *p;

			p = resize(&a->memory, a->numbers, most, sizeof(*p));
			if (!p) {
				bad(c, no_memory);
				return;
			}
			a->numbers = p;
			a->max_numbers = most;
		}
		for (i = 0; i < numbers; i++) {
			int last = i == numbers - 1;
			uint64_t x = shift += distance(c, is_composite(n->kind));

			if (c->error)
				return;
			if (base != NONE) {
				x += load_number(n, last, &a->numbers[base]);
				base += words_of(n, last);
			}
			if (!store_number(n, last, &a->numbers[a->n_numbers], x)) {
				bad(c, "number is out of range");
				return;
			}
			a->n_numbers += words_of(n, last);
		}
		if (n->last)
			return;
	}
}

/* Reads a reference: 0 for void; else, from 2 on, even numbers are nodes of the definition and odd ones slots.
 * todo counts the nodes of the shape that were referred to. */
static void read_ref(struct btfa *a, struct cursor *c, uint32_t *todo)
{
	uint64_t v = number(c);

	if (v == 1)
		v = 2 + 2 * (uint64_t)(*todo)++;
	else if (v > 1 && v % 2 == 0 && (v - 2) / 2 >= *todo)
		bad(c, "node does not exist");
	else if (v > 1 && v % 2 && (v - 2) / 2 >= a->n_slots)
		bad(c, no_slot);
	if (!c->error)
		a->refs[a->n_refs++] = (uint32_t)v;
}

/* Reads a field's name: 0 for none, else counted from 1. */
static uint32_t read_name(struct btfa *a, struct cursor *c)
{
	uint64_t v = number(c);

	if (!v)
		return 0;
	if (v == 1)
		v = ++a->known;
	else if (--v > a->known)
		bad(c, no_name);
	if (v > a->n_names - a->n_slots)
		bad(c, no_name);
	return c->error ? 0 : (uint32_t)v + a->n_slots;
}

static void read_node(struct btfa *a, struct cursor *c, uint32_t *todo)
{
	uint64_t head = number(c);
	struct node *n = &a->nodes[a->n_nodes];
	uint32_t i;

	if (head > UINT8_MAX)
		bad(c, "unknown kind");
	if (c->error)
		return;
	memset(n, 0, sizeof(*n));
	n->kind = (uint8_t)(head >> 1);
	n->flag = head & 1;
	n->fields = a->n_fields;
	n->refs = a->n_refs;
	switch (n->kind) {
	case KIND_INT:
	case KIND_FLOAT:
	case KIND_FWD:
		break;
	case KIND_ARRAY:
		read_ref(a, c, todo);
		read_ref(a, c, todo);
		break;
	case KIND_STRUCT:
	case KIND_UNION:
	case KIND_ENUM:
	case KIND_ENUM64:
	case KIND_FUNC_PROTO:
		n->count = (uint16_t)count(c, MAX_FIELDS, "too many fields");
		if (n->kind == KIND_FUNC_PROTO)
			read_ref(a, c, todo);
		break;
	default:
		if (is_link(n->kind))
			read_ref(a, c, todo);
		else
			bad(c, "kind that minimized BTF does not have");
	}
	for (i = 0; i < n->count && !c->error; i++) {
		uint32_t name = read_name(a, c), bits = 0;

		if (n->flag && is_composite(n->kind))
			bits = count(c, UINT8_MAX, "too many bits");
		if (n->kind != KIND_ENUM && n->kind != KIND_ENUM64)
			read_ref(a, c, todo);
		if (!c->error)
			a->fields[a->n_fields++] = name | bits << 24;
	}
	a->n_nodes++;
}

static void read_shape(struct btfa *a, struct cursor *c)
{
	uint32_t read = 0, todo = 1;

	while (read < todo && !c->error) {
		read_node(a, c, &todo);
		read++;
	}
	if (!c->error)
		a->nodes[a->n_nodes - 1].last = 1;
}

static void read_names(struct btfa *a, struct cursor *c)
{
	size_t size = left(c), at = 0;

	if (size && c->end[-1]) {
		bad(c, cut_short);
		return;
	}
	if (!MAKE_ROOM(a, c, &a->text, size))
		return;
	if (size)
		memcpy(a->text, bytes(c, size), size);
	for (at = 0; at < size; at++)
		a->n_names += !a->text[at];
	if (!MAKE_ROOM(a, c, &a->names, a->n_names))
		return;
	a->n_names = 0;
	for (at = 0; at < size; at += strlen(a->text + at) + 1)
		a->names[a->n_names++] = (uint32_t)at;
}

/* Reads a variant of the slot whose first is number first. */
static void read_variant(struct btfa *a, uint32_t first, struct cursor *c, struct cursor *shapes, struct cursor *numbers)
{
	uint64_t back = number(c);
	struct variant *v = &a->variants[a->n_variants];
	uint32_t base = NONE;

	if (back > a->n_variants - first)
		bad(c, no_variant);
	if (c->error)
		return;
	v->nodes = a->n_nodes;
	v->numbers = a->n_numbers;
	if (back) {
		v->nodes = v[-(ptrdiff_t)back].nodes;
		base = v[-(ptrdiff_t)back].numbers;
	} else {
		read_shape(a, shapes);
	}
	if (!shapes->error)
		read_numbers(a, numbers, v, base);
	a->n_variants++;
	if ((uint64_t)a->n_slots + a->n_variants + a->n_nodes + a->n_fields + a->n_refs > MAX_ITEMS)
		bad(shapes, too_many_items);
}

/* Reads slots and their variants, which takes three streams. */
static void read_slots(struct btfa *a, struct cursor *c, struct cursor *shapes, struct cursor *numbers)
{
	uint32_t i, j, n;

	n = numbers_in(shapes);
	a->max_numbers = numbers_in(numbers);
	a->n_slots = count(c, a->n_names, "too many slots");
	if (!MAKE_ROOM(a, c, &a->slots, (size_t)a->n_slots + 1) || !MAKE_ROOM(a, c, &a->variants, numbers_in(c)) ||
	    !MAKE_ROOM(a, c, &a->nodes, n) || !MAKE_ROOM(a, c, &a->fields, n) || !MAKE_ROOM(a, c, &a->refs, n) ||
	    !MAKE_ROOM(a, c, &a->numbers, a->max_numbers))
		return;
	for (i = 1; i < a->n_slots; i++)
		if (!a->text[a->names[i]])
			a->names[i] = a->names[i - 1];
	for (i = 0; i < a->n_slots; i++) {
		a->slots[i] = a->n_variants;
		n = count(c, left(c), "too many variants");
		for (j = 0; j < n; j++) {
			read_variant(a, a->slots[i], c, shapes, numbers);
			if (c->error || shapes->error || numbers->error)
				return;
		}
	}
	a->slots[i] = a->n_variants;
	FIT(a, &a->nodes, a->n_nodes);
	FIT(a, &a->fields, a->n_fields);
	FIT(a, &a->refs, a->n_refs);
	FIT(a, &a->numbers, a->n_numbers);
	FIT(a, &a->variants, a->n_variants);
}

/* -- layouts -- */

/* Reads the new content of a slot. Earlier layouts have the first *made of its variants. */
static uint32_t read_change(struct cursor *c, uint32_t *made, uint32_t variants)
{
	uint64_t to = number(c);

	if (to == 1)
		return 0;
	if (!to && *made < variants)
		return ++*made;
	if (to >= 2 && to - 2 < *made)
		return (uint32_t)(to - 2) + 1;
	bad(c, no_variant);
	return 0;
}

static void read_layouts(struct btfa *a, struct cursor *c)
{
	uint32_t *made = NULL, n, i;

	n = count(c, left(c), "too many layouts");
	if (!MAKE_ROOM(a, c, &a->layouts, (size_t)n + 1) || !MAKE_ROOM(a, c, &a->changes, numbers_in(c) / 2) ||
	    !MAKE_ROOM(a, c, &made, a->n_slots))
		return;
	memset(made, 0, a->n_slots * sizeof(*made));
	for (i = 0; i < n && !c->error; i++) {
		uint64_t head = number(c), slot = 0;
		struct layout *l = &a->layouts[i];
		uint32_t changes;

		if (head >> 1 > i)
			bad(c, "layout does not exist");
		l->parent = head >> 1 ? i - (uint32_t)(head >> 1) : NONE;
		l->big_endian = head & 1;
		l->changes = a->n_changes;
		changes = count(c, left(c) / 2 < a->n_slots ? left(c) / 2 : a->n_slots, "too many changes");
		for (; changes && !c->error; changes--, slot++) {
			uint64_t skip = number(c);

			slot += skip < INT32_MAX ? skip : INT32_MAX;
			if (slot >= a->n_slots)
				bad(c, no_slot);
			if (c->error)
				break;
			a->changes[a->n_changes].slot = (uint32_t)slot;
			a->changes[a->n_changes++].variant =
				read_change(c, &made[slot], a->slots[slot + 1] - a->slots[slot]);
		}
	}
	a->n_layouts = n;
	a->layouts[i].changes = a->n_changes;
	give_back(&a->memory, made);
	FIT(a, &a->changes, a->n_changes);
}

/* -- keys -- */

/* These tables are those of pkg/kernel/rules.go. Arrays of characters take less room than pointers. */

/* Each spelling of an architecture, and BTFHub's, or that of uname -m if BTFHub has none. */
static const char arches[][2][12] = {
	{ "amd64", "x86_64" }, { "x86", "x86_64" }, { "x86-64", "x86_64" },
	{ "aarch64", "arm64" }, { "armv8l", "arm64" },
	{ "armhf", "arm" }, { "armel", "arm" }, { "armhfp", "arm" }, { "armv4tl", "arm" }, { "armv5tel", "arm" },
	{ "armv5tejl", "arm" }, { "armv6l", "arm" }, { "armv7", "arm" }, { "armv7l", "arm" }, { "armv7hl", "arm" },
	{ "i486", "i386" }, { "i586", "i386" }, { "i686", "i386" }, { "386", "i386" },
	{ "ppc64el", "ppc64le" }, { "riscv", "riscv64" }, { "loong64", "loongarch64" }, { "mips64le", "mips64el" },
	{ "mipseb", "mips" }, { "mips64eb", "mips64" },
};

/* Archs whose only spelling is their own. */
static const char known[][12] = { "ppc64", "s390x", "sparc64", "mips", "mipsel", "mips64" };

static const char distributions[][2][16] = {
	{ "amazon", "amzn" }, { "redhat", "rhel" }, { "oracle", "ol" }, { "suse", "sles" }, { "opensuse", "opensuse-leap" },
};

/* Versions of the distributions that others are derived from, by codename. */
static const char ubuntus[][2][12] = {
	{ "xenial", "16.04" }, { "bionic", "18.04" }, { "focal", "20.04" }, { "groovy", "20.10" }, { "hirsute", "21.04" },
	{ "impish", "21.10" }, { "jammy", "22.04" }, { "kinetic", "22.10" }, { "lunar", "23.04" }, { "mantic", "23.10" },
	{ "noble", "24.04" }, { "oracular", "24.10" }, { "plucky", "25.04" }, { "questing", "25.10" },
};

static const char debians[][2][12] = {
	{ "stretch", "9" }, { "buster", "10" }, { "bullseye", "11" }, { "bookworm", "12" }, { "trixie", "13" }, { "forky", "14" },
};

/* How many numbers of VERSION_ID stay the same from build to build. All parts of VERSION_ID do under other
 * distributions. */
static const struct {
	char id[20];
	char numbers;
} version_numbers[] = {
	{ "alpine", 2 }, { "bottlerocket", 0 }, { "cos", 1 }, { "flatcar", 0 }, { "coreos", 0 }, { "k3os", 0 },
	{ "opensuse-microos", 0 }, { "opensuse-tumbleweed", 0 }, { "rhcos", 0 }, { "talos", 0 },
};

/* Words of releases that many distributions use, without the digits at their ends. */
static const char plain_words[][12] = {
	"", "cloud", "custom", "debug", "default", "desktop", "dirty", "generic", "hardened", "kvm", "lts", "mainline", "pae",
	"preempt", "rc", "rt", "server", "smp", "standard", "vanilla", "virt", "yocto", "zen",
};

/* Words of releases whose number at the end counts builds, as in 6.9.1-arch1-1. */
static const char counted_words[][12] = { "alt", "arch", "hardened", "kali", "r", "rpi", "xanmod", "zen" };

/* Distributions that build kernels of their own whose releases end like those of others. */
static const char own_builds[][2][12] = {
	{ "alpine", "-lts" }, { "arch", "-lts" }, { "artix", "-lts" }, { "astra", "-generic" }, { "astra", "-hardened" },
	{ "kylin", "-generic" },
};

#define SIZE(table) (sizeof(table) / sizeof(*(table)))

/* Finds a text in the first column of a table with rows of size bytes. Returns the row, or NULL. */
static const char *find_row(const char *s, const void *table, size_t n, size_t size)
{
	const char *row = table;

	for (; n--; row += size)
		if (!strcmp(s, row))
			return row;
	return NULL;
}

/* Returns the second column of the row of s, or else s itself. */
#define USUAL(s, table) usual(s, table, SIZE(table), sizeof((table)[0][0]))

static const char *usual(const char *s, const void *table, size_t n, size_t width)
{
	const char *row = find_row(s, table, n, 2 * width);

	return row ? row + width : s;
}

#define HAS(table, s) (find_row(s, table, SIZE(table), sizeof(*(table))) != NULL)

static const char *canonical_arch(const char *arch)
{
	return USUAL(arch, arches);
}

/* Reports whether a text is a spelling of an architecture. */
static int is_arch(const char *s)
{
	size_t i;

	for (i = 0; i < SIZE(arches); i++)
		if (!strcmp(s, arches[i][0]) || !strcmp(s, arches[i][1]))
			return 1;
	return HAS(known, s);
}

/* Returns the usual spelling of a distribution, perhaps in room. */
static const char *canonical_id(const char *id, char room[PART])
{
	size_t i = 0;

	for (i = 0; id[i] && i < PART - 1; i++)
		room[i] = 'A' <= id[i] && id[i] <= 'Z' ? (char)(id[i] - 'A' + 'a') : id[i];
	room[i] = 0;
	return USUAL(room, distributions);
}

void btfa_canonical(struct btfa_key *key)
{
	char room[PART];
	const char *id = canonical_id(key->id, room), *arch = canonical_arch(key->arch);

	memmove(key->id, id, strlen(id) + 1);
	memmove(key->arch, arch, strlen(arch) + 1);
}

static int is_digit(char c)
{
	return '0' <= c && c <= '9';
}

/* Cuts the leading run of digits, or of anything else, off *s. */
static size_t next_run(const char **s)
{
	const char *start = *s;

	while (**s && is_digit(**s) == is_digit(*start))
		++*s;
	return (size_t)(*s - start);
}

/* The order of runs, and of the end, in a version. */
enum { RUN_PRE, RUN_END, RUN_TEXT, RUN_NUMBER };

static int run_rank(const char *run, size_t n)
{
	if (!n)
		return RUN_END;
	if (is_digit(*run))
		return RUN_NUMBER;
	return *run == '~' || (n == 3 && !memcmp(run, "-rc", 3)) ? RUN_PRE : RUN_TEXT;
}

static int compare_bytes(const char *a, size_t n, const char *b, size_t m)
{
	int c = memcmp(a, b, n < m ? n : m);

	return c ? c : (n > m) - (n < m);
}

static int compare_runs(const char *a, size_t n, const char *b, size_t m)
{
	int x = run_rank(a, n), y = run_rank(b, m);

	if (x != y)
		return x - y;
	if (x == RUN_NUMBER) {
		for (; n && *a == '0'; n--)
			a++;
		for (; m && *b == '0'; m--)
			b++;
		if (n != m)
			return n < m ? -1 : 1;
	}
	return compare_bytes(a, n, b, m);
}

/* Orders releases and versions: numbers by value, the text between them by bytes, a pre-release ("~rc1",
 * "-rc1") before its release. It returns 0 only for equal strings. */
static int compare_versions(const char *a, const char *b)
{
	const char *x = a, *y = b;

	while (*x || *y) {
		const char *p = x, *q = y;
		size_t n = next_run(&x), m = next_run(&y);
		int c = compare_runs(p, n, q, m);

		if (c)
			return c;
	}
	return strcmp(a, b); /* 01 and 1 */
}

/* The four parts of a key, wherever they are. */
struct parts {
	const char *part[4];
};

static struct parts parts_of(const struct btfa *a, uint32_t kernel)
{
	struct parts p;
	const char *s = a->keys + a->kernels[kernel].key;
	int i;

	for (i = 0; i < 4; i++, s += strlen(s) + 1)
		p.part[i] = s;
	return p;
}

static struct parts parts_of_key(const struct btfa_key *k)
{
	struct parts p = { { k->id, k->version_id, k->arch, k->release } };

	return p;
}

/* Compares two keys up to their releases: canonical distribution, version, canonical arch. */
static int compare_series(const struct parts *x, const struct parts *y)
{
	char room[2][PART];
	int c = strcmp(canonical_id(x->part[ID], room[0]), canonical_id(y->part[ID], room[1]));

	if (!c)
		c = compare_versions(x->part[VERSION_ID], y->part[VERSION_ID]);
	return c ? c : strcmp(canonical_arch(x->part[ARCH]), canonical_arch(y->part[ARCH]));
}

static int compare_keys(const struct parts *x, const struct parts *y)
{
	int c = compare_series(x, y);

	return c ? c : compare_versions(x->part[RELEASE], y->part[RELEASE]);
}

static int compare_kernels(const void *archive, uint32_t i, uint32_t j)
{
	struct parts x = parts_of(archive, i), y = parts_of(archive, j);

	return compare_keys(&x, &y);
}

/* Checks a part of a key, which could be a file name. Returns the problem. */
static const char *check_part(const char *s)
{
	size_t i;

	if (!strcmp(s, ".") || !strcmp(s, "..") || !strcmp(s, "-"))
		return "is not a name";
	for (i = 0; s[i]; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f || s[i] == '/' || s[i] == '\\')
			return "has a bad character";
	return i < PART ? NULL : "is longer than 255 bytes";
}

/* -- kernels -- */

/* Cuts a key's text into its parts, and reports whether it is one. */
static int split_key(char *s)
{
	char *end;
	int i;

	for (i = 0; i < 4; i++, s = end + 1) {
		end = i == RELEASE ? s + strlen(s) : strchr(s, '/');
		if (!end)
			return 0;
		*end = 0;
		if (check_part(s) || (i >= ARCH && end == s))
			return 0;
	}
	return 1;
}

/* Appends the text of a key. */
static int add_key(struct btfa *a, const char *s, size_t n)
{
	if (a->max_keys - a->n_keys <= n) {
		size_t most = a->max_keys + a->max_keys / 2 + KEY_TEXT;
		char *p = resize(&a->memory, a->keys, most, 1);

		if (!p)
			return 0;
		a->keys = p;
		a->max_keys = (uint32_t)most;
	}
	memcpy(a->keys + a->n_keys, s, n + 1);
	a->n_keys += (uint32_t)n + 1;
	return 1;
}

static void read_kernels(struct btfa *a, struct cursor *c)
{
	char now[KEY_TEXT], last[KEY_TEXT] = "";
	uint32_t n, i, layouts = 0;
	size_t total = 0;

	n = count(c, left(c) < MAX_KERNELS ? left(c) : MAX_KERNELS, "too many kernels");
	if (!MAKE_ROOM(a, c, &a->kernels, n) || !MAKE_ROOM(a, c, &a->order, n))
		return;
	for (i = 0; i < n; i++) {
		uint64_t shared = number(c), back = number(c);
		const char *rest = text(c);
		struct kernel *k = &a->kernels[i];
		size_t length;

		if (c->error)
			return;
		if (shared > strlen(last)) {
			bad(c, "shares more than the last key has");
			return;
		}
		if (back > layouts) {
			bad(c, "layout does not exist");
			return;
		}
		length = strlen(rest);
		if (length >= KEY_TEXT - shared) {
			bad(c, "not a key");
			return;
		}
		memcpy(now, last, shared);
		memcpy(now + shared, rest, length + 1);
		length += shared;
		total += length;
		k->key = a->n_keys;
		k->layout = layouts - (uint32_t)back;
		layouts += k->layout == layouts;
		if (total > MAX_KEY_BYTES) {
			bad(c, "keys are too long");
			return;
		}
		if ((i && strcmp(now, last) <= 0) || k->layout >= a->n_layouts) {
			bad(c, "not in order");
			return;
		}
		memcpy(last, now, length + 1);
		if (!split_key(now)) {
			bad(c, "not a key");
			return;
		}
		if (!add_key(a, now, length)) {
			bad(c, no_memory);
			return;
		}
	}
	if (layouts != a->n_layouts) {
		bad(c, "use fewer layouts than there are");
		return;
	}
	a->n_kernels = n;
	FIT(a, &a->keys, a->n_keys);
}

/* Sorts the kernels by key. */
static void sort_kernels(struct btfa *a, struct cursor *c)
{
	uint32_t i, *spare = NULL;

	if (!MAKE_ROOM(a, c, &spare, a->n_kernels / 2))
		return;
	for (i = 0; i < a->n_kernels; i++)
		a->order[i] = i;
	sort(a->order, a->n_kernels, spare, compare_kernels, a);
	give_back(&a->memory, spare);
	for (i = 1; i < a->n_kernels; i++)
		if (!compare_kernels(a, a->order[i - 1], a->order[i])) {
			bad(c, "a kernel occurs twice");
			return;
		}
}

/* Skips the name of an arch. */
static const char *read_arch(struct cursor *c)
{
	const char *arch = text(c);

	if (arch && check_part(arch))
		bad(c, "not an arch");
	return arch;
}

/* Copies the streams that say what the archive was made for. */
static int keep_meta(struct btfa *a, struct cursor *meta, struct cursor *fingerprints)
{
	size_t n = left(meta), m = left(fingerprints);

	a->made.data = resize(&a->memory, NULL, n + m, 1);
	if (!a->made.data)
		return 0;
	memcpy(a->made.data, meta->at, n);
	memcpy(a->made.data + n, fingerprints->at, m);
	meta->at = a->made.data;
	meta->end = fingerprints->at = meta->at + n;
	fingerprints->end = fingerprints->at + m;
	return 1;
}

/* Checks the tool and the relocations, which only writers need, and the objects. */
static void read_meta(struct cursor *c, struct made *made)
{
	uint64_t parts;
	uint32_t sum, n, machines, objects = 0, more;
	const char *arch, *last = NULL;

	text(c); /* the program that wrote it */
	parts = number(c);
	if (parts) {
		uint64_t part = number(c);

		if (!part || part > parts || parts > MAX_KERNELS)
			bad(c, "part of a run");
	}
	sum = count(c, 32, "too many bytes of a hash");
	for (n = count(c, MAX_MACHINES + 1, "too many hashes of relocations"); n && !c->error; n--, last = arch) {
		arch = read_arch(c);
		bytes(c, sum);
		if (!c->error && last && strcmp(arch, last) <= 0)
			bad(c, "relocations are not in order");
	}
	sum = count(c, 32, "too many bytes of a hash");
	n = count(c, MAX_OBJECTS, "too many groups of objects");
	made->groups = c->at;
	made->n_groups = n;
	for (; n && !c->error; n--) {
		for (machines = count(c, MAX_MACHINES, "too many machines"); machines && !c->error; machines--) {
			arch = read_arch(c);
			if (arch && !*arch)
				bad(c, "not an arch");
		}
		more = count(c, MAX_OBJECTS - objects, "too many objects");
		if (!more)
			bad(c, "group without objects");
		for (objects += more; more && !c->error; more--)
			text(c);
	}
	made->n_objects = objects;
	made->sum_size = sum;
	made->sums = bytes(c, (size_t)objects * sum);
}

static void read_fingerprints(struct cursor *c, struct made *made)
{
	if (!left(c))
		return;
	made->fingerprint_size = count(c, 32, "too many bytes of a fingerprint");
	made->fingerprints = bytes(c, (size_t)made->n_objects * made->fingerprint_size);
}

/* Checks that all of a stream was read. */
static int end(struct cursor *c, const char *name, struct btfa_error *e)
{
	if (!c->error && left(c))
		c->error = "bytes too many";
	if (!c->error)
		return BTFA_OK;
	if (c->error == no_memory)
		return fail_memory(e);
	return fail(e, BTFA_DAMAGED, "archive: %s: %s", name, c->error);
}

static int read_streams(struct btfa *a, const uint8_t *payload, size_t size, struct btfa_error *e)
{
	struct cursor s[STREAMS], all = { payload, payload + size, NULL };
	const char *wrong = split(all, s);
	int status;

	if (wrong)
		return fail(e, BTFA_DAMAGED, "archive: payload: %s", wrong);
	if (!keep_meta(a, &s[META], &s[FINGERPRINTS]))
		return fail_memory(e);
	read_meta(&s[META], &a->made);
	if ((status = end(&s[META], "meta", e)))
		return status;
	read_fingerprints(&s[FINGERPRINTS], &a->made);
	if ((status = end(&s[FINGERPRINTS], "fingerprints", e)))
		return status;
	read_names(a, &s[NAMES]);
	if ((status = end(&s[NAMES], "names", e)))
		return status;
	read_slots(a, &s[PARENTS], &s[SHAPES], &s[NUMBERS]);
	if (s[PARENTS].error || s[SHAPES].error || s[NUMBERS].error) { /* report only this error */
		s[PARENTS].at = s[PARENTS].end;
		s[SHAPES].at = s[SHAPES].end;
		s[NUMBERS].at = s[NUMBERS].end;
	}
	if ((status = end(&s[PARENTS], "parents", e)) || (status = end(&s[SHAPES], "shapes", e)) ||
	    (status = end(&s[NUMBERS], "numbers", e)))
		return status;
	read_layouts(a, &s[LAYOUTS]);
	if ((status = end(&s[LAYOUTS], "layouts", e)))
		return status;
	read_kernels(a, &s[KERNELS]);
	if (!s[KERNELS].error)
		sort_kernels(a, &s[KERNELS]);
	return end(&s[KERNELS], "kernels", e);
}

int btfa_open_mem(struct btfa **archive, const void *data, size_t size, const struct btfa_allocator *allocator,
		  struct btfa_error *e)
{
	struct btfa_allocator m = allocator_or_malloc(allocator);
	const uint8_t *p = data;
	uint8_t *payload = NULL;
	size_t payload_size = 0;
	struct btfa *a;
	int status;

	*archive = NULL;
	if (size > MAX_FILE)
		return fail(e, BTFA_DAMAGED, "archive: %zu bytes, more than %u", size, MAX_FILE);
	if (size < 4 || memcmp(p, "btfa", 4))
		return fail(e, BTFA_NOT_ARCHIVE, "archive: not a btfgen archive");
	if (size < 5)
		return fail(e, BTFA_DAMAGED, "archive: %s", cut_short);
	if (p[4] != 1)
		return fail(e, BTFA_UNKNOWN_VERSION, "archive: unknown version of the archive format: %u, want 1", p[4]);
	a = resize(&m, NULL, 1, sizeof(*a));
	if (!a)
		return fail_memory(e);
	memset(a, 0, sizeof(*a));
	a->memory = m;
	status = unpack(&m, p + 5, size - 5, &payload, &payload_size, e);
	if (!status)
		status = read_streams(a, payload, payload_size, e);
	give_back(&m, payload);
	if (status)
		btfa_close(a);
	else
		*archive = a;
	return status;
}

void btfa_close(struct btfa *a)
{
	struct btfa_allocator m;
	void *all[11];
	size_t i;

	if (!a)
		return;
	m = a->memory;
	all[0] = a->text;
	all[1] = a->names;
	all[2] = a->slots;
	all[3] = a->variants;
	all[4] = a->nodes;
	all[5] = a->fields;
	all[6] = a->refs;
	all[7] = a->numbers;
	all[8] = a->layouts;
	all[9] = a->changes;
	all[10] = a->kernels;
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		give_back(&m, all[i]);
	give_back(&m, a->made.data);
	give_back(&m, a->order);
	give_back(&m, a->keys);
	give_back(&m, a);
}

/* -- lookup -- */

static void set_key(struct btfa_key *k, const struct parts *p)
{
	strcpy(k->id, p->part[ID]); /* fits, as its length was checked */
	strcpy(k->version_id, p->part[VERSION_ID]);
	strcpy(k->arch, p->part[ARCH]);
	strcpy(k->release, p->part[RELEASE]);
}

static void set_kernel(const struct btfa *a, uint32_t kernel, struct btfa_key *k)
{
	struct parts p = parts_of(a, kernel);

	set_key(k, &p);
}

size_t btfa_kernels(const struct btfa *a)
{
	return a->n_kernels;
}

void btfa_kernel(const struct btfa *a, size_t i, struct btfa_key *key)
{
	memset(key, 0, sizeof(*key));
	if (i < a->n_kernels)
		set_kernel(a, a->order[i], key);
}

/* The first place in the order whose key is not below this one. */
static uint32_t place_of(const struct btfa *a, const struct parts *want)
{
	uint32_t low = 0, high = a->n_kernels;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct parts p = parts_of(a, a->order[middle]);

		if (compare_keys(&p, want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The kernel with exactly this key, or NONE. */
static uint32_t find_kernel(const struct btfa *a, const struct parts *want)
{
	uint32_t place = place_of(a, want);
	struct parts p;

	if (place == a->n_kernels)
		return NONE;
	p = parts_of(a, a->order[place]);
	return compare_keys(&p, want) ? NONE : a->order[place];
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void because(struct btfa_match *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append_args(m->reason, sizeof(m->reason), format, args);
	va_end(args);
}

/* Names a distribution and its version, perhaps in room. */
static const char *distribution(const struct parts *k, char room[2 * PART])
{
	char lower[PART];
	size_t n;

	if (!*k->part[ID])
		return "an unknown distribution";
	n = (size_t)snprintf(room, 2 * PART, "%s %s", canonical_id(k->part[ID], lower), k->part[VERSION_ID]);
	if (room[n - 1] == ' ')
		room[n - 1] = 0;
	return room;
}

/* Explains a miss and finds the nearest releases. */
static void advise(const struct btfa *a, struct btfa_match *m)
{
	const struct btfa_key *want = &m->want;
	struct parts wanted = parts_of_key(want);
	uint32_t i, below = NONE, above = NONE;
	int id = 0, arch = 0, both = 0;
	char room[2 * PART];

	for (i = 0; i < a->n_kernels; i++) {
		struct parts k = parts_of(a, i);
		int same_id = !strcmp(canonical_id(k.part[ID], room), want->id);
		int same_arch = !strcmp(canonical_arch(k.part[ARCH]), want->arch), c;

		id |= same_id;
		arch |= same_arch;
		if (!same_id || !same_arch)
			continue;
		both = 1;
		c = compare_versions(k.part[RELEASE], want->release);
		if (c < 0 && (below == NONE || compare_versions(k.part[RELEASE], parts_of(a, below).part[RELEASE]) > 0))
			below = i;
		if (c > 0 && (above == NONE || compare_versions(k.part[RELEASE], parts_of(a, above).part[RELEASE]) < 0))
			above = i;
	}
	if (below != NONE)
		set_kernel(a, below, &m->below);
	if (above != NONE)
		set_kernel(a, above, &m->above);
	m->same_btf = below != NONE && above != NONE && a->kernels[below].layout == a->kernels[above].layout;
	if (*m->reason)
		return;
	if (!*want->release)
		because(m, "the release of the kernel is unknown");
	else if (!*want->arch)
		because(m, "the arch of the kernel is unknown");
	else if (both)
		because(m, "no kernel %s for %s", want->release, want->arch);
	else if (!arch)
		because(m, "no kernels for %s", want->arch);
	else if (!id)
		because(m, "no kernel %s for %s, and none of %s at all", want->release, want->arch, distribution(&wanted, room));
	else
		because(m, "no kernel %s for %s, and none of %s for that arch", want->release, want->arch, want->id);
}

static int is_number(const char *s)
{
	return !s[strspn(s, "0123456789")];
}

/* Cuts the next word off a release. Leaves out the commit and build that kernels built from git have, and the number before
 * a commit, as in 5.10.43-00005-g740f7fbe5 and 5.10.43-android12-9-00005-g740f7fbe5-ab7943734. Returns 0 at the end. */
static int next_word(const char **release, char word[PART])
{
	static const char *const ends = "-.+_~";

	for (;;) {
		const char *s = *release + strspn(*release, ends), *next;
		size_t n = strcspn(s, ends), m;

		*release = s + n;
		if (!n)
			return 0;
		memcpy(word, s, n);
		word[n] = 0;
		next = s + n + strspn(s + n, ends);
		m = strcspn(next, ends);
		if (is_number(word) && m >= 8 && *next == 'g' && strspn(next + 1, "0123456789abcdef") >= m - 1)
			continue;
		if (n >= 8 && *word == 'g' && strspn(word + 1, "0123456789abcdef") == n - 1)
			continue;
		if (n > 2 && word[0] == 'a' && word[1] == 'b' && is_number(word + 2))
			continue;
		return 1;
	}
}

static void cut_digits(char *word)
{
	size_t n = strlen(word);

	while (n && is_digit(word[n - 1]))
		word[--n] = 0;
}

/* Reports whether a release can belong to builds of one distribution only: it has four numbers, or a word that is not
 * common. */
static int is_distinctive(const char *release)
{
	char word[PART], lower[PART];
	int numbers = 0, x86 = 0;
	size_t i;

	while (next_word(&release, word)) {
		if (is_number(word)) {
			numbers += strcmp(word, "586") && strcmp(word, "686") && (!x86 || strcmp(word, "64"));
			x86 = 0;
			continue;
		}
		x86 = !strcmp(word, "x86");
		for (i = 0; i <= strlen(word); i++)
			lower[i] = 'A' <= word[i] && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
		cut_digits(lower);
		if (!is_arch(word) && !HAS(plain_words, lower))
			return 1;
	}
	return numbers >= 4;
}

/* Reports whether a distribution builds kernels of its own with releases like this one, which others have, too. */
static int is_built_by(const char *id, const char *release)
{
	size_t i, n = strlen(release);

	for (i = 0; i < SIZE(own_builds); i++) {
		size_t end = strlen(own_builds[i][1]);

		if (!strcmp(id, own_builds[i][0]) && n >= end && !strcmp(release + n - end, own_builds[i][1]))
			return 1;
	}
	return 0;
}

/* Distributions in which builds differ that have one VERSION_ID and one release. os-release has the build. */
static int has_builds(const char *id)
{
	return !strcmp(id, "cos") || !strcmp(id, "openwrt");
}

/* What the builds of a series have in common. */
struct series {
	char id[PART], version_id[PART], arch[PART];
	char words[PART]; /* the version of Linux, and all words that are no numbers: "6 1 rt amd64" of 6.1.0-47-rt-amd64 */
};

static void set_series(struct series *s, const struct parts *p)
{
	const char *release = p->part[RELEASE];
	char room[PART], word[PART], count[PART], *v;
	size_t i, n = 0;
	int numbers = 0;

	memset(s, 0, sizeof(*s));
	strcpy(s->id, canonical_id(p->part[ID], room));
	strcpy(s->version_id, p->part[VERSION_ID]);
	strcpy(s->arch, canonical_arch(p->part[ARCH]));
	for (i = 0; i < SIZE(version_numbers); i++)
		if (!strcmp(s->id, version_numbers[i].id)) {
			int left = version_numbers[i].numbers;
			char *end = s->version_id;

			for (v = end; *v && left;) {
				size_t digits;

				v += strcspn(v, "0123456789");
				digits = strspn(v, "0123456789");
				v += digits;
				if (digits) {
					left--;
					end = v;
				}
			}
			memset(end, 0, strlen(end)); /* series are compared byte by byte */
		}
	while (next_word(&release, word)) {
		if (is_number(word)) {
			if (++numbers > 2)
				continue;
		} else {
			strcpy(count, word);
			cut_digits(count);
			if (HAS(counted_words, count))
				strcpy(word, count);
		}
		if (n)
			s->words[n++] = ' ';
		memcpy(s->words + n, word, strlen(word));
		n += strlen(word);
	}
}

/* The builds of a series on one side of a kernel. */
struct side {
	uint32_t n, nearest, farthest; /* their number, and two kernels */
	int same;                      /* all have the same BTF */
};

/* Looks for the n builds of a series that are next to a release, before it or after it. */
static struct side look(const struct btfa *a, const struct series *want, const char *release, int after, unsigned n)
{
	struct side s = { 0, 0, 0, 1 };

	while (s.n < n) { /* finds the next one */
		uint32_t i, best = NONE;

		for (i = 0; i < a->n_kernels; i++) {
			struct parts p = parts_of(a, i);
			struct series its;
			char room[PART];
			int c;

			if (strcmp(canonical_id(p.part[ID], room), want->id))
				continue;
			c = compare_versions(p.part[RELEASE], release);
			if (after ? c <= 0 : c >= 0)
				continue;
			if (s.n) { /* beyond the last one; equal releases are in the order of the archive */
				c = compare_versions(p.part[RELEASE], parts_of(a, s.farthest).part[RELEASE]);
				if (c ? (c < 0) == after : i <= s.farthest)
					continue;
			}
			if (best != NONE) {
				c = compare_versions(p.part[RELEASE], parts_of(a, best).part[RELEASE]);
				if (!c || (c > 0) == after)
					continue;
			}
			set_series(&its, &p);
			if (!memcmp(&its, want, sizeof(its)))
				best = i;
		}
		if (best == NONE)
			break;
		if (!s.n++)
			s.nearest = best;
		s.farthest = best;
		s.same &= a->kernels[best].layout == a->kernels[s.nearest].layout;
	}
	return s;
}

/* Describes the builds on one side: their number, the first and the last. */
static void span(const struct btfa *a, struct btfa_match *m, const struct side *s, uint32_t first, uint32_t last,
		 const char *which)
{
	if (!s->n)
		because(m, "none %s", which);
	else if (s->n == 1)
		because(m, "1 %s (%s)", which, parts_of(a, first).part[RELEASE]);
	else
		because(m, "%u %s (%s \xe2\x80\xa6 %s)", (unsigned)s->n, which, parts_of(a, first).part[RELEASE],
			parts_of(a, last).part[RELEASE]);
}

/* Turns a miss into a match if the n builds before the kernel, and those up to n after it, have one BTF. Else
 * it says why not. */
static void neighbours(const struct btfa *a, struct btfa_match *m, unsigned n)
{
	struct parts want = parts_of_key(&m->want);
	struct side before, after;
	struct series series;

	set_series(&series, &want);
	before = look(a, &series, m->want.release, 0, n);
	if (before.n < n) {
		because(m, "; builds of its series before it: %u, want %u", (unsigned)before.n, n);
		return;
	}
	after = look(a, &series, m->want.release, 1, n);
	if (!before.same || !after.same ||
	    (after.n && a->kernels[before.nearest].layout != a->kernels[after.nearest].layout)) {
		because(m, "; the BTFs of the %u builds next to it differ", (unsigned)(before.n + after.n));
		return;
	}
	because(m, "; the builds next to it have one BTF: ");
	span(a, m, &before, before.farthest, before.nearest, "before it");
	because(m, ", ");
	span(a, m, &after, after.nearest, after.farthest, "after it");
	m->rule = BTFA_NEIGHBOUR;
	set_kernel(a, before.nearest, &m->key);
	memset(&m->below, 0, sizeof(m->below));
	memset(&m->above, 0, sizeof(m->above));
	m->same_btf = 0;
}

/* Kernels of one arch and release, which a rule chooses among. */
struct choice {
	uint32_t n, first, differs; /* their number, the first, and the first of them with another BTF, or NONE */
};

static void add_choice(const struct btfa *a, struct choice *c, uint32_t kernel)
{
	if (!c->n++) {
		c->first = kernel;
		c->differs = NONE;
	} else if (c->differs == NONE && a->kernels[kernel].layout != a->kernels[c->first].layout) {
		c->differs = kernel;
	}
}

/* Takes the first of some kernels, if all of them have the same BTF. Otherwise it is a miss. Reports whether there are any. */
static int choose(const struct btfa *a, struct btfa_match *m, enum btfa_rule rule, const struct choice *c)
{
	char room[2 * PART], first_room[2 * PART], other_room[2 * PART];
	struct parts want = parts_of_key(&m->want), first, other;
	const char *name = distribution(&want, room);

	if (!c->n)
		return 0;
	first = parts_of(a, c->first);
	if (c->differs != NONE) {
		other = parts_of(a, c->differs);
		because(m, "%s: %s and %s have this release and arch, and their BTFs differ", name,
			distribution(&first, first_room), distribution(&other, other_room));
		advise(a, m);
		return 1;
	}
	m->rule = rule;
	set_kernel(a, c->first, &m->key);
	because(m, rule == BTFA_DERIVED ? "%s is derived from %s, which has this release and arch" :
					  "not under %s, but %s has this release and arch",
		name, distribution(&first, first_room));
	return 1;
}

enum btfa_rule btfa_lookup(const struct btfa *a, const struct btfa_system *system, unsigned n_neighbours, struct btfa_match *m)
{
	struct choice own = { 0, 0, NONE }, usable = own, others = own, like[8][2]; /* of all versions, and of the one */
	struct btfa_key *want = &m->want;
	char room[2 * PART];
	struct parts parts;
	int may_derive;
	uint32_t i, found;
	size_t l;

	memset(m, 0, sizeof(*m));
	*want = system->key;
	btfa_canonical(want);
	parts = parts_of_key(want);
	found = find_kernel(a, &parts);
	if (found != NONE) {
		set_kernel(a, found, &m->key);
		because(m, "the archive has this kernel");
		return m->rule = BTFA_EXACT;
	}
	may_derive = is_distinctive(want->release) && !is_built_by(want->id, want->release);
	for (l = 0; l < SIZE(like); l++)
		like[l][0] = like[l][1] = own;
	for (i = 0; i < a->n_kernels && *want->arch; i++) {
		struct parts k = parts_of(a, i);
		const char *id = canonical_id(k.part[ID], room);

		if (strcmp(k.part[RELEASE], want->release) || strcmp(canonical_arch(k.part[ARCH]), want->arch))
			continue;
		if (!strcmp(id, want->id) && !(has_builds(id) && strchr(k.part[VERSION_ID], '-'))) {
			add_choice(a, &own, i);
			continue;
		}
		add_choice(a, &others, i);
		if (!may_derive)
			continue;
		if (!is_built_by(id, want->release))
			add_choice(a, &usable, i);
		for (l = 0; l < SIZE(like) && *system->like[l].id; l++)
			if (!strcmp(id, system->like[l].id)) {
				add_choice(a, &like[l][0], i);
				if (*system->like[l].version_id && !strcmp(k.part[VERSION_ID], system->like[l].version_id))
					add_choice(a, &like[l][1], i);
			}
	}
	if (choose(a, m, BTFA_RELEASE, &own))
		return m->rule;
	for (l = 0; l < SIZE(like); l++)
		if (choose(a, m, BTFA_DERIVED, &like[l][1]) || choose(a, m, BTFA_DERIVED, &like[l][0]))
			return m->rule;
	if (choose(a, m, BTFA_RELEASE, &usable))
		return m->rule;
	advise(a, m);
	if (others.n) {
		struct parts k = parts_of(a, others.first);

		because(m, "; %s has this release, which may be another build", distribution(&k, room));
	}
	if (n_neighbours && *want->id && *want->arch && *want->release)
		neighbours(a, m, n_neighbours);
	return m->rule;
}

/* -- types -- */

/* A type of a layout. Its references are b->refs[refs:], as numbers of types, NONE for void. */
struct type {
	const struct node *node;
	const char *name; /* empty for anonymous types */
	const uint32_t *numbers;
	uint32_t size, refs;
	uint32_t copies; /* how many equal types to write; 0 counts as 1 */
};

/* A reference that a round of merging looks at, because its target's class was split: where the target's
 * new class begins, and where the largest of the new ones does. */
struct seen {
	uint32_t from, ref, at, most;
};

/* Groups of classes that were one class. Group i ends before classes[end[i]]. */
struct splits {
	uint32_t *classes, *end;
	uint32_t n, groups;
};

/* The making of one BTF. */
struct build {
	const struct btfa *a;
	void *memory[32]; /* to free */
	unsigned n_memory;

	struct type *types;
	uint32_t *refs;
	uint32_t n_types, n_refs;

	/* Types in classes, see merge. */
	uint32_t *order, *place, *class, *spare;
	uint32_t *start, *size; /* of a class: where it begins in order, and how many types it has */
	uint32_t n_classes;
	uint32_t *by, *by_end; /* references by target: their numbers; by type, where those to it end */
	uint32_t *owner;       /* of a reference: the type that has it */
	struct seen *seen;     /* the references that a round looks at, in the order of by_seen */
	uint32_t *by_seen;
	uint32_t *first_seen, *n_seen; /* by type: its part of by_seen */
	uint32_t *looked;              /* the types with such a part */

	uint32_t *out, n_out; /* the types to write */
	uint32_t *id;         /* by class: of the first of them, from 0 */
	const char **strings; /* in the order of their first use */
	uint32_t *offset;
	uint32_t n_strings;
	size_t type_bytes, string_bytes;
};

static void *scratch(struct build *b, size_t n, size_t size)
{
	void *p = resize(&b->a->memory, NULL, n, size);

	if (p)
		b->memory[b->n_memory++] = p;
	return p;
}

#define SCRATCH(b, p, n) ((*(p) = scratch((b), (n), sizeof(**(p)))) != NULL)

/* How many fields a type has, those without names included: the word of an INT, the length of an ARRAY, the linkage of
 * a FUNC or VAR. */
static uint32_t count_fields(const struct node *n)
{
	switch (n->kind) {
	case KIND_INT:
	case KIND_ARRAY:
	case KIND_FUNC:
	case KIND_VAR:
		return 1;
	}
	return n->count;
}

/* Where the size of a type is among its numbers, if it has one. */
static uint32_t size_of(const struct node *n, const uint32_t *numbers)
{
	unsigned k = count_numbers(n);

	return !k || n->kind == KIND_ARRAY || is_link(n->kind) ? 0 : numbers[(k - 1) * words_of(n, 0)];
}

/* A member, enumerator or parameter, or one of the fields without names. */
struct field {
	const char *name;
	uint32_t low, high;
};

static struct field field_of(const struct btfa *a, const struct type *t, uint32_t i)
{
	const struct node *n = t->node;
	struct field f = { "", 0, 0 };

	if (i < n->count) {
		uint32_t field = a->fields[n->fields + i], name = field & 0xffffff;

		if (name)
			f.name = a->text + a->names[name - 1];
		f.low = field & 0xff000000;
	}
	if (n->kind == KIND_ENUM64 || n->kind == KIND_ENUM) {
		uint64_t v = load_number(n, 0, t->numbers + i * words_of(n, 0));

		f.low = (uint32_t)v;
		f.high = (uint32_t)(v >> 32);
	} else if (n->kind != KIND_FUNC_PROTO) {
		f.low |= t->numbers[i];
	}
	return f;
}

/* Finds the variant in each slot of a layout, from 1, or 0 for none. */
static void variants_of(const struct btfa *a, uint32_t layout, uint32_t *variants)
{
	uint32_t i;

	for (i = 0; i < a->n_slots; i++)
		variants[i] = NONE;
	for (; layout != NONE; layout = a->layouts[layout].parent)
		for (i = a->layouts[layout].changes; i < a->layouts[layout + 1].changes; i++)
			if (variants[a->changes[i].slot] == NONE) /* the first change comes from the youngest layout */
				variants[a->changes[i].slot] = a->changes[i].variant;
	for (i = 0; i < a->n_slots; i++)
		if (variants[i] == NONE)
			variants[i] = 0;
}

/* The variant of a slot. */
static const struct variant *variant_of(const struct btfa *a, uint32_t slot, uint32_t v)
{
	return &a->variants[a->slots[slot] + v - 1];
}

/* Counts the types of a layout and their references, and notes where the types of each slot begin. Returns
 * what is wrong. */
static const char *count_types(struct build *b, const uint32_t *variants, uint32_t *at)
{
	const struct btfa *a = b->a;
	size_t content = 0;
	uint32_t s, i;

	for (s = 0; s < a->n_slots; s++) {
		const struct node *n = variants[s] ? &a->nodes[variant_of(a, s, variants[s])->nodes] : NULL;

		at[s] = n ? b->n_types : NONE;
		for (; n; n = n->last ? NULL : n + 1) {
			if (b->n_types++ == MAX_TYPES)
				return "BTF would have more than 65536 types";
			b->n_refs += count_refs(n);
			content += 32 + 16 * (size_t)count_fields(n);
			if (at[s] == b->n_types - 1)
				content += strlen(a->text + a->names[s]);
			for (i = 0; i < n->count && content <= MAX_CONTENT; i++) {
				uint32_t name = a->fields[n->fields + i] & 0xffffff;

				if (name)
					content += strlen(a->text + a->names[name - 1]);
			}
			if (content > MAX_CONTENT)
				return "BTF would have more than 8388608 bytes";
		}
	}
	return NULL;
}

/* Resolves a reference of a definition whose types begin at base. Reports whether it leads somewhere. */
static int resolve(struct build *b, uint32_t ref, const uint32_t *at, uint32_t base)
{
	uint32_t to = NONE;

	if (ref >= 2)
		to = ref % 2 ? at[(ref - 2) / 2] : base + (ref - 2) / 2;
	b->refs[b->n_refs++] = to;
	return !ref || to != NONE;
}

/* Makes the types of a layout: the nodes of the variant in each slot, slot after slot. */
static int make_types(struct build *b, uint32_t layout, struct btfa_error *e)
{
	const struct btfa *a = b->a;
	uint32_t *variants, *at, s, i, k = 0;
	const char *wrong;

	if (!SCRATCH(b, &variants, a->n_slots) || !SCRATCH(b, &at, a->n_slots))
		return fail_memory(e);
	variants_of(a, layout, variants);
	wrong = count_types(b, variants, at);
	if (wrong)
		return fail(e, BTFA_DAMAGED, "archive: %s", wrong);
	if (!SCRATCH(b, &b->types, b->n_types) || !SCRATCH(b, &b->refs, b->n_refs))
		return fail_memory(e);
	b->n_refs = 0;
	for (s = 0; s < a->n_slots; s++) {
		const struct variant *v = variants[s] ? variant_of(a, s, variants[s]) : NULL;
		const struct node *n = v ? &a->nodes[v->nodes] : NULL;
		const uint32_t *numbers = v ? a->numbers + v->numbers : NULL;

		for (; n; n = n->last ? NULL : n + 1) {
			struct type *t = &b->types[k];
			unsigned words = count_numbers(n);

			t->node = n;
			t->copies = k++ == at[s];
			t->name = t->copies ? a->text + a->names[s] : "";
			t->numbers = numbers;
			t->size = size_of(n, numbers);
			t->refs = b->n_refs;
			if (words)
				numbers += (words - 1) * words_of(n, 0) + 1;
			for (i = 0; i < count_refs(n); i++)
				if (!resolve(b, a->refs[n->refs + i], at, at[s]))
					return fail(e, BTFA_DAMAGED,
						    "archive: a type refers to one that the BTF does not have");
		}
	}
	return BTFA_OK;
}

/* -- merge --
 *
 * Equal types become one, and get an order that depends only on the types. They are split into classes by their
 * content, and then again by the classes of the types that they refer to, until no class can be split. The order
 * of two types does not change once they are in different classes.
 *
 * The first two rounds look at every type. A later round looks at the types that refer to a class that the round
 * before has split, but not at those that refer to its largest part (Hopcroft's trick). So n types with their
 * references take n log n steps.
 */

static int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_content(const void *context, uint32_t i, uint32_t j)
{
	const struct build *b = context;
	const struct type *x = &b->types[i], *y = &b->types[j];
	uint32_t k, n = count_fields(x->node);
	int c;

	if ((c = strcmp(x->name, y->name)) || (c = x->node->kind - y->node->kind) ||
	    (c = (int)x->node->flag - (int)y->node->flag) || (c = compare_u32(x->size, y->size)) ||
	    (c = compare_u32(n, count_fields(y->node))))
		return c;
	for (k = 0; k < n; k++) {
		struct field f = field_of(b->a, x, k), g = field_of(b->a, y, k);

		if ((c = strcmp(f.name, g.name)) || (c = compare_u32(f.high, g.high)) || (c = compare_u32(f.low, g.low)))
			return c;
	}
	return 0;
}

static uint32_t new_class(struct build *b, uint32_t at)
{
	b->start[b->n_classes] = at;
	b->size[b->n_classes] = 0;
	return b->n_classes++;
}

static void join(struct build *b, uint32_t type, uint32_t class)
{
	b->class[type] = class;
	b->size[class]++;
}

static void by_content(struct build *b)
{
	uint32_t i;

	for (i = 0; i < b->n_types; i++)
		b->order[i] = i;
	sort(b->order, b->n_types, b->spare, compare_content, b);
	for (i = 0; i < b->n_types; i++) {
		b->place[b->order[i]] = i;
		if (!i || compare_content(b, b->order[i - 1], b->order[i]))
			new_class(b, i);
		join(b, b->order[i], b->n_classes - 1);
	}
}

/* Compares types of one content by the classes of what they refer to, which are in the order of their
 * numbers. */
static int compare_refs(const void *context, uint32_t i, uint32_t j)
{
	const struct build *b = context;
	const uint32_t *x = b->refs + b->types[i].refs, *y = b->refs + b->types[j].refs;
	uint32_t k, n = count_refs(b->types[i].node);

	for (k = 0; k < n; k++) {
		int c = compare_u32(x[k] == NONE ? 0 : b->class[x[k]] + 1, y[k] == NONE ? 0 : b->class[y[k]] + 1);

		if (c)
			return c;
	}
	return 0;
}

/* Splits each class by the classes, before any split, of the types that its types refer to. */
static void by_refs(struct build *b, struct splits *s)
{
	uint32_t c, i, classes = b->n_classes;
	uint32_t *cut = b->looked; /* places where a part begins; nothing is looked at yet */
	uint32_t cuts = 0, next = 0;

	for (c = 0; c < classes; c++) {
		sort(b->order + b->start[c], b->size[c], b->spare, compare_refs, b);
		for (i = b->start[c] + 1; i < b->start[c] + b->size[c]; i++)
			if (compare_refs(b, b->order[i - 1], b->order[i]))
				cut[cuts++] = i;
	}
	for (i = 0; i < b->n_types; i++)
		b->place[b->order[i]] = i;
	for (c = 0; c < classes; c++) {
		uint32_t until = b->start[c] + b->size[c], part = c;

		if (next == cuts || cut[next] >= until)
			continue;
		s->classes[s->n++] = c;
		for (i = cut[next]; i < until; i++) {
			if (next < cuts && i == cut[next]) {
				s->classes[s->n++] = part = new_class(b, i);
				next++;
			}
			b->size[c]--;
			join(b, b->order[i], part);
		}
		s->end[s->groups++] = s->n;
	}
}

/* Notes the references to each type. */
static void find_referrers(struct build *b)
{
	uint32_t i, k, sum = 0;

	memset(b->by_end, 0, b->n_types * sizeof(*b->by_end));
	for (i = 0; i < b->n_types; i++)
		for (k = 0; k < count_refs(b->types[i].node); k++)
			b->owner[b->types[i].refs + k] = i;
	for (i = 0; i < b->n_refs; i++)
		if (b->refs[i] != NONE)
			b->by_end[b->refs[i]]++;
	for (i = 0; i < b->n_types; i++) {
		uint32_t n = b->by_end[i];

		b->by_end[i] = sum;
		sum += n;
	}
	for (i = 0; i < b->n_refs; i++)
		if (b->refs[i] != NONE)
			b->by[b->by_end[b->refs[i]]++] = i;
}

/* Collects the references to a class, whose parts' largest begins at most. */
static uint32_t see(struct build *b, uint32_t class, uint32_t most, uint32_t n)
{
	uint32_t i, k;

	for (i = b->start[class]; i < b->start[class] + b->size[class]; i++) {
		uint32_t t = b->order[i];

		for (k = t ? b->by_end[t - 1] : 0; k < b->by_end[t]; k++) {
			uint32_t ref = b->by[k], from = b->owner[ref];
			struct seen seen = { from, ref, b->start[class], most };

			if (b->size[b->class[from]] == 1)
				continue;
			b->n_seen[from]++;
			b->seen[n++] = seen;
		}
	}
	return n;
}

static int compare_seen(const void *context, uint32_t i, uint32_t j)
{
	const struct seen *seen = ((const struct build *)context)->seen;

	return compare_u32(seen[i].ref, seen[j].ref); /* those of one type are side by side */
}

/* Compares two types of a class by their references. References that the round does not look at lead to the largest
 * part, like all references of the type NONE. */
static int compare_looks(const void *context, uint32_t x, uint32_t y)
{
	const struct build *b = context;
	uint32_t i = 0, j = 0, n = b->n_seen[x], m = y == NONE ? 0 : b->n_seen[y];

	while (i < n || j < m) {
		const struct seen *s = i < n ? &b->seen[b->by_seen[b->first_seen[x] + i]] : NULL;
		const struct seen *t = j < m ? &b->seen[b->by_seen[b->first_seen[y] + j]] : NULL;
		uint32_t k = s ? s->ref - b->types[x].refs : NONE, l = t ? t->ref - b->types[y].refs : NONE;
		int c;

		if (k < l) {
			c = compare_u32(s->at, s->most);
			i++;
		} else if (l < k) {
			c = compare_u32(t->most, t->at);
			j++;
		} else {
			c = compare_u32(s->at, t->at);
			i++;
			j++;
		}
		if (c)
			return c;
	}
	return 0;
}

static int compare_classes(const void *context, uint32_t i, uint32_t j)
{
	const struct build *b = context;

	return compare_u32(b->class[i], b->class[j]);
}

/* Swaps a type with the type at a place. */
static void put(struct build *b, uint32_t type, uint32_t at)
{
	uint32_t other = b->order[at], from = b->place[type];

	b->order[at] = type;
	b->order[from] = other;
	b->place[type] = at;
	b->place[other] = from;
}

/* Splits a class, given those n of its types that are looked at. The others stay a class, between the parts. */
static void split_class(struct build *b, uint32_t *looked, uint32_t n, struct splits *next)
{
	uint32_t class = b->class[looked[0]], start = b->start[class], rest = b->size[class] - n;
	uint32_t parts = next->n, part = class, before = 0, k;

	sort(looked, n, b->spare, compare_looks, b);
	while (before < n && compare_looks(b, looked[before], NONE) < 0)
		before++;
	next->classes[parts++] = class;
	for (k = 0; k < n; k++) {
		int same = k && !compare_looks(b, looked[k - 1], looked[k]);

		if (!same && (k || rest))
			next->classes[parts++] = part = new_class(b, start + k + (k < before ? 0 : rest));
		if (part != class) {
			b->size[class]--;
			join(b, looked[k], part);
		}
	}
	/* From the front those that come before the rest, from the end those after. */
	for (k = 0; k < before; k++)
		put(b, looked[k], start + k);
	for (k = n; k > before; k--)
		put(b, looked[k - 1], start + rest + k - 1);
	if (rest)
		b->start[class] = start + before;
	if (parts - next->n > 1) {
		next->n = parts;
		next->end[next->groups++] = parts;
	}
}

/* Splits classes by the splits of the round before. */
static void next_round(struct build *b, const struct splits *splits, struct splits *next)
{
	uint32_t g, i, k, n = 0, looked = 0;

	for (g = 0, i = 0; g < splits->groups; i = splits->end[g++]) {
		uint32_t largest = splits->classes[i];

		for (k = i; k < splits->end[g]; k++)
			if (b->size[splits->classes[k]] > b->size[largest])
				largest = splits->classes[k];
		for (k = i; k < splits->end[g]; k++)
			if (splits->classes[k] != largest)
				n = see(b, splits->classes[k], b->start[largest], n);
	}
	for (i = 0; i < n; i++)
		b->by_seen[i] = i;
	sort(b->by_seen, n, b->spare, compare_seen, b);
	for (i = 0; i < n; i += b->n_seen[b->looked[looked++]]) {
		b->looked[looked] = b->seen[b->by_seen[i]].from;
		b->first_seen[b->looked[looked]] = i;
	}
	sort(b->looked, looked, b->spare, compare_classes, b);
	next->n = next->groups = 0;
	for (i = 0; i < looked; i = k) {
		uint32_t class = b->class[b->looked[i]];

		for (k = i + 1; k < looked && b->class[b->looked[k]] == class; k++)
			;
		split_class(b, b->looked + i, k - i, next);
	}
	for (i = 0; i < looked; i++)
		b->n_seen[b->looked[i]] = 0;
}

static int compare_places(const void *context, uint32_t i, uint32_t j)
{
	(void)context;
	return compare_u32(i, j);
}

/* Keeps one anonymous type of each class, or as many as are wanted, in the order of the classes, and then the type of
 * each slot with a name. Those of one name are in the order of their slots. */
static void keep_one_each(struct build *b)
{
	uint32_t i, k, n;

	for (i = 0; i < b->n_classes; i++)
		b->id[i] = NONE;
	for (i = 0; i < b->n_types; i += n) {
		uint32_t first = b->order[i], class = b->class[first], copies = 0;
		const char *name = b->types[first].name;

		if (!*name) {
			n = b->size[class];
			for (k = 0; k < n; k++)
				copies += b->types[b->order[i + k]].copies;
			b->id[class] = b->n_out;
			do
				b->out[b->n_out++] = first;
			while (copies-- > 1);
			continue;
		}
		for (n = 1; i + n < b->n_types && !strcmp(b->types[b->order[i + n]].name, name); n++)
			;
		sort(b->order + i, n, b->spare, compare_places, b);
		for (k = i; k < i + n; k++) {
			class = b->class[b->order[k]];
			if (b->id[class] == NONE)
				b->id[class] = b->n_out;
			b->out[b->n_out++] = b->order[k];
		}
	}
}

static int merge(struct build *b, struct btfa_error *e)
{
	struct splits now = { 0 }, next = { 0 }, swap;
	uint32_t t = b->n_types, r = b->n_refs;

	if (!SCRATCH(b, &b->order, t) || !SCRATCH(b, &b->place, t) || !SCRATCH(b, &b->class, t) ||
	    !SCRATCH(b, &b->spare, t > r ? t : r) || !SCRATCH(b, &b->start, t) || !SCRATCH(b, &b->size, t) ||
	    !SCRATCH(b, &b->by, r) || !SCRATCH(b, &b->by_end, t) || !SCRATCH(b, &b->owner, r) ||
	    !SCRATCH(b, &b->seen, r) || !SCRATCH(b, &b->by_seen, r) || !SCRATCH(b, &b->first_seen, t) ||
	    !SCRATCH(b, &b->n_seen, t) || !SCRATCH(b, &b->looked, t) || !SCRATCH(b, &b->out, t) ||
	    !SCRATCH(b, &b->id, t) || !SCRATCH(b, &now.classes, t) || !SCRATCH(b, &now.end, t) ||
	    !SCRATCH(b, &next.classes, t) || !SCRATCH(b, &next.end, t))
		return fail_memory(e);
	memset(b->n_seen, 0, t * sizeof(*b->n_seen));
	by_content(b);
	by_refs(b, &now);
	find_referrers(b);
	while (now.groups) {
		next_round(b, &now, &next);
		swap = now;
		now = next;
		next = swap;
	}
	keep_one_each(b);
	return BTFA_OK;
}

/* -- write -- */

static int compare_strings(const void *context, uint32_t i, uint32_t j)
{
	const struct build *b = context;

	return b->strings[i] == b->strings[j] ? 0 : strcmp(b->strings[i], b->strings[j]);
}

/* The number of words of a type. */
static size_t count_words(const struct node *n)
{
	switch (n->kind) {
	case KIND_INT:
	case KIND_VAR:
		return 3 + 1;
	case KIND_ARRAY:
		return 3 + 3;
	case KIND_STRUCT:
	case KIND_UNION:
	case KIND_ENUM64:
		return 3 + 3 * (size_t)n->count;
	case KIND_ENUM:
	case KIND_FUNC_PROTO:
		return 3 + 2 * (size_t)n->count;
	}
	return 3;
}

/* Lays out the section of strings: each distinct name once, in the order in which a walk over the types meets
 * it. */
static int place_strings(struct build *b, struct btfa_error *e)
{
	uint32_t *sorted, i, k, n = b->n_out;

	for (i = 0; i < b->n_out; i++) {
		n += b->types[b->out[i]].node->count;
		b->type_bytes += 4 * count_words(b->types[b->out[i]].node);
	}
	if (!SCRATCH(b, &b->strings, n) || !SCRATCH(b, &b->offset, n) || !SCRATCH(b, &sorted, n) ||
	    !SCRATCH(b, &b->spare, n))
		return fail_memory(e);
	for (i = 0; i < b->n_out; i++) {
		const struct type *t = &b->types[b->out[i]];

		b->strings[b->n_strings++] = t->name;
		for (k = 0; k < t->node->count; k++)
			b->strings[b->n_strings++] = field_of(b->a, t, k).name;
	}
	for (i = 0; i < n; i++)
		sorted[i] = i;
	sort(sorted, n, b->spare, compare_strings, b);
	/* For each string its first use: equal strings are still in order. */
	for (i = 0; i < n; i++)
		b->spare[sorted[i]] = i && !compare_strings(b, sorted[i - 1], sorted[i]) ? b->spare[sorted[i - 1]] : sorted[i];
	b->string_bytes = 1;
	for (i = 0; i < n; i++) {
		if (b->spare[i] != i) {
			b->offset[i] = b->offset[b->spare[i]];
		} else if (!*b->strings[i]) {
			b->offset[i] = 0;
		} else {
			b->offset[i] = (uint32_t)b->string_bytes;
			b->string_bytes += strlen(b->strings[i]) + 1;
		}
	}
	return BTFA_OK;
}

/* The output, in the byte order of the kernel. */
struct output {
	uint8_t *at;
	int big_endian;
};

static void put_word(struct output *o, uint32_t v)
{
	int i;

	for (i = 0; i < 4; i++)
		*o->at++ = (uint8_t)(v >> 8 * (o->big_endian ? 3 - i : i));
}

static void put_ref(const struct build *b, struct output *o, uint32_t ref)
{
	put_word(o, ref == NONE ? 0 : b->id[b->class[ref]] + 1);
}

/* Writes a type and returns how many strings it has. */
static uint32_t put_type(const struct build *b, struct output *o, const struct type *t, const uint32_t *offset)
{
	const struct node *n = t->node;
	const uint32_t *ref = b->refs + t->refs;
	uint32_t i;

	put_word(o, offset[0]);
	put_word(o, (uint32_t)n->flag << 31 | (uint32_t)n->kind << 24 | (n->kind == KIND_FUNC ? t->numbers[0] : n->count));
	if (is_link(n->kind) || n->kind == KIND_FUNC_PROTO)
		put_ref(b, o, *ref++);
	else
		put_word(o, t->size);
	if (n->kind == KIND_FUNC) /* its linkage stands where others have their number of fields */
		return 1;
	if (n->kind == KIND_ARRAY) {
		put_ref(b, o, ref[0]);
		put_ref(b, o, ref[1]);
	}
	for (i = 0; i < count_fields(n); i++) {
		struct field f = field_of(b->a, t, i);

		if (n->count)
			put_word(o, offset[1 + i]);
		if (is_composite(n->kind) || n->kind == KIND_FUNC_PROTO)
			put_ref(b, o, ref[i]);
		if (n->kind != KIND_FUNC_PROTO)
			put_word(o, f.low);
		if (n->kind == KIND_ENUM64)
			put_word(o, f.high);
	}
	return 1 + n->count;
}

static void write_btf(const struct build *b, int big_endian, uint8_t *buffer)
{
	struct output o = { buffer, big_endian };
	const uint32_t *offset = b->offset;
	uint32_t i;

	put_word(&o, big_endian ? 0xeb9f0100 : 0x0001eb9f); /* magic, version, flags */
	put_word(&o, 24);
	put_word(&o, 0);
	put_word(&o, (uint32_t)b->type_bytes);
	put_word(&o, (uint32_t)b->type_bytes);
	put_word(&o, (uint32_t)b->string_bytes);
	for (i = 0; i < b->n_out; i++)
		offset += put_type(b, &o, &b->types[b->out[i]], offset);
	*o.at++ = 0;
	for (i = 0; i < b->n_strings; i++) {
		size_t n = strlen(b->strings[i]) + 1;

		if (b->spare[i] != i || n == 1)
			continue;
		memcpy(o.at, b->strings[i], n);
		o.at += n;
	}
}

long btfa_btf(const struct btfa *a, const struct btfa_key *key, void *buffer, size_t size, struct btfa_error *e)
{
	struct parts want = parts_of_key(key);
	uint32_t kernel = find_kernel(a, &want), layout;
	struct build b = { 0 };
	long status;

	if (kernel == NONE)
		return fail(e, BTFA_NO_KERNEL, "archive: kernel is not in the archive");
	layout = a->kernels[kernel].layout;
	b.a = a;
	if (!(status = make_types(&b, layout, e)) && !(status = merge(&b, e)) && !(status = place_strings(&b, e))) {
		size_t n = 24 + b.type_bytes + b.string_bytes;

		if (n <= size)
			write_btf(&b, a->layouts[layout].big_endian, buffer);
		status = (long)n;
	}
	while (b.n_memory)
		give_back(&a->memory, b.memory[--b.n_memory]);
	return status;
}

/* -- host -- */

/* Opens a file of the system under root, and follows links as if root were "/": in a container they would else
 * lead to the container's own files. Returns -1 if it cannot. */
static int open_under(int root, const char *name)
{
	char done[4096] = "", todo[4096], link[4096]; /* done has no links */
	int links = 40;
	size_t n;

	for (snprintf(todo, sizeof(todo), "%s", name); *todo;) {
		size_t length = strcspn(todo, "/"), at = strlen(done);
		ssize_t to;

		if (length == 2 && !memcmp(todo, "..", 2)) {
			char *slash = strrchr(done, '/');

			*(slash ? slash : done) = 0;
		} else if (length && (length > 1 || *todo != '.')) {
			if (at + length + 2 > sizeof(done))
				return -1;
			sprintf(done + at, "%s%.*s", at ? "/" : "", (int)length, todo);
			to = readlinkat(root, done, link, sizeof(link) - 1);
			if (to > 0) {
				n = strlen(todo + length);
				if (!links-- || (size_t)to + n + 1 > sizeof(todo))
					return -1;
				memmove(todo + to, todo + length, n + 1);
				memcpy(todo, link, (size_t)to);
				done[*link == '/' ? 0 : at] = 0;
				continue;
			}
		}
		length += todo[length] == '/';
		memmove(todo, todo + length, strlen(todo + length) + 1);
	}
	return openat(root, *done ? done : ".", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

#define MAX_OS_RELEASE (1u << 20)

/* Reads a file into memory that the caller frees. */
static int read_file(int fd, const char *name, const struct btfa_allocator *m, char **data, size_t *size,
		     struct btfa_error *e)
{
	size_t room = 0;
	ssize_t n;

	for (*size = 0, *data = NULL;; *size += (size_t)n) {
		if (*size == room) {
			char *p = resize(m, *data, room = room ? 2 * room : 4096, 1);

			if (!p)
				return fail_memory(e);
			*data = p;
		}
		do
			n = read(fd, *data + *size, room - *size);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return fail_system(e, "host: os-release: ", name);
		if (!n)
			return BTFA_OK;
		if (*size + (size_t)n > MAX_OS_RELEASE)
			return fail(e, BTFA_NO_HOST, "host: os-release: %s: too long for an os-release file", name);
	}
}

/* Copies one shell word, which consists of bare pieces and pieces in quotes. In single quotes a backslash is an
 * ordinary character; in double quotes it escapes only special characters. A quote ends with the line at the latest.
 * Returns 0 if the word is longer than a part of a key, or has a NUL; it is empty then. */
static int unquote(const char *s, const char *end, char part[PART])
{
	char quote = 0;
	size_t n = 0;

	for (; s < end; s++) {
		char c = *s;

		if (quote && c == quote) {
			quote = 0;
			continue;
		}
		if (quote != '\'') {
			if (c == '\\' && s + 1 < end && (!quote || (s[1] && strchr("\"\\$`", s[1])))) {
				c = *++s;
			} else if (!quote && (c == '"' || c == '\'')) {
				quote = c;
				continue;
			} else if (!quote && (c == ' ' || c == '\t')) {
				break; /* the end of the word */
			}
		}
		if (n == PART - 1 || !c) {
			*part = 0;
			return 0;
		}
		part[n++] = c;
	}
	part[n] = 0;
	return 1;
}

static int is_space(char c)
{
	return c == ' ' || ('\t' <= c && c <= '\r');
}

/* The variables of os-release that matter. */
enum { OS_ID, OS_VERSION_ID, OS_LIKE, OS_CODENAME, OS_UBUNTU, OS_DEBIAN, OS_BUILD_ID, OS_BOARD, OS_VARIABLES };

static const char os_variables[OS_VARIABLES][20] = { "ID=", "VERSION_ID=", "ID_LIKE=", "VERSION_CODENAME=",
	"UBUNTU_CODENAME=", "DEBIAN_CODENAME=", "BUILD_ID=", "OPENWRT_BOARD=" };

/* Adds a distribution, whose name has n bytes, to those that a system is derived from. */
static void add_like(struct btfa_system *system, const char *name, size_t n, char vars[OS_VARIABLES][PART])
{
	char id[PART], room[PART];
	const char *name_of, *version = system->key.version_id;
	size_t i;

	memcpy(id, name, n);
	id[n] = 0;
	name_of = canonical_id(id, room);
	if (!n || check_part(name_of) || !strcmp(name_of, system->key.id))
		return;
	if (!strcmp(name_of, "ubuntu")) {
		version = USUAL(vars[OS_UBUNTU], ubuntus);
		if (version == vars[OS_UBUNTU])
			version = USUAL(vars[OS_CODENAME], ubuntus);
	} else if (!strcmp(name_of, "debian")) {
		version = USUAL(vars[OS_DEBIAN], debians);
		if (version == vars[OS_DEBIAN])
			version = USUAL(vars[OS_CODENAME], debians);
	}
	if (version == vars[OS_CODENAME])
		version = ""; /* not a codename of it */
	for (i = 0; i < SIZE(system->like); i++) {
		struct btfa_distribution *d = &system->like[i];

		if (!strcmp(d->id, name_of))
			return;
		if (!*d->id) {
			strcpy(d->id, name_of);
			strcpy(d->version_id, version);
			return;
		}
	}
}

/* Reads the distribution, its version, and those that it is derived from. The last assignment to a variable counts. */
static int parse_os_release(const char *s, size_t size, struct btfa_system *system, struct btfa_error *e)
{
	const char *all = s + size;
	char vars[OS_VARIABLES][PART] = { "" }, room[PART], *build = NULL;
	struct btfa_key *key = &system->key;
	int i, valid[OS_VARIABLES];
	size_t n;

	for (i = 0; i < OS_VARIABLES; i++)
		valid[i] = 1;
	while (s < all) {
		const char *line = s, *newline = memchr(s, '\n', (size_t)(all - s)), *stop = newline ? newline : all;

		s = newline ? newline + 1 : all;
		while (line < stop && is_space(*line))
			line++;
		while (line < stop && is_space(stop[-1]))
			stop--;
		for (i = 0; i < OS_VARIABLES; i++) {
			n = strlen(os_variables[i]);
			if ((size_t)(stop - line) >= n && !memcmp(line, os_variables[i], n))
				valid[i] = unquote(line + n, stop, vars[i]);
		}
	}
	for (i = OS_BUILD_ID; i <= OS_BOARD; i++)
		for (build = vars[i]; *build; build++)
			if (*build == '/')
				*build = '_';
	for (i = 0; i < OS_VARIABLES; i++)
		if (check_part(vars[i])) {
			valid[i] = 0;
			*vars[i] = 0;
		}
	if (!valid[OS_ID])
		return fail(e, BTFA_NO_HOST, "host: os-release: ID is no part of a key");
	strcpy(key->id, canonical_id(*vars[OS_ID] ? vars[OS_ID] : "linux", room));
	strcpy(key->version_id, vars[OS_VERSION_ID]);
	if (USUAL(vars[OS_UBUNTU], ubuntus) != vars[OS_UBUNTU])
		add_like(system, "ubuntu", 6, vars);
	if (USUAL(vars[OS_DEBIAN], debians) != vars[OS_DEBIAN])
		add_like(system, "debian", 6, vars);
	for (build = vars[OS_LIKE]; *build; build += n + (build[n] == ' ')) {
		n = strcspn(build, " ");
		add_like(system, build, n, vars);
	}
	build = !strcmp(key->id, "cos") ? vars[OS_BUILD_ID] : !strcmp(key->id, "openwrt") ? vars[OS_BOARD] : vars[OS_ID] + strlen(vars[OS_ID]);
	n = strlen(key->version_id);
	if (*build && n && n + 1 + strlen(build) < PART) {
		key->version_id[n] = '-';
		strcpy(key->version_id + n + 1, build);
	}
	return BTFA_OK;
}

/* Opens the os-release file. *fd is -1 if there is none. */
static int open_os_release(const struct btfa_host_options *o, int *fd, struct btfa_error *e)
{
	const char *root = o->root && *o->root ? o->root : "/";
	int dir;

	if (o->os_release && *o->os_release) {
		*fd = open(o->os_release, O_RDONLY | O_CLOEXEC);
		return *fd < 0 ? fail_system(e, "host: os-release: ", o->os_release) : BTFA_OK;
	}
	dir = open(root, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (dir < 0)
		return fail_system(e, "host: os-release: ", root);
	*fd = open_under(dir, "etc/os-release");
	if (*fd < 0)
		*fd = open_under(dir, "usr/lib/os-release");
	close(dir);
	return BTFA_OK;
}

/* Sets a part of a key to the given text or, if that is empty, to the result of uname. */
static int set_part(char part[PART], const char *given, const char *told, const char *name, struct btfa_error *e)
{
	const char *s = given && *given ? given : told, *wrong = check_part(s);

	if (wrong)
		return fail(e, BTFA_NO_HOST, "host: %s %s", name, wrong);
	strcpy(part, s);
	return BTFA_OK;
}

/* Replaces what uname says on MIPS of either byte order by the little-endian arch, if this program is little-endian. */
static void set_byte_order(char arch[PART])
{
	static const uint16_t one = 1;

	if (*(const uint8_t *)&one && (!strcmp(arch, "mips") || !strcmp(arch, "mips64")))
		strcat(arch, "el");
}

int btfa_host(struct btfa_system *system, const struct btfa_host_options *options, struct btfa_error *e)
{
	struct btfa_key *key = &system->key;
	struct btfa_host_options none = { 0 }, o = options ? *options : none;
	struct btfa_allocator m = allocator_or_malloc(o.allocator);
	struct utsname u;
	char *data = NULL;
	size_t size;
	int fd = -1, status;

	memset(system, 0, sizeof(*system));
	status = open_os_release(&o, &fd, e);
	if (status)
		return status;
	if (fd >= 0) {
		status = read_file(fd, o.os_release && *o.os_release ? o.os_release : "os-release", &m, &data, &size, e);
		close(fd);
		if (!status)
			status = parse_os_release(data, size, system, e);
		give_back(&m, data);
		if (status)
			return status;
	}
	if (uname(&u))
		return fail_system(e, "host: ", "uname");
	if ((status = set_part(key->release, o.release, u.release, "release", e)) ||
	    (status = set_part(key->arch, o.arch, u.machine, "arch", e)))
		return status;
	set_byte_order(key->arch);
	btfa_canonical(key);
	return BTFA_OK;
}

/* Creates a file in memory, and its path. */
static int memory_file(struct btfa_found *f, const uint8_t *btf, size_t size, struct btfa_error *e)
{
	struct stat st;

	f->fd = (int)syscall(SYS_memfd_create, "kernel.btf", 1u /* MFD_CLOEXEC */);
	if (f->fd < 0)
		return fail_system(e, "", "memfd_create");
	while (size) {
		ssize_t n = write(f->fd, btf, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_system(e, "", "file in memory");
		btf += n;
		size -= (size_t)n;
	}
	snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
	if (stat(f->path, &st))
		return fail_system(e, "", f->path);
	return BTFA_OK;
}

/* -- covers -- */

/* A BPF object, as far as its relocations. Numbers have its byte order. */
struct object {
	const struct btfa *archive; /* for memory */
	int big_endian;
	const uint8_t *types, *strings;
	size_t types_size, strings_size;
	const uint8_t *records; /* of .BTF.ext: those of all sections */
	size_t records_size;
	uint32_t *at; /* where each type starts in types, from type 1 */
	uint32_t n_types;
	struct record *relocations;
	uint32_t n_relocations;
	/* For structure: the number of each type, if its round is the present one, and the types by number. */
	uint32_t *number, *round, *list;
	uint32_t rounds;
	uint64_t hash;
	uint32_t hashed; /* bytes */
};

/* A CO-RE record without its place. */
struct record {
	uint32_t type, access, kind;
	uint64_t hash;
};

#define MAX_HASHED (16u << 20)
#define MAX_NAME 4097 /* longer names match nothing */

enum { CORE_LOCAL_TYPE_ID = 6, CORE_TYPE_SIZE = 9, CORE_TYPE_MATCHES = 12 };

/* For functions that are called once at start-up, or whose copies would make the library a tenth larger. */
#if defined(__GNUC__)
#define SMALL __attribute__((cold, noinline))
#else
#define SMALL
#endif

SMALL static uint32_t load(const struct object *o, const uint8_t *p, unsigned n)
{
	uint32_t v = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		v = v << 8 | p[o->big_endian ? i : n - 1 - i];
	return v;
}

SMALL static uint32_t word(const struct object *o, const uint8_t *p)
{
	return load(o, p, 4);
}

static uint64_t load64(const struct object *o, const uint8_t *p)
{
	uint64_t first = word(o, p), second = word(o, p + 4);

	return o->big_endian ? first << 32 | second : second << 32 | first;
}

/* Returns a section of an ELF file, or NULL. It sets *wrong if the file is damaged. */
SMALL static const uint8_t *section(struct object *o, const uint8_t *elf, size_t size, const char *name, size_t *n,
			      const char **wrong)
{
	uint64_t table, names, names_size, at, off;
	const uint8_t *s;
	uint32_t i, count, strings;

	*n = 0;
	if (*wrong)
		return NULL;
	table = load64(o, elf + 40);
	count = load(o, elf + 60, 2);
	strings = load(o, elf + 62, 2);
	if (load(o, elf + 58, 2) != 64 || table > size || count > (size - table) / 64 || strings >= count) {
		*wrong = "its section headers are damaged";
		return NULL;
	}
	s = elf + table + 64 * strings;
	names = load64(o, s + 24);
	names_size = load64(o, s + 32);
	if (names > size || names_size > size - names || !names_size || elf[names + names_size - 1]) {
		*wrong = "its section names are damaged";
		return NULL;
	}
	for (i = 0; i < count; i++) {
		s = elf + table + 64 * i;
		at = word(o, s);
		if (at >= names_size || strcmp((const char *)elf + names + at, name))
			continue;
		off = load64(o, s + 24);
		*n = load64(o, s + 32);
		if (word(o, s + 4) == 8 /* SHT_NOBITS */ || off > size || *n > size - off)
			*wrong = "a section lies outside the file";
		else if (load64(o, s + 8) & 0x800 /* SHF_COMPRESSED */)
			*wrong = "a section is compressed";
		return *wrong ? NULL : elf + off;
	}
	return NULL;
}

SMALL static unsigned kind_of(const uint8_t *t, const struct object *o)
{
	return word(o, t + 4) >> 24 & 0x7f;
}

SMALL static uint32_t vlen_of(const uint8_t *t, const struct object *o)
{
	return word(o, t + 4) & 0xffffff;
}

static int flag_of(const uint8_t *t, const struct object *o)
{
	return word(o, t + 4) >> 31 & 1;
}

/* Returns the record of a type; void if there is none. */
SMALL static const uint8_t *type_of(const struct object *o, uint32_t id)
{
	static const uint8_t none[12];

	return id && id <= o->n_types ? o->types + o->at[id - 1] : none;
}

/* Bytes of a type's record after the first 12; UINT64_MAX for an unknown kind. */
SMALL static uint64_t tail_of(const struct object *o, const uint8_t *t)
{
	uint64_t vlen = vlen_of(t, o);

	switch (kind_of(t, o)) {
	case KIND_INT: case KIND_VAR: case 17: /* DECL_TAG */
		return 4;
	case KIND_ARRAY:
		return 12;
	case KIND_STRUCT: case KIND_UNION: case 15: /* DATASEC */ case KIND_ENUM64:
		return 12 * vlen;
	case KIND_ENUM: case KIND_FUNC_PROTO:
		return 8 * vlen;
	case KIND_PTR: case KIND_FWD: case KIND_TYPEDEF: case KIND_VOLATILE: case KIND_CONST: case KIND_RESTRICT:
	case KIND_FUNC: case KIND_FLOAT: case KIND_TYPE_TAG:
		return 0;
	}
	return UINT64_MAX;
}

/* Cuts .BTF into types and strings, and finds the types. */
SMALL static const char *read_types(struct object *o, const uint8_t *p, size_t size)
{
	uint64_t header, types, strings, at;
	uint32_t pass;

	if (size < 24 || load(o, p, 2) != 0xeb9f || p[2] != 1)
		return "its .BTF has no header";
	header = word(o, p + 4);
	types = header + word(o, p + 8);
	strings = header + word(o, p + 16);
	o->types_size = word(o, p + 12);
	o->strings_size = word(o, p + 20);
	if (types > size || o->types_size > size - types || strings > size || o->strings_size > size - strings ||
	    !o->strings_size || p[strings + o->strings_size - 1])
		return "its .BTF is damaged";
	o->types = p + types;
	o->strings = p + strings;
	for (pass = 0; pass < 2; pass++) {
		o->n_types = 0;
		for (at = 0; at < o->types_size; o->n_types++) {
			uint64_t n = o->types_size - at < 12 ? UINT64_MAX : tail_of(o, o->types + at);

			if (n > o->types_size - at - 12)
				return "its .BTF has a damaged or unknown type";
			if (pass)
				o->at[o->n_types] = (uint32_t)at;
			at += 12 + n;
		}
		if (!pass && !(o->at = resize(&o->archive->memory, NULL, o->n_types, sizeof(*o->at))))
			return no_memory;
	}
	return NULL;
}

/* Reads the CO-RE records of .BTF.ext. */
SMALL static const char *read_records(struct object *o, const uint8_t *p, size_t size)
{
	uint64_t header, off, length, n;
	uint32_t record, pass;
	const uint8_t *at, *end;

	if (size < 24 || load(o, p, 2) != 0xeb9f || p[2] != 1)
		return "its .BTF.ext has no header";
	header = word(o, p + 4);
	if (header < 24 || header > size)
		return "its .BTF.ext is damaged";
	if (header < 32)
		return NULL;
	off = header + word(o, p + 24);
	length = word(o, p + 28);
	if (!length)
		return NULL;
	if (off > size || length > size - off || length < 4 || (record = word(o, p + off)) < 16 || record % 4)
		return "its .BTF.ext is damaged";
	end = p + off + length;
	for (pass = 0; pass < 2; pass++) {
		o->n_relocations = 0;
		for (at = p + off + 4; at < end;) {
			if (end - at < 8)
				return "its .BTF.ext is damaged";
			n = word(o, at + 4);
			at += 8;
			if (n > (size_t)(end - at) / record)
				return "its .BTF.ext is damaged";
			for (; n; n--, at += record) {
				struct record r = { word(o, at + 4), word(o, at + 8), word(o, at + 12), 0 };

				if (r.kind == CORE_LOCAL_TYPE_ID)
					continue;
				if (pass)
					o->relocations[o->n_relocations] = r;
				o->n_relocations++;
			}
		}
		if (!pass && !(o->relocations = resize(&o->archive->memory, NULL, o->n_relocations, sizeof(*o->relocations))))
			return no_memory;
	}
	return NULL;
}

/* Follows modifiers and typedefs. Returns UINT32_MAX for an endless chain. */
SMALL static uint32_t skip_modifiers(const struct object *o, uint32_t id)
{
	unsigned i;

	for (i = 0; i < 32; i++) {
		const uint8_t *t = type_of(o, id);

		switch (kind_of(t, o)) {
		case KIND_TYPEDEF: case KIND_VOLATILE: case KIND_CONST: case KIND_RESTRICT: case KIND_TYPE_TAG:
			id = word(o, t + 8);
			break;
		default:
			return id <= o->n_types ? id : 0;
		}
	}
	return UINT32_MAX;
}

/* Adds a byte to an FNV-1a hash. */
static uint64_t hash_byte(uint64_t hash, uint8_t b)
{
	return (hash ^ b) * 0x100000001b3u;
}

#define HASH_START 0xcbf29ce484222325u

static void add_byte(struct object *o, uint8_t b)
{
	o->hash = hash_byte(o->hash, b);
	o->hashed++;
}

SMALL static void hash_number(struct object *o, uint32_t v)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		add_byte(o, (uint8_t)(v >> 8 * i));
}

/* Returns the string at an offset, which ends with a NUL. */
static const char *string_at(const struct object *o, uint32_t off)
{
	return off < o->strings_size ? (const char *)o->strings + off : "";
}

SMALL static void hash_name(struct object *o, uint32_t off)
{
	const char *s = string_at(o, off);
	size_t n;

	for (n = 0; s[n] && n < MAX_NAME; n++)
		add_byte(o, (uint8_t)s[n]);
	add_byte(o, 0);
}

/* Hashes what loaders compare of the type of a field. */
SMALL static void hash_value(struct object *o, uint32_t id)
{
	const uint8_t *t;
	unsigned i, kind;
	uint32_t size, used;

	id = skip_modifiers(o, id);
	for (i = 0; i < 32 && id != UINT32_MAX && kind_of(type_of(o, id), o) == KIND_ARRAY; i++) {
		add_byte(o, KIND_ARRAY);
		id = skip_modifiers(o, word(o, type_of(o, id) + 12));
	}
	t = type_of(o, id);
	kind = kind_of(t, o);
	add_byte(o, (uint8_t)kind);
	size = word(o, t + 8);
	if (kind == KIND_INT || kind == KIND_ENUM || kind == KIND_ENUM64) {
		used = kind == KIND_INT ? word(o, t + 12) & 0xffffff : 8 * size;
		if (!size || size & (size - 1) || used != 8 * size)
			hash_number(o, size);
	}
	if (kind == KIND_ENUM || kind == KIND_ENUM64 || kind == KIND_FWD)
		hash_name(o, word(o, t));
}

/* Reads a number of an access string and the colon after it. */
static int next_index(const char **s, uint32_t *index, int *last)
{
	uint64_t v = 0;

	if (!is_digit(**s))
		return 0;
	for (; is_digit(**s); ++*s) {
		v = 10 * v + (uint64_t)(**s - '0');
		if (v > INT32_MAX)
			return 0;
	}
	*index = (uint32_t)v;
	*last = !**s;
	return *last || *(*s)++ == ':';
}

/* Hashes the names and elements on an access string. Returns 0 for a relocation that loaders refuse. */
SMALL static int hash_path(struct object *o, uint32_t root, const char *access)
{
	uint32_t id = skip_modifiers(o, root), index;
	int first = 1, last = 0;

	for (; !last; first = 0) {
		const uint8_t *t = type_of(o, id), *member;
		unsigned kind = kind_of(t, o);
		uint32_t next = id;

		if (!next_index(&access, &index, &last) || id == UINT32_MAX)
			return 0;
		if ((kind == KIND_ENUM || kind == KIND_ENUM64) && first && index < vlen_of(t, o)) {
			hash_name(o, word(o, t + 12 + (size_t)index * (kind == KIND_ENUM ? 8 : 12)));
			return 1;
		}
		if (first || (kind == KIND_ARRAY && (!word(o, t + 20) || index < word(o, t + 20)))) {
			if (!first)
				next = word(o, t + 12);
			add_byte(o, '[');
			hash_number(o, index);
		} else if ((kind == KIND_STRUCT || kind == KIND_UNION) && index < vlen_of(t, o)) {
			member = t + 12 + (size_t)index * 12;
			next = word(o, member + 4);
			add_byte(o, '.');
			add_byte(o, flag_of(t, o) && word(o, member + 8) >> 24);
			hash_name(o, word(o, member));
		} else {
			return 0;
		}
		hash_value(o, next);
		id = skip_modifiers(o, next);
	}
	return id != UINT32_MAX;
}

/* Hashes the number of a type, which becomes the next one of the list if it has none. */
SMALL static void hash_type(struct object *o, uint32_t id, uint32_t *n)
{
	id = skip_modifiers(o, id);
	if (id == UINT32_MAX) /* an endless chain is a type of its own, like void */
		id = 0;
	if (o->round[id] != o->rounds) {
		o->round[id] = o->rounds;
		o->number[id] = *n;
		o->list[(*n)++] = id;
	}
	hash_number(o, o->number[id]);
}

/* Hashes a type and all types that it leads to. */
SMALL static void hash_structure(struct object *o, uint32_t root, int members)
{
	uint32_t n = 0, i, j, vlen;

	o->rounds++;
	hash_type(o, root, &n);
	for (i = 0; i < n && o->hashed <= MAX_HASHED; i++) {
		const uint8_t *t = type_of(o, o->list[i]);
		unsigned kind = kind_of(t, o);

		add_byte(o, (uint8_t)kind);
		if (members)
			hash_name(o, word(o, t));
		vlen = vlen_of(t, o);
		switch (kind) {
		case KIND_INT:
			hash_number(o, word(o, t + 12));
			hash_number(o, word(o, t + 8));
			break;
		case KIND_PTR:
			hash_type(o, word(o, t + 8), &n);
			break;
		case KIND_ARRAY:
			hash_number(o, word(o, t + 20));
			hash_type(o, word(o, t + 12), &n);
			hash_type(o, word(o, t + 16), &n);
			break;
		case KIND_FUNC_PROTO:
			hash_number(o, vlen);
			for (j = 0; j < vlen; j++)
				hash_type(o, word(o, t + 16 + (size_t)j * 8), &n);
			hash_type(o, word(o, t + 8), &n);
			break;
		case KIND_FWD:
			if (flag_of(t, o))
				add_byte(o, 1);
			break;
		case KIND_STRUCT: case KIND_UNION:
			if (!members)
				break;
			hash_number(o, vlen);
			for (j = 0; j < vlen; j++) {
				hash_name(o, word(o, t + 12 + (size_t)j * 12));
				hash_type(o, word(o, t + 16 + (size_t)j * 12), &n);
			}
			break;
		case KIND_ENUM: case KIND_ENUM64:
			if (!members)
				break;
			hash_number(o, word(o, t + 8));
			hash_number(o, vlen);
			for (j = 0; j < vlen; j++)
				hash_name(o, word(o, t + 12 + (size_t)j * (kind == KIND_ENUM ? 8 : 12)));
			break;
		}
	}
}

static void hash_relocation(struct object *o, struct record *r)
{
	const uint8_t *t = type_of(o, r->type);

	o->hash = HASH_START;
	hash_number(o, r->kind);
	add_byte(o, (uint8_t)kind_of(t, o));
	hash_name(o, word(o, t));
	if ((r->kind > CORE_LOCAL_TYPE_ID && r->kind <= CORE_TYPE_SIZE) || r->kind == CORE_TYPE_MATCHES) {
		hash_name(o, r->access);
		hash_structure(o, r->type, r->kind == CORE_TYPE_MATCHES);
	} else if (!hash_path(o, r->type, string_at(o, r->access))) {
		add_byte(o, '!');
	}
	r->hash = o->hash;
}

static int compare_records(const void *object, uint32_t i, uint32_t j)
{
	const struct record *a = &((const struct object *)object)->relocations[i],
			    *b = &((const struct object *)object)->relocations[j];

	if (a->type != b->type)
		return compare_u32(a->type, b->type);
	if (a->access != b->access)
		return compare_u32(a->access, b->access);
	return compare_u32(a->kind, b->kind);
}

static int compare_hashes(const void *object, uint32_t i, uint32_t j)
{
	uint64_t a = ((const struct object *)object)->relocations[i].hash,
		 b = ((const struct object *)object)->relocations[j].hash;

	return (a > b) - (a < b);
}

/* Hashes the distinct relocations, of which order has the numbers. */
SMALL static const char *fingerprint(struct object *o, uint32_t *order, uint32_t *spare, uint8_t sum[4])
{
	uint32_t i, n = o->n_relocations, distinct = 0;
	uint64_t hash = hash_byte(HASH_START, o->big_endian ? 'B' : 'L');
	unsigned j;

	for (i = 0; i < n; i++)
		order[i] = i;
	sort(order, n, spare, compare_records, o);
	for (i = 0; i < n; i++) {
		if (distinct && !compare_records(o, order[distinct - 1], order[i]))
			continue;
		hash_relocation(o, &o->relocations[order[i]]);
		order[distinct++] = order[i];
		if (o->hashed > MAX_HASHED)
			return "its relocations lead to too many types";
	}
	sort(order, distinct, spare, compare_hashes, o);
	for (i = 0; i < distinct; i++) {
		uint64_t h = o->relocations[order[i]].hash;

		if (i && !compare_hashes(o, order[i - 1], order[i]))
			continue;
		for (j = 0; j < 8; j++)
			hash = hash_byte(hash, (uint8_t)(h >> 8 * j));
	}
	hash ^= hash >> 32;
	for (j = 0; j < 4; j++)
		sum[j] = (uint8_t)(hash >> 8 * j);
	return NULL;
}

/* Computes the fingerprint of an object, as docs/archive-format.md defines it. Returns what is wrong with the object,
 * or NULL. */
SMALL static const char *read_object(const struct btfa *a, const uint8_t *elf, size_t size, uint8_t sum[4], int *empty)
{
	struct object o;
	const uint8_t *types, *ext;
	size_t types_size, ext_size;
	const char *wrong = NULL;
	uint32_t *order = NULL;
	void *all[6];
	size_t i, n;

	memset(&o, 0, sizeof(o));
	o.archive = a;
	if (size < 64 || memcmp(elf, "\177ELF\2", 5) || elf[5] < 1 || elf[5] > 2)
		return "it is not a BPF object";
	o.big_endian = elf[5] == 2;
	types = section(&o, elf, size, ".BTF", &types_size, &wrong);
	ext = section(&o, elf, size, ".BTF.ext", &ext_size, &wrong);
	if (!wrong && types && types_size && ext && ext_size) {
		wrong = read_types(&o, types, types_size);
		if (!wrong)
			wrong = read_records(&o, ext, ext_size);
	}
	if (!wrong) {
		n = (size_t)o.n_types + 1;
		o.number = resize(&a->memory, NULL, n, sizeof(*o.number));
		o.round = resize(&a->memory, NULL, n, sizeof(*o.round));
		o.list = resize(&a->memory, NULL, n, sizeof(*o.list));
		order = resize(&a->memory, NULL, (size_t)o.n_relocations * 2, sizeof(*order));
		if (!o.number || !o.round || !o.list || !order) {
			wrong = no_memory;
		} else {
			memset(o.round, 0, n * sizeof(*o.round));
			wrong = fingerprint(&o, order, order + o.n_relocations, sum);
		}
	}
	*empty = !o.n_relocations;
	all[0] = o.at;
	all[1] = o.relocations;
	all[2] = o.number;
	all[3] = o.round;
	all[4] = o.list;
	all[5] = order;
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		give_back(&a->memory, all[i]);
	return wrong;
}

int btfa_covers(const struct btfa *a, const void *object, size_t size, const char *arch, struct btfa_error *e)
{
	struct cursor c = { a->made.groups, a->made.sums, NULL };
	const char *why = "its relocations differ", *wrong;
	char made[384] = "", shown[65];
	uint32_t groups, i = 0, n, j;
	uint8_t sum[4];
	int empty = 0;

	wrong = read_object(a, object, size, sum, &empty);
	if (wrong == no_memory)
		return fail_memory(e);
	if (!wrong && empty)
		return BTFA_OK;
	if (wrong)
		why = wrong;
	else if (a->made.n_objects && !a->made.fingerprint_size)
		why = "the archive has no fingerprints of relocations";
	for (groups = a->made.n_groups; groups; groups--) {
		uint32_t machines = (uint32_t)number(&c);
		int ours = !machines || !arch || !*arch;

		for (; machines; machines--)
			ours |= arch && !strcmp(text(&c), canonical_arch(arch));
		for (n = (uint32_t)number(&c); n; n--, i++) {
			const char *name = text(&c);
			uint32_t known = a->made.fingerprint_size < 4 ? a->made.fingerprint_size : 4;

			if (!wrong && known && !memcmp(sum, a->made.fingerprints + (size_t)i * a->made.fingerprint_size, known)) {
				if (ours)
					return BTFA_OK;
				why = "the archive's object is for other machines";
			}
			if (i == 4)
				append(made, sizeof(made), ", %u more", a->made.n_objects - i);
			if (i >= 4)
				continue;
			*shown = 0;
			append_printable(shown, sizeof(shown), name);
			append(made, sizeof(made), "%s%s (sha256 ", i ? ", " : "", shown);
			for (j = 0; j < a->made.sum_size; j++)
				append(made, sizeof(made), "%02x", a->made.sums[(size_t)i * a->made.sum_size + j]);
			append(made, sizeof(made), "…)");
		}
	}
	return fail(e, BTFA_NOT_COVERED, "archive was made for %s, not for the object: %s", i ? made : "unknown objects", why);
}

/* -- find -- */

#define OR_ABSENT(part) (*(part) ? (part) : "-")

/* Finds the types of the host in the archive. */
static int find_in_archive(const struct btfa *a, const struct btfa_find_options *o, struct btfa_found *f,
			   struct btfa_error *e)
{
	struct btfa_key *want = &f->match.want;
	const struct btfa_key *near[2] = { &f->match.below, &f->match.above };
	struct btfa_system host;
	int i, status = btfa_host(&host, &o->host, e);
	uint8_t *btf;
	long n;

	if (!status && o->object)
		status = btfa_covers(a, o->object, o->object_size, host.key.arch, e);
	if (status)
		return status;
	if (!btfa_lookup(a, &host, o->neighbours, &f->match)) {
		fail(e, BTFA_NO_KERNEL, "kernel %s/%s/%s/%s has no BTF, and the archive has none for it: %s", OR_ABSENT(want->id),
		     OR_ABSENT(want->version_id), OR_ABSENT(want->arch), OR_ABSENT(want->release), f->match.reason);
		for (i = 0; i < 2 && e; i++) {
			if (!*near[i]->release)
				continue;
			append(e->text, sizeof(e->text), i && *near[0]->release ? " and %s/%s/%s/%s" : *near[1]->release && !i ?
			       "; the nearest are %s/%s/%s/%s" : "; the nearest is %s/%s/%s/%s", OR_ABSENT(near[i]->id),
			       OR_ABSENT(near[i]->version_id), OR_ABSENT(near[i]->arch), near[i]->release);
		}
		return BTFA_NO_KERNEL;
	}
	n = btfa_btf(a, &f->match.key, NULL, 0, e);
	if (n < 0)
		return (int)n;
	btf = resize(&a->memory, NULL, (size_t)n, 1);
	if (!btf)
		return fail_memory(e);
	n = btfa_btf(a, &f->match.key, btf, (size_t)n, e);
	status = n < 0 ? (int)n : memory_file(f, btf, (size_t)n, e);
	give_back(&a->memory, btf);
	return status;
}

static int can_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && !close(fd);
}

/* Reads a number of n bytes in this machine's byte order. */
static uint64_t native(const uint8_t *p, size_t n)
{
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	if (n == 8)
		return memcpy(&wide, p, 8), wide;
	if (n == 4)
		return memcpy(&word, p, 4), word;
	return memcpy(&half, p, 2), half;
}

static int read_at(int fd, void *p, size_t n, uint64_t at)
{
	return at < (uint64_t)1 << 62 && pread(fd, p, n, (off_t)at) == (ssize_t)n;
}

/* Reports whether a file is an ELF file of this machine's byte order with a section .BTF. */
static int has_btf(int fd)
{
	uint8_t head[64], s[64], wide;
	uint64_t table, names, length, i, n, name;
	char text[5];
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !read_at(fd, head, 64, 0) || memcmp(head, "\177ELF", 4))
		return 0;
	wide = head[4] == 2;
	table = native(head + (wide ? 40 : 32), wide ? 8 : 4);
	n = native(head + (wide ? 60 : 48), 2);
	if (native(head + (wide ? 58 : 46), 2) != (wide ? 64 : 40) ||
	    !read_at(fd, s, wide ? 64 : 40, table + native(head + (wide ? 62 : 50), 2) * (wide ? 64 : 40)))
		return 0;
	names = native(s + (wide ? 24 : 16), wide ? 8 : 4);
	for (i = 0; i < n && read_at(fd, s, wide ? 64 : 40, table + i * (wide ? 64 : 40)); i++) {
		name = native(s, 4);
		length = native(s + (wide ? 32 : 20), wide ? 8 : 4);
		if (native(s + 4, 4) != 8 && length && read_at(fd, text, 5, names + name) && !memcmp(text, ".BTF", 5))
			return 1; /* 8 has no content */
	}
	return 0;
}

/* Finds the vmlinux of a release where packages put it. libbpf looks at the same places. */
static int find_installed(const char *root, const char *release, char path[4096])
{
	static const char before[][28] = { "boot/vmlinux-", "lib/modules/", "lib/modules/", "usr/lib/modules/",
		"usr/lib/debug/boot/vmlinux-", "usr/lib/debug/boot/vmlinux-", "usr/lib/debug/lib/modules/" };
	static const char after[][16] = { "", "/vmlinux-", "/build/vmlinux", "/kernel/vmlinux", "", ".debug", "/vmlinux" };
	size_t i;

	for (i = 0; i < SIZE(before); i++) {
		int fd, found;

		snprintf(path, 4096, "%s/%.*s%s%s%s", root && strcmp(root, "/") ? root : "", (int)sizeof(before[i]), before[i],
			 release, after[i], i == 1 ? release : "");
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		found = fd >= 0 && has_btf(fd);
		if (fd >= 0)
			close(fd);
		if (found)
			return 1;
	}
	return 0;
}

int btfa_find(const struct btfa *a, const struct btfa_find_options *options, const char **btf_custom_path,
	      struct btfa_found *f, struct btfa_error *e)
{
	struct btfa_find_options none = { 0 };
	const struct btfa_find_options *o = options ? options : &none;
	int status;

	*btf_custom_path = NULL;
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	if (o->file && *o->file) {
		if (!can_open(o->file))
			return fail_system(e, "", o->file);
		f->source = BTFA_FROM_FILE;
		*btf_custom_path = o->file;
		return BTFA_OK;
	}
	if (!o->ignore_kernel && can_open("/sys/kernel/btf/vmlinux")) {
		f->source = BTFA_FROM_KERNEL;
		return BTFA_OK;
	}
	if (o->installed) {
		struct btfa_system host;

		status = btfa_host(&host, &o->host, e);
		if (status)
			return status;
		if (find_installed(o->host.root, host.key.release, f->path)) {
			f->source = BTFA_FROM_FILE;
			*btf_custom_path = f->path;
			return BTFA_OK;
		}
	}
	if (!a)
		return fail(e, BTFA_NO_KERNEL, "the kernel has no BTF, and there is no archive");
	status = find_in_archive(a, o, f, e);
	if (status) {
		btfa_release(f);
		return status;
	}
	f->source = BTFA_FROM_ARCHIVE;
	*btf_custom_path = f->path;
	return BTFA_OK;
}

void btfa_release(struct btfa_found *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
#endif /* __cplusplus */
