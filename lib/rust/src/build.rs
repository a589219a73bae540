// SPDX-License-Identifier: Apache-2.0

//! From a layout to BTF.

use std::cmp::Ordering;
use std::collections::hash_map::{Entry, HashMap};

use crate::limits::{MAX_CONTENT, MAX_TYPES};
use crate::pool::{Layouts, Node, Pool, ARRAY, ENUM, ENUM64, FUNC, FUNC_PROTO, INT, NONE, STRUCT, UNION, VAR};

/// A type of a layout.
struct Type<'a> {
    node: Node,
    name: &'a [u8], // empty for anonymous types
    numbers: &'a [u32],
    size: u32,
    refs: usize, // where its references start
    in_slot: bool,
}

/// A reference that a round of merging looks at, because its target's class was split: where the target's new class
/// begins, and where the largest of the new ones does.
struct Seen {
    from: u32,
    reference: u32,
    at: u32,
    most: u32,
}

/// Groups of classes that were one class. Group i ends before `classes[end[i]]`.
#[derive(Default)]
struct Splits {
    classes: Vec<u32>,
    end: Vec<usize>,
}

/// A member, enumerator or parameter, or one of the fields without names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Field<'a> {
    name: &'a [u8],
    high: u32,
    low: u32,
}

struct Build<'a> {
    pool: &'a Pool,
    types: Vec<Type<'a>>,
    refs: Vec<u32>, // of all types, as numbers of types, NONE for void

    // Types in classes, see merge.
    order: Vec<u32>,
    place: Vec<u32>,
    class: Vec<u32>,
    start: Vec<u32>, // of a class: where it begins in order
    size: Vec<u32>,  // and how many types it has
    by: Vec<u32>,    // references by target: their numbers
    by_end: Vec<u32>, // by type, where those to it end
    owner: Vec<u32>, // of a reference: the type that has it
    seen: Vec<Seen>, // the references that a round looks at, by type
    first_seen: Vec<u32>, // by type: its part of seen
    n_seen: Vec<u32>,

    out: Vec<u32>, // the types to write
    id: Vec<u32>,  // by class: of the first of them, from 0
}

/// Makes the BTF of a layout. The error says why it cannot.
pub(crate) fn build(pool: &Pool, layouts: &Layouts, layout: u32) -> Result<Vec<u8>, String> {
    let mut b = Build {
        pool,
        types: Vec::new(),
        refs: Vec::new(),
        order: Vec::new(),
        place: Vec::new(),
        class: Vec::new(),
        start: Vec::new(),
        size: Vec::new(),
        by: Vec::new(),
        by_end: Vec::new(),
        owner: Vec::new(),
        seen: Vec::new(),
        first_seen: Vec::new(),
        n_seen: Vec::new(),
        out: Vec::new(),
        id: Vec::new(),
    };
    let variants = layouts.variants(pool.count_slots(), layout);
    let at = b.count_types(&variants)?;
    b.make_types(&variants, &at)?;
    b.merge();
    b.keep_one_each();
    Ok(b.write(layouts.is_big_endian(layout)))
}

impl<'a> Build<'a> {
    /// Checks the number of types and their content. Returns where the types of each slot begin.
    fn count_types(&self, variants: &[u32]) -> Result<Vec<u32>, String> {
        let (mut types, mut content) = (0, 0);
        let mut at = vec![NONE; variants.len()];
        for (s, &v) in variants.iter().enumerate() {
            if v == 0 {
                continue;
            }
            at[s] = types as u32;
            content += self.pool.slot_name(s).len();
            for n in self.pool.nodes(self.pool.variant(s, v)) {
                types += 1;
                if types > MAX_TYPES {
                    return Err(format!("BTF would have more than {} types", MAX_TYPES));
                }
                content += 32 + 16 * n.count_fields();
                for i in 0..usize::from(n.count) {
                    content += self.pool.field(n, i).0.len();
                    if content > MAX_CONTENT {
                        break;
                    }
                }
                if content > MAX_CONTENT {
                    return Err(format!("BTF would have more than {} bytes", MAX_CONTENT));
                }
            }
        }
        Ok(at)
    }

    /// Makes the types: the nodes of the variant in each slot, slot after slot.
    fn make_types(&mut self, variants: &[u32], at: &[u32]) -> Result<(), String> {
        let pool = self.pool;
        for (s, &v) in variants.iter().enumerate() {
            if v == 0 {
                continue;
            }
            let v = pool.variant(s, v);
            let mut number = pool.first_number(v);
            for (i, &node) in pool.nodes(v).iter().enumerate() {
                let words = node.count_words();
                let numbers = &pool.numbers(number)[..words];
                number += words;
                let size = match node.kind {
                    ARRAY | FUNC | VAR => 0,
                    _ => numbers.last().copied().unwrap_or(0),
                };
                let name = if i == 0 { pool.slot_name(s) } else { &[] };
                self.types.push(Type { node, name, numbers, size, refs: self.refs.len(), in_slot: i == 0 });
                for &r in pool.refs(&node) {
                    let to = match r {
                        0 => NONE,
                        _ if r % 2 == 1 => at[((r - 2) / 2) as usize],
                        _ => at[s] + (r - 2) / 2,
                    };
                    if r != 0 && to == NONE {
                        return Err("a type refers to one that the BTF does not have".to_string());
                    }
                    self.refs.push(to);
                }
            }
        }
        Ok(())
    }

    fn refs_of(&self, t: u32) -> &[u32] {
        let t = &self.types[t as usize];
        &self.refs[t.refs..][..t.node.count_refs()]
    }

    fn field(&self, t: &Type<'a>, i: usize) -> Field<'a> {
        let n = &t.node;
        let pool: &'a Pool = self.pool;
        let (name, bits) = if i < usize::from(n.count) { pool.field(n, i) } else { (&[][..], 0) };
        if n.is_enum() {
            let v = n.load(false, &t.numbers[i * n.words_of(false)..]);
            return Field { name, low: v as u32, high: (v >> 32) as u32 };
        }
        let number = if n.kind == FUNC_PROTO { 0 } else { t.numbers[i] };
        Field { name, low: bits | number, high: 0 }
    }

    fn compare_content(&self, i: u32, j: u32) -> Ordering {
        let (x, y) = (&self.types[i as usize], &self.types[j as usize]);
        let head = |t: &Type| (t.node.kind, t.node.flag, t.size, t.node.count_fields());
        x.name.cmp(y.name).then_with(|| head(x).cmp(&head(y))).then_with(|| {
            (0..x.node.count_fields())
                .map(|k| self.field(x, k).cmp(&self.field(y, k)))
                .find(|&o| o != Ordering::Equal)
                .unwrap_or(Ordering::Equal)
        })
    }

    fn new_class(&mut self, at: usize) -> u32 {
        self.start.push(at as u32);
        self.size.push(0);
        self.start.len() as u32 - 1
    }

    fn join(&mut self, t: u32, class: u32) {
        self.class[t as usize] = class;
        self.size[class as usize] += 1;
    }

    /// Merges equal types, and gives types an order that depends only on the types. They are split into classes by their
    /// content, and then again by the classes of the types that they refer to, until no class can be split. The order
    /// of two types does not change once they are in different classes.
    ///
    /// The first two rounds look at every type. A later round looks at the types that refer to a class that the round
    /// before has split, but not at those that refer to its largest part (Hopcroft's trick). So n types with their
    /// references take n log n steps.
    fn merge(&mut self) {
        let n = self.types.len();
        self.class = vec![0; n];
        self.place = vec![0; n];
        self.first_seen = vec![0; n];
        self.n_seen = vec![0; n];
        self.by_content();
        let mut splits = self.by_refs();
        self.find_referrers();
        while !splits.end.is_empty() {
            splits = self.next_round(&splits);
        }
    }

    fn by_content(&mut self) {
        let mut order: Vec<u32> = (0..self.types.len() as u32).collect();
        order.sort_by(|&i, &j| self.compare_content(i, j));
        let mut class = 0;
        for (i, &t) in order.iter().enumerate() {
            self.place[t as usize] = i as u32;
            if i == 0 || self.compare_content(order[i - 1], t) != Ordering::Equal {
                class = self.new_class(i);
            }
            self.join(t, class);
        }
        self.order = order;
    }

    /// Compares types of one content by the classes of what they refer to, in the order of the references.
    fn compare_refs(&self, i: u32, j: u32) -> Ordering {
        let class = |r: &u32| if *r == NONE { 0 } else { self.class[*r as usize] + 1 };
        self.refs_of(i).iter().map(class).cmp(self.refs_of(j).iter().map(class))
    }

    /// Splits each class by the classes, before any split, of the types that its types refer to.
    fn by_refs(&mut self) -> Splits {
        let mut order = std::mem::take(&mut self.order);
        let mut cuts = Vec::new(); // for each class, the places where its parts begin
        for (&start, &size) in self.start.iter().zip(&self.size) {
            let part = &mut order[start as usize..][..size as usize];
            part.sort_by(|&i, &j| self.compare_refs(i, j));
            let cut = (1..part.len()).filter(|&i| self.compare_refs(part[i - 1], part[i]) != Ordering::Equal);
            cuts.push(cut.map(|i| start as usize + i).collect::<Vec<usize>>());
        }
        for (i, &t) in order.iter().enumerate() {
            self.place[t as usize] = i as u32;
        }
        let mut splits = Splits::default();
        for (c, cut) in cuts.iter().enumerate() {
            let until = (self.start[c] + self.size[c]) as usize;
            if cut.is_empty() {
                continue;
            }
            splits.classes.push(c as u32);
            for (i, &from) in cut.iter().enumerate() {
                let part = self.new_class(from);
                splits.classes.push(part);
                for &t in &order[from..cut.get(i + 1).copied().unwrap_or(until)] {
                    self.size[c] -= 1;
                    self.join(t, part);
                }
            }
            splits.end.push(splits.classes.len());
        }
        self.order = order;
        splits
    }

    /// Notes the references to each type.
    fn find_referrers(&mut self) {
        let n = self.types.len();
        self.owner = vec![0; self.refs.len()];
        for t in 0..n {
            let from = self.types[t].refs;
            let count = self.types[t].node.count_refs();
            self.owner[from..from + count].iter_mut().for_each(|o| *o = t as u32);
        }
        let mut end = vec![0; n];
        for &r in self.refs.iter().filter(|&&r| r != NONE) {
            end[r as usize] += 1;
        }
        let mut sum = 0;
        for e in &mut end {
            let count = *e;
            *e = sum;
            sum += count;
        }
        self.by = vec![0; sum as usize];
        for (i, &r) in self.refs.iter().enumerate().filter(|(_, &r)| r != NONE) {
            self.by[end[r as usize] as usize] = i as u32;
            end[r as usize] += 1;
        }
        self.by_end = end;
    }

    /// Collects the references to a class, whose parts' largest begins at most.
    fn see(&mut self, class: u32, most: u32) {
        let at = self.start[class as usize];
        for i in at..at + self.size[class as usize] {
            let t = self.order[i as usize] as usize;
            let from = if t > 0 { self.by_end[t - 1] } else { 0 };
            for k in from..self.by_end[t] {
                let reference = self.by[k as usize];
                let from = self.owner[reference as usize];
                if self.size[self.class[from as usize] as usize] > 1 {
                    self.n_seen[from as usize] += 1;
                    self.seen.push(Seen { from, reference, at, most });
                }
            }
        }
    }

    fn seen_of(&self, t: u32) -> &[Seen] {
        &self.seen[self.first_seen[t as usize] as usize..][..self.n_seen[t as usize] as usize]
    }

    /// Compares two types of a class by their references. References that the round does not look at lead to the largest
    /// part, like all references if there is no y.
    fn compare_looks(&self, x: u32, y: Option<u32>) -> Ordering {
        let mut a = self.seen_of(x);
        let mut b = y.map_or(&[][..], |y| self.seen_of(y));
        let index = |s: &Seen| s.reference - self.types[s.from as usize].refs as u32;
        while !a.is_empty() || !b.is_empty() {
            let k = a.first().map_or(NONE, index);
            let l = b.first().map_or(NONE, index);
            let order = match k.cmp(&l) {
                Ordering::Less => a[0].at.cmp(&a[0].most),
                Ordering::Greater => b[0].most.cmp(&b[0].at),
                Ordering::Equal => a[0].at.cmp(&b[0].at),
            };
            if order != Ordering::Equal {
                return order;
            }
            a = &a[usize::from(k <= l)..];
            b = &b[usize::from(l <= k)..];
        }
        Ordering::Equal
    }

    /// Swaps a type with the type at a place.
    fn put(&mut self, t: u32, at: u32) {
        let other = self.order[at as usize];
        let from = self.place[t as usize];
        self.order[at as usize] = t;
        self.order[from as usize] = other;
        self.place[t as usize] = at;
        self.place[other as usize] = from;
    }

    /// Splits a class, given those of its types that are looked at. The others stay a class, between the parts.
    fn split_class(&mut self, looked: &mut [u32], next: &mut Splits) {
        let n = looked.len() as u32;
        let class = self.class[looked[0] as usize];
        let start = self.start[class as usize];
        let rest = self.size[class as usize] - n;
        looked.sort_by(|&x, &y| self.compare_looks(x, Some(y)));
        let before = looked.iter().take_while(|&&t| self.compare_looks(t, None) == Ordering::Less).count() as u32;
        let from = next.classes.len();
        next.classes.push(class);
        let mut part = class;
        for k in 0..n {
            let t = looked[k as usize];
            let same = k > 0 && self.compare_looks(looked[k as usize - 1], Some(t)) == Ordering::Equal;
            if !same && (k > 0 || rest > 0) {
                part = self.new_class((start + k + if k < before { 0 } else { rest }) as usize);
                next.classes.push(part);
            }
            if part != class {
                self.size[class as usize] -= 1;
                self.join(t, part);
            }
        }
        // From the front those that come before the rest, from the end those after.
        for k in 0..before {
            self.put(looked[k as usize], start + k);
        }
        for k in (before..n).rev() {
            self.put(looked[k as usize], start + rest + k);
        }
        if rest > 0 {
            self.start[class as usize] = start + before;
        }
        if next.classes.len() - from > 1 {
            next.end.push(next.classes.len());
        } else {
            next.classes.truncate(from);
        }
    }

    /// Splits classes by the splits of the round before.
    fn next_round(&mut self, splits: &Splits) -> Splits {
        self.seen.clear();
        let mut begin = 0;
        for &end in &splits.end {
            let group = &splits.classes[begin..end];
            begin = end;
            let mut largest = group[0];
            for &c in group {
                if self.size[c as usize] > self.size[largest as usize] {
                    largest = c;
                }
            }
            let most = self.start[largest as usize];
            for &c in group.iter().filter(|&&c| c != largest) {
                self.see(c, most);
            }
        }
        self.seen.sort_by_key(|s| s.reference); // those of one type are side by side
        let mut looked = Vec::new();
        let mut i = 0;
        while i < self.seen.len() {
            let t = self.seen[i].from;
            looked.push(t);
            self.first_seen[t as usize] = i as u32;
            i += self.n_seen[t as usize] as usize;
        }
        looked.sort_by_key(|&t| self.class[t as usize]);
        let mut next = Splits::default();
        let mut rest = &mut looked[..];
        while !rest.is_empty() {
            let class = self.class[rest[0] as usize];
            let n = rest.iter().take_while(|&&t| self.class[t as usize] == class).count();
            let (these, others) = std::mem::take(&mut rest).split_at_mut(n);
            self.split_class(these, &mut next);
            rest = others;
        }
        for &t in &looked {
            self.n_seen[t as usize] = 0;
        }
        next
    }

    /// Keeps one anonymous type of each class, or as many as slots have, in the order of the classes, and then the type of
    /// each slot with a name. Those of one name are in the order of their slots.
    fn keep_one_each(&mut self) {
        self.id = vec![NONE; self.start.len()];
        let mut i = 0;
        while i < self.order.len() {
            let first = self.order[i];
            let class = self.class[first as usize] as usize;
            let name = self.types[first as usize].name;
            let n = if name.is_empty() {
                self.size[class] as usize
            } else {
                self.order[i..].iter().take_while(|&&t| self.types[t as usize].name == name).count()
            };
            let mut these = self.order[i..i + n].to_vec();
            i += n;
            if name.is_empty() {
                let copies = these.iter().filter(|&&t| self.types[t as usize].in_slot).count().max(1);
                self.id[class] = self.out.len() as u32;
                self.out.extend(std::iter::repeat(first).take(copies));
                continue;
            }
            these.sort_unstable();
            for t in these {
                let id = &mut self.id[self.class[t as usize] as usize];
                if *id == NONE {
                    *id = self.out.len() as u32;
                }
                self.out.push(t);
            }
        }
    }

    fn write(&self, big_endian: bool) -> Vec<u8> {
        let mut strings = Strings { at: HashMap::new(), data: vec![0] };
        let mut words = Vec::new();
        for &id in &self.out {
            self.put_type(id, &mut words, &mut strings);
        }
        let types = 4 * words.len() as u32;
        let header = [24, 0, types, types, strings.data.len() as u32];
        let mut btf = Vec::with_capacity(24 + 4 * words.len() + strings.data.len());
        btf.extend(if big_endian { [0xeb, 0x9f, 1, 0] } else { [0x9f, 0xeb, 1, 0] });
        for w in header.iter().chain(&words) {
            btf.extend(if big_endian { w.to_be_bytes() } else { w.to_le_bytes() });
        }
        btf.extend(strings.data);
        btf
    }

    fn put_type(&self, id: u32, words: &mut Vec<u32>, strings: &mut Strings<'a>) {
        let t = &self.types[id as usize];
        let n = &t.node;
        let mut refs =
            self.refs_of(id).iter().map(|&r| if r == NONE { 0 } else { self.id[self.class[r as usize] as usize] + 1 });
        let vlen = if n.kind == FUNC { t.numbers[0] } else { u32::from(n.count) };
        words.push(strings.offset(t.name));
        words.push(u32::from(n.flag) << 31 | u32::from(n.kind) << 24 | vlen);
        if n.is_link() || n.kind == FUNC_PROTO {
            words.extend(refs.next());
        } else {
            words.push(t.size);
        }
        for i in 0..n.count_fields() {
            let f = self.field(t, i);
            match n.kind {
                INT | VAR => words.push(f.low),
                ARRAY => {
                    words.extend(&mut refs);
                    words.push(f.low);
                }
                STRUCT | UNION => {
                    words.push(strings.offset(f.name));
                    words.extend(refs.next());
                    words.push(f.low);
                }
                ENUM => words.extend([strings.offset(f.name), f.low]),
                ENUM64 => words.extend([strings.offset(f.name), f.low, f.high]),
                FUNC_PROTO => {
                    words.push(strings.offset(f.name));
                    words.extend(refs.next());
                }
                _ => debug_assert!(n.kind == FUNC && i == 0), // its linkage stands where others have their number of fields
            }
        }
    }
}

/// The section of strings: each distinct name once, at its first use.
struct Strings<'a> {
    at: HashMap<&'a [u8], u32>,
    data: Vec<u8>,
}

impl<'a> Strings<'a> {
    fn offset(&mut self, name: &'a [u8]) -> u32 {
        if name.is_empty() {
            return 0;
        }
        match self.at.entry(name) {
            Entry::Occupied(e) => *e.get(),
            Entry::Vacant(e) => {
                let at = *e.insert(self.data.len() as u32);
                self.data.extend_from_slice(name);
                self.data.push(0);
                at
            }
        }
    }
}
