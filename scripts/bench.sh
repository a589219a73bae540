#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures btfgen and the programs it is compared with. See usage below.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/bounds
. "$root/scripts/bounds"
all=(corpus40 corpus50 objects real sizes single xz packed import many big large check reuse go)

usage() {
	cat <<EOF
usage: $me [--quick] [--speed FILE] [--list] [--scale] [FIGURE]...

Builds btfgen, measures each FIGURE (all of them by default), and prints both
sides and their ratio. In turns with each run of btfgen, it measures the same of
an earlier version.

  corpus40  40 objects on 10 kernels of raw BTF: CPU time, ours and bpftool's
  corpus50  50 objects on 20 kernels: the same
  objects   50 objects on those kernels, and 5: CPU time; the 50 into an archive
  real      the large objects of BTFGEN_OBJECTS on those kernels, to a tree and to
            an archive; min_core_btf, relolog and check of some on one kernel
  sizes     what corpus50 wrote: bytes, ours and bpftool's
  single    one object, one kernel: wall and CPU time, ours and bpftool's
  xz        the corpus as .btf.tar.xz: wall time, ours and that of xz -dc
  packed    the corpus in one file, and each of its series of 3 kernels or more:
            bytes, and those of .btf.tar.xz and of tar | zstd -19 --long=31; wall
            and CPU time from it, from raw files, and from .btf.tar.xz; what the
            bytes are spent on
  import    the corpus into one file, from raw files and from .btf.tar.xz; the
            kernel packages (.deb) of BTFGEN_PACKAGES, and what unpacking them
            takes: CPU time, and peak memory
  many      about 1,000 kernels, and the corpus they are made of: CPU time per
            kernel, and peak memory; the same in one file
  big       a kernel with 20 MB of BTF or more: wall time, ours and bpftool's
  large     an object with 35,000 records that ask 400 questions, and one with
            half of them: CPU time of relolog and check on all kernels, and on one
  check     93 objects, nine of them large, on 83 kernels, and 50 on about 1,000:
            wall and CPU time, and peak memory
  reuse     a second run with --reuse and one kernel more: CPU and wall time
  go        the Go benchmarks

  --quick   fewer repetitions, and about 100 kernels for 'many'
            and 'check'
  --speed   writes a line to FILE for each comparison with the earlier version:
            FIGURE, what of it, and btfgen's CPU time divided by the earlier one's
  --list    print the names of the figures
  --scale   measure only this, once and without the earlier version: import,
            generate, check and verify with BTFGEN_SCALE kernels and objects
            ('5000 500' by default), made of those of other figures; hours, and
            10 GB below TMPDIR

Objects are those in the files below BTFGEN_DEBIAN; without it, of Debian's
packages libbpf-tools, xdp-tools and libxdp1 if apt-get downloads them; else of
testdata/bpf. Kernels are those below BTFGEN_CORPUS, else of testdata/vmlinux.
Where there are fewer than a figure asks for, it says how many it had. All
inputs are read once before anything is measured. 'many' and 'check' need 2 GB below
TMPDIR. The earlier version is BTFGEN_BEFORE, a program or a git revision to be
built; by default the revision in scripts/bounds. If it is empty, there is none.
EOF
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 1; }

quick=false
speed=/dev/null
figures=()
while (($#)); do
	case $1 in
	--quick) quick=true ;;
	--speed)
		(($# > 1)) || { say "$1: which file?"; usage >&2; exit 2; }
		speed=$2
		: >"$speed"
		shift
		;;
	--list) printf '%s\n' "${all[@]}"; exit 0 ;;
	--scale) all=(scale) figures=(scale) BTFGEN_BEFORE= ;;
	-h | --help) usage; exit 0 ;;
	-*) say "unknown option $1"; usage >&2; exit 2 ;;
	*)
		[[ " ${all[*]} " == *" $1 "* ]] || { say "there is no figure $1; see --list"; exit 2; }
		figures+=("$1")
		;;
	esac
	shift
done
((${#figures[@]})) || figures=("${all[@]}")
PATH=$PATH:/usr/sbin:/sbin

tmp=$(mktemp -d)
out=$tmp/out
trap 'rm -rf "$tmp" "$out"' EXIT
if [[ -w /dev/shm ]]; then out=$(mktemp -d -p /dev/shm); fi # a disk is not what is to be measured
mkdir -p "$out/before"
: >"$tmp/plan"
: >"$tmp/measured"
jobs=$(nproc)
repeat=5
$quick && repeat=3

have() { command -v "$1" >/dev/null; }

# need TOOL...: fails if a tool is missing.
need() {
	local tool
	for tool; do
		have "$tool" || { result "skipped: $tool is not installed"; return 1; }
	done
}

# result TEXT: prints a line of the current figure. benchhelper replaces expressions in braces with what the last turns measured:
# {wall SIDE}, {cpu SIDE}, {memory SIDE}, {failed SIDE}, or with a format {%.2f: cpu SIDE / cpu SIDE}.
result() { "$tmp/helper" line "$figure" "$*" <"$tmp/measured"; }

## Steps. These functions add a step to a plan, and turns runs the plan. With rounds=K, a step runs only in the first K rounds.

step() { printf '%s\0' "${rounds:-0}" "$@" '' >>"$tmp/plan"; }

# ours SIDE ARG...: measures btfgen with output in $out, and the earlier version with output in $out/before.
ours() { step ours "$@"; }

# theirs SIDE COMMAND ARG...: measures another program.
theirs() { step run "$@"; }

# each SIDE LIST JOBS COMMAND ARG...: measures a command that runs for each line of LIST, JOBS at once. The line replaces {}.
each() { step each "$@"; }

# drop NAME...: removes outputs.
drop() { step drop "$@"; }

# generate SIDE ARG...: measures a run that writes to $out/out.
generate() {
	local side=$1
	shift
	drop out
	ours "$side" generate -o "$out/out" "$@"
}

# turns N: runs all steps of the plan in turns, N times, and empties the plan. It replaces the earlier measurements.
turns() {
	compared
	"$tmp/helper" turns -program "$tmp/btfgen" -before "$before" -out "$out" "$1" <"$tmp/plan" >"$tmp/measured"
	: >"$tmp/plan"
}

# compared: prints how the last measurements compare with the earlier version.
compared() {
	"$tmp/helper" compare "$figure" "$speed" <"$tmp/measured"
	: >"$tmp/measured"
}

## Inputs, each made at most once

warm() { find "$@" -type f -exec cat {} + >/dev/null; }

# compile DIR OUT: builds btfgen as for a release.
compile() { (cd "$1" && CGO_ENABLED=0 go build -tags urfave_cli_no_docs -ldflags "-X main.version=bench" -o "$2" ./cmd/btfgen); }

build() {
	compile "$root" "$tmp/btfgen"
	(cd "$root" && go build -o "$tmp/helper" ./internal/testing/benchhelper)
}

# prepare_before: sets before to the program of the earlier version, or empty.
prepare_before() {
	local revision=${BTFGEN_BEFORE-$speed_before} src=$tmp/before.src
	before=
	[[ -n $revision ]] || return 0
	if [[ -f $revision ]]; then
		before=$(realpath "$revision")
	elif git -C "$root" rev-parse -q --verify "$revision^{commit}" >/dev/null 2>&1; then
		mkdir "$src"
		git -C "$root" archive "$revision" | tar -xC "$src"
		compile "$src" "$tmp/before"
		rm -rf "$src"
		before=$tmp/before
	elif [[ -n ${BTFGEN_BEFORE:-} ]]; then
		die "BTFGEN_BEFORE: $revision is neither a program nor a revision"
	fi
	if [[ -n $before ]]; then
		result "compared with $revision"
	else
		result "not compared with an earlier version: no revision $revision here"
	fi
}

# debian_files: prints the directory of Debian's packages, if there is one.
debian_files() {
	[[ -n ${BTFGEN_DEBIAN:-} ]] && { echo "$BTFGEN_DEBIAN"; return; }
	have apt-get && have dpkg || return 0
	mkdir -p "$tmp/debs"
	chmod 755 "$tmp" "$tmp/debs" # apt-get downloads as a user of its own
	(cd "$tmp/debs" && apt-get download -qq libbpf-tools xdp-tools libxdp1 >/dev/null 2>&1) || return 0
	local deb
	for deb in "$tmp"/debs/*.deb; do dpkg -x "$deb" "$tmp/debs/x"; done
	echo "$tmp/debs/x"
}

# prepare_objects: $tmp/obj.list lists the objects, except those that bpftool refuses, because bpftool stops at them.
prepare_objects() {
	local from kernel o
	from=$(debian_files)
	mkdir "$tmp/obj"
	"$tmp/helper" objects "$tmp/obj" "${from:-$root/testdata/bpf}"
	if have bpftool; then
		kernel=$(head -n 1 "$tmp/raw.list")
		for o in "$tmp"/obj/*.o; do bpftool gen min_core_btf "$kernel" "$out/out.btf" "$o" &>/dev/null || rm "$o"; done
	fi
	ls "$tmp"/obj/*.o >"$tmp/obj.list"
	warm "$tmp/obj"
}

# prepare_kernels: $tmp/raw has the little-endian kernels, decompressed. $tmp/raw.list lists those below 20 MB, $tmp/big.list
# the others.
prepare_kernels() {
	local from=${BTFGEN_CORPUS:-$root/testdata/vmlinux} source to
	from=${from%/}
	while IFS= read -r source; do
		to=$tmp/raw/${source#"$from"/}
		to=${to%.tar.xz}
		to=${to%.zst}
		mkdir -p "${to%/*}"
		case $source in
		*.tar.xz) tar -xJOf "$source" >"$to" || die "$source: cannot be decompressed" ;;
		*.zst) zstd -qdc "$source" >"$to" || die "$source: cannot be decompressed" ;;
		*) cp "$source" "$to" ;;
		esac
		[[ $(head -c 2 "$to" | od -An -tx1) == ' 9f eb' ]] || rm "$to"
	done < <(find "$from" \( -name '*.btf' -o -name '*.btf.zst' -o -name '*.btf.tar.xz' \) -size +0 -not -path '*/modules/*' | sort)
	[[ -d $tmp/raw ]] || die "$from: no kernel found"
	find "$tmp/raw" -name '*.btf' -size -20000k | sort >"$tmp/raw.list"
	find "$tmp/raw" -name '*.btf' -not -size -20000k | sort >"$tmp/big.list"
	warm "$tmp/raw"
}

# kernels N: sets tree to a tree of the first N kernels of raw.list, and list to a file with their names.
kernels() {
	tree=$tmp/raw$1 list=$tmp/raw$1.list
	[[ -d $tree ]] && return
	head -n "$1" "$tmp/raw.list" >"$list"
	local k to
	while IFS= read -r k; do
		to=$tree/${k#"$tmp/raw/"}
		mkdir -p "${to%/*}"
		ln "$k" "$to"
	done <"$list"
}

# prepare_xz: $tmp/xz is a tree of the kernels of raw.list as .btf.tar.xz.
prepare_xz() {
	[[ -d $tmp/xz ]] && return
	local k name to
	while IFS= read -r k; do
		name=${k#"$tmp/raw/"}.tar.xz
		to=$tmp/xz/$name
		mkdir -p "${to%/*}"
		if [[ -f ${BTFGEN_CORPUS:-}/$name ]]; then
			cp "$BTFGEN_CORPUS/$name" "$to"
		else
			tar -cC "${k%/*}" "${k##*/}" | xz >"$to"
		fi
	done <"$tmp/raw.list"
	warm "$tmp/xz"
}

# objects N: sets objs to the first N objects.
objects() { mapfile -t objs < <(head -n "$1" "$tmp/obj.list"); }

counts() { printf '%d objects, %d kernels' "${#objs[@]}" "$(wc -l <"$list")"; }

## Figures

# scaled NAME ARG...: measures a command once, and prints its cost for $kernels and, in proportion, for 100,000 kernels.
scaled() {
	local name=$1
	shift
	ours "$name" "$@"
	turns 1
	result "$name: wall time {%.1f s: wall $name}, CPU time {%.1f s: cpu $name}{failed $name}, peak memory {memory $name};" \
		"CPU time per kernel {cpu $name / $kernels}, so {%.1f h: cpu $name / $kernels * 1e5 / 3600} for 100,000"
}

measure_scale() {
	local kernels count i set=()
	read -r kernels count <<<"${BTFGEN_SCALE:-5000 500}"
	"$tmp/helper" variants "$kernels" "$tmp/scale" "$tmp/raw"
	mapfile -t set < <(head -n "$count" "$tmp/obj.list")
	for ((i = ${#set[@]}; i < count; i++)); do # each with other questions
		"$tmp/helper" large $((100 + i)) $((20 + i % 80)) "$tmp/scale$i.o"
		set+=("$tmp/scale$i.o")
	done
	result "$kernels kernels of $(find "$tmp/raw" -name '*.btf' | wc -l), $count objects"
	scaled import corpus import -o "$tmp/scale.btfc" "$tmp/scale"
	result "one file of $(stat -c %s "$tmp/scale.btfc") bytes"
	rm -rf "$tmp/scale"
	scaled generate generate --btf "$tmp/scale.btfc" -o "$out/scale.btfa" "${set[@]}"
	result "an archive of $(stat -c %s "$out/scale.btfa") bytes"
	scaled check check --json --btf "$tmp/scale.btfc" "${set[@]}"
	scaled verify verify --btf "$tmp/scale.btfc" "$out/scale.btfa" "${set[@]}"
	rm -rf "$tmp"/scale*.{btfc,o} "$out/scale.btfa"
}

# both OBJECTS KERNELS: adds steps that write to $out/out with btfgen, and to $out/theirs with bpftool, once per kernel.
both() {
	objects "$1"
	kernels "$2"
	local n
	while IFS= read -r n; do
		n=${n#"$tmp/raw/"}
		mkdir -p "$out/theirs/${n%/*}"
		printf '%s\n' "$n"
	done <"$list" >"$tmp/names.list"
	for n in 1 2 3; do generate btfgen --btf "$tree" "${objs[@]}"; done # it takes far less than bpftool
	each bpftool "$tmp/names.list" 1 bpftool gen min_core_btf "$tmp/raw/{}" "$out/theirs/{}" "${objs[@]}"
}

# against OBJECTS KERNELS WANT
against() {
	need bpftool || return 0
	both "$1" "$2"
	turns "$repeat"
	result "$(counts): CPU time btfgen {cpu btfgen}, bpftool {cpu bpftool}{failed bpftool}:" \
		"{%.1f: cpu bpftool / cpu btfgen} times less; want $3"
	result "wall time btfgen {wall btfgen}, bpftool {wall bpftool}; peak memory btfgen {memory btfgen}, bpftool {memory bpftool}"
}

measure_corpus40() { against 40 10 'at least 10'; }
measure_corpus50() { against 50 20 'at least 25, aim 40'; }

measure_objects() {
	kernels 20
	objects 5
	generate few --btf "$tree" "${objs[@]}"
	objects 50
	generate many --btf "$tree" "${objs[@]}"
	drop out.btfa
	ours archive generate -o "$out/out.btfa" --btf "$tree" "${objs[@]}"
	turns $((3 * repeat))
	result "$(counts): CPU time {cpu many}, with 5 objects {cpu few}: {%.2f: cpu many / cpu few} times as much; want less than 2"
	result "into an archive: CPU time {cpu archive}, peak memory {memory archive}"
}

measure_real() {
	[[ -n ${BTFGEN_OBJECTS:-} ]] || { result 'skipped: BTFGEN_OBJECTS names no objects'; return; }
	local kernel large small
	if [[ ! -d $tmp/real ]]; then
		mkdir "$tmp/real"
		"$tmp/helper" objects "$tmp/real" "$BTFGEN_OBJECTS"
		warm "$tmp/real"
	fi
	mapfile -t objs < <(find "$tmp/real" -name '*.o' -size -4M | sort)
	mapfile -t small < <(find "$tmp/real" -name '*.o' -size -256k | sort)
	large=$(find "$tmp/real" -name '*.o' -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
	kernels 20
	kernel=$(grep x86_64 "$list" | tail -n 1 || true)
	kernel=${kernel:-$(head -n 1 "$list")}
	ours one min_core_btf "$kernel" "$out/out.btf" "$large"
	turns $((20 * repeat)) # short, and its collector may take a third of its time or nothing
	result "the largest, ${kernel##*/}: CPU time min_core_btf {cpu one}"
	generate tree --btf "$tree" "${objs[@]}"
	drop out.btfa
	ours archive generate -o "$out/out.btfa" --btf "$tree" "${objs[@]}"
	ours log relolog --json --btf "$kernel" "$large"
	ours text relolog --btf "$kernel" "$large"
	ours check check --btf "$kernel" "${small[@]}"
	turns $((3 * repeat))
	result "$(counts): CPU time to a tree {cpu tree}, to an archive {cpu archive}; peak memory {memory tree} and {memory archive}"
	result "the largest, ${kernel##*/}: CPU time relolog --json {cpu log}, as text {cpu text}"
	result "check of ${#small[@]} small ones: CPU time {cpu check}{failed check}"
}

# bytes DIRECTORY: prints the size of its BTFs.
bytes() { find "$1" -name '*.btf' -exec cat {} + | wc -c; }

# solid DIRECTORY: prints its size as a tar.xz.
solid() { tar --sort=name --owner=0 --group=0 --mtime=@0 -cC "$1" . | xz -9e | wc -c; }

measure_sizes() {
	need bpftool xz || return 0
	local we they
	both 50 20
	drop out.btfa
	ours btfa generate -o "$out/out.btfa" --btf "$tree" "${objs[@]}"
	turns 1
	we=$(bytes "$out/out")
	they=$(bytes "$out/theirs")
	result "$(counts): btfgen $we bytes, bpftool $they: {%.2f: $we / $they}; want at most 1"
	result "as a solid tar.xz: btfgen $(solid "$out/out") bytes, bpftool $(solid "$out/theirs")"
	if [[ -f $out/out.btfa ]]; then result "as a .btfa: $(wc -c <"$out/out.btfa") bytes"; fi
}

measure_single() {
	need bpftool || return 0
	objects 1
	local kernel n=61
	$quick && n=31
	kernel=$(grep x86_64 "$tmp/raw.list" | tail -n 1 || true)
	kernel=${kernel:-$(head -n 1 "$tmp/raw.list")}
	ours btfgen min_core_btf "$kernel" "$out/out.btf" "${objs[0]}"
	theirs bpftool bpftool gen min_core_btf "$kernel" "$out/out.btf" "${objs[0]}"
	turns "$n"
	result "wall time btfgen {wall btfgen}, bpftool {wall bpftool}{failed bpftool}:" \
		"{%.2f: wall btfgen / wall bpftool}; want at most 1 (medians of $n)"
	result "CPU time btfgen {cpu btfgen}, bpftool {cpu bpftool}: {%.2f: cpu btfgen / cpu bpftool}"
}

measure_xz() {
	need xz || return 0
	objects 50
	list=$tmp/xz.list
	prepare_xz
	find "$tmp/xz" -name '*.tar.xz' | sort >"$list"
	generate btfgen -j "$jobs" --btf "$tmp/xz" "${objs[@]}"
	each plain "$list" "$jobs" xz -dc {}
	turns "$repeat"
	result "$(counts), $jobs at once: wall time btfgen {wall btfgen}, xz -dc {wall plain}: {%.2f: wall btfgen / wall plain}; want at most 1.25"
	result "CPU time btfgen and its xz {cpu btfgen}, xz -dc {cpu plain}"
}

# packed_size NAME DIR: packs the .btf.tar.xz files in a directory into NAME.btfc, unpacks them to NAME.raw, and prints the sizes
# of both and of a solid tar.
packed_size() {
	local name=$1 dir=$2 files xz solid packed
	"$tmp/btfgen" corpus import -o "$tmp/$name.btfc" "$dir" 2>/dev/null
	"$tmp/btfgen" corpus extract -o "$tmp/$name.raw/" "$dir" 2>/dev/null
	files=$(find "$dir" -name '*.btf.tar.xz' | wc -l)
	xz=$(find "$dir" -name '*.btf.tar.xz' -printf '%s\n' | awk '{ s += $1 } END { print s }')
	packed=$(stat -c %s "$tmp/$name.btfc")
	solid=$(tar -C "$tmp/$name.raw" --sort=name -cf - . | zstd -q -19 --long=31 -T0 | wc -c)
	result "$name, $files kernels: $packed bytes, as .btf.tar.xz $xz: 1/{%.1f: $xz / $packed}; as tar | zstd -19 --long=31 $solid: {%.2f: $packed / $solid}"
}

# packed_speed NAME DIR: prints the time to read kernels from NAME.btfc, raw BTF and .btf.tar.xz.
packed_speed() {
	local name=$1 dir=$2 time
	warm "$tmp/$name.raw" "$tmp/$name.btfc"
	generate btfc -j "$jobs" --btf "$tmp/$name.btfc" "${objs[@]}"
	generate raw -j "$jobs" --btf "$tmp/$name.raw" "${objs[@]}"
	generate xz -j "$jobs" --btf "$dir" "${objs[@]}"
	turns "$repeat"
	for time in wall cpu; do
		result "$name, ${#objs[@]} objects, $jobs at once, $time time: one file {$time btfc}, raw files {$time raw}," \
			".btf.tar.xz {$time xz}: {%.1f: $time raw / $time btfc} and {%.1f: $time xz / $time btfc} times faster"
	done
	result "$name: peak memory from one file {memory btfc}, from raw files {memory raw}"
	rm -rf "$tmp/$name.raw"
}

measure_packed() {
	need xz || return 0
	need zstd || return 0
	objects 50
	prepare_xz
	local from dir key n=0
	while read -r from; do
		n=$((n + 1))
		dir=$tmp/xz$n # with what the key consists of below it: ID/VERSION_ID/ARCH
		key=${from#"${from%/*/*/*}"/}
		mkdir -p "$dir/$key"
		ln "$from"/*.btf.tar.xz "$dir/$key/"
		packed_size "series$n" "$dir"
		packed_speed "series$n" "$dir"
		result "want at most 1/9 of .btf.tar.xz, and to be faster than that"
		packed_series "series$n" "$dir"
	done < <(find "$tmp/xz" -name '*.btf.tar.xz' -printf '%h\n' | sort | uniq -c | awk '$1 >= 3 { print $2 }')
	packed_size packed "$tmp/xz"
	packed_speed packed "$tmp/xz"
	result "want at most 1/5.5 of .btf.tar.xz, and to be twice as fast as that"
}

measure_import() {
	need xz || return 0
	prepare_xz
	local side packages=0
	list=$tmp/packages.list
	: >"$list"
	if [[ -n ${BTFGEN_PACKAGES:-} ]] && need dpkg-deb; then
		find "$BTFGEN_PACKAGES" -name '*.deb' | sort >"$list"
		packages=$(wc -l <"$list")
	fi
	drop {raw,xz,deb}.btfc
	ours raw corpus import -j 2 -o "$out/raw.btfc" "$tmp/raw"
	ours xz corpus import -j 2 -o "$out/xz.btfc" "$tmp/xz"
	if ((packages)); then
		ours deb corpus import -j 2 --as debian/0/x86_64 -o "$out/deb.btfc" "$BTFGEN_PACKAGES"
		each unpack "$list" 2 dpkg-deb --fsys-tarfile {}
	fi
	turns "$repeat"
	for side in raw xz; do
		result "$(find "$tmp/$side" -type f | wc -l) kernels, $side, -j 2: CPU time {cpu $side}{failed $side}, wall time {wall $side}, peak memory {memory $side}"
	done
	if ((packages)); then
		result "$packages packages, -j 2: CPU time {cpu deb}{failed deb}, dpkg-deb --fsys-tarfile {cpu unpack}: {%.2f: cpu deb / cpu unpack} times;" \
			"wall time {wall deb}, peak memory {memory deb}; want at most 300 MB"
	else
		result 'skipped: BTFGEN_PACKAGES names no package'
	fi
}

# packed_series NAME DIR: packs thirty times the kernels in DIR, made like those of 'many'.
packed_series() {
	local name=$1 dir=$2 n
	n=$((30 * $(find "$dir" -name '*.btf.tar.xz' | wc -l)))
	"$tmp/btfgen" corpus extract -o "$tmp/series.raw/" "$dir" 2>/dev/null
	"$tmp/helper" variants "$n" "$tmp/series" "$tmp/series.raw"
	"$tmp/btfgen" corpus import -o "$tmp/series.btfc" "$tmp/series" 2>/dev/null
	warm "$tmp/series" "$tmp/series.btfc"
	generate btfc -j "$jobs" --btf "$tmp/series.btfc" "${objs[@]}"
	generate raw -j "$jobs" --btf "$tmp/series" "${objs[@]}"
	turns "$repeat"
	result "$name as $n kernels, ${#objs[@]} objects, $jobs at once: wall time one file {wall btfc}, raw files {wall raw}:" \
		"{%.1f: wall raw / wall btfc} times faster; CPU time {%.1f: cpu raw / cpu btfc} times less"
	rm -rf "$tmp"/series{.raw,,.btfc}
}

# many_packed COUNT: packs the kernels of $tmp/many.
many_packed() {
	local one alone
	ours pack corpus import -j 2 -o "$out/many.btfc" "$tmp/many"
	turns 1
	mv "$out/many.btfc" "$tmp/many.btfc"
	rm -f "$out/before/many.btfc"
	result "$1 kernels into one file of $(stat -c %s "$tmp/many.btfc") bytes, -j 2: wall time {wall pack}, CPU time {cpu pack}, peak memory {memory pack};" \
		"want minutes for ten times as many, and less than 1 GB"
	one=$("$tmp/btfgen" corpus list "$tmp/many.btfc" | awk 'NR == '$(($1 / 2))' { print $1 }')
	alone=$(head -n 1 "$tmp/raw.list")
	mkdir -p "$tmp/alone/new/1/x86_64"
	"$tmp/helper" another "$alone" "$tmp/alone/new/1/x86_64/1.btf"
	generate btfc -j 2 --btf "$tmp/many.btfc" "${objs[@]}"
	drop one.btf
	ours extract corpus extract --select "$one" -o "$out/one.btf" "$tmp/many.btfc"
	step copy "$tmp/many.btfc" appended.btfc
	ours append corpus import -o "$out/appended.btfc" "$tmp/alone"
	drop {alone,appended}.btfc
	ours alone corpus import -o "$out/alone.btfc" "$tmp/alone"
	turns "$repeat"
	result "${#objs[@]} objects on $1 kernels in one file, -j 2: wall time {wall btfc}, CPU time {cpu btfc}, peak memory {memory btfc};" \
		"want less than 15 s for ten times as many, and less than 200 MB"
	result "one kernel of these extracted: wall time {wall extract}, CPU time {cpu extract}; want less than 50 ms"
	result "one added to these: CPU time {cpu append}, packed alone {cpu alone}: {%.2f: cpu append / cpu alone}; want at most 3"
	rm -rf "$tmp/many.btfc" "$tmp/alone"
}

measure_many() {
	local n count around=1000
	$quick && around=100
	n=$(cat "$tmp/raw.list" "$tmp/big.list" | wc -l)
	count=$(((around + n - 1) / n * n))
	objects 50
	"$tmp/helper" variants "$count" "$tmp/many" "$tmp/raw"
	"$tmp/helper" variants "$n" "$tmp/few" "$tmp/raw"
	"$tmp/helper" variants $((2 * n)) "$tmp/twice" "$tmp/raw" # enough for both workers to do the largest at once
	warm "$tmp/many" "$tmp/few" "$tmp/twice"
	generate few -j 2 --btf "$tmp/few" "${objs[@]}"
	generate twice -j 2 --btf "$tmp/twice" "${objs[@]}"
	rounds=2 generate many -j 2 --btf "$tmp/many" "${objs[@]}"
	turns "$repeat"
	result "${#objs[@]} objects, -j 2: CPU time for $count kernels {cpu many}, for $n {cpu few}:" \
		"{%.2f: cpu many / $count * $n / cpu few} times as much per kernel; want at most 1.2"
	result "peak memory {memory many}, with $((2 * n)) kernels {memory twice}, with $n {memory few}; want the same, less than 200 MB"
	many_packed "$count"
	rm -rf "$tmp/many" "$tmp/few" "$tmp/twice"
}

measure_big() {
	need bpftool || return 0
	[[ -s $tmp/big.list ]] || { result 'skipped: no kernel here has 20 MB of BTF'; return; }
	objects 50
	local kernel n
	kernel=$(head -n 1 "$tmp/big.list")
	for n in 1 2 3; do ours btfgen min_core_btf "$kernel" "$out/out.btf" "${objs[@]}"; done
	theirs bpftool bpftool gen min_core_btf "$kernel" "$out/out.btf" "${objs[@]}"
	turns "$repeat"
	result "${kernel##*/}, $(($(stat -c %s "$kernel") / 1000000)) MB, ${#objs[@]} objects: wall time btfgen {wall btfgen}," \
		"bpftool {wall bpftool}{failed bpftool}: {%.1f: wall bpftool / wall btfgen} times less; want less than 300 ms"
	result "CPU time btfgen {cpu btfgen}, bpftool {cpu bpftool}; peak memory btfgen {memory btfgen}, bpftool {memory bpftool}"
}

measure_large() {
	local n kernel
	for n in 17500 35000; do "$tmp/helper" large "$n" 400 "$tmp/large$n.o"; done
	n=$(cat "$tmp/raw.list" "$tmp/big.list" | wc -l)
	kernel=$(head -n 1 "$tmp/raw.list")
	ours half relolog --json --btf "$tmp/raw" "$tmp/large17500.o"
	ours full relolog --json --btf "$tmp/raw" "$tmp/large35000.o"
	ours one check --btf "$kernel" "$tmp/large35000.o"
	rounds=1 ours check check --btf "$tmp/raw" "$tmp/large35000.o"
	turns "$repeat"
	result "relolog --json of 35,000 records, $n kernels: CPU time {cpu full}{failed full}; want less than 6 s"
	result "with 17,500 records {cpu half}{failed half}: {%.2f: cpu full / cpu half} times as much for twice as many; want at most 2"
	result "check, ${kernel##*/}: CPU time {cpu one}{failed one}, peak memory {memory one}"
	result "check, $n kernels: CPU time {cpu check}{failed check}, peak memory {memory check}"
}

# checked NAME WHAT WANT: prints the cost of NAME on both sides.
checked() {
	result "check of $2: wall time {wall $1}, CPU time {cpu $1}{failed $1}, peak memory {memory $1}; want $3"
}

measure_check() {
	local i set=() count=1000
	$quick && count=100
	# With one question less it is another object, which shares no result.
	for i in {1..9}; do
		"$tmp/helper" large $((i > 3 ? 3500 : 35000)) $((400 - 10 * i)) "$tmp/check$i.o"
		set+=("$tmp/check$i.o")
	done
	mapfile -t -O "${#set[@]}" set < <(cat "$tmp/obj.list" && ls "$root"/testdata/bpf/*bpfel.o)
	set=("${set[@]:0:93}")
	objects 50
	"$tmp/helper" variants 83 "$tmp/check" "$tmp/raw"
	"$tmp/helper" variants "$count" "$tmp/manycheck" "$tmp/raw"
	warm "$tmp/check" "$tmp/manycheck"
	ours large check --json --btf "$tmp/check" "${set[@]}"
	ours many check --json --btf "$tmp/manycheck" "${objs[@]}"
	turns 1
	checked large "${#set[@]} objects on 83 kernels" 'less than 10 s on 2 CPUs, and 300 MB'
	checked many "${#objs[@]} objects on $count kernels" 'less than 30 s for 1,000'
	rm -rf "$tmp/check" "$tmp/manycheck"
}

# reuse_in TREE: measures a run without one kernel of TREE (first), one with all (second), and one without changes (same).
reuse_in() {
	local less=$1.less
	cp -rl "$1" "$less"
	rm "$(find "$less" -name '*.tar.xz' | sort | tail -n 1)"
	drop {old,new,same}.{btfa,json}
	ours first generate -o "$out/old.btfa" --manifest "$out/old.json" --btf "$less" "${objs[@]}"
	ours second generate --reuse "$out/old.btfa" -o "$out/new.btfa" --manifest "$out/new.json" --btf "$1" "${objs[@]}"
	ours same generate --reuse "$out/new.btfa" -o "$out/same.btfa" --manifest "$out/same.json" --btf "$1" "${objs[@]}"
	turns "$repeat"
	list=$tmp/reuse.list
	find "$1" -name '*.tar.xz' >"$list"
	result "$(counts) from .btf.tar.xz: CPU time with one kernel more {cpu second}, first {cpu first}:" \
		"{%.3f: cpu second / cpu first}; want at most 0.1"
	result "wall time with one kernel more {wall second}, first {wall first}: {%.3f: wall second / wall first}"
	result "with nothing changed: CPU time {cpu same}, wall time {wall same}"
	rm -rf "$less"
}

measure_reuse() {
	need xz || return 0
	objects 50
	prepare_xz
	reuse_in "$tmp/xz"
	# Each kernel under four names.
	local n k
	cp -rl "$tmp/xz" "$tmp/xz4"
	while IFS= read -r k; do
		for n in 2 3 4; do ln "$k" "${k%.btf.tar.xz}-$n.btf.tar.xz"; done
	done < <(find "$tmp/xz4" -name '*.tar.xz')
	reuse_in "$tmp/xz4"
}

measure_go() {
	local printed line
	printed=$(cd "$root" && env -u BTFGEN_CORPUS BTFGEN_DEBIAN="$tmp/obj" go test ./internal/minimize -run '^$' -bench '^BenchmarkFull$' -benchmem)
	grep '^Benchmark' <<<"$printed" | while IFS= read -r line; do result "$line"; done
	result "load+find: $(awk '$1 ~ "/read(-|$)" { r = $3 } $1 ~ "/load[+]find(-|$)" { s = $3 } END { printf "%.1f", s / r }' <<<"$printed")" \
		'times reading the bytes once; want at most 3'
}

figure=machine
load=$(cut -d ' ' -f 1 /proc/loadavg)
build
result "$(nproc) CPUs, load $load at the start, Linux $(uname -r), $(go env GOVERSION)"
if have bpftool; then result "$(bpftool version | sed -n '1,2p' | paste -sd' ')"; fi
prepare_before
prepare_kernels
prepare_objects
result "$(wc -l <"$tmp/obj.list") objects; $(wc -l <"$tmp/raw.list") kernels, and $(wc -l <"$tmp/big.list") with 20 MB of BTF or more"
for figure in "${all[@]}"; do
	if [[ " ${figures[*]} " == *" $figure "* ]]; then
		"measure_$figure"
		compared
	fi
done
figure=machine
result "load $(cut -d ' ' -f 1 /proc/loadavg) at the end"
