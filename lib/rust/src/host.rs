// SPDX-License-Identifier: Apache-2.0

//! The kernel that is running.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::key::{canonical_id, check_part, usual, Distribution, Key, System};
use crate::limits::{MAX_LIKE, MAX_OS_RELEASE, MAX_PART};
use crate::rules::{BUILD_NAMES, DEBIANS, UBUNTUS};
use crate::text::printable;

/// A system whose kernel to find. Without options it is the running system.
///
/// Distribution and version come from `/etc/os-release`, or `/usr/lib/os-release` if there is none. Without such a file
/// they are unknown; if the file has no ID, the ID is `linux`. A VERSION_ID that cannot be part of a key counts as none.
/// Where builds have the same VERSION_ID and release, the version has the build, too. The archs `mips` and `mips64`, which
/// uname says for both byte orders, are taken for the byte order of this program. Release and arch are those of the running kernel, which
/// containers share with their host. They come from `/proc/sys/kernel`, which has the arch since Linux 6.1. On older
/// kernels the arch is that of the program, which a 32-bit program on a 64-bit kernel has to replace.
#[derive(Clone, Debug, Default)]
pub struct Host {
    root: Option<PathBuf>,
    os_release: Option<PathBuf>,
    release: Vec<u8>,
    arch: Vec<u8>,
}

impl Host {
    /// Returns the running system.
    pub fn running() -> Host {
        Host::default()
    }

    /// Sets the root directory of the host, such as `/host` in a container. Links in it are followed as if it were `/`.
    pub fn root(mut self, path: impl Into<PathBuf>) -> Host {
        self.root = Some(path.into());
        self
    }

    pub(crate) fn root_path(&self) -> &Path {
        self.root.as_deref().unwrap_or_else(|| Path::new("/"))
    }

    /// Sets a file to read instead of the os-release file below the root.
    pub fn os_release(mut self, path: impl Into<PathBuf>) -> Host {
        self.os_release = Some(path.into());
        self
    }

    /// Replaces the release of the running kernel, unless it is empty.
    pub fn release(mut self, release: impl AsRef<[u8]>) -> Host {
        self.release = release.as_ref().to_vec();
        self
    }

    /// Replaces the arch of the running kernel, unless it is empty.
    pub fn arch(mut self, arch: impl AsRef<[u8]>) -> Host {
        self.arch = arch.as_ref().to_vec();
        self
    }

    /// Returns the canonical key of the host's kernel.
    ///
    /// # Errors
    ///
    /// [`Error::NoHost`] if the os-release file or the root cannot be read, or a part is no part of a key.
    pub fn key(&self) -> Result<Key, Error> {
        Ok(self.system()?.key)
    }

    /// Returns the canonical key of the host's kernel, and the distributions that its own is derived from.
    ///
    /// # Errors
    ///
    /// [`Error::NoHost`] if the os-release file or the root cannot be read, or a part is no part of a key.
    pub fn system(&self) -> Result<System, Error> {
        let mut id = Vec::new();
        let text = self.read_os_release()?;
        let any = |name: &str| {
            let lines = text.iter().flat_map(|t| trimmed_lines(t));
            lines.filter_map(|l| l.strip_prefix(name.as_bytes())).last().map(unquote).unwrap_or_default()
        };
        // A value that cannot be part of a key counts as none.
        let value = |name: &str| Some(any(name)).filter(|v| check_part(v).is_ok()).unwrap_or_default();
        if text.is_some() {
            id = any("ID=");
            check_part(&id).map_err(|e| Error::NoHost(format!("os-release: ID {}", e)))?;
            if id.is_empty() {
                id = b"linux".to_vec();
            }
        }
        let id = canonical_id(&id).into_owned();
        let mut version_id = value("VERSION_ID=");
        let ubuntu = usual(&value("UBUNTU_CODENAME="), UBUNTUS);
        let debian = usual(&value("DEBIAN_CODENAME="), DEBIANS);
        let codename = value("VERSION_CODENAME=");
        let id_like = value("ID_LIKE=");
        let names = ubuntu.map(|_| &b"ubuntu"[..]).into_iter().chain(debian.map(|_| &b"debian"[..]));
        let mut like: Vec<Distribution> = Vec::new();
        for name in names.chain(id_like.split(|&b| b == b' ')) {
            let name = canonical_id(name);
            let version = match &*name {
                b"ubuntu" => ubuntu.or_else(|| usual(&codename, UBUNTUS)).unwrap_or_default(),
                b"debian" => debian.or_else(|| usual(&codename, DEBIANS)).unwrap_or_default(),
                _ => &version_id[..],
            };
            let known = name.is_empty() || check_part(&name).is_err() || *name == *id;
            if !known && like.len() < MAX_LIKE && like.iter().all(|l| l.id != *name) {
                like.push(Distribution { id: name.to_vec(), version_id: version.to_vec() });
            }
        }
        if let Some(name) = usual(&id, BUILD_NAMES) {
            let build: Vec<u8> = any(std::str::from_utf8(name).unwrap_or_default());
            let build: Vec<u8> = build.iter().map(|&b| if b == b'/' { b'_' } else { b }).collect();
            let fits = version_id.len() + 1 + build.len() <= MAX_PART;
            if !version_id.is_empty() && !build.is_empty() && check_part(&build).is_ok() && fits {
                version_id.push(b'-');
                version_id.extend(build);
            }
        }
        let release = match &self.release[..] {
            [] => kernel_file("osrelease").map_err(|e| no_host("/proc/sys/kernel/osrelease", e))?,
            given => given.to_vec(),
        };
        let mut arch = match &self.arch[..] {
            [] => kernel_file("arch").unwrap_or_else(|_| program_arch().into()),
            given => given.to_vec(),
        };
        if cfg!(target_endian = "little") && matches!(&arch[..], b"mips" | b"mips64") {
            arch.extend(b"el");
        }
        for (part, name) in [(&release, "release"), (&arch, "arch")] {
            check_part(part).map_err(|e| Error::NoHost(format!("{} {}", name, e)))?;
        }
        Ok(System { key: Key::new(id, version_id, arch, release).canonical(), like })
    }

    /// Reads the os-release file, if there is one.
    fn read_os_release(&self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(path) = &self.os_release {
            let read = File::open(path).and_then(read_limited);
            return read.map(Some).map_err(|e| no_host(&name_of(path), e));
        }
        let root = self.root_path();
        fs::read_dir(root).map_err(|e| no_host(&name_of(root), e))?;
        for name in ["etc/os-release", "usr/lib/os-release"] {
            if let Ok(file) = open_under(root, name) {
                return read_limited(file).map(Some).map_err(|e| no_host("os-release", e));
            }
        }
        Ok(None)
    }
}

fn name_of(path: &Path) -> String {
    format!("os-release: {}", printable(path.to_string_lossy().as_bytes()))
}

fn no_host(what: &str, e: io::Error) -> Error {
    Error::NoHost(format!("{}: {}", what, e))
}

fn read_limited(file: File) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    file.take(MAX_OS_RELEASE as u64 + 1).read_to_end(&mut data)?;
    if data.len() > MAX_OS_RELEASE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long for an os-release file"));
    }
    Ok(data)
}

fn kernel_file(name: &str) -> io::Result<Vec<u8>> {
    let mut text = read_limited(File::open(Path::new("/proc/sys/kernel").join(name))?)?;
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    Ok(text)
}

/// Returns the arch of this program, as `uname -m` prints it.
fn program_arch() -> &'static str {
    let little = cfg!(target_endian = "little");
    match std::env::consts::ARCH {
        "x86" => "i386",
        "powerpc64" if little => "ppc64le",
        "powerpc64" => "ppc64",
        arch => arch,
    }
}

/// Opens a file below root. Links are followed as if root were `/`: in a container they would otherwise lead to the
/// container's own files.
fn open_under(root: &Path, name: &str) -> io::Result<File> {
    let mut done = PathBuf::new(); // has no links, and is relative
    let mut todo: Vec<_> = name.split('/').rev().map(Into::into).collect();
    let mut links = 40; // which Linux follows in a path
    while let Some(part) = todo.pop() {
        let part: std::ffi::OsString = part;
        if part == ".." {
            done.pop();
            continue;
        }
        let at = done.join(&part);
        match fs::read_link(root.join(&at)) {
            Ok(to) if links > 0 => {
                links -= 1;
                if to.is_absolute() {
                    done.clear();
                }
                for c in to.components().rev() {
                    match c {
                        std::path::Component::Normal(part) => todo.push(part.to_owned()),
                        std::path::Component::ParentDir => todo.push("..".into()),
                        _ => {}
                    }
                }
            }
            Ok(_) => return Err(io::Error::new(io::ErrorKind::Other, "too many links")),
            Err(_) => done = at, // not a link, or missing, so that opening it fails
        }
    }
    File::open(root.join(done))
}

fn trimmed_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n').map(|mut line| {
        let space = |b: &u8| matches!(b, b' ' | b'\t'..=b'\r');
        while line.first().map_or(false, space) {
            line = &line[1..];
        }
        while line.last().map_or(false, space) {
            line = &line[..line.len() - 1];
        }
        line
    })
}

/// Returns one shell word, which consists of bare pieces and pieces in quotes. In single quotes a backslash is an
/// ordinary character; in double quotes it escapes only special characters. A quote ends with the line at the latest.
fn unquote(s: &[u8]) -> Vec<u8> {
    let mut word = Vec::new();
    let mut quote = 0;
    let mut at = 0;
    while let Some(&c) = s.get(at) {
        at += 1;
        let next = s.get(at).copied();
        match (quote, c) {
            (b'"' | b'\'', _) if c == quote => quote = 0,
            (b'\'', _) => word.push(c),
            (0, b'\\') if next.is_some() => {
                word.extend(next);
                at += 1;
            }
            (b'"', b'\\') if next.map_or(false, |n| b"\"\\$`".contains(&n)) => {
                word.extend(next);
                at += 1;
            }
            (0, b'"' | b'\'') => quote = c,
            (0, b' ' | b'\t') => break, // the end of the word
            _ => word.push(c),
        }
    }
    word
}
