// SPDX-License-Identifier: Apache-2.0

//! Answers questions about archives, for the tests that compare this reader with the one in Go. `lib/c/test/driver.c`
//! describes questions and answers; those about allocations that fail are only for C.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use btfa::{Archive, Distribution, Error, Host, Key, Options, Rule, System as Described, Types};

/// Counts the bytes that are allocated.
struct Meter;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// The reader itself has no unsafe code.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        System.dealloc(p, layout)
    }
}

#[global_allocator]
static METER: Meter = Meter;

fn get_number() -> u32 {
    let mut b = [0; 4];
    if io::stdin().read_exact(&mut b).is_err() {
        std::process::exit(0);
    }
    u32::from_le_bytes(b)
}

fn get_bytes() -> Vec<u8> {
    let mut b = vec![0; get_number() as usize];
    io::stdin().read_exact(&mut b).expect("a question");
    b
}

fn get_text() -> String {
    String::from_utf8(get_bytes()).expect("UTF-8")
}

fn get_path() -> Option<PathBuf> {
    Some(get_bytes()).filter(|b| !b.is_empty()).map(|b| OsString::from_vec(b).into())
}

fn get_key() -> Key {
    Key::new(get_bytes(), get_bytes(), get_bytes(), get_bytes())
}

#[derive(Default)]
struct Answer(Vec<u8>);

impl Answer {
    fn number(&mut self, v: u32) {
        self.0.extend(v.to_le_bytes());
    }

    fn bytes(&mut self, b: &[u8]) {
        self.number(b.len() as u32);
        self.0.extend(b);
    }

    fn key(&mut self, k: &Key) {
        k.as_bytes().iter().for_each(|p| self.bytes(p));
    }

    /// Writes a status of btfa.h and an error.
    fn status<T>(&mut self, result: &Result<T, Error>) {
        let (status, text) = match result {
            Ok(_) => (0, String::new()),
            Err(e) => {
                let status = match e {
                    Error::NotArchive => -1,
                    Error::UnknownVersion(_) => -2,
                    Error::Damaged(_) => -3,
                    Error::NoKernel | Error::NoMatch(_) | Error::NoArchive => -4,
                    Error::NotCovered(_) => -7,
                    _ => -6,
                };
                (status, e.to_string())
            }
        };
        self.number(status as u32);
        self.bytes(text.as_bytes());
    }
}

fn open(data: Vec<u8>, answer: &mut Answer) -> Option<Archive> {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let memory = |m: &AtomicUsize| m.load(Ordering::Relaxed).saturating_sub(before) as u32;
    let result = Archive::from_bytes(&data);
    let (now, most) = (memory(&NOW), memory(&MOST));
    answer.status(&result);
    answer.number(most);
    let archive = result.ok()?;
    answer.number(now);
    answer.number(archive.len() as u32);
    let mut taking = 0;
    for k in archive.keys() {
        answer.key(&k);
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let btf = archive.btf(&k);
        taking = taking.max(MOST.load(Ordering::Relaxed) - before);
        match btf {
            Ok(btf) => {
                answer.number(0);
                answer.bytes(&btf);
            }
            Err(_) => answer.status(&btf),
        }
    }
    answer.number(now + taking as u32);
    Some(archive)
}

fn find(archive: Option<&Archive>, answer: &mut Answer) {
    let file = get_path();
    let root = get_path().unwrap_or_else(|| "/".into());
    let host = Host::running().root(root).release(get_bytes()).arch(get_bytes());
    let object = get_bytes();
    let options = Options {
        file,
        ignore_kernel: true,
        neighbours: get_number() as usize,
        installed: get_number() != 0,
        host,
        object: Some(&object[..]).filter(|o| !o.is_empty()),
    };
    let result = btfa::find(archive, &options);
    answer.status(&result);
    let (source, rule, btf) = match result {
        Ok(Types::File(path)) => (1, Rule::None, std::fs::read(path).expect("a file")),
        Ok(Types::Kernel) => (2, Rule::None, Vec::new()),
        Ok(Types::Archive(found)) => (3, found.matched.rule, found.btf),
        Err(_) => (0, Rule::None, Vec::new()),
    };
    answer.number(source);
    answer.number(rule as u32);
    answer.bytes(&btf);
}

fn host(answer: &mut Answer) {
    let (root, file) = (get_path(), get_path());
    let mut host = Host::running().release(get_bytes()).arch(get_bytes());
    if let Some(root) = root {
        host = host.root(root);
    }
    if let Some(file) = file {
        host = host.os_release(file);
    }
    let system = host.system();
    answer.status(&system);
    let system = system.unwrap_or_default();
    answer.key(&system.key);
    answer.number(system.like.len() as u32);
    for l in system.like {
        answer.bytes(&l.id);
        answer.bytes(&l.version_id);
    }
}

fn main() {
    let mut archive = None;
    loop {
        let mut answer = Answer::default();
        match get_number() {
            0 => archive = open(get_bytes(), &mut answer),
            1 => {
                let key = get_key();
                let like = (0..get_number()).map(|_| Distribution { id: get_bytes(), version_id: get_bytes() }).collect();
                let neighbours = get_number() as usize;
                let m = archive.as_ref().expect("an archive").lookup(Described { key, like }, neighbours);
                answer.number(m.rule as u32);
                [&m.want, &m.key, &m.below, &m.above].iter().for_each(|k| answer.key(k));
                answer.number(u32::from(m.same_btf));
                answer.bytes(m.reason.as_bytes());
            }
            2 => host(&mut answer),
            3 => find(archive.as_ref(), &mut answer),
            4 => answer.key(&get_key().canonical()),
            6 => {
                let (object, arch) = (get_bytes(), get_text());
                answer.status(&archive.as_ref().expect("an archive").covers(&object, &arch));
            }
            question => panic!("question {}", question),
        }
        io::stdout().write_all(&answer.0).and_then(|_| io::stdout().flush()).expect("an answer");
    }
}
