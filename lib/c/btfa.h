/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbtfa reads .btfa archives, which hold the minimized BTF of many kernels. A tracer embeds an archive and
 * passes the BTF of the running kernel to libbpf:
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
 * There is no global state. An open archive does not change: any number of threads may use it until one closes
 * it. Text ends with a NUL. The library does not need libbpf. Only btfa_host and btfa_find need Linux.
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

/* The result of functions: 0, or a number above if the function says so, or an error. */
enum btfa_status {
	BTFA_OK = 0,
	BTFA_NOT_ARCHIVE = -1, /* the data does not begin like an archive */
	BTFA_UNKNOWN_VERSION = -2, /* this library does not support the version of the format */
	BTFA_DAMAGED = -3, /* the archive breaks the rules of its format */
	BTFA_NO_KERNEL = -4, /* the archive does not have this kernel */
	BTFA_NO_MEMORY = -5,
	BTFA_NO_HOST = -6, /* the host cannot be identified, or a file cannot be created */
	BTFA_NOT_COVERED = -7 /* the archive was not made for the relocations of an object */
};

/* The reason of an error, in one line without a newline. In names, characters that are not printable and bytes that are
 * not UTF-8 are escaped, as in Go: \n, \x1b, \u202e. Only functions that fail set it. A pointer to it may be NULL. */
struct btfa_error {
	char text[512];
};

/* The source of memory. resize works like realloc, but has a context, and frees if size is 0. Threads that
 * use one archive call it concurrently. It must outlive the archive. */
struct btfa_allocator {
	void *(*resize)(void *context, void *old, size_t size);
	void *context;
};

/* A kernel. An unknown part is empty. A part has at most 255 bytes, no '/', '\\' or control characters, and is
 * not ".", ".." or "-". */
struct btfa_key {
	char id[256];         /* distribution, as in os-release: "debian" */
	char version_id[256]; /* its version: "12"; rolling distributions have none */
	char arch[256];       /* "x86_64", "arm64", in any usual spelling */
	char release[256];    /* as uname -r prints it: "6.1.0-47-amd64" */
};

/* A distribution. An unknown version is empty. */
struct btfa_distribution {
	char id[256], version_id[256];
};

/* What a host says of itself. The distributions that its own is derived from come the nearest first; the first without
 * an ID ends them. */
struct btfa_system {
	struct btfa_key key; /* its kernel */
	struct btfa_distribution like[8];
};

/* Changes a key to the canonical spelling of distribution and arch: "amzn" for "Amazon", "x86_64" for "amd64".
 * Equal canonical keys name the same kernel. */
BTFA_API void btfa_canonical(struct btfa_key *key);

struct btfa; /* an open archive */

/* Opens and checks an archive of size bytes at data, and keeps no pointer to data. Memory comes from allocator,
 * or from malloc if that is NULL. Any data takes at most 256 MiB. An archive of 1,000 real kernels takes less
 * than 1 MiB, and keeps half of it until btfa_close. */
BTFA_API int btfa_open_mem(struct btfa **archive, const void *data, size_t size,
			   const struct btfa_allocator *allocator, struct btfa_error *error);

/* Frees an archive. The archive may be NULL. */
BTFA_API void btfa_close(struct btfa *archive);

/* Returns the number of kernels. */
BTFA_API size_t btfa_kernels(const struct btfa *archive);

/* Gets kernel i, from 0, sorted by distribution, version, arch and release. The key is empty if there is no
 * such kernel. */
BTFA_API void btfa_kernel(const struct btfa *archive, size_t i, struct btfa_key *key);

/* The rule by which a kernel was found. */
enum btfa_rule {
	BTFA_NO_MATCH = 0,     /* no kernel in the archive matches */
	BTFA_EXACT = 1,        /* distribution, version, arch and release are equal */
	BTFA_RELEASE = 2,      /* all kernels with this arch and release have the same BTF */
	BTFA_NEIGHBOUR = 3,    /* the builds next to the kernel have the same BTF; only with neighbours above 0 */
	BTFA_DERIVED = 4       /* a distribution that the host's is derived from has this arch and release */
};

/* The result of a look-up. */
struct btfa_match {
	enum btfa_rule rule;
	struct btfa_key want; /* the kernel to find, canonical */
	struct btfa_key key;  /* the kernel that was found, as the archive spells it; empty on a miss */
	/* On a miss, the nearest releases of the same distribution and arch, or empty, and whether both exist
	 * and have the same BTF. They are advice for people. */
	struct btfa_key below, above;
	int same_btf;
	char reason[6656]; /* why this kernel matches, or why none does, in one line, as btfa_error has it */
};

/*
 * Finds the kernel whose BTF serves a host, and returns the rule. It tries, in this order:
 *
 *  1. exact: the kernel with this key, in any spelling of distribution and arch;
 *  2. release: the kernels of the same release and arch under other versions of the distribution;
 *  3. derived: those under the first distribution of system->like that has any, of the version there or else of all;
 *  4. release: those under any distribution;
 *  5. neighbour, if neighbours is above 0 and distribution, arch and release are known: the last build before this
 *     kernel in its series, which is the same distribution, version, arch, version of Linux and flavour. Versions of
 *     distributions that count builds do not matter. The nearest
 *     builds before it must have the same BTF, neighbours in number, and so must as many builds after it, or
 *     all if there are fewer. The BTF may be wrong for the kernel, because structs do change within a series;
 *     programs then read wrong memory.
 *
 * In steps 2 to 4 all kernels must have the same BTF. Steps 3 and 4 need a release that identifies a build: many
 * distributions have a 5.10.135, each with its own configuration. docs/howto-tracers.md has the details.
 */
BTFA_API enum btfa_rule btfa_lookup(const struct btfa *archive, const struct btfa_system *system, unsigned neighbours,
				    struct btfa_match *match);

/* Copies the BTF of exactly this kernel to a buffer of size bytes, if it fits, and returns its length. With a
 * size of 0, buffer may be NULL. The spelling of distribution and arch does not matter. The bytes are those of
 * `btfgen generate`, in the byte order of the kernel. Fails with BTFA_NO_KERNEL if the archive lacks the kernel,
 * and with BTFA_DAMAGED if a broken program wrote the archive. */
BTFA_API long btfa_btf(const struct btfa *archive, const struct btfa_key *key, void *buffer, size_t size,
		       struct btfa_error *error);

/* Returns 0 if the archive was made for an object with the relocations of this one; code may differ. Otherwise fails with
 * BTFA_NOT_COVERED: the archive is stale or belongs to another program. object is a BPF ELF file of size bytes, such as
 * NAME__elf_bytes of a skeleton. Unless arch is NULL or empty, the archive's object must be for that machine. */
BTFA_API int btfa_covers(const struct btfa *archive, const void *object, size_t size, const char *arch,
			 struct btfa_error *error);

/* The system that btfa_host describes. NULL for a member, or for all of it, is the running system. */
struct btfa_host_options {
	const char *root;       /* the root directory of the host, such as "/host" in a container */
	const char *os_release; /* a file to read instead of the one under root */
	const char *release;    /* replaces the result of uname, unless empty */
	const char *arch;
	const struct btfa_allocator *allocator; /* for the os-release file, which has at most 1 MiB */
};

/* Describes the running system. Its key has distribution and version from the host's /etc/os-release, or
 * /usr/lib/os-release if there is none, release and arch from uname, which containers share with their host.
 * Links in root are followed as if it were "/". Without os-release id and version_id are empty. If the file has
 * no ID, the ID is "linux". A VERSION_ID that cannot be part of a key counts as none. Where builds have the same
 * VERSION_ID and release, version_id has the build, too. The archs mips and mips64, which uname says for both byte
 * orders, are taken for the byte order of this program. */
BTFA_API int btfa_host(struct btfa_system *system, const struct btfa_host_options *options, struct btfa_error *error);

/* Options of btfa_find. All zero is the kernel's own BTF, or else the archive's. */
struct btfa_find_options {
	const char *file;              /* a file that the user named, which comes first, unless NULL or empty */
	int ignore_kernel;             /* skips the kernel's own BTF, for tests */
	unsigned neighbours;           /* as for btfa_lookup */
	struct btfa_host_options host; /* the kernel to find in the archive */
	int installed;                 /* looks where packages install a vmlinux of the host's release, before the archive */
	const void *object;            /* unless NULL, the archive must be made for this object; see btfa_covers */
	size_t object_size;
};

/* The source of types. */
enum btfa_source {
	BTFA_NO_SOURCE = 0,
	BTFA_FROM_FILE = 1,   /* the file that the user named, or a vmlinux that is installed */
	BTFA_FROM_KERNEL = 2, /* the running kernel */
	BTFA_FROM_ARCHIVE = 3
};

/* The result of btfa_find. */
struct btfa_found {
	enum btfa_source source;
	struct btfa_match match; /* of the archive; its want is empty if the archive was not searched */
	char path[4096];         /* of the BTF from the archive, or of an installed vmlinux */
	int fd;                  /* of the file that path leads to, or -1 */
};

/* Finds the types to relocate programs against: the file that the user named, else the kernel's own BTF, else, if
 * options say so, that of an installed vmlinux, else the BTF for the host in the archive. *btf_custom_path is the value of libbpf's option of that name: the user's
 * own string; NULL for the kernel's BTF, which libbpf finds by itself; or the path of a file in memory
 * (Linux 3.17, and /proc) with the archive's BTF. That path is valid in this process until btfa_release. A named
 * file that cannot be opened is an error; libbpf checks its content. archive and options may be NULL. Fails with
 * BTFA_NO_KERNEL if no source has the types; found->match then says why. */
BTFA_API int btfa_find(const struct btfa *archive, const struct btfa_find_options *options,
		       const char **btf_custom_path, struct btfa_found *found, struct btfa_error *error);

/* Releases the path. Call it after the objects are loaded. It may be called again, or after a btfa_find that
 * failed. */
BTFA_API void btfa_release(struct btfa_found *found);

#ifdef __cplusplus
}
#endif
#endif
