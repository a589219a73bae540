#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the objects of testdata/bpf from the sources beside them, for both byte orders.
# The bytes depend on the tools, not on the directory. See usage below.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
dir=$(cd "$(dirname "$0")/.." && pwd)/testdata/bpf

# The committed objects were built with these tools. The environment can name others.
clang=${CLANG:-clang-19}
strip=${LLVM_STRIP:-llvm-strip-19}
objcopy=${LLVM_OBJCOPY:-llvm-objcopy-19}
readelf=${LLVM_READELF:-llvm-readelf-19}
include=${LIBBPF_INCLUDE:-/usr/include}

usage() {
	cat <<EOF
usage: $me [--check] [NAME]...

Builds NAME.bpfel.o and NAME.bpfeb.o of every testdata/bpf/NAME.bpf.c, or of those named.

  --check  build aside, compare with the objects that are there, change nothing,
           and name each object that differs or has no source, and its sections

Needs $clang, $strip and the headers bpf/*.h of libbpf-dev below $include;
CLANG, LLVM_STRIP, LLVM_OBJCOPY, LLVM_READELF and LIBBPF_INCLUDE name others.

Exit status: 0 built, or all the same; 1 failed; 2 wrong usage; 3 something differs.
EOF
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 1; }

check=false
names=()
while (($#)); do
	case $1 in
	--check) check=true ;;
	-h | --help) usage; exit 0 ;;
	-*) say "unknown option $1"; usage >&2; exit 2 ;;
	*) names+=("${1%.bpf.c}") ;;
	esac
	shift
done

cd "$dir"
for tool in "$clang" "$strip" "$objcopy" "$readelf"; do
	command -v "$tool" >/dev/null || die "$tool is not installed"
done
[[ -f $include/bpf/bpf_core_read.h ]] || die "$include/bpf/bpf_core_read.h is missing: install libbpf-dev"

all=${#names[@]}
if ((all == 0)); then
	names=(*.bpf.c)
	names=("${names[@]%.bpf.c}")
fi
for name in "${names[@]}"; do
	[[ -f $name.bpf.c ]] || { say "there is no testdata/bpf/$name.bpf.c"; exit 2; }
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# build NAME bpfel|bpfeb [ARCH]: writes the object to $out. It uses the registers of x86_64 or s390x, or of ARCH, which is then part
# of the object's name. If a tool fails the script exits, unless build is part of a condition, where bash ignores -e.
build() {
	local name=$1 target=$2 object=$out/$1.$2.o arch=x86 debug=-g cpu=v1
	[[ $target == bpfeb ]] && arch=s390
	[[ ${3-} ]] && arch=$3 object=$out/$1_$3_$2.o
	case $name in
	nobtf) debug=-g0 ;;
	corneratomic | ranges | runqlat | sizes | subprogs) cpu=v3 ;;
	cornerv4) cpu=v4 ;;
	esac
	"$clang" $debug -O2 -Wall -Werror -target "$target" -mcpu=$cpu -D__TARGET_ARCH_$arch \
		-fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -ffile-prefix-map="$include"=include \
		-nostdinc -isystem "$include" -c "$name.bpf.c" -o "$object"
	"$strip" -g "$object"
	if [[ $name == noext ]]; then
		"$objcopy" --remove-section=.BTF.ext --remove-section=.rel.BTF.ext "$object"
	fi
}

# sections FILE: prints the names, sorted.
sections() {
	"$readelf" -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] \([^ ]\{1,\}\) .*/\1/p' | sort -u
}

# bytes FILE SECTION
bytes() {
	"$objcopy" --dump-section="$2"=/dev/stdout "$1" /dev/null 2>/dev/null
}

# differs OLD NEW: prints the differences.
differs() {
	local section list=
	for section in $({ sections "$1"; sections "$2"; } | sort -u); do
		cmp -s <(bytes "$1" "$section") <(bytes "$2" "$section") || list+=" $section"
	done
	printf 'differs in%s\n' "${list:- the ELF headers}"
}

for name in "${names[@]}"; do
	if [[ $name == regs ]]; then
		build regs bpfel x86
		build regs bpfel arm64
		build regs bpfeb s390
		continue
	fi
	for target in bpfel bpfeb; do
		build "$name" $target
	done
done

if ! $check; then
	for object in "$out"/*.o; do
		mv "$object" .
	done
	exit
fi

bad=0
note() { say "$*"; bad=3; }
for new in "$out"/*.o; do
	object=${new##*/}
	if [[ ! -f $object ]]; then
		note "$object: is missing"
	elif ! cmp -s "$object" "$new"; then
		note "$object: $(differs "$object" "$new")"
	fi
done
if ((all == 0)); then
	for object in *.o; do
		[[ -f $out/$object ]] || note "$object: has no source"
	done
fi
if ((bad)); then
	say "built with $("$clang" --version | head -n 1)"
fi
exit $bad
