/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbtfa reads .btfa archives, in which btfgen keeps the minimized BTF of many kernels. A tracer embeds
 * one and hands libbpf the BTF of the kernel that it runs on:
 *
 *	struct btfa *archive;
 *	struct btfa_error error;
 *	struct btfa_found found;
 *	LIBBPF_OPTS(bpf_object_open_opts, opts);
 *
 *	if (btfa_open_mem(&archive, data, size, NULL, &error) ||
 *	    btfa_find(archive, NULL, &opts.btf_custom_path, &found, &error))
 *		errx(1, "%s", error.text);
 *	// open the skeleton with opts, and load it
 *	btfa_release(&found);
 *	btfa_close(archive);
 *
 * There is no global state. An open archive never changes: any number of threads may use one, as long as
 * none closes it. Text is bytes that end with a NUL. Nothing here needs a libbpf, and only what looks at
 * the host (btfa_host, btfa_find) needs Linux.
 */
#ifndef BTFA_H
#define BTFA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BTFA_API __attribute__((visibility("default")))
#else
#define BTFA_API
#endif

/* What functions return: 0 or, where they say so, a number that is not negative; or one of these. */
enum btfa_status {
	BTFA_OK = 0,
	BTFA_NOT_ARCHIVE = -1, /* the data does not begin as an archive does */
	BTFA_UNKNOWN_VERSION = -2, /* the archive has a version of the format that this library does not know */
	BTFA_DAMAGED = -3, /* the archive is not as its format wants it */
	BTFA_NO_KERNEL = -4, /* the archive does not have this kernel */
	BTFA_NO_MEMORY = -5,
	BTFA_NO_HOST = -6 /* something of the host cannot be read, or is no part of a key; or a file cannot be made */
};

/* What went wrong, in one line without a newline. Functions that fail set it, others leave it alone;
 * wherever a pointer to one is wanted NULL will do. */
struct btfa_error {
	char text[512];
};

/* Where memory comes from. resize is realloc, with two differences: it gets the context, and a size of 0
 * frees. Threads that use one archive call it at the same time. It must outlive what was opened with it. */
struct btfa_allocator {
	void *(*resize)(void *context, void *old, size_t size);
	void *context;
};

/* A kernel. A part that is not known is empty. Each has at most 255 bytes; '/', '\\' and control characters
 * are in none, and none is "." or "..". */
struct btfa_key {
	char id[256];         /* distribution, as in os-release: "debian" */
	char version_id[256]; /* its version: "12"; rolling distributions have none */
	char arch[256];       /* "x86_64", "arm64", in any usual spelling */
	char release[256];    /* as uname -r prints it: "6.1.0-47-amd64" */
};

/* Gives a key the usual spelling of distribution and arch: "amzn" for "Amazon", "x86_64" for "amd64".
 * Equal keys then name the same kernel. */
BTFA_API void btfa_canonical(struct btfa_key *key);

struct btfa; /* an open archive */

/* Opens an archive of size bytes at data, and keeps no pointer to them. All of it is checked. Memory comes
 * from allocator, or from malloc if that is NULL: no more than 256 MiB, whatever the data claims to hold;
 * an archive of 1,000 real kernels takes less than 1 MiB, and keeps half of it until btfa_close. */
BTFA_API int btfa_open_mem(struct btfa **archive, const void *data, size_t size,
			   const struct btfa_allocator *allocator, struct btfa_error *error);

/* Gives back all memory of an archive, or does nothing for NULL. */
BTFA_API void btfa_close(struct btfa *archive);

/* The number of kernels. */
BTFA_API size_t btfa_kernels(const struct btfa *archive);

/* The kernel number i, from 0: by distribution, version, arch and release, lower versions first. Key is
 * empty if there is none. */
BTFA_API void btfa_kernel(const struct btfa *archive, size_t i, struct btfa_key *key);

/* How a kernel was found. */
enum btfa_rule {
	BTFA_NO_MATCH = 0,     /* the archive does not have it */
	BTFA_EXACT = 1,        /* distribution, version, arch and release are the same */
	BTFA_RELEASE = 2,      /* only arch and release are the same, and that leaves one BTF */
	BTFA_NEIGHBOUR = 3     /* the builds before and after it have one BTF; only where that was asked for */
};

/* The outcome of a lookup. */
struct btfa_match {
	enum btfa_rule rule;
	struct btfa_key want; /* what was looked for, canonical */
	struct btfa_key key;  /* the kernel that was found, as the archive has it; empty on a miss */
	/* On a miss the nearest releases of the same distribution and arch, empty if there are none, and
	 * whether both are there and have one BTF. They are advice for people. */
	struct btfa_key below, above;
	int same_btf;
	char reason[2560]; /* in one line, why this kernel or none */
};

/*
 * Finds the kernel of a host and returns the rule. In this order:
 *
 *  1. the kernel with exactly this key, whatever the spelling of distribution and arch;
 *  2. a kernel of the same release and arch under another distribution or version, if all that there are
 *     have the same BTF;
 *  3. if neighbours is not 0 and distribution, arch and release are known, the build before this kernel, if
 *     so many before it and as many after it, or all that there are, have one BTF. They are of the same
 *     distribution, version, arch, version of Linux and flavour. This may give BTF that is not the
 *     kernel's own: structs do change within a series, and then programs read wrong memory;
 *  4. none.
 */
BTFA_API enum btfa_rule btfa_lookup(const struct btfa *archive, const struct btfa_key *want, unsigned neighbours,
				    struct btfa_match *match);

/* Puts the BTF of exactly this kernel into a buffer of size bytes, if they are enough, and returns its
 * length in any case. So a size of 0 asks for the length; buffer may then be NULL. Spellings of
 * distribution and arch do not matter. The bytes are those that `btfgen generate` made, in the byte order of
 * the kernel. BTFA_NO_KERNEL if the archive does not have it; BTFA_DAMAGED if a broken program wrote the
 * archive. */
BTFA_API long btfa_btf(const struct btfa *archive, const struct btfa_key *key, void *buffer, size_t size,
		       struct btfa_error *error);

/* Where btfa_host looks. NULL for any part, or for all, is the system that the program runs on. */
struct btfa_host_options {
	const char *root;       /* where the host's root directory is, for programs in a container: "/host" */
	const char *os_release; /* a file to read instead of the one under root */
	const char *release;    /* stands for what uname tells, unless empty */
	const char *arch;
	const struct btfa_allocator *allocator; /* for the os-release file, which has at most 1 MiB */
};

/* Finds out the key of the running kernel, in canonical spelling: distribution and version from the host's
 * /etc/os-release, or /usr/lib/os-release if there is none, release and arch from uname, which containers
 * share with their host. Links in root are followed as if it were "/". Without os-release id and version_id
 * are empty, and one without ID has the ID "linux". */
BTFA_API int btfa_host(struct btfa_key *key, const struct btfa_host_options *options, struct btfa_error *error);

/* What btfa_find may take. All zero is the kernel's own BTF, else the archive's. */
struct btfa_find_options {
	const char *file;              /* that the user named: it comes first, unless NULL or empty */
	int ignore_kernel;             /* passes over the kernel's own BTF, for tests */
	unsigned neighbours;           /* as for btfa_lookup */
	struct btfa_host_options host; /* which kernel to look for in the archive */
};

/* Where types were found. */
enum btfa_source {
	BTFA_NOWHERE = 0,
	BTFA_FROM_FILE = 1,   /* the file that the user named */
	BTFA_FROM_KERNEL = 2, /* the running kernel */
	BTFA_FROM_ARCHIVE = 3
};

/* What btfa_find found. */
struct btfa_found {
	enum btfa_source source;
	struct btfa_match match; /* if the archive was asked; its want is empty if it was not */
	char path[32];           /* of BTF from the archive */
	int fd;                  /* what is open while path leads to it, else -1 */
};

/* Finds the types to relocate programs against: the file that the user named, else the kernel's own BTF,
 * else the archive's for this host. *btf_custom_path is what libbpf's option of that name wants: the user's
 * own string; NULL for the kernel's BTF, which libbpf finds by itself; or the path of a file in memory
 * (Linux 3.17, and /proc) with the archive's BTF, which leads to it in this process until btfa_release.
 * Nothing is written to disk. A file that was named but cannot be opened is an error; what is in it is left
 * to libbpf. archive may be NULL, and so may options. BTFA_NO_KERNEL if no source has the types; found->match
 * then says why. */
BTFA_API int btfa_find(const struct btfa *archive, const struct btfa_find_options *options,
		       const char **btf_custom_path, struct btfa_found *found, struct btfa_error *error);

/* Gives up the path, once the objects are loaded. It may be called after a btfa_find that failed, and
 * again. */
BTFA_API void btfa_release(struct btfa_found *found);

#ifdef __cplusplus
}
#endif
#endif
