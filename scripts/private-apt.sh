# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by scripts that download Debian packages of any suite and architecture without changing the host's apt. It needs
# $work, a directory of the script; $sources, a sources.list file or empty; and the function say.

# apt_mirror prints the address of the Debian archive that the host uses, or fails.
apt_mirror() {
	local url
	url=$(apt-get indextargets --format '$(REPO_URI)' \
		'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | awk 'NR == 1')
	[[ $url ]] || { say "the host's apt knows no Debian archive (apt-get update helps, or --sources)"; return 1; }
	printf '%s\n' "$url"
}

# private_apt SUITE ARCH downloads the suite's package index to a directory of its own and sets $apt to the options that make apt
# use it instead of the host's state. Other settings of the host, such as a proxy, apply; hooks do not run.
private_apt() {
	local dir=$work/apt/$1-$2 key mirror
	apt=(-c "$dir/apt.conf")
	[[ -d $dir ]] && return
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	: >"$dir/status"
	cat >"$dir/apt.conf" <<EOF2
#clear APT::Update;
#clear APT::Architectures;
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Sandbox::User "$(id -un)";
Dir::State "$dir";
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
EOF2
	if [[ $sources ]]; then
		cp "$sources" "$dir/sources.list"
	else
		mirror=$(apt_mirror) || return
		for key in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
			[[ -r $key ]] && break
		done
		printf 'deb [%s] %s %s main\n' "signed-by=$key" "$mirror" "$1" >"$dir/sources.list"
	fi
	apt-get "${apt[@]}" -qq update >&2 || say "$1 $2: the package index cannot be read"
}

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

# download KERNEL DIR downloads a kernel package for amd64. KERNEL is a package, whose suite follows from its version, or a suite,
# for which the script's function package prints the package.
download() {
	local suite=$1 name=$1
	command -v apt-get >/dev/null || { say 'apt is missing'; return 1; }
	if [[ $1 == linux-image-* ]]; then
		read -r _ suite < <(version "${1#linux-image-}")
	fi
	private_apt "$suite" amd64 || return
	if [[ $1 == "$suite" ]]; then
		name=$(package "$suite") || { say "$suite: no kernel on the mirror"; return 1; }
	fi
	(cd "$2" && apt-get "${apt[@]}" -qq download "$name" >&2) || { say "$name: cannot be downloaded from $suite"; return 1; }
}
