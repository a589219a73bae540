#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the predictions of `btfgen check` with real kernels: `check --boot` with all available objects, also with the BTF of an
# archive for the kernel, and, in the same kernels, libbpf itself with the same objects, and the tests of check's model of the
# verifier. The tables of all kernels together are
# that of docs/accuracy.md. See usage below.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
cd "$(dirname "$0")/.."

usage() {
	cat <<EOF2
usage: $me [--objects DIR]... [--table FILE] [--timeout SECONDS] KERNEL...

Boots each KERNEL five times, two machines at once: prints predicted against
actual, as --boot loads objects and as libbpf itself does, where these disagree,
both also for programs of corner cases, and then what tests of random programs,
helpers and instructions say. KERNEL is one of

  bullseye, bookworm, trixie   the newest kernel for clouds of that Debian suite
  newest                       the newest of trixie's backports
  rt                           the newest with PREEMPT_RT that apt has
  ID/VERSION_ID/ARCH/RELEASE   the newest that matches, such as 'debian/12/x86_64/6.1.*'
  a file                       a .deb, or a kernel image for x86_64
  a directory                  packages of one kernel; what has arm64 in its name is for that

  --btf FILE          the types of kernels without BTF, as check --boot --btf takes them
  --corners DIR       more objects for corner cases, besides those of testdata/bpf
  --objects DIR       objects, and programs that embed some; testdata/bpf and what
                      BTFGEN_DEBIAN and BTFGEN_OBJECTS name are always taken
  --table FILE        replace the rows of these kernels in the tables of FILE, a Markdown page
  --timeout SECONDS   give up on a boot after so long (default 900)

On arm64, objects are only booted as --boot loads them.

Needs qemu-system-x86_64 (or -aarch64), Go, a C compiler and libbpf-dev; to download,
apt or dnf and a mirror. Exit status: 0 as predicted; 1 with libbpf a program was to
load and does not, was to fail and loads, or --boot says otherwise than libbpf, and
internal/testing/judges/known.txt has no reason for it; or with cilium/ebpf more than 1 % of the
programs that were to load, or 2 % of those that were to fail, do otherwise; or a test has
failed; 2 wrong usage; 3 something that it needs is missing, such as a kernel.
EOF2
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
wrong() { say "$*"; usage >&2; exit 2; }

dirs=(testdata/bpf ${BTFGEN_DEBIAN:+"$BTFGEN_DEBIAN"} ${BTFGEN_OBJECTS:+"$BTFGEN_OBJECTS"}) cornerdirs=() page='' timeout=900 btf='' kernels=()
while (($#)); do
	case $1 in
	--btf | --corners | --objects | --table | --timeout)
		(($# > 1)) && [[ $2 ]] || wrong "$1 wants a value"
		case $1 in
		--btf) btf=$2 ;;
		--corners) cornerdirs+=("$2") ;;
		--objects) dirs+=("$2") ;;
		--table) page=$2 ;;
		--timeout) timeout=$2 ;;
		esac
		shift
		;;
	-h | --help) usage; exit 0 ;;
	-*) wrong "unknown option $1" ;;
	*)
		case $1 in
		bullseye) kernels+=('debian/11/x86_64/5.10.*-cloud-amd64') ;;
		bookworm) kernels+=('debian/12/x86_64/6.1.*-cloud-amd64') ;;
		trixie) kernels+=('debian/13/x86_64/6.12.*-cloud-amd64') ;;
		newest | rt) kernels+=("$1") ;;
		*)
			[[ -e $1 || $1 =~ ^[^/]+/[^/]+/[^/]+/[^/]+$ ]] || wrong "$1: no such file, nor a suite or a kernel"
			kernels+=("$1")
			;;
		esac
		;;
	esac
	shift
done
((${#kernels[@]})) || wrong 'no kernel given'
[[ $timeout =~ ^[1-9][0-9]*$ ]] || wrong "--timeout $timeout: not a number of seconds"
for tool in go cc; do
	command -v "$tool" >/dev/null || { say "$tool is missing"; exit 3; }
done

work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Test objects for corner cases, some of which have programs that kernels refuse for what check does not judge. They get rows of their own.
unjudged='.*testdata/bpf/\(callers\|context\|corner[a-z0-9]*\|license\|lsmhooks\|masks\|needy\|perfvalue\|ranges\|returns\|since\|sleepable\)\..*'
mapfile -d '' -t objects < <(find "${dirs[@]}" -type f ! -regex "$unjudged" \( -name '*.o' ! -name '*.bpfeb.o' -o -perm -100 -path '*bin/*' \) -print0 | sort -z)
mapfile -d '' -t corners < <(find testdata/bpf "${cornerdirs[@]}" -type f \( -regex "$unjudged" -o ! -path 'testdata/*' \) -name '*.o' ! -name '*.bpfeb.o' -print0 | sort -z)

go build -o "$work/host" ./cmd/btfgen
export CGO_ENABLED=0 GOOS=linux
archs=(amd64)
[[ ${kernels[*]} != *arm64* ]] || archs+=(arm64)
for arch in "${archs[@]}"; do
	GOARCH=$arch go build -trimpath -ldflags '-s -w' -o "$work/$arch" ./cmd/btfgen
done
export GOARCH=amd64
go test -c -trimpath -ldflags '-s -w' -o "$work/rule.test" ./internal/check/rule
GOARCH="" go build -o "$work/judges" ./internal/testing/judges
mkdir "$work/objects" "$work/corners"
"$work/judges" unpack "$work/objects" "${objects[@]}"
"$work/judges" unpack "$work/corners" "${corners[@]}"
# Newer libelf is linked with zstd.
loader=(cc -O1 -static -o "$work/load" internal/check/boot/testdata/load.c -lbpf -lelf -lz)
"${loader[@]}" 2>"$work/err" || "${loader[@]}" -lzstd 2>"$work/err" || { cat "$work/err" >&2; say 'no static libbpf'; exit 3; }

# fits STEP PERCENT reports whether the rows of a step match the predictions, where so many that were to fail may load. Cells are
# works/does not.
fits() {
	awk -F '|' -v step="$1" -v percent="$2" '$3 == step { split($4 "/" $5 "/" $6 "/" $9, n, "/"); fine += n[1] + n[3] + n[5]; lost += n[2] + n[4] + n[6]; bad += n[7]; no += n[8] }
		END { exit !(fine > 0 && bad * 100 <= percent * (bad + no) && lost * 100 <= fine + lost) }'
}

# in_kernel TEST PATTERN VARIABLES [FILE...] runs tests in the booted kernel, with these files in their directory. What they print is
# in $work/TEST.log.
in_kernel() {
	local test=$1 pattern=$2 variables=$3 log=$work/$1
	shift 3
	"$work/amd64" check --boot "$kernel" --timeout "$timeout" \
		--command "BTFGEN_LIVE=1 $variables $work/$test -test.v -test.run=$pattern" "$@" >"$log.log" 2>"$log.err" || true
	grep -hE -- '--- (PASS|FAIL|SKIP)|_test.go:[0-9]*: .*(map\[|\<but\>|\<want\>|skipped:|\|real|not foreseen:)|exit status' "$log.log" "$log.err" || true
}

# libbpf_loads DIR loads the objects of a directory with libbpf in the booted kernel.
libbpf_loads() {
	local unpacked=()
	mapfile -d '' -t unpacked < <(find "$1" -name '*.o' -print0 | sort -zV)
	"$work/amd64" check --boot "$kernel" --timeout "$timeout" --command "$work/load ${btf:+--btf ${btf##*/}} ${unpacked[*]##*/}" \
		${btf:+"$btf"} "${unpacked[@]}" >"$1/loaded" 2>"$1/err" || true
}

# judge DIR LOG compares libbpf with the log of check --boot, and prints it.
judge() {
	"$work/judges" compare "$1" "$2" "$1/loaded" >"$1/compared" || {
		say "$kernel: not as predicted for libbpf itself"
		tail -n 5 "$1/err" >&2
		status=1
	}
	cat "$1/compared"
}

# tests runs libbpf, and the tests that judge check's model of the verifier.
tests() {
	libbpf_loads "$work/objects"
	libbpf_loads "$work/corners"
	in_kernel rule.test '^TestVerifier' ''
}

status=0
: >"$work/rows"
: >"$work/cornerrows"
for i in "${!kernels[@]}"; do
	kernel=${kernels[i]}
	arch=amd64
	[[ ${kernel%/} != *arm64* ]] || arch=arm64
	case $kernel in
	newest)
		# The list is by release.
		kernel=$("$work/host" corpus fetch debian/13/x86_64 --select 'debian/13/x86_64/*-cloud-amd64' --newest 1 --dry-run --packages "$work/none" |
			awk '/^debian/ { key = $1 } END { print key }') || { status=3; continue; }
		;;
	rt)
		mkdir -p "$work/rt"
		kernel=$(apt-cache search --names-only '^linux-image-[0-9].*[0-9]-rt-amd64$' | cut -d ' ' -f 1 | grep '[0-9]\.[0-9]*\.' | sort -V | tail -n 1)
		(cd "$work/rt" && apt-get download -qq "$kernel") || { status=3; continue; }
		kernel=$work/rt
		;;
	esac
	if [[ ! -e $kernel ]]; then
		packages=$work/${kernel//\//_}
		"$work/host" corpus fetch "${kernel%/*}" --select "$kernel" --newest 1 --packages "$packages" --quiet >&2 || { status=3; continue; }
		kernel=$packages
	fi
	say "$kernel"
	# An emulated machine has one processor.
	if [[ $arch == amd64 ]]; then tests >"$work/tests" & fi
	# Findings are expected, since some test objects do not load. Only the table counts.
	"$work/host" generate --btf "${btf:-$kernel}" --quiet -o "$work/archive.btfa" "${objects[@]}" >/dev/null 2>&1 || true
	"$work/host" check --verbose --boot "$kernel" ${btf:+--btf "$btf"} --archive "$work/archive.btfa" --btfgen "$work/$arch" --timeout "$timeout" "${objects[@]}" >"$work/log" 2>"$work/err" || true
	grep -v ': unmatched: ' "$work/err" >&2 || true
	grep -E '^  WRONG: |^      (predicted:|\|) ' "$work/log" | cut -c 1-240 || true
	sed -n '/, predicted against actual /,$p' "$work/log" | tee "$work/table"
	if ! fits 'ebpf-go loads' 2 <"$work/table" || grep -q ' DIFFERS: ' "$work/log" ||
		{ [[ $arch != amd64 ]] && ! fits 'libbpf loads' 0 <"$work/table"; }; then
		say "$kernel: not as predicted"
		status=1
	fi
	sed -n '/^|---/,/^$/ { /^|[^-]/p }' "$work/table" >>"$work/rows"
	[[ $arch == amd64 ]] || continue
	wait
	cat "$work/tests"
	judge "$work/objects" "$work/log"
	sed -n '/^|/p' "$work/objects/compared" >>"$work/rows"
	"$work/host" check --verbose --boot "$kernel" ${btf:+--btf "$btf"} --btfgen "$work/amd64" --timeout "$timeout" "${corners[@]}" >"$work/corners/log" 2>"$work/err" || true
	judge "$work/corners" "$work/corners/log"
	sed -n '/^|/p' "$work/corners/compared" >>"$work/cornerrows"
	# A skipped test has not passed.
	if ! awk '/^ *--- PASS: TestVerifier/ { n++ } /: exit status 0$/ { end = 1 } END { exit !(end && n > 1) }' "$work/rule.test.log"; then
		say "$kernel: a test has failed, or they did not come to an end"
		tail -n 5 "$work/rule.test.err" >&2
		status=1
	fi
done

# replace HEADER ROWS replaces the rows of these kernels in the first table of the page whose second column has this name. Rows of other
# kernels stay, and those of new ones are added at its end.
replace() {
	[[ -s $2 ]] || return 0
	awk -F '|' -v rows="$2" -v header="$1" '
		function add(kernel) { printf "%s", of[kernel]; delete of[kernel] }
		BEGIN { while ((getline <rows) > 0) { if (!($2 in of)) name[++n] = $2; of[$2] = of[$2] $0 "\n"; new[$2] = 1 } }
		$2 == "kernel" && $3 == header { table = !n_tables++ }
		table && !/^\|/ { for (i = 1; i <= n; i++) add(name[i]); table = 0 }
		table && $2 in new { add($2); next }
		{ print }' "$page" >"$work/page"
	cat "$work/page" >"$page"
}
if [[ $page ]]; then
	replace step "$work/rows"
	replace 'corner cases' "$work/cornerrows"
fi
exit $status
