#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the examples on Debian's kernels without the kernels' own BTF: boots each under qemu with static binaries of the examples,
# which use the embedded archive. See usage below.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
cd "$(dirname "$0")/.."

usage() {
	cat <<EOF2
usage: $me [--timeout SECONDS] [KERNEL...]

Boots each KERNEL in software emulation, without a disk, starts examples/go-tracer
and examples/c-tracer in it, executes a program, and compares what the tracers tell
of it with what is true. KERNEL is one of

  bullseye, bookworm, trixie   the kernel of that Debian suite that
                               examples/go-tracer/tracer.btfa has, or the newest of
                               the suite where that one is no longer on the mirror
  debian/12/x86_64/RELEASE     the newest that matches, such as '6.1.*-cloud-amd64'
  a file                       a .deb, or a kernel image for x86_64

and by default the three suites. A kernel that tracer.btfa does not have is added to
the archive in the tracers that are booted, from the BTF in its image. Says by which
rule the kernel was found in the archive, what the reader in C takes and, last, a
line per kernel.

  --timeout SECONDS   give up on a boot after so long (default 120)

Needs Go, qemu-system-x86_64, cpio, and file; for the tracer in C, without which the
other runs alone, what its Makefile names; to download, apt and a Debian mirror.
Exit status: 0 all traced; 1 some not; 2 wrong usage; 3 something that it needs is
not there, a kernel among it.
EOF2
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
wrong() { say "$*"; usage >&2; exit 2; }

timeout=120 kernels=()
while (($#)); do
	case $1 in
	--timeout)
		(($# > 1)) && [[ $2 ]] || wrong "$1 wants a value"
		timeout=$2
		shift
		;;
	-h | --help) usage; exit 0 ;;
	-*) wrong "unknown option $1" ;;
	*)
		[[ -f $1 || $1 =~ ^(bullseye|bookworm|trixie|debian/[^/]+/x86_64/[^/]+)$ ]] ||
			wrong "$1: no such file, nor a suite or a kernel"
		kernels+=("$1")
		;;
	esac
	shift
done
[[ $timeout =~ ^[1-9][0-9]*$ ]] || wrong "--timeout $timeout: not a number of seconds"
((${#kernels[@]})) || kernels=(bullseye bookworm trixie)
for tool in go qemu-system-x86_64 cpio file gzip dpkg-deb; do
	command -v "$tool" >/dev/null || { say "$tool is missing"; exit 3; }
done

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# version RELEASE prints VERSION_ID and name of the Debian that has such kernels.
version() {
	case $1 in
	*+deb13*) echo '13 trixie' ;;
	5.10.*) echo '11 bullseye' ;;
	6.1.*) echo '12 bookworm' ;;
	6.12.*) echo '13 trixie' ;;
	*) echo ' sid' ;;
	esac
}

# fetch KEY DIR downloads the newest kernel that matches, and prints the name of the package that has its image.
fetch() {
	"$work/btfgen" corpus fetch "${1%/*}" --select "$1" --newest 1 --packages "$2" --quiet >&2 || return
	find "$2" -name 'linux-image-*.deb' -o -name 'linux-binary-*.deb'
}

# download KERNEL DIR is fetch for a suite, too: the kernel that is in tracer.btfa, otherwise the newest of the suite's own.
download() {
	local id name found series
	case $1 in
	bullseye) series=debian/11/x86_64/5.10 ;;
	bookworm) series=debian/12/x86_64/6.1 ;;
	trixie) series=debian/13/x86_64/6.12 ;;
	*) fetch "$1" "$2"; return ;;
	esac
	for id in $("$work/btfgen" archive list "$tracer_archive" 2>/dev/null | awk '$1 == "debian" && $3 == "x86_64" { print $4 }'); do
		read -r _ name < <(version "$id")
		if [[ $name == "$1" ]] && found=$(fetch "${series%/*}/$id" "$2") && [[ $found ]]; then
			echo "$found"
			return
		fi
	done
	say "$1: tracer.btfa has no kernel that is on the mirror; taking the newest"
	fetch "$series.*[0-9]-amd64" "$2"
}

# image KERNEL DIR copies the kernel image to DIR/vmlinuz.
image() {
	local deb=$1 path
	mkdir "$2"
	if [[ -f $1 && $1 != *.deb ]]; then
		cp "$1" "$2/vmlinuz"
		return
	fi
	if [[ ! -f $1 ]]; then
		deb=$(download "$1" "$work/packages/${2##*/}") || return 1
	fi
	path=$(dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -E '/vmlinuz[^/]*$' | head -n 1) || true
	[[ $path ]] || { say "$1: no kernel image in it"; return 1; }
	dpkg-deb --fsys-tarfile "$deb" | tar -x -O "$path" >"$2/vmlinuz"
}

# os_release VERSION_ID NAME prints Debian's /etc/os-release. The development version has no VERSION_ID.
os_release() {
	echo 'NAME="Debian GNU/Linux"'
	if [[ $1 ]]; then
		printf 'PRETTY_NAME="Debian GNU/Linux %s (%s)"\nVERSION_ID="%s"\nVERSION="%s (%s)"\n' "$1" "$2" "$1" "$1" "$2"
	fi
	printf 'VERSION_CODENAME=%s\nID=debian\n' "$2"
}

# prepare KERNEL DIR writes image, release and os-release to DIR and, if tracer.btfa lacks the kernel, its BTF to the corpus.
prepare() {
	local release id name
	image "$1" "$2" || return 1
	release=$(file -b "$2/vmlinuz" | sed -n 's/.*bzImage, version \([^ ]*\) .*/\1/p')
	[[ $release ]] || { say "$1: not a kernel image for x86"; return 1; }
	IFS=' ' read -r id name < <(version "$release" | sed 's/^ /- /')
	printf '%s\n' "$release" >"$2/release"
	os_release "${id#-}" "$name" >"$2/os-release"
	if ! "$work/btfgen" archive lookup "$tracer_archive" --os-release "$2/os-release" --release "$release" --arch x86_64 >/dev/null 2>&1; then
		"$work/btfgen" corpus import --as "debian/$id/x86_64/$release" -o "$work/corpus.btfc" "$2/vmlinuz" 2>"$2/log" ||
			{ cat "$2/log" >&2; return 1; }
	fi
}

tracer_archive=examples/go-tracer/tracer.btfa
go build -o "$work/btfgen" ./cmd/btfgen

status=0 verdicts=() ready=()
for i in "${!kernels[@]}"; do
	say "preparing ${kernels[i]}"
	if prepare "${kernels[i]}" "$work/$i"; then
		ready+=("$i")
	else
		verdicts+=("${kernels[i]}: missing") status=3
	fi
done

# The tracers, with all kernels in their archive.
embedded=$PWD/$tracer_archive
if [[ -e $work/corpus.btfc ]]; then
	embedded=$work/tracer.btfa
	"$work/btfgen" generate --btf "$work/corpus.btfc" -o "$work/more.btfa" examples/go-tracer/bpf/exec.bpf.o
	"$work/btfgen" archive convert "$tracer_archive" "$work/more.btfa" -o "$embedded"
fi
root=$work/root
mkdir -p "$root"/{dev,proc,sys,etc}
printf '{"Replace": {"%s": "%s"}}\n' "$PWD/$tracer_archive" "$embedded" >"$work/overlay.json"
export CGO_ENABLED=0 GOOS=linux GOARCH=amd64
go build -overlay "$work/overlay.json" -trimpath -ldflags '-s -w' -o "$root/go-tracer" ./examples/go-tracer
mkdir "$work/c"
if PATH=$PATH:/usr/sbin make -s -C examples/c-tracer OUT="$work/c" ARCHIVE="$embedded" LDFLAGS='-static -s' >"$work/c/log" 2>&1; then
	cp "$work/c/tracer" "$root/c-tracer"
	say "c-tracer: $(wc -c <"$root/c-tracer") bytes, static"
	"${CC:-cc}" -std=c99 -O2 -c -o "$work/c/btfa.o" lib/c/btfa.c
	say "its reader without zstd: $(size -A "$work/c/btfa.o" | awk '$1 ~ /^\.(text|rodata|data|bss)/ { n += $2 } END { print n }') bytes of code and data"
	go test -count=1 -v -run '^TestCThousand$' ./pkg/archive >"$work/c/log" || { cat "$work/c/log" >&2; exit 1; }
	say "its reader: $(sed -n 's/^.*_test\.go:[0-9]*: //p' "$work/c/log")"
else
	tail -n 3 "$work/c/log" >&2
	say 'c-tracer cannot be built here; go-tracer runs alone'
fi
go build -trimpath -ldflags '-s -w' -o "$root/init" ./internal/testing/guest
ln -s init "$root/traced"

for i in "${ready[@]}"; do
	release=$(<"$work/$i/release")
	cp "$work/$i/os-release" "$root/etc/os-release"
	(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"
	say "booting $release"
	start=$SECONDS
	timeout --foreground "$timeout" qemu-system-x86_64 -accel tcg -cpu max,cx16=off -m 512 -smp 1 -nographic -no-reboot \
		-kernel "$work/$i/vmlinuz" -initrd "$work/initrd" \
		-append 'console=ttyS0 panic=-1 quiet mitigations=off no_timer_check' </dev/null >"$work/$i/log" 2>&1 || true
	# Firmware and kernel write to the same line.
	tr -d '\r' <"$work/$i/log" | sed -n "/guest: verdict/!s/.*guest: /  $release: /p"
	verdict=$(tr -d '\r' <"$work/$i/log" | sed -n 's/.*guest: verdict: //p')
	if [[ $verdict != traced* ]]; then
		tr -cd '[:print:]\n' <"$work/$i/log" | tail -n 15 >&2
		verdict=${verdict:-failed: no verdict within $timeout s} status=1
	fi
	verdicts+=("$release: $verdict ($((SECONDS - start)) s)")
done
printf "$me: %s\n" "${verdicts[@]}"
exit $status
