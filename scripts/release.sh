#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes all files of a release. See usage below, and docs/howto-packaging.md.
#
# Packages are made by nfpm, lists of modules by cyclonedx-gomod, the readers' packages by dpkg-deb, cargo and setuptools. goreleaser
# could replace the functions build, archive and formula, 70 lines. It needs a git repository, where this builds from an archive
# of one as well; it has no step for the manual, the licences, libbtfa or an image without a container engine; and it brings 911
# modules, where nfpm has 58. libbtfa's packages are not made by nfpm, which has no shlibs file.
set -euo pipefail
shopt -s inherit_errexit

me=${0##*/}
root=$(cd "$(dirname "$0")/.." && pwd -P) # as git has it
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
targets=(linux/amd64 linux/arm64 linux/armv7 linux/386 linux/ppc64le linux/riscv64 linux/s390x darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)

usage() {
	cat <<END
usage: $me [--only TARGET[,TARGET]...] [-o DIR]

Builds btfgen and btfgen-registry and puts into DIR (default: dist), which must not be there or be
empty:

  btfgen-VERSION-OS-ARCH.tar.gz   for every TARGET: the program, its manual,
                                  completion, documents and licences
                                  (for Windows .zip)
  btfgen*.deb, .rpm, .apk         the same as packages, for Linux
  libbtfa0*.deb, libbtfa-dev*.deb the reader of archives in C, on Debian for
                                  its own TARGET
  btfa-VERSION.crate              the reader in Rust, as cargo packages it
  btfa-VERSION-py3-none-any.whl, btfa-VERSION.tar.gz
                                  the reader in Python: a wheel and its source
  btfgen-VERSION-image.tar        an OCI image of the programs for all Linux TARGETs
  btfgen.rb                       a Homebrew formula, if TARGETs for it are built
  btfgen-VERSION-OS-ARCH.cdx.json, btfgen-registry-VERSION-OS-ARCH.cdx.json
                                  what the programs are linked from (CycloneDX)
  SHA256SUMS                      of all of these

  --only TARGET   of ${targets[*]}

Needs Go, GNU tar and coreutils, gzip, zip and, once, the module proxy; for libbtfa
dpkg-dev, a C compiler and libzstd-dev; for Rust a cargo with 'package
--exclude-lockfile'; for Python its packages setuptools and wheel. What lacks its tools
is left out with a message. Environment:

  VERSION            such as v1.2.3 (default: the commit's tag, or its time and hash)
  SOURCE_DATE_EPOCH  the time of all files (default: the commit's)
  MAINTAINER         of the packages: "Name <address>"

The same commit, Go and environment give the same bytes in any directory.
END
}

die() {
	printf '%s: %s\n' "$me" "$*" >&2
	exit "${status:-1}"
}

out=dist only=("${targets[@]}")
while [ $# -gt 0 ]; do
	case $1 in
	-o | --only)
		[ $# -ge 2 ] || status=2 die "$1 needs a value"
		if [ "$1" = -o ]; then out=$2; else IFS=, read -ra only <<<"$2"; fi
		shift
		;;
	-h | --help) usage && exit ;;
	*) status=2 die "unknown argument $1; see $me --help" ;;
	esac
	shift
done
[ -n "$out" ] || status=2 die '-o needs a value'
for t in "${only[@]}"; do
	[[ " ${targets[*]} " == *" $t "* ]] || status=2 die "--only $t: want some of ${targets[*]}"
done
[ -z "$(ls -A -- "$out" 2>/dev/null)" ] || status=2 die "$out is not empty"
[[ $out = /* ]] || out=$PWD/$out

# A release is made from a commit, or from an archive that git made of one.
if [ "$(git -C "$root" rev-parse --show-toplevel 2>/dev/null)" = "$root" ]; then
	tag=$(git -C "$root" describe --tags 2>/dev/null || true)
	read -r commit time < <(git -C "$root" log -1 --format='%H %ct')
	[ -z "$(git -C "$root" status --porcelain)" ] || changed=-dirty
else
	read -ra field <"$root/cmd/btfgen/version.txt"
	case ${#field[@]} in
	2) tag='' commit=${field[0]} time=${field[1]} ;;
	3) tag=${field[0]} commit=${field[1]} time=${field[2]} ;;
	esac
	[[ ${field[0]} != \$* ]] || tag='' commit='' time='' # sources that git has nothing to do with
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$time}
[ -n "$SOURCE_DATE_EPOCH" ] || die 'SOURCE_DATE_EPOCH is not set, and there is no commit to take it from'
version=${VERSION:-${tag:-v0.0.0-$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)-${commit:0:12}}${changed:-}}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$ ]] || status=2 die "VERSION $version: want one such as v1.2.3"
number=${version#v}
maintainer=${MAINTAINER:-btfgen maintainers <btfgen@users.noreply.github.com>}

# The environment must not change the bytes.
export LC_ALL=C TZ=UTC GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0
unset GOAMD64 GOARM64 GO386 GOPPC64 GORISCV64 GOEXPERIMENT GOFIPS140 GODEBUG GOOS GOARCH GOARM
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dist=$out out=$work/dist # until all is there
mkdir "$out"
cd "$root"

# The linker sets the version. The one that git archive wrote would otherwise be in the program as well.
: >"$work/version.txt"
echo "{\"Replace\": {\"$root/cmd/btfgen/version.txt\": \"$work/version.txt\"}}" >"$work/overlay.json"

# build OS ARCH PROGRAM FILE: builds a program of cmd.
build() {
	local arch=$2 arm=
	[ "$arch" != armv7 ] || arch=arm arm=7
	GOOS=$1 GOARCH=$arch GOARM=$arm go build -tags urfave_cli_no_docs -trimpath -buildvcs=false -overlay "$work/overlay.json" -ldflags "-s -w -X main.version=$version" -o "$4" "./cmd/$3"
}

# suffix TARGET: prints the suffix of programs.
suffix() { [[ $1 != windows/* ]] || echo .exe; }

# archive NAME DIR: makes a tar file of a directory, with the name NAME inside, or a zip file for Windows.
archive() {
	if [[ $1 = *-windows-* ]]; then
		mkdir "$work/zip"
		cp -R "$2" "$work/zip/$1"
		find "$work/zip" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
		(cd "$work/zip" && find . -type f -printf '%P\n' | sort | zip -q -9 -X "$out/$1.zip" -@)
		rm -r "$work/zip"
		return
	fi
	pack "$2" --transform "s,^\.,$1," | gzip -9n >"$out/$1.tar.gz"
}

# pack DIR OPTION...: writes a tar file of a directory to standard output.
pack() {
	local dir=$1
	shift
	tar -C "$dir" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --mtime="@$SOURCE_DATE_EPOCH" "$@" -cf - .
}

# manual DIR: writes the pages of all commands. The test that checks them has the generator.
manual() {
	go test -trimpath -vet=off -count=1 -run '^TestManual$' ./cmd/btfgen -manual "$1" \
		-manual-head "\"$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)\" \"btfgen $version\" \"User Commands\"" >"$work/log" || die "manual: $(cat "$work/log")"
}

# licences PROGRAM...: prints the licences of Go and the modules in programs, which have to be distributed with them.
licences() {
	local path version dir file files modules
	echo 'btfgen contains these modules. Their licences follow.'
	mapfile -t modules < <(go version -m "$@" | awk '$1 == "dep" { print $2 }' | sort -u)
	{
		go list -m -f '{{.Path}} {{.Version}} {{.Dir}}' "${modules[@]}"
		echo "stdlib $(go env GOVERSION) $(go env GOROOT)"
	} | LC_ALL=C sort | while read -r path version dir; do
		printf '\n%s\n%s %s\n' "$(printf '=%.0s' {1..78})" "$path" "$version"
		mapfile -t files < <(find "$dir" -mindepth 1 -maxdepth 1 -type f -printf '%f\n' | grep -Ei '^(licen[cs]e|copying|notice|patents)(\.|$)' | LC_ALL=C sort)
		[ ${#files[@]} -gt 0 ] || die "$path $version: no licence in $dir"
		for file in "${files[@]}"; do
			printf '\n%s:\n\n' "$file"
			tr -d '\r' <"$dir/$file"
		done
	done
}

programs=()
for t in "${only[@]}"; do
	echo "building $t"
	d=$work/${t/\//-}
	mkdir -p "$d"
	for program in btfgen btfgen-registry; do
		build "${t%/*}" "${t#*/}" "$program" "$d/$program"
		programs+=("$d/$program")
	done
done
build "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" btfgen "$work/btfgen"
go build -trimpath -modfile=packaging/nfpm.mod -o "$work/nfpm" "$nfpm"
licences "${programs[@]}" >"$work/LICENSES"
for t in "${only[@]}"; do
	for program in btfgen btfgen-registry; do
		go run -trimpath "$cyclonedx" bin -json -noserial -notimestamp -short-purls -std -version "$version" \
			-output "$out/$program-$number-${t/\//-}.cdx.json" "$work/${t/\//-}/$program"
	done
done

# The files of all packages, with their paths below /usr or /usr/local.
common=$work/common
doc=$common/share/doc/btfgen
mkdir -p "$common/share/bash-completion/completions" "$common/share/zsh/site-functions" "$common/share/fish/vendor_completions.d"
mkdir -p "$common/share/man/man1"
manual "$common/share/man/man1"
"$work/btfgen" completion bash >"$common/share/bash-completion/completions/btfgen"
"$work/btfgen" completion zsh >"$common/share/zsh/site-functions/_btfgen"
"$work/btfgen" completion fish >"$common/share/fish/vendor_completions.d/btfgen.fish"
scripts/documents.sh "$doc"

for t in "${only[@]}"; do
	d=$work/${t/\//-}
	tree=$d/tree
	cp -R "$common" "$tree"
	for program in btfgen btfgen-registry; do
		install -D -m 755 "$d/$program" "$tree/bin/$program$(suffix "$t")"
	done
	cp LICENSE "$work/LICENSES" "$tree/share/doc/btfgen"
	archive "btfgen-$number-${t/\//-}" "$tree"
	[ "${t%/*}" = linux ] || continue

	p=$d/package
	mkdir "$p"
	cp -R "$common" "$p/usr"
	install -D -m 755 -t "$p/usr/bin" "$d/btfgen" "$d/btfgen-registry"
	gzip -9n "$p"/usr/share/man/man1/*
	gzip -9n <"$p/usr/share/doc/btfgen/CHANGELOG.md" >"$p/usr/share/doc/btfgen/changelog.gz"
	rm "$p/usr/share/doc/btfgen/CHANGELOG.md"
	mv "$p/usr/share/zsh/site-functions/_btfgen" "$p" # which Debian has elsewhere
	rm -r "$p/usr/share/zsh"
	cp LICENSE "$work/LICENSES" packaging/copyright packaging/lintian-overrides "$p"
	cat >"$p/changelog.yaml" <<-END
		- semver: "$number"
		  date: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
		  packager: "$maintainer"
		  deb:
		    urgency: medium
		    distributions: [unstable]
		  changes:
		    - note: "$version: see changelog.gz"
	END
	chmod -R u+rw,go=rX "$p"
	arch=${t#*/}
	for packager in deb rpm apk; do
		(cd "$p" && PACKAGE_ARCH=${arch/armv7/arm7} PACKAGE_VERSION=$number PACKAGE_MAINTAINER=$maintainer \
			"$work/nfpm" package --config "$root/packaging/nfpm.yaml" --packager "$packager" --target "$out/" >"$d/log") ||
			die "nfpm, $t: $(cat "$d/log")"
	done
done

# deb DIR NAME FIELD...: makes a .deb of a directory.
deb() {
	local p=$1 name=$2
	shift 2
	(cd "$p" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	printf '%s\n' "Package: $name" 'Source: btfgen' "Version: $deb_version" "Architecture: $deb_arch" "Maintainer: $maintainer" \
		"Installed-Size: $(du -sk --apparent-size "$p/usr" | cut -f 1)" 'Priority: optional' 'Multi-Arch: same' \
		'Homepage: https://github.com/btfgen/btfgen' "$@" >"$p/DEBIAN/control"
	chmod -R u+rw,go=rX "$p"
	find "$p" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zgzip --build "$p" "$out/${name}_${deb_version}_$deb_arch.deb" >/dev/null
}

# libbtfa. The package of the shared library is named by its soname.
libbtfa() {
	local so=libbtfa.so.0 name=libbtfa0 p=$work/libbtfa0 dev=$work/libbtfa-dev src=$work/libbtfa lib deb_version deb_arch
	lib=usr/lib/$(cc -print-multiarch)
	deb_arch=$(dpkg --print-architecture)
	set -- "$out"/btfgen_*_"$deb_arch.deb"
	deb_version=$(dpkg-deb -f "$1" Version)

	mkdir "$src"
	cp lib/c/Makefile lib/c/*.[ch3] lib/c/libbtfa.pc.in "$src"
	(
		cd "$src"
		make -s install DESTDIR="$dev" PREFIX=/usr LIBDIR="/$lib" CFLAGS="$(dpkg-buildflags --get CFLAGS)" \
			CPPFLAGS="$(dpkg-buildflags --get CPPFLAGS)" LDFLAGS="$(dpkg-buildflags --get LDFLAGS)"
	)
	mkdir -p "$p/DEBIAN" "$dev/DEBIAN" "$p/$lib" "$p/usr/share/doc/$name" "$dev/usr/share/doc" "$src/debian"
	mv "$dev/$lib/$so" "$p/$lib"
	chmod 644 "$p/$lib/$so"
	strip --strip-unneeded -R .comment -R .note "$p/$lib/$so"
	strip --strip-debug -D -R .comment -R .note "$dev/$lib/libbtfa.a"
	gzip -9n "$dev/usr/share/man/man3/libbtfa.3"
	cp packaging/copyright "$p/usr/share/doc/$name"
	dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/share/doc/btfgen/changelog.Debian.gz >"$p/usr/share/doc/$name/changelog.Debian.gz"
	ln -s "$name" "$dev/usr/share/doc/libbtfa-dev"

	echo "libbtfa ${so##*.} $name (>= ${deb_version%-*})" >"$p/DEBIAN/shlibs"
	echo 'activate-noawait ldconfig' >"$p/DEBIAN/triggers"
	printf 'Source: btfgen\n\nPackage: %s\nArchitecture: any\n' "$name" >"$src/debian/control"
	local about='
 libbtfa finds the type information (BTF) of the running kernel in an archive
 made by btfgen, so that BPF CO-RE programs load on kernels without BTF.'
	deb "$p" "$name" 'Section: libs' "Depends: $(cd "$src" && dpkg-shlibdeps -O "$p/$lib/$so" | sed 's/^shlibs:Depends=//')" \
		"Description: reader of btfgen's archives of minimized BTF$about"
	deb "$dev" libbtfa-dev 'Section: libdevel' "Depends: $name (= $deb_version), libzstd-dev" \
		"Description: reader of btfgen's archives of minimized BTF, for development$about
 .
 This package has the static library, the header and the manual."
}

host=linux/$(go env GOHOSTARCH)
if [[ " ${only[*]} " == *" ${host/%\/arm//armv7} "* ]]; then
	if command -v dpkg-shlibdeps >/dev/null && command -v cc >/dev/null && [ -e /usr/include/zstd.h ]; then
		echo 'building libbtfa'
		libbtfa
	else
		echo 'skipped: libbtfa needs dpkg-dev, a C compiler and libzstd-dev'
	fi
fi

# crate: packages the reader in Rust, from a copy, because cargo writes into its folder.
crate() {
	local src=$work/crate
	mkdir "$src"
	cp -R lib/rust/{Cargo.toml,README.md,src,test} LICENSE NOTICE "$src"
	(cd "$src" && cargo package --quiet --offline --no-verify --allow-dirty --exclude-lockfile 2>"$work/log") || die "cargo: $(cat "$work/log")"
	mv "$src"/target/package/*.crate "$out"
}
if cargo package -h 2>/dev/null | grep -q -e --exclude-lockfile; then
	crate
else
	echo 'skipped: the reader in Rust needs cargo'
fi

# wheel: packages the reader in Python, from a copy, because setuptools writes into its folder.
wheel() {
	local src=$work/python sdist
	mkdir "$src" "$src/dist"
	cp -R lib/python/{pyproject.toml,README.md,btfa} LICENSE NOTICE "$src"
	rm -rf "$src/btfa/__pycache__"
	chmod -R u+rw,go=rX "$src"
	for hook in build_wheel build_sdist; do
		(cd "$src" && "$python" -c "from setuptools import build_meta; build_meta.$hook('dist')") >"$work/log" 2>&1 || die "$hook: $(cat "$work/log")"
	done
	mv "$src"/dist/*.whl "$out"
	# setuptools puts the time and the user into the other one.
	sdist=$(basename "$src"/dist/*.tar.gz .tar.gz)
	tar -xzf "$src/dist/$sdist.tar.gz" -C "$src/dist"
	archive "$sdist" "$src/dist/$sdist"
}
python=''
for p in python3 /usr/bin/python3; do
	[ "$python" ] || ! "$p" -c 'import setuptools, wheel' 2>/dev/null || python=$p
done
if [ "$python" ]; then
	wheel
else
	echo "skipped: the reader in Python needs python3's setuptools and wheel"
fi

# image: writes the OCI image, an archive of an image layout. Its layers have the programs and the licences.
image() {
	local t d layers=()
	for t in "${only[@]}"; do
		[ "${t%/*}" = linux ] || continue
		d=$work/${t/\//-}
		mkdir -p "$d/layer/usr/share/doc/btfgen" "$d/layer/work"
		install -D -m 755 -t "$d/layer/usr/bin" "$d/btfgen" "$d/btfgen-registry"
		cp LICENSE NOTICE "$work/LICENSES" "$d/layer/usr/share/doc/btfgen"
		pack "$d/layer" | gzip -9n >"$d/layer.tar.gz"
		layers+=("$t=$d/layer.tar.gz")
	done
	[ ${#layers[@]} -gt 0 ] || return 0
	mkdir "$work/image"
	go run -trimpath ./packaging/image "$work/image" "$version" "${commit:-unknown}" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" "${layers[@]}"
	pack "$work/image" >"$out/btfgen-$number-image.tar"
}
image

# formula: prints the Homebrew formula, for those of its four machines that are built.
formula() {
	local os t file
	cat <<-END
		class Btfgen < Formula
		  desc "Minimized BTF for BPF CO-RE objects and many kernels"
		  homepage "https://github.com/btfgen/btfgen"
		  version "$number"
		  license "Apache-2.0"
	END
	for os in darwin linux; do
		echo
		echo "  on_${os/darwin/macos} do"
		for t in "$os/amd64" "$os/arm64"; do
			[[ " ${only[*]} " == *" $t "* ]] || continue
			file=btfgen-$number-${t/\//-}.tar.gz
			cat <<-END
				    on_$(sed 's,.*/amd64,intel,; s,.*/arm64,arm,' <<<"$t") do
				      url "https://github.com/btfgen/btfgen/releases/download/$version/$file"
				      sha256 "$(sha256sum <"$out/$file" | cut -d ' ' -f 1)"
				    end
			END
		done
		echo '  end'
	done
	cat <<-'END'

		  def install
		    bin.install Dir["bin/*"]
		    man1.install Dir["share/man/man1/*"]
		    bash_completion.install "share/bash-completion/completions/btfgen"
		    zsh_completion.install "share/zsh/site-functions/_btfgen"
		    fish_completion.install "share/fish/vendor_completions.d/btfgen.fish"
		    doc.install Dir["share/doc/btfgen/*"]
		  end

		  test do
		    assert_match version.to_s, shell_output("#{bin}/btfgen --version")
		  end
		end
	END
}
if [[ " ${only[*]} " =~ \ (darwin|linux)/(amd64|arm64)\  ]]; then
	formula >"$out/btfgen.rb"
fi

(cd "$out" && sha256sum -- * >"$work/SHA256SUMS")
mkdir -p -- "$dist"
mv "$out"/* "$dist"
mv "$work/SHA256SUMS" "$dist"
echo "$dist: btfgen $version"
