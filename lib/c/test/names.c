/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the messages about an archive whose names have characters that would control a terminal. */
#include "btfa.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static char data[1 << 16];
	struct btfa_system want = { { "x\033[2J", "1\n", "x86_64", "6.9\342\200\256" }, { { "", "" } } };
	struct btfa_match match;
	struct btfa_error error;
	struct btfa *a;
	FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
	size_t n = f ? fread(data, 1, sizeof(data), f) : 0;

	if (btfa_open_mem(&a, data, n, NULL, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	if (btfa_covers(a, "", 0, "", &error) != BTFA_NOT_COVERED)
		return 1;
	puts(error.text);
	btfa_lookup(a, &want, 0, &match);
	puts(match.reason);
	btfa_close(a);
	return 0;
}
