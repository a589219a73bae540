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
usage: $me DIR | $me --manual

Writes the documents of share/doc/btfgen to DIR. Links in them lead to files in DIR
or, if DIR lacks a file, to $home.

  --manual  print btfgen(1) in Markdown instead, without its first line
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

# manual: prints docs/cli.md with the sections of a manual page.
manual() {
	printf '# NAME\n\nbtfgen - minimize kernel BTF for BPF CO-RE objects\n\n'
	printf '# SYNOPSIS\n\n'
	# The first line of code of a command is its synopsis, the others with btfgen are examples.
	awk '/^##+ btfgen / { first = 1 } /^    btfgen / { if (first && $NF != "COMMAND") { sub(/ +$/, ""); print } first = 0 }' docs/cli.md
	printf '\n'
	printf '# DESCRIPTION\n\n'
	sed -E '1,/^<!--/d; s/^##/#/; s/\[([^]]*)\]\([^)]*\)/\1/g' docs/cli.md
	printf '\n# EXAMPLES\n\n'
	awk '/^##+ btfgen / { first = 1 } /^    btfgen / { if (!first) print; first = 0 }' docs/cli.md
	printf '\n# SEE ALSO\n\nbpftool-gen(8), libbtfa(3), pahole(1)\n'
}

case $#${1:-} in
1--manual) manual; exit ;;
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
