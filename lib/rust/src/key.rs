// SPDX-License-Identifier: Apache-2.0

//! Names of kernels.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::cursor::{Cursor, Problem};
use crate::limits::{MAX_KERNELS, MAX_KEY_BYTES, MAX_PART};
use crate::rules::{ARCHES, DISTRIBUTIONS};
use crate::text::printable;

pub(crate) const ID: usize = 0;
pub(crate) const VERSION_ID: usize = 1;
pub(crate) const ARCH: usize = 2;
pub(crate) const RELEASE: usize = 3;

/// The parts of a key: distribution, its version, arch, release. A part has at most 255 bytes, perhaps not UTF-8.
pub(crate) type Parts<'a> = [&'a [u8]; 4];

/// A kernel, by distribution, version of the distribution, arch and release. An unknown part is empty.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Key {
    parts: [Vec<u8>; 4],
}

impl Key {
    /// Returns the key with these parts, such as `"debian"`, `"12"`, `"x86_64"` and `"6.1.0-47-amd64"`. Distribution
    /// and arch may have any usual spelling.
    pub fn new(
        id: impl AsRef<[u8]>,
        version_id: impl AsRef<[u8]>,
        arch: impl AsRef<[u8]>,
        release: impl AsRef<[u8]>,
    ) -> Key {
        Key::from_parts([id.as_ref(), version_id.as_ref(), arch.as_ref(), release.as_ref()])
    }

    pub(crate) fn from_parts(p: Parts) -> Key {
        Key { parts: [p[0].to_vec(), p[1].to_vec(), p[2].to_vec(), p[3].to_vec()] }
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        [&self.parts[0], &self.parts[1], &self.parts[2], &self.parts[3]]
    }

    /// Returns the distribution as in os-release, such as `debian`. Bytes that are not UTF-8 are replaced here, as in the
    /// other parts; [`Key::as_bytes`] has them.
    pub fn id(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.parts[ID])
    }

    /// Returns the version of the distribution, such as `12`. Rolling distributions have none.
    pub fn version_id(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.parts[VERSION_ID])
    }

    /// Returns the arch, such as `x86_64`.
    pub fn arch(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.parts[ARCH])
    }

    /// Returns the release as `uname -r` prints it, such as `6.1.0-47-amd64`.
    pub fn release(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.parts[RELEASE])
    }

    /// Returns the bytes of ID, VERSION_ID, arch and release.
    pub fn as_bytes(&self) -> [&[u8]; 4] {
        self.parts()
    }

    /// Returns the key in the canonical spelling of distribution and arch: `amzn` for `Amazon`, `x86_64` for `amd64`.
    /// Equal canonical keys name the same kernel.
    pub fn canonical(&self) -> Key {
        let [id, version_id, arch, release] = self.parts();
        Key::new(canonical_id(id), version_id, canonical_arch(arch), release)
    }
}

/// A distribution and its version, which is empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The ID in os-release, such as `ubuntu`.
    pub id: Vec<u8>,
    /// The VERSION_ID in os-release, such as `22.04`.
    pub version_id: Vec<u8>,
}

/// What a host says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Its kernel.
    pub key: Key,
    /// The distributions that its own is derived from, the nearest first.
    pub like: Vec<Distribution>,
}

impl From<Key> for System {
    fn from(key: Key) -> System {
        System { key, like: Vec::new() }
    }
}

impl From<&Key> for System {
    fn from(key: &Key) -> System {
        key.clone().into()
    }
}

impl From<&System> for System {
    fn from(system: &System) -> System {
        system.clone()
    }
}

/// Prints `ID/VERSION_ID/ARCH/RELEASE`, with `-` for unknown parts, and escapes characters that are not printable.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            let part = if part.is_empty() { "-".to_string() } else { printable(part) };
            write!(f, "{}{}", if i > 0 { "/" } else { "" }, part)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self)
    }
}

pub(crate) fn usual(s: &[u8], table: &[(&'static str, &'static str)]) -> Option<&'static [u8]> {
    table.iter().find(|(spelling, _)| spelling.as_bytes() == s).map(|(_, usual)| usual.as_bytes())
}

pub(crate) fn canonical_arch(arch: &[u8]) -> &[u8] {
    usual(arch, ARCHES).unwrap_or(arch)
}

pub(crate) fn canonical_id(id: &[u8]) -> Cow<'_, [u8]> {
    if !id.iter().any(u8::is_ascii_uppercase) {
        return Cow::Borrowed(usual(id, DISTRIBUTIONS).unwrap_or(id));
    }
    let lower = id.to_ascii_lowercase();
    match usual(&lower, DISTRIBUTIONS) {
        Some(usual) => Cow::Borrowed(usual),
        None => Cow::Owned(lower),
    }
}

/// Checks a part of a key, which could be a file name.
pub(crate) fn check_part(s: &[u8]) -> Result<(), Problem> {
    if matches!(s, b"." | b".." | b"-") {
        return Err("is not a name");
    }
    if s.iter().any(|&b| b < b' ' || matches!(b, 0x7f | b'/' | b'\\')) {
        return Err("has a bad character");
    }
    if s.len() > MAX_PART {
        return Err("is longer than 255 bytes");
    }
    Ok(())
}

/// The order of runs, and of the end, in a version.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Run {
    Pre,
    End,
    Text,
    Number,
}

fn run_rank(run: &[u8]) -> Run {
    match run {
        [] => Run::End,
        [b'0'..=b'9', ..] => Run::Number,
        [b'~', ..] | b"-rc" => Run::Pre,
        _ => Run::Text,
    }
}

/// Cuts the leading run of digits, or of anything else, off s.
fn next_run<'a>(s: &mut &'a [u8]) -> &'a [u8] {
    let digits = s.first().map_or(false, u8::is_ascii_digit);
    let n = s.iter().position(|b| b.is_ascii_digit() != digits).unwrap_or(s.len());
    let (run, rest) = s.split_at(n);
    *s = rest;
    run
}

fn compare_runs(a: &[u8], b: &[u8]) -> Ordering {
    fn significant(s: &[u8]) -> &[u8] {
        &s[s.iter().position(|&b| b != b'0').unwrap_or(s.len())..]
    }
    let rank = run_rank(a);
    let order = rank.cmp(&run_rank(b));
    if order != Ordering::Equal || rank != Run::Number {
        return order.then_with(|| a.cmp(b));
    }
    let (a, b) = (significant(a), significant(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Orders releases and versions: numbers by value, the text between them by bytes, a pre-release (`~rc1`, `-rc1`) before
/// its release. Only equal strings are equal.
pub(crate) fn compare_versions(a: &[u8], b: &[u8]) -> Ordering {
    let (mut x, mut y) = (a, b);
    while !x.is_empty() || !y.is_empty() {
        let order = compare_runs(next_run(&mut x), next_run(&mut y));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.cmp(b) // 01 and 1
}

/// Compares two keys up to their releases: canonical distribution, version, canonical arch.
pub(crate) fn compare_series(x: &Parts, y: &Parts) -> Ordering {
    canonical_id(x[ID])
        .cmp(&canonical_id(y[ID]))
        .then_with(|| compare_versions(x[VERSION_ID], y[VERSION_ID]))
        .then_with(|| canonical_arch(x[ARCH]).cmp(canonical_arch(y[ARCH])))
}

pub(crate) fn compare_keys(x: &Parts, y: &Parts) -> Ordering {
    compare_series(x, y).then_with(|| compare_versions(x[RELEASE], y[RELEASE]))
}

/// A kernel of an archive.
struct Kernel {
    key: u32, // where its text starts in keys
    ends: [u16; 4], // of the parts of the text
    layout: u32,
}

/// The kernels of an archive, in the order of the archive.
#[derive(Default)]
pub(crate) struct Kernels {
    kernels: Vec<Kernel>,
    keys: Vec<u8>,
    pub order: Vec<u32>, // of keys, as numbers of kernels
}

impl Kernels {
    pub fn read(mut c: Cursor, layouts: usize) -> Result<Kernels, Problem> {
        let n = c.count(MAX_KERNELS.min(c.left()), "too many kernels")?;
        let mut k = Kernels { kernels: Vec::with_capacity(n), ..Kernels::default() };
        let (mut last, mut used) = (Vec::new(), 0);
        for i in 0..n {
            let shared = c.number()?;
            let back = c.number()?;
            let rest = c.text()?;
            if shared > last.len() as u64 {
                return Err("shares more than the last key has");
            }
            if back > used as u64 {
                return Err("layout does not exist");
            }
            let mut now = last[..shared as usize].to_vec();
            now.extend_from_slice(rest);
            let layout = used - back as usize;
            used += usize::from(back == 0);
            if k.keys.len() + now.len() > MAX_KEY_BYTES {
                return Err("keys are too long");
            }
            if (i > 0 && now <= last) || layout >= layouts {
                return Err("not in order");
            }
            let ends = split_key(&now).ok_or("not a key")?;
            k.kernels.push(Kernel { key: k.keys.len() as u32, ends, layout: layout as u32 });
            k.keys.extend_from_slice(&now);
            last = now;
        }
        c.end()?;
        if used != layouts {
            return Err("use fewer layouts than there are");
        }
        k.keys.shrink_to_fit();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by(|&i, &j| compare_keys(&k.parts(i), &k.parts(j)));
        if order.windows(2).any(|w| compare_keys(&k.parts(w[0]), &k.parts(w[1])) == Ordering::Equal) {
            return Err("a kernel occurs twice");
        }
        k.order = order;
        Ok(k)
    }

    pub fn len(&self) -> usize {
        self.kernels.len()
    }

    pub fn parts(&self, kernel: u32) -> Parts<'_> {
        let k = &self.kernels[kernel as usize];
        let text = &self.keys[k.key as usize..];
        let [a, b, c, d] = k.ends.map(usize::from);
        [&text[..a], &text[a + 1..b], &text[b + 1..c], &text[c + 1..d]]
    }

    pub fn key(&self, kernel: u32) -> Key {
        Key::from_parts(self.parts(kernel))
    }

    pub fn layout(&self, kernel: u32) -> u32 {
        self.kernels[kernel as usize].layout
    }

    /// Returns the first place in the order whose key is not below this one.
    pub fn place_of(&self, want: &Parts) -> usize {
        self.order.partition_point(|&k| compare_keys(&self.parts(k), want) == Ordering::Less)
    }

    /// Returns the kernel with exactly this key.
    pub fn find(&self, want: &Parts) -> Option<u32> {
        let &k = self.order.get(self.place_of(want))?;
        if compare_keys(&self.parts(k), want) == Ordering::Equal {
            Some(k)
        } else {
            None
        }
    }
}

/// Returns where the parts of a key's text end, if it is a key. Arch and release are known.
fn split_key(text: &[u8]) -> Option<[u16; 4]> {
    let mut ends = [0; 4];
    let mut start = 0;
    for i in 0..4 {
        let rest = text.get(start..)?;
        let n = if i == RELEASE { rest.len() } else { rest.iter().position(|&b| b == b'/')? };
        if check_part(&rest[..n]).is_err() || (i >= ARCH && n == 0) {
            return None;
        }
        ends[i] = (start + n) as u16; // at most 4 parts of 255 bytes
        start += n + 1;
    }
    Some(ends)
}
