#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a release for this machine twice, in two directories with the same commit, and tests its packages. CI runs it. Tests
# whose tools are missing are skipped with a message.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

say() { printf 'packages: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
# have PROGRAM: reports whether it is installed.
have() { command -v "$1" >/dev/null || { say "skipped: needs $1"; return 1; }; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
[ -z "$(git status --porcelain)" ] || die 'commit first: a release is made of a commit'

# The same bytes.
arch=$(go env GOHOSTARCH)
case $arch in arm) arch=armv7 ;; esac
scripts/release.sh --only "linux/$arch" -o "$work/release" # first: both at once would build the same tools twice
mkdir "$work/elsewhere and far away"
git archive HEAD | tar -x -C "$work/elsewhere and far away"
caches=("GOMODCACHE=$(go env GOMODCACHE)" "GOCACHE=$(go env GOCACHE)" "RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}" "CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}")
(umask 077 && cd / && env "${caches[@]}" HOME="$work" TZ=Asia/Tokyo LANG=C.UTF-8 GOAMD64=v3 GOFLAGS=-buildvcs=true \
	"$work/elsewhere and far away/scripts/release.sh" --only "linux/$arch" -o "$work/again")
diff -r "$work/release" "$work/again" || die 'two builds are not the same'
say 'two builds from two directories are the same'
root=$PWD
cd "$work/release"
sha256sum --quiet -c SHA256SUMS
[ "$(sort -k 2 SHA256SUMS | awk '{ print $2 }' | paste -sd' ')" = "$(find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | paste -sd' ')" ] ||
	die 'SHA256SUMS does not have all files'
version=v$(basename ./btfgen-[0-9]*.cdx.json "-linux-$arch.cdx.json" | sed 's/^btfgen-//')

# check WHERE: tests the program, manual and completion in WHERE/usr.
check() {
	local usr=$1/usr got
	got=$("$usr/bin/btfgen" --version)
	[ "$got" = "btfgen version $version" ] || die "$1 says $got, want $version"
	got=$("$usr/bin/btfgen-registry" --version)
	[ "$got" = "btfgen-registry $version" ] || die "$1 says $got, want $version"
	# btfgen finds it in its own folder.
	got=$(PATH=/nowhere HOME=$work "$usr/bin/btfgen" corpus pull localhost:1/some/corpus:v1 -o "$work/x.btfc" 2>&1 || true)
	[[ $got = *'the registry is not available'* ]] || die "$1: corpus pull says $got"
	if have man; then
		for page in "$usr"/share/man/man1/*; do
			page=${page##*/} page=${page%.1*}
			MANWIDTH=80 man --warnings=all -M "$usr/share/man" "$page" 2>"$work/warnings" | col -b >"$work/page"
			[ ! -s "$work/warnings" ] || die "man $page: $(cat "$work/warnings")"
			got=$(grep -xE 'NAME|SYNOPSIS|DESCRIPTION|EXIT STATUS|EXAMPLES|SEE ALSO' "$work/page" | paste -sd,)
			[ "$got" = 'NAME,SYNOPSIS,DESCRIPTION,EXIT STATUS,EXAMPLES,SEE ALSO' ] || die "man $page has the sections $got"
			[ "$page" != btfgen-check ] || grep -q -e '--fail-on LIST' "$work/page" || die 'man btfgen-check has no --fail-on'
		done
		[ -e "$work/page" ] || die "$1 has no manual"
	fi
	got=$(PATH=$usr/bin:$PATH bash -c '
		source "$1"
		COMP_LINE="btfgen generate --layo" COMP_POINT=22 COMP_WORDS=(btfgen generate --layo) COMP_CWORD=2
		_btfgen 2>/dev/null
		echo "${COMPREPLY[*]}"' - "$usr/share/bash-completion/completions/btfgen")
	[ "$got" = --layout ] || die "bash completes --layo to '$got'"
	if have fish; then
		got=$(HOME=$work PATH=$usr/bin:$PATH fish -N -c "source $usr/share/fish/vendor_completions.d/btfgen.fish; complete -C 'btfgen generate --layout=bc'")
		[ "$got" = --layout=bcc ] || die "fish completes --layout=bc to '$got'"
	fi
	if have zsh; then
		got=$(find "$usr/share/zsh" -name _btfgen)
		zsh -f -c 'fpath=($1 $fpath); autoload -Uz compinit; compinit -u -D; [[ $_comps[btfgen] = _btfgen ]]' - "${got%/*}" || die 'zsh does not find _btfgen'
	fi
	grep -q '^oras.land/oras-go/v2 ' "$usr"/share/{doc,licenses}/btfgen/LICENSES 2>/dev/null || die "$1 lacks licences of modules"
	grep -q '^github.com/cilium/ebpf ' "$usr"/share/{doc,licenses}/btfgen/LICENSES 2>/dev/null || die "$1 lacks licences of modules"
	say "$1: version, manual, completion and licences are there"
}

# The tar file, unpacked as to /usr/local.
mkdir -p "$work/tar/usr"
tar -xzf ./btfgen-*.tar.gz -C "$work/tar/usr" --strip-components=1
check "$work/tar"

# The .deb.
if have dpkg; then
	if have lintian; then
		lintian --fail-on error,warning --tag-display-limit 0 --allow-root ./*.deb
		say 'lintian finds no error and no warning'
	fi
	deb=$work/deb
	mkdir -p "$deb/var/lib/dpkg/info" "$deb/var/lib/dpkg/updates" "$deb/var/lib/dpkg/triggers"
	touch "$deb/var/lib/dpkg/status" "$deb/var/lib/dpkg/available"
	if [ "$(id -u)" = 0 ]; then
		dpkg --root="$deb" --log=/dev/null --path-include='*' --install ./btfgen_*.deb >"$work/log" 2>&1 || die "dpkg: $(cat "$work/log")"
		[ "$(dpkg-query --admindir="$deb/var/lib/dpkg" -W -f '${db:Status-Status}' btfgen)" = installed ] || die 'dpkg did not install btfgen'
	else
		say 'skipped: dpkg --root needs root; unpacked instead'
		dpkg -x ./btfgen_*.deb "$deb"
	fi
	check "$deb"
fi

# libbtfa: the C tracer is built with the packages, shared and static, and says that an archive is stale.
if compgen -G './libbtfa0*.deb' >/dev/null && have pkg-config && have bpftool && [ -e /usr/include/bpf/libbpf.h ]; then
	lib=$work/libbtfa
	for p in ./libbtfa*.deb; do dpkg -x "$p" "$lib"; done
	[ "$(dpkg-deb -f ./libbtfa-dev*.deb Depends | cut -d, -f 1)" = "libbtfa0 (= $(dpkg-deb -f ./libbtfa0*.deb Version))" ] || die 'libbtfa-dev does not need its libbtfa0'
	export PKG_CONFIG_SYSROOT_DIR=$lib PKG_CONFIG_LIBDIR
	PKG_CONFIG_LIBDIR=$(echo "$lib"/usr/lib/*/pkgconfig):$(pkg-config --variable pc_path pkg-config)
	src=$root/examples
	"$deb/usr/bin/btfgen" generate -q --btf "$src/../testdata/vmlinux/debian/12" -o "$work/stale.btfa" "$src/../testdata/bpf/tcplife.bpfel.o"
	bpftool gen skeleton "$src/go-tracer/bpf/exec.bpf.o" name exec_bpf >"$work/exec.skel.h"
	for static in '' --static; do
		# shellcheck disable=SC2046,SC2086
		cc -std=gnu99 -DARCHIVE="\"$work/stale.btfa\"" -I"$work" $(pkg-config --cflags libbtfa) -o "$work/tracer" "$src/c-tracer/tracer.c" \
			${static:+-static} $(pkg-config $static --libs libbtfa) -lbpf -lelf -lz -lzstd
		[ "$static" ] || readelf -d "$work/tracer" | grep -q 'NEEDED.*libbtfa\.so\.0\]' || die 'the tracer does not need libbtfa.so.0'
		got=$(LD_LIBRARY_PATH=$(dirname "$lib"/usr/lib/*/libbtfa.so.0) "$work/tracer" -ignore-kernel-btf 2>&1) && die "a stale archive is accepted: $got"
		[[ $got = 'c-tracer: archive was made for tcplife.bpfel.o '* ]] || die "with a stale archive: $got"
	done
	unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
	say 'libbtfa: the C tracer is built with its packages and runs'
fi

# The .rpm.
if have rpm; then
	rpm -K --nosignature ./*.rpm >/dev/null
	[ -z "$(rpm -qp --requires ./*.rpm | sed '/^rpmlib(/d')" ] || die 'the .rpm needs other packages'
	if [ "$(id -u)" = 0 ]; then
		mkdir "$work/rpm"
		{ rpm --root="$work/rpm" --initdb && rpm --root="$work/rpm" -i --nosignature ./*.rpm && rpm --root="$work/rpm" -V btfgen; } >"$work/log" 2>&1 ||
			die "rpm: $(cat "$work/log")"
		check "$work/rpm"
	else
		say 'skipped: rpm --root needs root'
	fi
fi

# The image, whose program runs without anything else.
mkdir -p "$work/image/root"
tar -xf ./*-image.tar -C "$work/image"
grep -q '"org.opencontainers.image.ref.name"' "$work/image/index.json" || die 'the image has no name'
for blob in "$work"/image/blobs/sha256/*; do
	[ "$(sha256sum <"$blob")" = "${blob##*/}  -" ] || die "the image's blob ${blob##*/} has another digest"
	[ "$(head -c 2 "$blob" | od -An -tx1)" != ' 1f 8b' ] || tar -xzf "$blob" -C "$work/image/root"
done
check_version=$(env -i "$work/image/root/usr/bin/btfgen" --version)
[ "$check_version" = "btfgen version $version" ] || die "the image says $check_version"
[ -s "$work/image/root/usr/share/doc/btfgen/LICENSES" ] || die 'the image lacks licences'
if [ "$(id -u)" = 0 ] && command -v chroot >/dev/null; then
	[ "$(chroot "$work/image/root" /usr/bin/btfgen --version)" = "$check_version" ] || die 'the program does not run in the image'
fi
say 'the image has the programs, which need nothing else'

# The readers in Rust and Python, whose packages have the version of the next release.
reader() {
	[ "$(tar -tzf "$1" | grep -cE "^$2/(LICENSE|NOTICE|README.md)$")" = 3 ] || die "$1 lacks a document or licence"
}
for crate in ./*.crate; do
	[ ! -e "$crate" ] || reader "$crate" "$(basename "$crate" .crate)"
done
for wheel in ./*.whl; do
	[ -e "$wheel" ] || continue
	reader ./btfa-*.tar.gz "$(basename ./btfa-*.tar.gz .tar.gz)"
	if python3 -m pip --version >/dev/null 2>&1; then
		python3 -m pip install --quiet --no-index --no-deps --no-warn-script-location --root-user-action=ignore --target "$work/python" "$wheel"
		got=$(cd "$work" && PYTHONPATH=$work/python python3 -m btfa "$root/examples/go-tracer/tracer.btfa")
		[[ $got = *'kernel debian/12/x86_64/'* ]] || die "the reader in Python says $got"
		say 'the reader in Python is installed and reads an archive'
	else
		say 'skipped: needs pip'
	fi
done

# The formula names the files of the release with their sums.
if [ -e btfgen.rb ]; then
	while read -r name; do
		grep -q "sha256 \"$(sha256sum <"$name" | cut -d ' ' -f 1)\"" btfgen.rb || die "the formula has another sum of $name"
	done < <(grep -o 'btfgen-[^"/]*\.tar\.gz' btfgen.rb)
	grep -q "/$version/btfgen-.*-linux-$arch.tar.gz" btfgen.rb || die "the formula lacks linux/$arch"
	if have ruby; then ruby -c btfgen.rb >/dev/null || die 'the formula is not Ruby'; fi
fi

# The .apk.
mkdir "$work/apk"
tar -xzf ./*.apk -C "$work/apk" 2>"$work/log" || die "$(cat "$work/log")"
grep -q '^pkgname = btfgen$' "$work/apk/.PKGINFO" || die 'the .apk has another name'
check "$work/apk"
cd "$root"

# go install, from a proxy with only the files of go mod download.
tag=v0.9.8
proxy=$work/proxy/github.com/btfgen/btfgen/@v
mkdir -p "$proxy"
if have zip; then
	git archive --prefix="module/github.com/btfgen/btfgen@$tag/" HEAD | tar -x -C "$work"
	(cd "$work/module" && zip -qrD "$proxy/$tag.zip" .)
	cp go.mod "$proxy/$tag.mod"
	echo "{\"Version\":\"$tag\"}" >"$proxy/$tag.info"
	echo "$tag" >"$proxy/list"
	cache=$(go env GOMODCACHE)/cache/download
	(cd "$work" && env GOBIN="$work" GOMODCACHE="$work/modules" GOPROXY="file://$work/proxy,file://$cache" GONOSUMDB='*' GOFLAGS=-modcacherw \
		go install -trimpath "github.com/btfgen/btfgen/cmd/btfgen@$tag")
	[ "$("$work/btfgen" --version)" = "btfgen version $tag" ] || die "go install gives $("$work/btfgen" --version)"
	say "go install gives $tag"
fi
say passed
