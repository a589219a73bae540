#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/images from real runs. See usage below.
set -euo pipefail

me=${0##*/}
cd "$(dirname "$0")/.."

usage() {
	cat <<EOF2
usage: $me

Makes the pictures of the documentation: docs/images/session.svg, a terminal, and
docs/images/check.png, the page that 'btfgen check --format html' writes, from what
btfgen prints for testdata; and the badges. Needs Go and chromium. Tests hold all of them
to what they show. check.png depends on chromium's version and fonts: docs/images/check.txt
has its hash and the same report as text, which TestCheckPicture compares.
EOF2
}

case ${1:-} in
'') ;;
-h | --help) usage; exit 0 ;;
*) printf '%s: unknown argument %s\n' "$me" "$1" >&2; usage >&2; exit 2 ;;
esac
chromium=$(command -v chromium || command -v chromium-browser) || { printf '%s: needs chromium\n' "$me" >&2; exit 3; }

go test ./cmd/btfgen -run '^(TestSession|TestBadges|TestForReadmes)$' -count=1 -update

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/btfgen" ./cmd/btfgen
cp -r testdata/vmlinux "$work/kernels"
for name in execsnoop runqlat tool; do
	cp "testdata/bpf/$name.bpfel.o" "$work/$name.bpf.o"
done
status=0
check=(check --btf kernels --exclude s390x --loader libbpf execsnoop.bpf.o runqlat.bpf.o tool.bpf.o)
cd "$work"
./btfgen "${check[@]}" --format html -o check.html || status=$?
((status == 0 || status == 3)) || exit "$status"
./btfgen "${check[@]}" -o check.out 2>log || ((status == 3))
cd - >/dev/null
# Open the first failure, as a reader would.
echo '<script>toggle(document.querySelector("tr.p"), 5)</script>' >>"$work/check.html"
browse() {
	"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb --force-device-scale-factor=1 \
		--window-size=1100,900 "$@" "file://$work/check.html" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}
browse --dump-dom >"$work/page"
grep -q 'class="detail"' "$work/page" || { printf '%s: the page does not show why a program fails\n' "$me" >&2; exit 1; }
browse --screenshot="$work/check.png"
mv "$work/check.png" docs/images/check.png
{
	sha256sum <docs/images/check.png
	echo "btfgen ${check[*]}"
	cat "$work/check.out"
} >docs/images/check.txt
ls -l docs/images
