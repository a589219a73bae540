#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the kernel BTFs of testdata/vmlinux again from Debian's kernel packages. It uses the mirror of the host's apt
# configuration and a temporary directory for index files and packages. See usage below.
set -euo pipefail
shopt -s inherit_errexit

# One kernel per line: path in the output directory, Debian architecture, suite, package, version, and the source of its BTF: the
# kernel image, or the debug information (encode).
kernels='
debian/11/x86_64/5.10.0-30-amd64                  amd64   bullseye         linux-image-5.10.0-30-amd64                5.10.218-1         image
debian/12/arm64/6.1.0-50-arm64                    arm64   bookworm         linux-image-6.1.0-50-arm64                 6.1.176-1          image
debian/12/x86_64/6.1.0-47-amd64                   amd64   bookworm         linux-image-6.1.0-47-amd64                 6.1.170-3          image
debian/13-backports/x86_64/6.18.15+deb13-amd64    amd64   trixie-backports linux-image-6.18.15+deb13-amd64            6.18.15-1~bpo13+1  image
debian/13/armhf/6.12.107+deb13-armmp              armhf   trixie           linux-image-6.12.107+deb13-armmp-dbg       6.12.107-1         encode
debian/13/ppc64le/6.12.107+deb13-powerpc64le-64k  ppc64el trixie           linux-image-6.12.107+deb13-powerpc64le-64k 6.12.107-1         image
debian/13/s390x/6.12.107+deb13-s390x              s390x   trixie           linux-image-6.12.107+deb13-s390x           6.12.107-1         image
debian/13/x86_64/6.12.107+deb13-amd64             amd64   trixie           linux-image-6.12.107+deb13-amd64           6.12.107-1         image
debian/experimental/x86_64/7.3-amd64              amd64   experimental     linux-binary-7.3-amd64                     7.3~rc7-1~exp1     image
'
kernels=$(sed '/^$/d' <<<"$kernels")

me=${0##*/}
testdata=$(cd "$(dirname "$0")/.." && pwd)/testdata/vmlinux

usage() {
	cat <<EOF2
usage: $me [--only RELEASE]... [-o DIR] [--suite SUITE] [--sources FILE]
       $me --list

Makes testdata/vmlinux from Debian's kernel packages and compares each BTF with
testdata/vmlinux/SHA256SUMS. Downloads some 1.4 GB, more than half of it for armhf,
whose BTF pahole makes from the debug package; it differs from the recorded one, as
testdata/vmlinux/README.md explains. Prints a sha256sum line per BTF.

  --list          print the kernels: path, architecture, suite, package, version, how
  --only RELEASE  this kernel alone (a uname -r); may be repeated
  -o DIR          write below DIR, also what differs from SHA256SUMS; by default
                  testdata/vmlinux is written, and what differs is left out
  --suite SUITE   look for the packages in SUITE rather than in each one's own
  --sources FILE  use the apt sources in FILE (sources.list format), such as those of
                  an archive of old packages, rather than the host's mirror

Exit status: 0 all made as recorded; 1 failed; 2 wrong usage; 3 some are not on the
mirror, cannot be made, or differ (each is named); 130 interrupted.
EOF2
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 1; }
wrong() { say "$*"; usage >&2; exit 2; }

list=false out=$testdata suite='' sources=''
only=()
while (($#)); do
	case $1 in
	--list) list=true ;;
	--only | --suite | --sources | -o)
		(($# > 1)) && [[ $2 ]] || wrong "$1 wants a value"
		case $1 in
		--only)
			awk -v r="$2" '{ sub(".*/", "", $1) } $1 == r { found = 1 } END { exit !found }' \
				<<<"$kernels" || wrong "no such kernel: $2"
			only+=("$2")
			;;
		--suite) suite=$2 ;;
		--sources) sources=$2 ;;
		-o) out=$2 ;;
		esac
		shift
		;;
	-h | --help) usage; exit 0 ;;
	*) wrong "unknown argument: $1" ;;
	esac
	shift
done
if $list; then
	printf '%s\n' "$kernels"
	exit 0
fi

for tool in apt-get apt-cache dpkg-deb tar zstd python3 sha256sum; do
	command -v "$tool" >/dev/null || die "$tool is missing"
done
[[ -z $sources || -r $sources ]] || die "$sources: cannot be read"
mkdir -p "$out"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

. "$(dirname "$0")/private-apt.sh"

# extract_btf IMAGE writes the BTF of a kernel image to standard output: the largest blob with a valid header, in the image or its
# compressed payload. Bytes follow the payload, so decompressors may fail at the end.
extract_btf() {
	python3 - "$1" <<'EOF2'
import shutil, struct, subprocess, sys

def blob(data, at, order):
    try:
        (size,) = struct.unpack_from(order + "I", data, at + 4)
        if not 24 <= size <= 256:
            return b""
        part = struct.unpack_from(order + "%dI" % (size // 4 - 2), data, at + 8)
    except struct.error:
        return b""
    end = at + size + max(off + n for off, n in zip(part[::2], part[1::2]))
    strings = data[at + size + part[2]:at + size + part[2] + part[3]]
    sound = end <= len(data) and strings[:1] == b"\0" == strings[-1:]
    return data[at:end] if sound else b""

def find_btf(data):
    best = b""
    for magic, order in (b"\x9f\xeb\x01\x00", "<"), (b"\xeb\x9f\x01\x00", ">"):
        at = data.find(magic)
        while at >= 0:
            best = max(best, blob(data, at, order), key=len)
            at = data.find(magic, at + 1)
    return best

def payloads(data):
    for magic, tool in ((b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"),
                        (b"\x02\x21\x4c\x18", "lz4"), (b"\x1f\x8b\x08", "gzip")):
        at = data.find(magic)
        while at >= 0 and shutil.which(tool):
            yield subprocess.run([tool, "-dc"], input=data[at:], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL).stdout
            at = data.find(magic, at + 1)

image = open(sys.argv[1], "rb").read()
btf = find_btf(image) or next(filter(None, map(find_btf, payloads(image))), b"")
sys.stdout.buffer.write(btf)
sys.exit(not btf)
EOF2
}

# make PATH ARCH SUITE PACKAGE VERSION HOW writes the kernel's BTF to $work/btf, or prints why it cannot.
make() {
	local path=$1 arch=$2 suite=${suite:-$3} package=$4 version=$5 how=$6 there image
	private_apt "$suite" "$arch" || return
	there=$(apt-cache "${apt[@]}" madison "$package" | awk -F ' *[|] *' '{ print $2 }' | sort -u)
	if ! grep -qxF -- "$version" <<<"$there"; then
		say "$path: $package $version is not on the mirror in $suite" \
			"(there: $(tr '\n' ' ' <<<"${there:-none}" | sed 's/ $//'))"
		return 1
	fi
	rm -rf "$work/deb" && mkdir "$work/deb"
	(cd "$work/deb" && apt-get "${apt[@]}" -qq download "$package=$version" >&2) ||
		{ say "$path: $package $version: download failed"; return 1; }
	dpkg-deb --fsys-tarfile "$work"/deb/*.deb |
		tar -x -C "$work/deb" --wildcards "./*/vmlinu[xz]-${path##*/}" "./*/${path##*/}/vmlinu[xz]" 2>/dev/null || true
	image=$(find "$work/deb" -type f -name 'vmlinu[xz]*' -print -quit)
	[[ $image ]] || { say "$path: $package $version: no kernel image in it"; return 1; }
	case $how in
	image) extract_btf "$image" >"$work/btf" || { say "$path: $package $version: no BTF in the image"; return 1; } ;;
	# With more than one thread the order of types and the choice of functions vary.
	encode) pahole -j1 --btf_encode_detached="$work/btf" "$image" >&2 || { say "$path: pahole failed"; return 1; } ;;
	esac
}

# install PATH compares $work/btf with its checksum and installs it, compressed, unless the file already has this BTF.
install() {
	local file=$out/$1.btf.zst sum recorded result=0
	sum=$(sha256sum <"$work/btf")
	sum=${sum%% *}
	printf '%s  %s\n' "$sum" "$1.btf"
	recorded=$(awk -v f="$1.btf" '$2 == f { print $1 }' "$testdata/SHA256SUMS")
	if [[ -z $recorded ]]; then
		say "$1: not in SHA256SUMS yet"
	elif [[ $recorded != "$sum" ]]; then
		say "$1: differs from SHA256SUMS ($recorded)"
		result=1
		[[ $out -ef $testdata ]] && return 1
	fi
	if ! zstd -dqc "$file" 2>/dev/null | cmp -s - "$work/btf"; then
		# Level 19 keeps the window within the 8 MiB that every decoder accepts, and 22
		# saves less than 0.1 %. From a file, since zstd then records the content's size.
		mkdir -p "${file%/*}" && zstd -q -f -19 --check "$work/btf" -o "$file.part" &&
			chmod 644 "$file.part" && mv "$file.part" "$file" || die "$file: cannot be written"
	fi
	return $result
}

[[ $sources ]] || apt_mirror >/dev/null || exit 1
status=0
while read -r -u 3 path arch of package version how; do
	if ((${#only[@]})) && ! printf '%s\n' "${only[@]}" | grep -qxF -- "${path##*/}"; then
		continue
	fi
	rm -f "$work/btf"
	{ make "$path" "$arch" "$of" "$package" "$version" "$how" && install "$path"; } || status=3
done 3<<<"$kernels"
exit $status
