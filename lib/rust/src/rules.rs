// SPDX-License-Identifier: Apache-2.0

//! In what distributions differ. The tables are those of pkg/kernel/rules.go.

use crate::key::{canonical_arch, canonical_id, Parts, ARCH, ID, RELEASE, VERSION_ID};

type Table = &'static [(&'static str, &'static str)];

/// Each spelling of an architecture, and BTFHub's, or that of `uname -m` if BTFHub has none.
pub(crate) const ARCHES: Table = &[
    ("amd64", "x86_64"),
    ("x86", "x86_64"),
    ("x86-64", "x86_64"),
    ("aarch64", "arm64"),
    ("armv8l", "arm64"),
    ("armhf", "arm"),
    ("armel", "arm"),
    ("armhfp", "arm"),
    ("armv4tl", "arm"),
    ("armv5tel", "arm"),
    ("armv5tejl", "arm"),
    ("armv6l", "arm"),
    ("armv7", "arm"),
    ("armv7l", "arm"),
    ("armv7hl", "arm"),
    ("i486", "i386"),
    ("i586", "i386"),
    ("i686", "i386"),
    ("386", "i386"),
    ("ppc64el", "ppc64le"),
    ("riscv", "riscv64"),
    ("loong64", "loongarch64"),
    ("mips64le", "mips64el"),
    ("mipseb", "mips"),
    ("mips64eb", "mips64"),
];

/// Archs whose only spelling is their own.
const KNOWN: &[&str] = &["ppc64", "s390x", "sparc64", "mips", "mipsel", "mips64"];

pub(crate) const DISTRIBUTIONS: Table =
    &[("amazon", "amzn"), ("redhat", "rhel"), ("oracle", "ol"), ("suse", "sles"), ("opensuse", "opensuse-leap")];

/// Versions of Ubuntu, by codename.
pub(crate) const UBUNTUS: Table = &[
    ("xenial", "16.04"),
    ("bionic", "18.04"),
    ("focal", "20.04"),
    ("groovy", "20.10"),
    ("hirsute", "21.04"),
    ("impish", "21.10"),
    ("jammy", "22.04"),
    ("kinetic", "22.10"),
    ("lunar", "23.04"),
    ("mantic", "23.10"),
    ("noble", "24.04"),
    ("oracular", "24.10"),
    ("plucky", "25.04"),
    ("questing", "25.10"),
];

/// Versions of Debian, by codename.
pub(crate) const DEBIANS: Table =
    &[("stretch", "9"), ("buster", "10"), ("bullseye", "11"), ("bookworm", "12"), ("trixie", "13"), ("forky", "14")];

/// The variable of os-release in which builds differ that have one VERSION_ID and one release.
pub(crate) const BUILD_NAMES: Table = &[("cos", "BUILD_ID="), ("openwrt", "OPENWRT_BOARD=")];

/// How many numbers of VERSION_ID stay the same from build to build. All parts of VERSION_ID do under other distributions.
const VERSION_NUMBERS: &[(&str, usize)] = &[
    ("alpine", 2),
    ("bottlerocket", 0),
    ("cos", 1),
    ("flatcar", 0),
    ("coreos", 0),
    ("k3os", 0),
    ("opensuse-microos", 0),
    ("opensuse-tumbleweed", 0),
    ("rhcos", 0),
    ("talos", 0),
];

/// Words of releases that many distributions use, without the digits at their ends.
const PLAIN_WORDS: &[&str] = &[
    "", "cloud", "custom", "debug", "default", "desktop", "dirty", "generic", "hardened", "kvm", "lts", "mainline",
    "pae", "preempt", "rc", "rt", "server", "smp", "standard", "vanilla", "virt", "yocto", "zen",
];

/// Words of releases whose number at the end counts builds, as in 6.9.1-arch1-1.
const COUNTED_WORDS: &[&str] = &["alt", "arch", "hardened", "kali", "r", "rpi", "xanmod", "zen"];

/// Distributions that build kernels of their own whose releases end like those of others.
const OWN_BUILDS: Table = &[
    ("alpine", "-lts"),
    ("arch", "-lts"),
    ("artix", "-lts"),
    ("astra", "-generic"),
    ("astra", "-hardened"),
    ("kylin", "-generic"),
];

fn is_arch(word: &[u8]) -> bool {
    ARCHES.iter().any(|(a, b)| a.as_bytes() == word || b.as_bytes() == word) || has(KNOWN, word)
}

fn has(table: &[&str], word: &[u8]) -> bool {
    table.iter().any(|w| w.as_bytes() == word)
}

fn is_number(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_digit)
}

fn is_commit(word: &[u8]) -> bool {
    word.len() >= 8 && word[0] == b'g' && word[1..].iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the word without the digits at its end.
fn cut_digits(word: &[u8]) -> &[u8] {
    let n = word.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    &word[..word.len() - n]
}

/// Cuts a release into its words, and leaves out the commit and build that kernels built from git have, and the number
/// before a commit, as in 5.10.43-00005-g740f7fbe5 and 5.10.43-android12-9-00005-g740f7fbe5-ab7943734.
fn words(release: &[u8]) -> Vec<&[u8]> {
    let all: Vec<_> = release.split(|b| b"-.+_~".contains(b)).filter(|w| !w.is_empty()).collect();
    let of_git = |i: usize| {
        let w: &[u8] = all[i];
        is_commit(w)
            || is_number(w) && all.get(i + 1).map_or(false, |next| is_commit(next))
            || w.len() > 2 && w.starts_with(b"ab") && is_number(&w[2..])
    };
    (0..all.len()).filter(|&i| !of_git(i)).map(|i| all[i]).collect()
}

/// Reports whether a release can belong to builds of one distribution only: it has four numbers, or a word that is not
/// common.
pub(crate) fn is_distinctive(release: &[u8]) -> bool {
    let (mut numbers, mut last): (usize, &[u8]) = (0, b"");
    for w in words(release) {
        if is_number(w) {
            let arch = matches!(w, b"586" | b"686") || w == b"64" && last == b"x86";
            numbers += usize::from(!arch);
        } else if !is_arch(w) && !has(PLAIN_WORDS, cut_digits(&w.to_ascii_lowercase())) {
            return true;
        }
        last = w;
    }
    numbers >= 4
}

/// Reports whether a distribution builds kernels of its own with releases like this one, which others have, too.
pub(crate) fn is_built_by(id: &[u8], release: &[u8]) -> bool {
    OWN_BUILDS.iter().any(|(own, end)| own.as_bytes() == id && release.ends_with(end.as_bytes()))
}

/// Reports whether a version names the one build that a kernel is of. Other builds of the distribution have its release, too.
pub(crate) fn is_one_build(id: &[u8], version_id: &[u8]) -> bool {
    BUILD_NAMES.iter().any(|(of, _)| of.as_bytes() == id) && version_id.contains(&b'-')
}

/// What the builds of a series have in common: distribution, version, arch, and of the release the version of Linux and all
/// words that are not numbers: `6 1 rt amd64` of `6.1.0-47-rt-amd64`.
#[derive(PartialEq, Eq)]
pub(crate) struct Series(Vec<Vec<u8>>);

pub(crate) fn series(p: &Parts) -> Series {
    let id = canonical_id(p[ID]);
    let version = match VERSION_NUMBERS.iter().find(|(of, _)| of.as_bytes() == &*id) {
        Some(&(_, n)) => leading(p[VERSION_ID], n),
        None => p[VERSION_ID],
    };
    let mut s = vec![id.to_vec(), version.to_vec(), canonical_arch(p[ARCH]).to_vec()];
    let mut numbers = 0;
    for w in words(p[RELEASE]) {
        if is_number(w) {
            numbers += 1;
            if numbers > 2 {
                continue;
            }
        }
        let counted = cut_digits(w);
        s.push(if has(COUNTED_WORDS, counted) { counted } else { w }.to_vec());
    }
    Series(s)
}

/// Returns a version up to the end of its nth number.
fn leading(version: &[u8], n: usize) -> &[u8] {
    let (mut end, mut left) = (0, n);
    let mut i = 0;
    while i < version.len() && left > 0 {
        let digit = version[i].is_ascii_digit();
        while i < version.len() && version[i].is_ascii_digit() == digit {
            i += 1;
        }
        if digit {
            left -= 1;
            end = i;
        }
    }
    &version[..end]
}
