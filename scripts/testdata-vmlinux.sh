#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the kernel BTFs of testdata/vmlinux again from Debian's kernel packages, with 'btfgen corpus fetch'. See usage below.
set -euo pipefail
shopt -s inherit_errexit

# Path in the output directory, and series of 'corpus fetch'. 13-backports and experimental are suites.
kernels='
debian/11/x86_64/5.10.0-30-amd64                  debian/11/x86_64
debian/12/arm64/6.1.0-50-arm64                    debian/12/arm64
debian/12/x86_64/6.1.0-47-amd64                   debian/12/x86_64
debian/13-backports/x86_64/6.18.15+deb13-amd64    debian/13/x86_64
debian/13/armhf/6.12.107+deb13-armmp              debian/13/arm
debian/13/ppc64le/6.12.107+deb13-powerpc64le-64k  debian/13/ppc64le
debian/13/s390x/6.12.107+deb13-s390x              debian/13/s390x
debian/13/x86_64/6.12.107+deb13-amd64             debian/13/x86_64
debian/experimental/x86_64/7.3-amd64              debian/sid/x86_64
'

me=${0##*/}
cd "$(dirname "$0")/.."
usage() {
	cat <<EOF
usage: $me [--only RELEASE]... [-o DIR]

Makes testdata/vmlinux and compares each BTF with testdata/vmlinux/SHA256SUMS.
Downloads some 1.4 GB, more than half of it for armhf, whose BTF pahole makes from
the debug package; it differs from the recorded one, as its README.md explains.

  --only RELEASE  this kernel alone (a uname -r); may be repeated
  -o DIR          write below DIR, also what differs from SHA256SUMS; by default
                  testdata/vmlinux is written, and what differs is left out

Exit status: 0 all made as recorded; 1 failed; 2 wrong usage; 3 some are not on the
mirror or differ (each is named).
EOF
}

out=testdata/vmlinux only=()
while (($#)); do
	case $1 in
	--only) only+=("${2:?$(usage)}"); shift ;;
	-o) out=${2:?$(usage)}; shift ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/btfgen" ./cmd/btfgen

# make PATH SERIES writes the BTF of a kernel, unless it differs from the recorded one.
make() {
	local release=${1##*/} btf=$work/tree/$2/${1##*/}.btf sum recorded
	"$work/btfgen" corpus fetch "$2" --select "release=$release" -o "$work/kernels.btfc" --quiet >&2 || return
	"$work/btfgen" corpus extract "$work/kernels.btfc" --select "$2/$release" -o "$work/tree/" --quiet >&2 || return
	sum=$(sha256sum <"$btf")
	sum=${sum%% *}
	printf '%s  %s\n' "$sum" "$1.btf"
	recorded=$(awk -v f="$1.btf" '$2 == f { print $1 }' testdata/vmlinux/SHA256SUMS)
	if [[ $recorded != "$sum" ]]; then
		printf '%s: %s: differs from SHA256SUMS (%s)\n' "$me" "$1" "$recorded" >&2
		[[ ! $out -ef testdata/vmlinux ]] || return 1
	fi
	# Level 19 keeps the window within the 8 MiB that every decoder accepts, and 22 saves less than 0.1 %.
	if ! zstd -dqc "$out/$1.btf.zst" 2>/dev/null | cmp -s - "$btf"; then
		mkdir -p "$out/${1%/*}"
		zstd -qf -19 --check "$btf" -o "$out/$1.btf.zst"
	fi
	[[ $recorded == "$sum" ]]
}

status=0
while read -r -u 3 path series; do
	if [[ $path ]] && { ((!${#only[@]})) || printf '%s\n' "${only[@]}" | grep -qxF -- "${path##*/}"; }; then
		make "$path" "$series" || status=3
	fi
done 3<<<"$kernels"
exit $status
