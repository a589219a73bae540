#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds what `btfgen check` predicts against real kernels: boots each under
# qemu, loads every program of the objects in it, one at a time, and compares;
# then random programs, for what check knows of the verifier.
# See usage below.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
cd "$(dirname "$0")/.."

usage() {
	cat <<EOF2
usage: $me [--objects DIR]... [--timeout SECONDS] KERNEL...

Boots each KERNEL in software emulation, without a disk, and prints predicted
against actual. KERNEL is the name of a Debian package that apt can download
(linux-image-6.1.0-50-cloud-amd64), a .deb file, or a kernel image for x86_64.

  --objects DIR       load the *.o of DIR too; testdata/bpf is always loaded
  --timeout SECONDS   give up on a kernel after so long (default 600)

Needs qemu-system-x86_64, cpio, file, Go, and a C compiler with libbpf to link
statically with. Exit status: 0 all as predicted; 1 failed, or a prediction was
wrong; 2 wrong usage; 3 something that it needs is not there.
EOF2
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }

objects=(testdata/bpf) timeout=600 kernels=()
while (($#)); do
	case $1 in
	--objects | --timeout)
		(($# > 1)) || { say "$1 wants a value"; usage >&2; exit 2; }
		if [[ $1 == --objects ]]; then objects+=("$2"); else timeout=$2; fi
		shift
		;;
	-h | --help) usage; exit 0 ;;
	-*) say "unknown option $1"; usage >&2; exit 2 ;;
	*) kernels+=("$1") ;;
	esac
	shift
done
((${#kernels[@]})) || { say 'no kernel given'; usage >&2; exit 2; }
for tool in qemu-system-x86_64 cpio file go cc; do
	command -v "$tool" >/dev/null || { say "$tool is missing"; exit 3; }
done

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT

root=$work/root
mkdir -p "$root"/{proc,sys,tmp,dev,objects}
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$root/init" ./internal/check/checkvm
CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$root/check.test" ./internal/check
cc -O1 -static -o "$root/load" internal/check/judge/testdata/load.c -lbpf -lelf -lz ||
	{ say 'libbpf, libelf and zlib cannot be linked statically'; exit 3; }
for dir in "${objects[@]}"; do
	find "$dir" -maxdepth 1 -name '*.o' ! -name '*.bpfeb.o' -exec cp -t "$root/objects" {} +
done
(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"

# image KERNEL prints the path of its kernel image.
image() {
	local deb=$1 dir
	if [[ -f $1 && $1 != *.deb ]]; then
		printf '%s\n' "$1"
		return
	fi
	dir=$(mktemp -d "$work/deb.XXXX")
	if [[ ! -f $1 ]]; then
		chmod 777 "$dir"
		(cd "$dir" && apt-get download -qq "$1" >&2) || { say "$1: cannot be downloaded"; return 1; }
		deb=$(find "$dir" -name '*.deb')
	fi
	dpkg-deb --fsys-tarfile "$deb" |
		tar -x -C "$dir" --wildcards './boot/*-*' './usr/lib/modules/*/vmlinuz*' './usr/lib/modules/*/config' 2>/dev/null || true
	find "$dir" -name 'vmlinuz*' | grep . || { say "$1: no kernel image in it"; return 1; }
}

# settings IMAGE adds to the initrd the kernel's configuration, which libbpf looks
# for in /boot, and prints the result.
settings() {
	local release config extra
	release=$(file -b "$1" | sed -n 's/.*version \([^ ]*\) .*/\1/p')
	config=$(find "$(dirname "$1")" -name "config-$release" -o -name config | head -n 1)
	if [[ -z $release || -z $config ]]; then
		printf '%s\n' "$work/initrd"
		return
	fi
	extra=$(mktemp -d "$work/extra.XXXX")
	mkdir "$extra/boot"
	cp "$config" "$extra/boot/config-$release"
	(cd "$extra" && find . | cpio -o -H newc --quiet | gzip -1 | cat "$work/initrd" -) >"$extra.initrd"
	printf '%s\n' "$extra.initrd"
}

status=0
for kernel in "${kernels[@]}"; do
	vmlinuz=$(image "$kernel") || { status=1; continue; }
	initrd=$(settings "$vmlinuz")
	say "$kernel"
	# qemu 7.2 leaves wrong flags behind an exchange of 16 bytes, of which kernels panic: hence no cx16.
	timeout "$timeout" qemu-system-x86_64 -accel tcg -cpu max,cx16=off -m 1024 -smp 1 -nographic -no-reboot \
		-kernel "$vmlinuz" -initrd "$initrd" \
		-append 'console=ttyS0 panic=-1 quiet mitigations=off' </dev/null >"$work/log" 2>&1 || true
	tr -d '\r' <"$work/log" | sed -n '/checkvm: /,$p'
	# A test that skips itself is no end as predicted.
	if ! tr -d '\r' <"$work/log" | awk '/^--- PASS: TestVerifier/ { n++ } /^checkvm: end: as predicted$/ { end = 1 } END { exit !(end && n > 1) }'; then
		say "$kernel: not as predicted, or it did not come to an end"
		tail -n 5 "$work/log" >&2
		status=1
	fi
done
exit $status
