#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests what make has built: which names it shows, how large it is, that the header is C99 and C++98, and that the
# example of libbtfa(3) builds against an installation and finds a kernel. Called by make test.
set -eu
cd "$(dirname "$0")/.."
make=$1

say() { printf 'libbtfa: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What others see, in both libraries.
for library in "-D libbtfa.so" libbtfa.a; do
	# shellcheck disable=SC2086
	others=$(nm -g --defined-only $library | awk 'NF == 3 && $3 !~ /^btfa_/ { print $3 }')
	[ -z "$others" ] || die "$library shows" $others
done

if [ -n "$ZSTD_LIBS" ]; then
	state=$(size -A btfa.o | awk '$1 ~ /^\.(data|bss)$/ { n += $2 } END { print n + 0 }')
	[ "$state" = 0 ] || die "has global state: $state bytes"
	size=$(size -A btfa.o | awk '$1 ~ /^\.(text|rodata|data|bss)/ { n += $2 } END { print n }')
	say "code and data: $size bytes, at most 70000"
	[ "$size" -le 70000 ] || die "too large"
fi

echo '#include "btfa.h"' >"$work/header.c"
"$CC" -std=c99 -pedantic -Wall -Wextra -Werror -I. -fsyntax-only "$work/header.c"
if command -v "$CXX" >/dev/null; then
	"$CXX" -std=c++98 -pedantic -Wall -Wextra -Werror -I. -fsyntax-only -x c++ "$work/header.c"
else
	say "skipped: no C++ compiler"
fi

# The source is C. A C++ compiler says so, once.
if command -v "$CXX" >/dev/null; then
	"$CXX" -x c++ -fsyntax-only btfa.c 2>"$work/err" && die "$CXX compiles btfa.c"
	[ "$(grep -c ' error: ' "$work/err")" = 1 ] && grep -q "is C99" "$work/err" || die "$CXX says" "$(cat "$work/err")"
fi

# A frame of another program is refused in words, also if zstd has none.
cat >"$work/damage.c" <<'END'
#include "btfa.c"
int main(void)
{
	size_t code;

	for (code = 1; code < 120; code++)
		if (strstr(zstd_text((size_t)0 - code), "stripped") || !*zstd_text((size_t)0 - code))
			return 1;
	return strcmp(zstd_text((size_t)0 - ZSTD_error_checksum_wrong), "wrong checksum");
}
END
if [ -n "$ZSTD_LIBS" ]; then
	# shellcheck disable=SC2086
	"$CC" -std=c99 -I. -o "$work/damage" "$work/damage.c" $ZSTD_LIBS
	"$work/damage" || die "does not say what is wrong with a frame"
fi

# Messages are one line of printable text, whatever names an archive has: names.btfa was made for an object e, escape, [31m,
# newline, ::error::pwn.o.
if [ -n "$ZSTD_LIBS" ]; then
	# shellcheck disable=SC2086
	"$CC" -std=c99 -Wall -Wextra -Werror -I. -o "$work/names" test/names.c btfa.c $ZSTD_LIBS
	cat >"$work/want" <<'END'
archive was made for e\x1b[31m\n::error::pwn.o (sha256 c4433b8c…), not for the object: it is not a BPF object
no kernel 6.9\u202e for x86_64, and none of x\x1b[2j 1\n at all
END
	"$work/names" ../../testdata/btfa/names.btfa >"$work/got" || die "cannot read names.btfa"
	cmp -s "$work/got" "$work/want" || die "prints" "$(cat "$work/got")"
fi

# What make builds follows its variables.
mkdir "$work/build"
cp Makefile ./*.[ch3] libbtfa.pc.in "$work/build"
(
	cd "$work/build"
	"$make" -s
	"$make" -q || die "builds twice"
	"$make" -q CPPFLAGS=-DOTHER && die "does not build again with another CPPFLAGS"
	"$make" -s CPPFLAGS=-DOTHER
	"$make" -q CPPFLAGS=-DOTHER PREFIX=/other || die "builds twice with another PREFIX"
)

# An installation, and the manual's example with it.
"$make" -s install DESTDIR="$work/package" PREFIX=/usr
[ "$(cd "$work/package" && find . ! -type d | LC_ALL=C sort | paste -sd' ')" = "./usr/include/btfa.h ./usr/lib/libbtfa.a \
./usr/lib/libbtfa.so ./usr/lib/libbtfa.so.0 ./usr/lib/pkgconfig/libbtfa.pc ./usr/share/man/man3/libbtfa.3" ] ||
	die "installs" "$(cd "$work/package" && find . ! -type d)"
"$make" -s install PREFIX="$work/usr"
sed -n '/^\.Bd -literal$/,/^\.Ed$/p' libbtfa.3 | sed -e '1d;$d' -e 's/\\e/\\/g' >"$work/which.c"
cp ../../examples/go-tracer/tracer.btfa "$work"
source=$PWD
cd "$work"
if command -v pkg-config >/dev/null; then
	PKG_CONFIG_PATH=$work/usr/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
	export PKG_CONFIG_PATH
	shared=$(pkg-config --cflags --libs libbtfa)
	static=$(pkg-config --cflags --libs --static libbtfa)
else
	shared="-I$work/usr/include -L$work/usr/lib -lbtfa" static="$shared $ZSTD_LIBS"
fi
# shellcheck disable=SC2086
"$CC" -std=c99 -Wall -Wextra -Werror -o shared which.c $shared
# shellcheck disable=SC2086
"$CC" -std=c99 -Wall -Wextra -Werror -static -o static which.c $static
programs='./shared ./static'
if command -v "$CXX" >/dev/null; then
	cp which.c which.cc
	# shellcheck disable=SC2086
	"$CXX" -std=c++98 -Wall -Werror -o cxx which.cc $shared
	programs="$programs ./cxx"
fi
if [ -n "$ZSTD_LIBS" ]; then
	# shellcheck disable=SC2086
	if "$CC" -std=c99 -g -fsanitize=address,undefined -fno-sanitize-recover=all -I"$source" -o sanitized which.c "$source/btfa.c" $ZSTD_LIBS 2>err; then
		programs="$programs ./sanitized"
	else
		say "skipped: the compiler has no sanitizers: $(head -n 1 err)"
	fi
fi
for program in $programs; do
	release=6.1.0-no-such
	LD_LIBRARY_PATH=$work/usr/lib $program $release 2>err && die "$program found what is not there"
	grep -q "^kernel .*/$release has no BTF, and the archive has none for it: no kernel" err || die "$program says" "$(cat err)"
	# One that the archive has, whatever distribution this is.
	case $(uname -m) in
	x86_64) release=5.10.0-30-amd64 ;;
	aarch64) release=6.1.0-50-arm64 ;;
	*) say "skipped: the example's archive has no kernel for $(uname -m)" && continue ;;
	esac
	LD_LIBRARY_PATH=$work/usr/lib $program $release >out || die "$program did not find $release"
	grep -q '^/proc/self/fd/[0-9]*: ' out || die "$program says" "$(cat out)"
done
say "passed:" $programs
