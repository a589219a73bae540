// SPDX-License-Identifier: Apache-2.0

//! The definitions of an archive, and its layouts.

use crate::cursor::{Cursor, Problem, CUT_SHORT};
use crate::limits::{MAX_FIELDS, MAX_ITEMS};

// The kinds of BTF that an archive may hold.
pub(crate) const INT: u8 = 1;
pub(crate) const PTR: u8 = 2;
pub(crate) const ARRAY: u8 = 3;
pub(crate) const STRUCT: u8 = 4;
pub(crate) const UNION: u8 = 5;
pub(crate) const ENUM: u8 = 6;
pub(crate) const FWD: u8 = 7;
pub(crate) const TYPEDEF: u8 = 8;
pub(crate) const VOLATILE: u8 = 9;
pub(crate) const CONST: u8 = 10;
pub(crate) const RESTRICT: u8 = 11;
pub(crate) const FUNC: u8 = 12;
pub(crate) const FUNC_PROTO: u8 = 13;
pub(crate) const VAR: u8 = 14;
pub(crate) const FLOAT: u8 = 16;
pub(crate) const TYPE_TAG: u8 = 18;
pub(crate) const ENUM64: u8 = 19;

pub(crate) const NONE: u32 = u32::MAX;

const NO_SLOT: Problem = "slot does not exist";
const NO_NAME: Problem = "name does not exist";
const NO_VARIANT: Problem = "variant does not exist";

/// A problem and the stream that has it.
pub(crate) type Located = (&'static str, Problem);

/// A type without numbers. Only the first node of a shape has a name, which is that of the slot.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub kind: u8,
    pub flag: bool, // kind_flag
    pub last: bool, // of its shape
    pub count: u16, // of fields that have names
    fields: u32,    // where they start
    refs: u32,
}

impl Node {
    pub fn is_composite(&self) -> bool {
        matches!(self.kind, STRUCT | UNION)
    }

    pub fn is_enum(&self) -> bool {
        matches!(self.kind, ENUM | ENUM64)
    }

    /// Reports whether a type refers to one other and has no fields.
    pub fn is_link(&self) -> bool {
        matches!(self.kind, PTR | TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG | FUNC | VAR)
    }

    pub fn count_refs(&self) -> usize {
        match self.kind {
            ARRAY => 2,
            STRUCT | UNION => usize::from(self.count),
            FUNC_PROTO => usize::from(self.count) + 1,
            _ => usize::from(self.is_link()),
        }
    }

    pub fn count_numbers(&self) -> usize {
        match self.kind {
            STRUCT | UNION | ENUM | ENUM64 => usize::from(self.count) + 1,
            INT => 2,
            ARRAY | FLOAT | FUNC | VAR => 1,
            _ => 0,
        }
    }

    /// Returns how many fields a type has, those without names included: the word of an INT, the length of an ARRAY,
    /// the linkage of a FUNC or VAR.
    pub fn count_fields(&self) -> usize {
        match self.kind {
            INT | ARRAY | FUNC | VAR => 1,
            _ => usize::from(self.count),
        }
    }

    /// Numbers are kept in 32 bits: sizes in bytes, enumerators of 64 bits in two words.
    pub fn words_of(&self, last: bool) -> usize {
        if self.kind == ENUM64 && !last {
            2
        } else {
            1
        }
    }

    /// Returns how many words all numbers of the node take.
    pub fn count_words(&self) -> usize {
        match self.count_numbers() {
            0 => 0,
            n => (n - 1) * self.words_of(false) + 1,
        }
    }

    pub fn load(&self, last: bool, words: &[u32]) -> u64 {
        match self.kind {
            STRUCT | UNION if last => u64::from(words[0]) * 8,
            ENUM if !last => words[0] as i32 as i64 as u64,
            ENUM64 if !last => u64::from(words[0]) | u64::from(words[1]) << 32,
            _ => u64::from(words[0]),
        }
    }

    /// Appends a number. Reports whether it is in its range. The last number of a node is its size, if it has one.
    fn store(&self, last: bool, words: &mut Vec<u32>, x: u64) -> bool {
        let at = words.len();
        if self.is_composite() && last {
            words.push((x / 8) as u32);
            return x % 8 == 0 && x / 8 <= u64::from(u32::MAX);
        }
        words.push(x as u32);
        if self.kind == ENUM64 && !last {
            words.push((x >> 32) as u32);
            return true;
        }
        if (self.is_composite() && self.flag) || self.kind == FUNC {
            return x < 1 << 24;
        }
        self.load(last, &words[at..]) == x
    }
}

/// The nodes and numbers of a definition: where each start.
#[derive(Clone, Copy)]
pub(crate) struct Variant {
    nodes: u32,
    numbers: u32,
}

#[derive(Default)]
pub(crate) struct Pool {
    text: Vec<u8>,        // the stream of names
    names: Vec<u32>,      // where each starts
    slot_names: Vec<u32>, // the numbers of names
    slots: Vec<u32>,      // the first variant of each, and the end
    variants: Vec<Variant>,
    nodes: Vec<Node>,
    fields: Vec<u32>, // the number of the name from 1, or 0 for none; in the upper byte the bits of a bitfield
    refs: Vec<u32>,   // 0 is void; else, from 2 on, even numbers are nodes of the definition and odd ones slots
    numbers: Vec<u32>,
    known: usize, // names of fields that a shape has used
}

impl Pool {
    /// Reads the definitions, which four streams have.
    pub fn read(names: Cursor, parents: Cursor, shapes: Cursor, numbers: Cursor) -> Result<Pool, Located> {
        let mut p = Pool::default();
        p.read_names(names).map_err(|e| ("names", e))?;
        p.read_slots(parents, shapes, numbers)?;
        Ok(p)
    }

    pub fn count_slots(&self) -> usize {
        self.slot_names.len()
    }

    pub fn slot_name(&self, slot: usize) -> &[u8] {
        self.name(self.slot_names[slot] as usize)
    }

    /// Returns the number of variants of a slot.
    fn count_variants(&self, slot: usize) -> u32 {
        self.slots[slot + 1] - self.slots[slot]
    }

    /// Returns a variant of a slot, from 1.
    pub fn variant(&self, slot: usize, variant: u32) -> Variant {
        self.variants[(self.slots[slot] + variant - 1) as usize]
    }

    /// Returns the nodes of a variant.
    pub fn nodes(&self, v: Variant) -> &[Node] {
        let nodes = &self.nodes[v.nodes as usize..];
        let n = nodes.iter().position(|n| n.last).map_or(nodes.len(), |i| i + 1);
        &nodes[..n]
    }

    /// Returns the number of a variant's first number.
    pub fn first_number(&self, v: Variant) -> usize {
        v.numbers as usize
    }

    pub fn numbers(&self, at: usize) -> &[u32] {
        &self.numbers[at..]
    }

    pub fn refs<'a>(&'a self, n: &Node) -> &'a [u32] {
        &self.refs[n.refs as usize..][..n.count_refs()]
    }

    /// Returns the name of a field that has one, and the bits of a bitfield in the upper byte.
    pub fn field<'a>(&'a self, n: &Node, i: usize) -> (&'a [u8], u32) {
        let field = self.fields[n.fields as usize + i];
        let name = match (field & 0xff_ffff) as usize {
            0 => &[],
            i => self.name(i - 1),
        };
        (name, field & 0xff00_0000)
    }

    fn name(&self, i: usize) -> &[u8] {
        let end = self.names.get(i + 1).map_or(self.text.len(), |&n| n as usize);
        &self.text[self.names[i] as usize..end - 1]
    }

    fn read_names(&mut self, c: Cursor) -> Result<(), Problem> {
        if c.0.last().map_or(false, |&b| b != 0) {
            return Err(CUT_SHORT);
        }
        self.text = c.0.to_vec();
        self.names.reserve_exact(c.0.iter().filter(|&&b| b == 0).count());
        let mut start = 0;
        for (i, &b) in c.0.iter().enumerate() {
            if b == 0 {
                self.names.push(start);
                start = i as u32 + 1;
            }
        }
        Ok(())
    }

    fn read_slots(&mut self, mut c: Cursor, mut shapes: Cursor, mut numbers: Cursor) -> Result<(), Located> {
        let parents = |e| ("parents", e);
        self.numbers.reserve_exact(numbers.numbers());
        let slots = c.count(self.names.len(), "too many slots").map_err(parents)?;
        self.slot_names.reserve_exact(slots);
        for i in 0..slots {
            let name = match self.name(i) {
                [] if i > 0 => self.slot_names[i - 1],
                _ => i as u32,
            };
            self.slot_names.push(name);
        }
        for _ in 0..slots {
            let first = self.variants.len();
            self.slots.push(first as u32);
            let n = c.count(c.left(), "too many variants").map_err(parents)?;
            for _ in 0..n {
                let back = c.number().map_err(parents)?;
                if back > (self.variants.len() - first) as u64 {
                    return Err(parents(NO_VARIANT));
                }
                self.read_variant(back as usize, &mut shapes, &mut numbers)?;
            }
        }
        self.slots.push(self.variants.len() as u32);
        c.end().map_err(parents)?;
        shapes.end().map_err(|e| ("shapes", e))?;
        numbers.end().map_err(|e| ("numbers", e))?;
        self.slots.shrink_to_fit();
        self.variants.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.fields.shrink_to_fit();
        self.refs.shrink_to_fit();
        self.numbers.shrink_to_fit();
        Ok(())
    }

    /// Reads a variant, whose parent is so many variants before it, or which has none.
    fn read_variant(&mut self, back: usize, shapes: &mut Cursor, numbers: &mut Cursor) -> Result<(), Located> {
        let mut v = Variant { nodes: self.nodes.len() as u32, numbers: self.numbers.len() as u32 };
        let mut base = None;
        if back > 0 {
            let parent = self.variants[self.variants.len() - back];
            v.nodes = parent.nodes;
            base = Some(parent.numbers as usize);
        } else {
            self.read_shape(shapes).map_err(|e| ("shapes", e))?;
        }
        self.read_numbers(numbers, v, base).map_err(|e| ("numbers", e))?;
        self.variants.push(v);
        self.check_items().map_err(|e| ("shapes", e))
    }

    fn check_items(&self) -> Result<(), Problem> {
        let items =
            self.slot_names.len() + self.variants.len() + self.nodes.len() + self.fields.len() + self.refs.len();
        if items > MAX_ITEMS {
            return Err("too many slots, variants, types, fields and references");
        }
        Ok(())
    }

    fn read_shape(&mut self, c: &mut Cursor) -> Result<(), Problem> {
        let (mut read, mut todo) = (0, 1); // nodes, and those that were referred to
        while read < todo {
            self.read_node(c, &mut todo)?;
            self.check_items()?; // a shape is as long as its stream
            read += 1;
        }
        if let Some(n) = self.nodes.last_mut() {
            n.last = true;
        }
        Ok(())
    }

    fn read_node(&mut self, c: &mut Cursor, todo: &mut u32) -> Result<(), Problem> {
        let head = u8::try_from(c.number()?).map_err(|_| "unknown kind")?;
        let mut n = Node {
            kind: head >> 1,
            flag: head & 1 == 1,
            last: false,
            count: 0,
            fields: self.fields.len() as u32,
            refs: self.refs.len() as u32,
        };
        match n.kind {
            INT | FLOAT | FWD => {}
            ARRAY => {
                self.read_ref(c, todo)?;
                self.read_ref(c, todo)?;
            }
            STRUCT | UNION | ENUM | ENUM64 | FUNC_PROTO => {
                n.count = c.count(MAX_FIELDS, "too many fields")? as u16;
                if n.kind == FUNC_PROTO {
                    self.read_ref(c, todo)?;
                }
            }
            _ if n.is_link() => self.read_ref(c, todo)?,
            _ => return Err("kind that minimized BTF does not have"),
        }
        for _ in 0..n.count {
            let name = self.read_name(c)?;
            let bits = if n.flag && n.is_composite() { c.count(255, "too many bits")? as u32 } else { 0 };
            if !n.is_enum() {
                self.read_ref(c, todo)?;
            }
            self.fields.push(name | bits << 24);
        }
        self.nodes.push(n);
        Ok(())
    }

    fn read_ref(&mut self, c: &mut Cursor, todo: &mut u32) -> Result<(), Problem> {
        let mut v = c.number()?;
        if v == 1 {
            v = 2 + 2 * u64::from(*todo);
            *todo += 1;
        } else if v > 1 && v % 2 == 0 && (v - 2) / 2 >= u64::from(*todo) {
            return Err("node does not exist");
        } else if v > 1 && v % 2 == 1 && (v - 2) / 2 >= self.slot_names.len() as u64 {
            return Err(NO_SLOT);
        }
        self.refs.push(v as u32);
        Ok(())
    }

    /// Reads a field's name: 0 for none, else its number from 1.
    fn read_name(&mut self, c: &mut Cursor) -> Result<u32, Problem> {
        let mut v = c.number()?;
        match v {
            0 => return Ok(0),
            1 => {
                self.known += 1;
                v = self.known as u64;
            }
            _ => {
                v -= 1;
                if v > self.known as u64 {
                    return Err(NO_NAME);
                }
            }
        }
        if v > (self.names.len() - self.slot_names.len()) as u64 {
            return Err(NO_NAME);
        }
        Ok((v as usize + self.slot_names.len()) as u32)
    }

    /// Appends the numbers of a variant, which are deltas against those at base, or against zeros.
    fn read_numbers(&mut self, c: &mut Cursor, v: Variant, base: Option<usize>) -> Result<(), Problem> {
        let mut base = base;
        for i in v.nodes as usize.. {
            let n = self.nodes[i];
            let count = n.count_numbers();
            let mut shift = 0u64;
            for k in 0..count {
                let last = k == count - 1;
                shift = shift.wrapping_add(distance(c, n.is_composite())?);
                let mut x = shift;
                if let Some(at) = base {
                    x = x.wrapping_add(n.load(last, &self.numbers[at..]));
                    base = Some(at + n.words_of(last));
                }
                if !n.store(last, &mut self.numbers, x) {
                    return Err("number is out of range");
                }
            }
            if n.last {
                break;
            }
        }
        Ok(())
    }
}

/// Reads a distance between two numbers. Those of offsets have a unit.
fn distance(c: &mut Cursor, offset: bool) -> Result<u64, Problem> {
    let mut v = c.number()?;
    let mut unit = 1;
    if offset {
        unit = [1, 8, 32, 64][(v & 3) as usize];
        v >>= 2;
    }
    Ok((v >> 1 ^ (v & 1).wrapping_neg()).wrapping_mul(unit))
}

struct Layout {
    parent: u32, // or NONE
    changes: u32, // up to the changes of the next layout
    big_endian: bool,
}

struct Change {
    slot: u32,
    variant: u32, // of the slot, from 1; 0 for none
}

#[derive(Default)]
pub(crate) struct Layouts {
    layouts: Vec<Layout>,
    changes: Vec<Change>,
}

impl Layouts {
    pub fn read(mut c: Cursor, pool: &Pool) -> Result<Layouts, Problem> {
        let slots = pool.count_slots();
        let n = c.count(c.left(), "too many layouts")?;
        let mut made = vec![0; slots]; // variants of each slot that earlier layouts have
        let mut l = Layouts { layouts: Vec::with_capacity(n.min(c.left() / 2)), changes: Vec::new() };
        l.changes.reserve_exact(c.numbers() / 2);
        for i in 0..n {
            let head = c.number()?;
            if head >> 1 > i as u64 {
                return Err("layout does not exist");
            }
            let parent = if head >> 1 == 0 { NONE } else { i as u32 - (head >> 1) as u32 };
            l.layouts.push(Layout { parent, changes: l.changes.len() as u32, big_endian: head & 1 == 1 });
            let changes = c.count(slots.min(c.left() / 2), "too many changes")?;
            let mut slot = 0u64;
            for _ in 0..changes {
                slot = slot.saturating_add(c.number()?);
                if slot >= slots as u64 {
                    return Err(NO_SLOT);
                }
                let s = slot as usize;
                let variant = read_change(&mut c, &mut made[s], pool.count_variants(s))?;
                l.changes.push(Change { slot: s as u32, variant });
                slot += 1;
            }
        }
        c.end()?;
        l.changes.shrink_to_fit();
        l.layouts.shrink_to_fit();
        Ok(l)
    }

    pub fn len(&self) -> usize {
        self.layouts.len()
    }

    pub fn is_big_endian(&self, layout: u32) -> bool {
        self.layouts[layout as usize].big_endian
    }

    /// Finds the variant in each slot of a layout, from 1, or 0 for none.
    pub fn variants(&self, slots: usize, layout: u32) -> Vec<u32> {
        let mut variants = vec![NONE; slots];
        let mut layout = layout;
        while layout != NONE {
            let l = &self.layouts[layout as usize];
            let end = self.layouts.get(layout as usize + 1).map_or(self.changes.len(), |l| l.changes as usize);
            for c in &self.changes[l.changes as usize..end] {
                let v = &mut variants[c.slot as usize];
                if *v == NONE {
                    *v = c.variant; // the first change comes from the youngest layout
                }
            }
            layout = l.parent;
        }
        for v in &mut variants {
            if *v == NONE {
                *v = 0;
            }
        }
        variants
    }
}

/// Reads the new content of a slot. Earlier layouts have the first made of its variants.
fn read_change(c: &mut Cursor, made: &mut u32, variants: u32) -> Result<u32, Problem> {
    match c.number()? {
        1 => Ok(0),
        0 if *made < variants => {
            *made += 1;
            Ok(*made)
        }
        v if v >= 2 && v - 2 < u64::from(*made) => Ok((v - 2) as u32 + 1),
        _ => Err(NO_VARIANT),
    }
}
