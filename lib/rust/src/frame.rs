// SPDX-License-Identifier: Apache-2.0

//! From the bytes of a file to its payload.

use crate::cursor::{Problem, CUT_SHORT};
use crate::limits::MAX_PAYLOAD;

/// The raw content that frames are compressed with, a part of the format.
const DICTIONARY: &[u8] = include_bytes!("dictionary");

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b))
}

/// Reports whether the reserved bits of a compressed block are zero. Not all versions of zstd look.
fn reserved_bits_zero(p: &[u8]) -> bool {
    let kind = p[0] & 3;
    let format = usize::from(p[0] >> 2 & 3);
    let header = if kind < 2 { [1, 2, 1, 3][format] } else { [3, 3, 4, 5][format] };
    if p.len() < header {
        return false;
    }
    let head = little_endian(&p[..header]);
    let literals = match kind {
        0 => head >> [3, 4, 3, 4][format],
        1 => 1,
        _ => {
            let bits = [10, 10, 14, 18][format];
            head >> (4 + bits) & ((1 << bits) - 1)
        }
    };
    let at = header as u64 + literals;
    match usize::try_from(at).ok().and_then(|at| p.get(at..)) {
        None | Some([]) => false,
        Some([0, ..]) => true, // no sequences
        Some(p) => {
            let n = match p[0] {
                0..=127 => 1,
                128..=254 => 2,
                255 => 3,
            };
            p.get(n).map_or(false, |b| b & 3 == 0)
        }
    }
}

/// Cuts n bytes off the front of data.
fn cut<'a>(data: &mut &'a [u8], n: usize) -> Result<&'a [u8], Problem> {
    if data.len() < n {
        return Err(CUT_SHORT);
    }
    let (head, tail) = data.split_at(n);
    *data = tail;
    Ok(head)
}

/// Checks that the data is exactly one zstd frame with a checksum and without a dictionary's ID, and that it claims
/// nothing beyond the limits. Returns at least what it decompresses to.
fn check(mut p: &[u8]) -> Result<usize, Problem> {
    const WANT: Problem = "want one zstd frame with a checksum and without the ID of a dictionary";
    const BLOCK: u64 = 128 << 10;
    let head = cut(&mut p, 5)?;
    let flags = head[4];
    if little_endian(&head[..4]) != 0xfd2f_b528 || flags & 4 == 0 {
        return Err(WANT);
    }
    if flags & 8 != 0 {
        return Err("reserved bit set");
    }
    let single = flags >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let mut size = [0, 2, 4, 8][usize::from(flags >> 6)];
    if size == 0 && single {
        size = 1;
    }
    if p.len() < usize::from(!single) + dictionary + size {
        return Err(CUT_SHORT);
    }
    let mut window = 0;
    if !single {
        let b = cut(&mut p, 1)?[0];
        window = 1u64 << (10 + (b >> 3));
        window += window / 8 * u64::from(b & 7);
    }
    if little_endian(cut(&mut p, dictionary)?) != 0 {
        return Err(WANT);
    }
    let content = little_endian(cut(&mut p, size)?).saturating_add(if size == 2 { 256 } else { 0 });
    if single {
        window = content.max(1024);
    }
    if content > MAX_PAYLOAD as u64 || window > MAX_PAYLOAD as u64 {
        return Err("too many bytes decompressed");
    }
    let mut most = 0;
    loop {
        let block = little_endian(cut(&mut p, 3)?);
        let (last, kind, n) = (block & 1 == 1, block >> 1 & 3, block >> 3);
        if kind == 3 || n > BLOCK || n > window || (kind == 2 && n < 2) {
            return Err("bad block");
        }
        most += if kind == 2 { BLOCK } else { n };
        let data = cut(&mut p, if kind == 1 { 1 } else { n as usize })?; // kind 1 is one byte, repeated
        if kind == 2 && !reserved_bits_zero(data) {
            return Err("bad block");
        }
        if last {
            break;
        }
    }
    match p.len() {
        0..=3 => return Err(CUT_SHORT),
        4 => {}
        _ => return Err("bytes follow the frame"),
    }
    if size > 0 {
        most = content;
    }
    Ok(most.min(MAX_PAYLOAD as u64) as usize)
}

/// Decompresses a frame.
pub(crate) fn unpack(frame: &[u8]) -> Result<Vec<u8>, String> {
    let room = check(frame)?;
    zstd::bulk::Decompressor::with_dictionary(DICTIONARY)
        .and_then(|mut d| d.decompress(frame, room))
        .map_err(|e| crate::text::printable(e.to_string().as_bytes()))
}
