#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints what a tree of the Linux kernel says of helpers and types of programs, names and facts only, for TestPrototypes:
#
#	scripts/facts-prototypes.sh TREE >internal/check/facts/testdata/prototypes.txt
#
# A line "helper NAME RESULT ARGUMENT..." is a struct bpf_func_proto, with the id of the result's type, "sleeps" if it
# may, and "gpl" if only programs with a license compatible with the GPL can call it. A line "program
# TYPE CONTEXT" is one of include/linux/bpf_types.h, and a line "id NAME STRUCT" says what an id is.
set -euo pipefail
export LC_ALL=C
cd "$1"
echo "# Linux $(sed -n 's/^\(VERSION\|PATCHLEVEL\|SUBLEVEL\) = //p' Makefile | paste -sd.), by scripts/facts-prototypes.sh"
# shellcheck disable=SC2016
grep -rlE 'struct bpf_func_proto \w+ (__weak )?= *\{' --include='*.c' kernel net drivers/media/rc | sort | xargs awk '
/struct bpf_func_proto [a-z_0-9]+ (__weak )?= *\{/ { inside = 1; name = sleeps = gpl = ""; ret = id = "-"; for (i = 1; i <= 5; i++) arg[i] = "-" }
inside && match($0, /\.[a-z_0-9]+[ \t]*=[ \t]*/) {
	key = substr($0, RSTART + 1, RLENGTH - 1)
	sub(/[ \t]*=.*/, "", key)
	value = substr($0, RSTART + RLENGTH)
	sub(/,[ \t]*$/, "", value)
	gsub(/[ \t]/, "", value)
	if (key == "func") name = value
	if (key == "ret_type") ret = value
	if (key == "ret_btf_id") id = value
	if (key == "might_sleep" && value == "true") sleeps = " sleeps"
	if (key == "gpl_only" && value == "true") gpl = " gpl"
	if (key ~ /^arg[1-5]_type$/) arg[substr(key, 4, 1)] = value
}
inside && /^\};/ {
	inside = 0
	if (name ~ /^bpf_/) print "helper", name, ret, id, arg[1], arg[2], arg[3], arg[4], arg[5] sleeps gpl
}' | sort -u
tr '\n' ' ' <include/linux/bpf_types.h | grep -oE 'BPF_PROG_TYPE\(BPF_PROG_TYPE_[^)]*\)' | sed -E 's/^BPF_PROG_TYPE\(BPF_PROG_TYPE_([A-Z_0-9]+), *[a-z_0-9]+,[[:space:]]*(struct )?([a-z_0-9]+( \*)?),.*/program \1 \3/; s/ \*$/*/' | sort -u
sed -nE 's/.*BTF_(SOCK|TRACING)_TYPE\((BTF_[A-Z_0-9]+), *([a-z_0-9]+)\).*/id \2 \3/p' include/linux/btf_ids.h | sort -u
# shellcheck disable=SC2016
find kernel/trace kernel/bpf net/core -name '*.c' | sort | xargs awk '
match($0, /^BTF_ID_LIST_SINGLE\([a-z_0-9]+, struct, [a-z_0-9]+\)/) { split(substr($0, RSTART, RLENGTH - 1), part, /[(, ]+/); print "id", part[2], part[4] }
/^BTF_ID\(struct, / && list != "" { split($0, part, /[(, )]+/); print "id", list, part[3]; list = "" }
{ list = "" }
match($0, /^BTF_ID_LIST\([a-z_0-9]+\)/) { list = substr($0, RSTART + 12, RLENGTH - 13) }' | sort -u
