// SPDX-License-Identifier: Apache-2.0

//! The relocations of a BPF object, and whether an archive was made for them.

use std::collections::HashMap;
use std::fmt::Write;

use crate::cursor::{Cursor, Problem};
use crate::key::{canonical_arch, check_part};
use crate::limits::{MAX_HASHED, MAX_KERNELS, MAX_MACHINES, MAX_NAME, MAX_OBJECTS};
use crate::pool::{
    ARRAY, CONST, ENUM, ENUM64, FLOAT, FUNC, FUNC_PROTO, FWD, INT, PTR, RESTRICT, STRUCT, TYPEDEF, TYPE_TAG, UNION,
    VAR, VOLATILE,
};
use crate::text::printable;
use crate::Error;

const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;

const LOCAL_TYPE_ID: u32 = 6;
const TYPE_SIZE: u32 = 9;
const TYPE_MATCHES: u32 = 12;

const BAD_EXT: Problem = "its .BTF.ext is damaged";
const BAD_TYPES: Problem = "its .BTF is damaged";

/// An object that an archive was made for.
struct Object {
    name: Vec<u8>,
    arches: Vec<Vec<u8>>, // canonical; none for any
    sum: Vec<u8>,         // the beginning of the SHA-256 of its file
    fingerprint: Vec<u8>, // of its relocations; perhaps empty
}

/// What an archive was made for.
#[derive(Default)]
pub(crate) struct Made(Vec<Object>);

/// Reads the name of an arch.
fn read_arch<'a>(c: &mut Cursor<'a>) -> Result<&'a [u8], Problem> {
    let arch = c.text()?;
    check_part(arch).map_err(|_| "not an arch")?;
    Ok(arch)
}

impl Made {
    /// Reads the objects. Checks the program that wrote the archive and the relocations, which only writers need.
    pub fn read(mut c: Cursor) -> Result<Made, Problem> {
        c.text()?;
        let parts = c.number()?;
        if parts > 0 {
            let part = c.number()?;
            if part == 0 || part > parts || parts > MAX_KERNELS as u64 {
                return Err("part of a run");
            }
        }
        let size = c.count(32, "too many bytes of a hash")?;
        let mut last = None;
        for _ in 0..c.count(MAX_MACHINES + 1, "too many hashes of relocations")? {
            let arch = read_arch(&mut c)?;
            c.bytes(size)?;
            if last.map_or(false, |last| arch <= last) {
                return Err("relocations are not in order");
            }
            last = Some(arch);
        }
        let size = c.count(32, "too many bytes of a hash")?;
        let mut objects: Vec<Object> = Vec::new();
        for _ in 0..c.count(MAX_OBJECTS, "too many groups of objects")? {
            let mut arches = Vec::new();
            for _ in 0..c.count(MAX_MACHINES, "too many machines")? {
                let arch = read_arch(&mut c)?;
                if arch.is_empty() {
                    return Err("not an arch");
                }
                arches.push(arch.to_vec());
            }
            let n = c.count(MAX_OBJECTS - objects.len(), "too many objects")?;
            if n == 0 {
                return Err("group without objects");
            }
            for _ in 0..n {
                let name = c.text()?.to_vec();
                objects.push(Object { name, arches: arches.clone(), sum: Vec::new(), fingerprint: Vec::new() });
            }
        }
        for o in &mut objects {
            o.sum = c.bytes(size)?.to_vec();
        }
        c.end()?;
        Ok(Made(objects))
    }

    pub fn read_fingerprints(&mut self, mut c: Cursor) -> Result<(), Problem> {
        if c.left() == 0 {
            return Ok(());
        }
        let size = c.count(32, "too many bytes of a fingerprint")?;
        for o in &mut self.0 {
            o.fingerprint = c.bytes(size)?.to_vec();
        }
        c.end()
    }

    /// Checks that the archive was made for an object with the relocations of this one, on an arch or, if that is empty,
    /// on any.
    pub fn covers(&self, object: &[u8], arch: &[u8]) -> Result<(), Error> {
        let sum = match fingerprint(object) {
            Ok(None) => return Ok(()),
            Ok(Some(sum)) => Ok(sum),
            Err(wrong) => Err(wrong),
        };
        let mut why = match &sum {
            Err(wrong) => wrong,
            Ok(_) if self.0.iter().any(|o| o.fingerprint.is_empty()) => {
                "the archive has no fingerprints of relocations"
            }
            Ok(_) => "its relocations differ",
        };
        let arch = canonical_arch(arch);
        for o in &self.0 {
            let known = o.fingerprint.len().min(4);
            if known > 0 && sum.as_ref().map_or(false, |s| s[..known] == o.fingerprint[..known]) {
                if arch.is_empty() || o.arches.is_empty() || o.arches.iter().any(|a| a == arch) {
                    return Ok(());
                }
                why = "the archive's object is for other machines";
            }
        }
        let mut made = String::new();
        for (i, o) in self.0.iter().take(4).enumerate() {
            // Writing to a String does not fail.
            let _ = write!(made, "{}{} (sha256 ", if i > 0 { ", " } else { "" }, printable(&o.name));
            for b in &o.sum {
                let _ = write!(made, "{:02x}", b);
            }
            made.push_str("…)");
        }
        match self.0.len() {
            0 => made.push_str("unknown objects"),
            n if n > 4 => made += &format!(", {} more", n - 4),
            _ => {}
        }
        Err(Error::NotCovered(format!("archive was made for {}, not for the object: {}", made, why)))
    }
}

/// Numbers of an object, in its byte order.
#[derive(Clone, Copy)]
struct Order {
    big_endian: bool,
}

impl Order {
    fn load(self, data: &[u8], at: usize, n: usize) -> Option<u64> {
        let bytes = data.get(at..at.checked_add(n)?)?;
        let add = |v, b: &u8| v << 8 | u64::from(*b);
        Some(if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    fn half(self, data: &[u8], at: usize) -> Option<u32> {
        self.load(data, at, 2).map(|v| v as u32)
    }

    fn word(self, data: &[u8], at: usize) -> Option<u32> {
        self.load(data, at, 4).map(|v| v as u32)
    }

    /// Returns a number that is a place or a length in the data.
    fn place(self, data: &[u8], at: usize) -> Option<usize> {
        self.load(data, at, 8).and_then(|v| usize::try_from(v).ok())
    }
}

/// Returns n bytes of data.
fn part(data: &[u8], at: usize, n: usize) -> Option<&[u8]> {
    data.get(at..at.checked_add(n)?)
}

/// Returns the text at a place, up to a NUL, or nothing.
fn text_at(data: &[u8], at: usize) -> &[u8] {
    let text = data.get(at..).unwrap_or(&[]);
    &text[..text.iter().position(|&b| b == 0).unwrap_or(text.len())]
}

/// Returns a section of an ELF file, or nothing if it has none of this name.
fn section<'a>(order: Order, elf: &'a [u8], name: &[u8]) -> Result<Option<&'a [u8]>, Problem> {
    const HEADERS: Problem = "its section headers are damaged";
    const NAMES: Problem = "its section names are damaged";
    let table = order.place(elf, 40).ok_or(HEADERS)?;
    let count = order.half(elf, 60).ok_or(HEADERS)? as usize;
    let strings = order.half(elf, 62).ok_or(HEADERS)? as usize;
    let headers = part(elf, table, 64 * count).ok_or(HEADERS)?;
    if order.half(elf, 58) != Some(64) || strings >= count {
        return Err(HEADERS);
    }
    let names = order.place(headers, 64 * strings + 24).zip(order.place(headers, 64 * strings + 32));
    let names = names.and_then(|(at, n)| part(elf, at, n)).ok_or(NAMES)?;
    if names.last() != Some(&0) {
        return Err(NAMES);
    }
    for s in headers.chunks_exact(64) {
        let at = order.word(s, 0).ok_or(HEADERS)? as usize;
        if at >= names.len() || text_at(names, at) != name {
            continue;
        }
        let data = order.place(s, 24).zip(order.place(s, 32)).and_then(|(at, n)| part(elf, at, n));
        let no_bits = order.word(s, 4) == Some(8); // SHT_NOBITS
        return match data {
            None => Err("a section lies outside the file"),
            Some(_) if no_bits => Err("a section lies outside the file"),
            Some(_) if order.load(s, 8, 8).map_or(true, |flags| flags & 0x800 != 0) => {
                Err("a section is compressed") // SHF_COMPRESSED
            }
            Some(data) => Ok(Some(data)),
        };
    }
    Ok(None)
}

/// A CO-RE record without its place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    id: u32,
    access: u32,
    kind: u32,
}

/// A BPF object, as far as its relocations.
struct Btf<'a> {
    order: Order,
    types: &'a [u8],
    strings: &'a [u8],
    at: Vec<usize>, // where each type starts in types, from type 1
    hash: u64,
    hashed: usize, // bytes
}

const NO_TYPE: &[u8] = &[0; 12];

/// Returns how many bytes a type has after the first 12.
fn tail(kind: u32, vlen: usize) -> Option<usize> {
    Some(match kind {
        DATASEC => 12 * vlen,
        DECL_TAG => 4,
        _ => match kind as u8 {
            INT | VAR => 4,
            ARRAY => 12,
            STRUCT | UNION | ENUM64 => 12 * vlen,
            ENUM | FUNC_PROTO => 8 * vlen,
            PTR | FWD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNC | FLOAT | TYPE_TAG => 0,
            _ => return None,
        },
    })
}

impl<'a> Btf<'a> {
    /// Cuts .BTF into types and strings, and finds the types.
    fn read(order: Order, data: &'a [u8]) -> Result<Btf<'a>, Problem> {
        if data.len() < 24 || order.half(data, 0) != Some(0xeb9f) || data[2] != 1 {
            return Err("its .BTF has no header");
        }
        let word = |at| order.word(data, at).map_or(0, |v| v as usize);
        let header = word(4);
        let cut = |at: usize, n: usize| header.checked_add(at).and_then(|at| part(data, at, n));
        let types = cut(word(8), word(12)).ok_or(BAD_TYPES)?;
        let strings = cut(word(16), word(20)).ok_or(BAD_TYPES)?;
        if strings.last() != Some(&0) {
            return Err(BAD_TYPES);
        }
        let mut at = Vec::new();
        let mut next = 0;
        while next < types.len() {
            let info = order.word(types, next + 4).unwrap_or(0);
            let n = tail(info >> 24 & 0x7f, info as usize & 0xff_ffff).map(|n| n + 12);
            at.push(next);
            next = match n {
                Some(n) if part(types, next, n).is_some() => next + n,
                _ => return Err("its .BTF has a damaged or unknown type"),
            };
        }
        Ok(Btf { order, types, strings, at, hash: 0, hashed: 0 })
    }

    /// Returns the record of a type and what follows; void if there is none.
    fn record(&self, id: u32) -> &'a [u8] {
        match id.checked_sub(1).and_then(|i| self.at.get(i as usize)) {
            Some(&at) => &self.types[at..],
            None => NO_TYPE,
        }
    }

    /// Returns a word of a type.
    fn word(&self, id: u32, i: usize) -> u32 {
        self.order.word(self.record(id), 4 * i).unwrap_or(0)
    }

    fn kind(&self, id: u32) -> u8 {
        (self.word(id, 1) >> 24 & 0x7f) as u8
    }

    fn vlen(&self, id: u32) -> usize {
        (self.word(id, 1) & 0xff_ffff) as usize
    }

    fn flag(&self, id: u32) -> bool {
        self.word(id, 1) >> 31 == 1
    }

    /// Follows modifiers and typedefs. Returns nothing for an endless chain.
    fn skip_modifiers(&self, mut id: u32) -> Option<u32> {
        for _ in 0..32 {
            match self.kind(id) {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => id = self.word(id, 2),
                _ => return Some(if id as usize <= self.at.len() { id } else { 0 }),
            }
        }
        None
    }

    fn add(&mut self, b: u8) {
        self.hash = hash_byte(self.hash, b);
        self.hashed += 1;
    }

    fn add_number(&mut self, v: u32) {
        v.to_le_bytes().iter().for_each(|&b| self.add(b));
    }

    fn add_name(&mut self, off: u32) {
        let name = text_at(self.strings, off as usize);
        name.iter().take(MAX_NAME).for_each(|&b| self.add(b));
        self.add(0);
    }

    /// Hashes what loaders compare of the type of a field.
    fn add_value(&mut self, id: u32) {
        let mut id = self.skip_modifiers(id);
        for _ in 0..32 {
            match id {
                Some(array) if self.kind(array) == ARRAY => {
                    self.add(ARRAY);
                    id = self.skip_modifiers(self.word(array, 3));
                }
                _ => break,
            }
        }
        let id = id.unwrap_or(u32::MAX); // void
        let kind = self.kind(id);
        self.add(kind);
        let size = self.word(id, 2);
        if matches!(kind, INT | ENUM | ENUM64) {
            let used = if kind == INT { self.word(id, 3) & 0xff_ffff } else { size.wrapping_mul(8) };
            if !size.is_power_of_two() || used != size.wrapping_mul(8) {
                self.add_number(size);
            }
        }
        if matches!(kind, ENUM | ENUM64 | FWD) {
            self.add_name(self.word(id, 0));
        }
    }

    /// Hashes the names and elements on an access string. Returns nothing for a relocation that loaders refuse.
    fn add_path(&mut self, root: u32, access: u32) -> Option<()> {
        let access = text_at(self.strings, access as usize);
        let mut id = self.skip_modifiers(root);
        for (i, index) in access.split(|&b| b == b':').enumerate() {
            let index = parse_index(index)?;
            let at = id?;
            let (kind, vlen) = (self.kind(at), self.vlen(at));
            let next = match kind {
                ENUM | ENUM64 if i == 0 && (index as usize) < vlen => {
                    let words = if kind == ENUM { 2 } else { 3 };
                    self.add_name(self.word(at, 3 + words * index as usize));
                    return Some(());
                }
                ARRAY if i > 0 && (self.word(at, 5) == 0 || index < self.word(at, 5)) => {
                    self.add_element(index);
                    self.word(at, 3)
                }
                _ if i == 0 => {
                    self.add_element(index);
                    at
                }
                STRUCT | UNION if (index as usize) < vlen => {
                    let member = 3 + 3 * index as usize;
                    self.add(b'.');
                    self.add(u8::from(self.flag(at) && self.word(at, member + 2) >> 24 != 0));
                    self.add_name(self.word(at, member));
                    self.word(at, member + 1)
                }
                _ => return None,
            };
            self.add_value(next);
            id = self.skip_modifiers(next);
        }
        id.map(|_| ())
    }

    fn add_element(&mut self, index: u32) {
        self.add(b'[');
        self.add_number(index);
    }

    /// Hashes a type and all types that it leads to.
    fn add_structure(&mut self, root: u32, members: bool) {
        let mut list = List::default();
        self.add_type(&mut list, root);
        let mut i = 0;
        while i < list.ids.len() && self.hashed <= MAX_HASHED {
            let id = list.ids[i];
            i += 1;
            let (kind, vlen) = (self.kind(id), self.vlen(id));
            self.add(kind);
            if members {
                self.add_name(self.word(id, 0));
            }
            match kind {
                INT => {
                    self.add_number(self.word(id, 3));
                    self.add_number(self.word(id, 2));
                }
                PTR => self.add_type(&mut list, self.word(id, 2)),
                ARRAY => {
                    self.add_number(self.word(id, 5));
                    self.add_type(&mut list, self.word(id, 3));
                    self.add_type(&mut list, self.word(id, 4));
                }
                FUNC_PROTO => {
                    self.add_number(vlen as u32);
                    for j in 0..vlen {
                        self.add_type(&mut list, self.word(id, 4 + 2 * j));
                    }
                    self.add_type(&mut list, self.word(id, 2));
                }
                FWD if self.flag(id) => self.add(1),
                STRUCT | UNION if members => {
                    self.add_number(vlen as u32);
                    for j in 0..vlen {
                        self.add_name(self.word(id, 3 + 3 * j));
                        self.add_type(&mut list, self.word(id, 4 + 3 * j));
                    }
                }
                ENUM | ENUM64 if members => {
                    self.add_number(self.word(id, 2));
                    self.add_number(vlen as u32);
                    let words = if kind == ENUM { 2 } else { 3 };
                    for j in 0..vlen {
                        self.add_name(self.word(id, 3 + words * j));
                    }
                }
                _ => {}
            }
        }
    }

    /// Hashes the number of a type, which becomes the next one of the list if it has none.
    fn add_type(&mut self, list: &mut List, id: u32) {
        let id = self.skip_modifiers(id).unwrap_or(0); // an endless chain is a type of its own, like void
        let next = list.ids.len() as u32;
        let number = *list.numbers.entry(id).or_insert(next);
        if number == next {
            list.ids.push(id);
        }
        self.add_number(number);
    }

    fn hash_record(&mut self, r: &Record) -> u64 {
        self.hash = HASH_START;
        self.add_number(r.kind);
        self.add(self.kind(r.id));
        self.add_name(self.word(r.id, 0));
        if (LOCAL_TYPE_ID + 1..=TYPE_SIZE).contains(&r.kind) || r.kind == TYPE_MATCHES {
            self.add_name(r.access);
            self.add_structure(r.id, r.kind == TYPE_MATCHES);
        } else if self.add_path(r.id, r.access).is_none() {
            self.add(b'!');
        }
        self.hash
    }
}

/// Types in the order of the first references to them, and the number of each.
#[derive(Default)]
struct List {
    ids: Vec<u32>,
    numbers: HashMap<u32, u32>,
}

/// Reads a number of an access string.
fn parse_index(s: &[u8]) -> Option<u32> {
    if s.is_empty() {
        return None;
    }
    s.iter().try_fold(0u32, |v, b| {
        let digit = if b.is_ascii_digit() { u32::from(b - b'0') } else { return None };
        v.checked_mul(10)?.checked_add(digit).filter(|&v| v <= i32::MAX as u32)
    })
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds a byte to an FNV-1a hash.
fn hash_byte(hash: u64, b: u8) -> u64 {
    (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
}

/// Reads the CO-RE records of .BTF.ext.
fn records(order: Order, data: &[u8]) -> Result<Vec<Record>, Problem> {
    if data.len() < 24 || order.half(data, 0) != Some(0xeb9f) || data[2] != 1 {
        return Err("its .BTF.ext has no header");
    }
    let word = |data, at| order.word(data, at).map(|v| v as usize);
    let header = word(data, 4).filter(|&h| h >= 24 && h <= data.len()).ok_or(BAD_EXT)?;
    if header < 32 {
        return Ok(Vec::new());
    }
    let (off, length) = word(data, 24).zip(word(data, 28)).ok_or(BAD_EXT)?;
    if length == 0 {
        return Ok(Vec::new());
    }
    let mut rest = header.checked_add(off).and_then(|at| part(data, at, length)).ok_or(BAD_EXT)?;
    let size = word(rest, 0).filter(|&n| n >= 16 && n % 4 == 0).ok_or(BAD_EXT)?;
    rest = &rest[4..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        let n = word(rest, 4).ok_or(BAD_EXT)?; // after the name of the section
        rest = &rest[8..];
        if n > rest.len() / size {
            return Err(BAD_EXT);
        }
        let (these, others) = rest.split_at(n * size);
        rest = others;
        for r in these.chunks_exact(size) {
            let word = |at| order.word(r, at).unwrap_or(0);
            let record = Record { id: word(4), access: word(8), kind: word(12) };
            if record.kind != LOCAL_TYPE_ID {
                all.push(record);
            }
        }
    }
    Ok(all)
}

/// Computes the fingerprint of an object, as docs/archive-format.md defines it. Returns nothing for an object without
/// relocations.
fn fingerprint(elf: &[u8]) -> Result<Option<[u8; 4]>, Problem> {
    if elf.len() < 64 || !elf.starts_with(b"\x7fELF\x02") || !matches!(elf[5], 1 | 2) {
        return Err("it is not a BPF object");
    }
    let order = Order { big_endian: elf[5] == 2 };
    let types = section(order, elf, b".BTF")?;
    let ext = section(order, elf, b".BTF.ext")?;
    let (types, ext) = match types.zip(ext) {
        Some((types, ext)) if !types.is_empty() && !ext.is_empty() => (types, ext),
        _ => return Ok(None),
    };
    let mut btf = Btf::read(order, types)?;
    let mut records = records(order, ext)?;
    if records.is_empty() {
        return Ok(None);
    }
    records.sort_unstable();
    records.dedup();
    let mut hashes = Vec::with_capacity(records.len());
    for r in &records {
        hashes.push(btf.hash_record(r));
        if btf.hashed > MAX_HASHED {
            return Err("its relocations lead to too many types");
        }
    }
    hashes.sort_unstable();
    hashes.dedup();
    let mut hash = hash_byte(HASH_START, if order.big_endian { b'B' } else { b'L' });
    for h in hashes {
        hash = h.to_le_bytes().iter().fold(hash, |hash, &b| hash_byte(hash, b));
    }
    Ok(Some(((hash ^ hash >> 32) as u32).to_le_bytes()))
}
