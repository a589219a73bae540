#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the documents that scripts/release.sh installs. See usage below.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
cd "$(dirname "$0")/.."
home=https://github.com/btfgen/btfgen/blob/main

usage() {
	cat <<END
usage: $me DIR

Writes the documents of share/doc/btfgen to DIR. Links in them lead to files in DIR
or, if DIR lacks a file, to $home.
END
}

# write PAGE NAME: writes a page as $dir/NAME.
write() {
	local text link target path from=
	[[ $1 != */* ]] || from=${1%/*}/
	text=$(cat "$1")
	while read -r link; do
		target=${link%%#*}
		if [ -z "$target" ] || [[ $target = *:* ]]; then continue; fi
		path=$from$target
		[[ $path != docs/../* ]] || path=${path#docs/../}
		[ -e "$path" ] || { printf '%s: %s: no file %s\n' "$me" "$1" "$link" >&2; exit 1; }
		case $path in
		README.md) path=README.md ;;
		docs/README.md) path=index.md ;;
		NOTICE | docs/*) path=${path#docs/} ;;
		*) path=$home/$path ;;
		esac
		text=${text//"]($link)"/"]($path${link#"$target"})"}
	done < <(grep -oE '\]\([^()[:space:]]+\)' "$1" | sed 's/^](//; s/)$//' | LC_ALL=C sort -u)
	printf '%s\n' "$text" >"$dir/$2"
}

case $#${1:-} in
1-h | 1--help) usage; exit ;;
1-* | 1 | [02-9]*) usage >&2; exit 2 ;;
esac
dir=$1 # absolute, or from the top directory
mkdir -p "$dir/schema" "$dir/images"
cp NOTICE docs/benchmarks.log "$dir"
cp docs/schema/*.json "$dir/schema"
cp docs/images/*.png docs/images/*.svg "$dir/images"
write README.md README.md
write CHANGELOG.md CHANGELOG.md
for page in docs/*.md; do
	name=${page#docs/}
	write "$page" "${name/#README.md/index.md}"
done
