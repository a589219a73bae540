// SPDX-License-Identifier: Apache-2.0

//! Text that is safe to print.

use std::fmt::Write;

/// The characters that messages escape: controls, those that hide or reorder text, and spaces other than `' '`. The
/// table in `internal/btfa` is the same.
const UNPRINTABLE: &[(u32, u32)] = &[
    (0, 0x1f),
    (0x7f, 0xa0),
    (0xad, 0xad),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x1680, 0x1680),
    (0x180e, 0x180e),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x2064),
    (0x2066, 0x206f),
    (0x3000, 0x3000),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0001, 0xe0001),
    (0xe0020, 0xe007f),
];

fn push(out: &mut String, c: char) {
    let code = u32::from(c);
    if !UNPRINTABLE.iter().any(|&(low, high)| low <= code && code <= high) {
        out.push(c);
        return;
    }
    // Writing to a String does not fail.
    let _ = match c {
        '\u{7}' => write!(out, "\\a"),
        '\u{8}' => write!(out, "\\b"),
        '\t' => write!(out, "\\t"),
        '\n' => write!(out, "\\n"),
        '\u{b}' => write!(out, "\\v"),
        '\u{c}' => write!(out, "\\f"),
        '\r' => write!(out, "\\r"),
        _ if code < 0x80 => write!(out, "\\x{:02x}", code),
        _ if code < 0x10000 => write!(out, "\\u{:04x}", code),
        _ => write!(out, "\\U{:08x}", code),
    };
}

/// Returns bytes as one line of text, in which characters that are not printable and bytes that are not UTF-8 are
/// escaped as in Go: `\n`, `\x1b`, `\u202e`.
pub(crate) fn printable(mut bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    loop {
        match std::str::from_utf8(bytes) {
            Ok(s) => {
                s.chars().for_each(|c| push(&mut out, c));
                return out;
            }
            Err(e) => {
                let (good, bad) = bytes.split_at(e.valid_up_to());
                String::from_utf8_lossy(good).chars().for_each(|c| push(&mut out, c));
                let _ = write!(out, "\\x{:02x}", bad[0]);
                bytes = &bad[1..];
            }
        }
    }
}
