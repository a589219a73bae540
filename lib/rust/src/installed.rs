// SPDX-License-Identifier: Apache-2.0

//! BTF in a vmlinux that a package has installed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where packages put the vmlinux of a release, which `%` stands for. libbpf looks for BTF there, in this order.
const PATHS: &[&str] = &[
    "boot/vmlinux-%",
    "lib/modules/%/vmlinux-%",
    "lib/modules/%/build/vmlinux",
    "usr/lib/modules/%/kernel/vmlinux",
    "usr/lib/debug/boot/vmlinux-%",
    "usr/lib/debug/boot/vmlinux-%.debug",
    "usr/lib/debug/lib/modules/%/vmlinux",
];

/// Returns the path of an ELF file with the BTF of a release, which is a part of a key.
pub(crate) fn find(root: &Path, release: &[u8]) -> Option<PathBuf> {
    PATHS.iter().find_map(|p| {
        let mut name = Vec::new();
        for (i, piece) in p.split('%').enumerate() {
            name.extend(if i > 0 { release } else { b"" });
            name.extend(piece.as_bytes());
        }
        let path = root.join(OsStr::from_bytes(&name));
        let regular = path.metadata().map_or(false, |m| m.is_file());
        if regular && has_btf(&path) == Some(true) {
            Some(path)
        } else {
            None
        }
    })
}

/// Reports whether a file is an ELF file with a section .BTF, or None if it is damaged.
fn has_btf(path: &Path) -> Option<bool> {
    let mut file = File::open(path).ok()?;
    let mut read = |at: u64, n: usize| {
        let mut data = vec![0; n];
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut data).ok()?;
        Some(data)
    };
    let head = read(0, 64)?;
    let (wide, big) = (head[4] == 2, head[5] == 2);
    let number = |b: &[u8]| {
        let digits = |n, &d: &u8| n << 8 | u64::from(d);
        if big {
            b.iter().fold(0, digits)
        } else {
            b.iter().rev().fold(0, digits)
        }
    };
    let size = if wide { 64 } else { 40 };
    let word = |b: &[u8], narrow: usize, at: usize| number(if wide { &b[at..at + 8] } else { &b[narrow..narrow + 4] });
    let table = word(&head, 32, 40);
    let counts = &head[if wide { 58 } else { 46 }..];
    let (entry, n, names) = (number(&counts[..2]), number(&counts[2..4]), number(&counts[4..6]));
    if !head.starts_with(b"\x7fELF") || entry != size || names >= n {
        return None;
    }
    let sections = read(table, (n * size) as usize)?;
    let sections: Vec<_> = sections.chunks(size as usize).collect();
    let text = sections[names as usize];
    let length = word(text, 20, 32);
    if length > 1 << 20 {
        return None;
    }
    let text = read(word(text, 16, 24), length as usize)?;
    Some(sections.iter().any(|s| {
        const NO_BITS: u64 = 8;
        let name = number(&s[..4]) as usize;
        let is_btf = text.get(name..).map_or(false, |t| t.starts_with(b".BTF\0"));
        is_btf && number(&s[4..8]) != NO_BITS && word(s, 20, 32) > 0
    }))
}
