#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the size of an archive with bpftool's outputs for the same kernels.
#
#   scripts/size-archive.sh CORPUS OBJECT...
#
# CORPUS is a tree of <ID>/<VERSION_ID>/<arch>/<release>.btf, .btf.tar.xz, .btf.xz or .btf.zst. Kernels of another byte order than
# the objects are skipped on both sides. bpftool's outputs are compressed with tar | xz -9e, in the same layout, sorted by name
# and without times and owners.
set -euo pipefail
if [ $# -lt 2 ]; then
	echo "usage: $0 CORPUS OBJECT..." >&2
	exit 2
fi
corpus=$(realpath "$1")
shift
mapfile -t objects < <(realpath "$@")
cd "$(dirname "$0")/.."
command -v bpftool >/dev/null || { echo "$0: needs bpftool" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

go build -o "$tmp/btfgen" ./cmd/btfgen
# Status 3: findings, such as relocations that old kernels do not resolve.
generate() { "$tmp/btfgen" generate --btf "$corpus" -o "$1" "${objects[@]}" 2>"$tmp/log" || [ $? = 3 ] || { cat "$tmp/log" >&2; exit 1; }; }
generate "$tmp/x.btfa"
generate "$tmp/ours"

# bpftool refuses objects without relocations, and fails on ambiguous ones; its side lacks such kernels, which makes it smaller.
usable=()
first=$(find "$corpus" -type f -name '*.btf*' -not -path '*/modules/*' | sort | head -1)
raw() {
	case $1 in
	*.tar.xz) tar -xOJf "$1" ;;
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*) cat "$1" ;;
	esac
}
raw "$first" >"$tmp/first.btf"
for o in "${objects[@]}"; do
	if bpftool gen min_core_btf "$tmp/first.btf" "$tmp/probe.btf" "$o" 2>/dev/null; then
		usable+=("$o")
	fi
done
find "$corpus" -type f \( -name '*.btf' -o -name '*.btf.tar.xz' -o -name '*.btf.xz' -o -name '*.btf.zst' \) -not -path '*/modules/*' | sort | while read -r f; do
	name=$(echo "$f" | rev | cut -d/ -f1-4 | rev)
	name=${name%.btf*}.btf
	[ -e "$tmp/ours/$name" ] || continue
	mkdir -p "$tmp/theirs/$(dirname "$name")"
	raw "$f" >"$tmp/raw.btf"
	bpftool gen min_core_btf "$tmp/raw.btf" "$tmp/theirs/$name" "${usable[@]}" 2>/dev/null || echo "bpftool failed: $name"
done
solid() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1" -cf - . | xz -9e | wc -c; }
theirs=$(solid "$tmp/theirs")
plain=$(solid "$tmp/ours")
ours=$(stat -c %s "$tmp/x.btfa")
kernels() { find "$1" -name '*.btf' | wc -l; }
percent() { awk "BEGIN { printf \"%.3f\", $1 / $2 }"; }
echo "bpftool, tar.xz: $theirs bytes ($(kernels "$tmp/theirs") kernels, ${#usable[@]} objects)"
echo "btfgen, tar.xz:  $plain bytes ($(kernels "$tmp/ours") kernels), $(percent "$plain" "$theirs") of bpftool's"
echo "btfgen, .btfa:   $ours bytes, $(percent "$ours" "$theirs") of bpftool's"
