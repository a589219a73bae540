// SPDX-License-Identifier: Apache-2.0

//! Reads `.btfa` archives, which hold the minimized BTF of many kernels.
//!
//! A tracer embeds an archive, and relocates its programs against the BTF of the running kernel, which may have none
//! itself:
//!
//! ```no_run
//! use btfa::{Archive, Options, Types};
//!
//! let archive = Archive::open("tracer.btfa")?; // or Archive::from_bytes(include_bytes!("tracer.btfa"))
//! match btfa::find(Some(&archive), &Options::default())? {
//!     Types::Archive(found) => println!("{}: {} bytes", found.matched.key, found.btf.len()),
//!     Types::Kernel => println!("the kernel has BTF"),
//!     Types::File(path) => println!("{}", path.display()),
//! }
//! # Ok::<(), btfa::Error>(())
//! ```
//!
//! There is no global state, and an open archive does not change: any number of threads may use it. The crate works on
//! any bytes without panicking, and takes at most 256 MiB for them. `docs/archive-format.md` specifies the format.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod build;
mod covers;
mod cursor;
mod error;
mod frame;
mod host;
mod installed;
mod key;
mod limits;
mod lookup;
mod pool;
mod rules;
mod text;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use error::Error;
pub use host::Host;
pub use key::{Distribution, Key, System};
pub use lookup::{Match, Rule};

use cursor::{Cursor, Problem};
use limits::{MAX_FILE, MAX_PAYLOAD, MAX_STREAMS};

/// An open archive.
pub struct Archive {
    made: covers::Made,
    pool: pool::Pool,
    layouts: pool::Layouts,
    kernels: key::Kernels,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Archive({} kernels)", self.len())
    }
}

/// The BTF of an archive for a host.
#[derive(Clone, Debug)]
pub struct Found {
    /// The kernel that was found, and by which rule.
    pub matched: Match,
    /// Raw BTF, in the byte order of the kernel.
    pub btf: Vec<u8>,
}

impl Archive {
    /// Opens and checks the archive in a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read, or an error of [`Archive::from_bytes`].
    pub fn open(path: impl AsRef<Path>) -> Result<Archive, Error> {
        let path = path.as_ref();
        let mut data = Vec::new();
        File::open(path)
            .and_then(|f| f.take(MAX_FILE as u64 + 1).read_to_end(&mut data))
            .map_err(|e| Error::Io(path.to_owned(), e))?;
        Archive::from_bytes(&data)
    }

    /// Opens and checks an archive, such as the result of `include_bytes!`. It keeps no reference to the data. Any data
    /// takes at most 256 MiB.
    ///
    /// # Errors
    ///
    /// [`Error::NotArchive`], [`Error::UnknownVersion`] or [`Error::Damaged`].
    pub fn from_bytes(data: &[u8]) -> Result<Archive, Error> {
        if data.len() > MAX_FILE {
            return Err(Error::Damaged(format!("{} bytes, more than {}", data.len(), MAX_FILE)));
        }
        let rest = data.strip_prefix(b"btfa").ok_or(Error::NotArchive)?;
        let (&version, frame) = rest.split_first().ok_or_else(|| Error::Damaged(cursor::CUT_SHORT.to_string()))?;
        if version != 1 {
            return Err(Error::UnknownVersion(version));
        }
        let payload = frame::unpack(frame).map_err(|e| Error::Damaged(format!("frame: {}", e)))?;
        read(&payload).map_err(|(stream, problem)| Error::Damaged(format!("{}: {}", stream, problem)))
    }

    /// Returns the number of kernels.
    pub fn len(&self) -> usize {
        self.kernels.len()
    }

    /// Reports whether there are no kernels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys of the kernels, sorted by distribution, version, arch and release.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.kernels.order.iter().map(move |&k| self.kernels.key(k))
    }

    /// Returns the BTF of exactly this kernel. The spelling of distribution and arch does not matter. The bytes are those
    /// of `btfgen generate`.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if the archive lacks the kernel, and [`Error::Damaged`] if a broken program wrote the archive.
    pub fn btf(&self, key: &Key) -> Result<Vec<u8>, Error> {
        let kernel = self.kernels.find(&key.parts()).ok_or(Error::NoKernel)?;
        build::build(&self.pool, &self.layouts, self.kernels.layout(kernel)).map_err(Error::Damaged)
    }

    /// Finds the kernel whose BTF serves a host, which [`Host::system`] describes. It tries, in this order:
    ///
    /// 1. exact: the kernel with this key, in any spelling of distribution and arch;
    /// 2. release: the kernels of the same release and arch under other versions of the distribution;
    /// 3. derived: those under the first distribution of `like` that has any, of the version there or else of all;
    /// 4. release: those under any distribution;
    /// 5. neighbour, if `neighbours` is above 0 and distribution, arch and release are known: the last build before this
    ///    kernel in its series, which is the same distribution, version, arch, version of Linux and flavour. Versions of
    ///    distributions that count builds do not matter. The nearest builds
    ///    before it must have the same BTF, `neighbours` in number, and so must as many builds after it, or all if there
    ///    are fewer. The BTF may be wrong for the kernel, because structs do change within a series; programs then read
    ///    wrong memory.
    ///
    /// In steps 2 to 4 all kernels must have the same BTF. Steps 3 and 4 need a release that identifies a build: many
    /// distributions have a 5.10.135, each with its own configuration.
    pub fn lookup(&self, host: impl Into<System>, neighbours: usize) -> Match {
        lookup::lookup(&self.kernels, &host.into(), neighbours)
    }

    /// Returns the BTF for a host, whether or not its kernel has BTF of its own. [`find`] looks there first.
    ///
    /// # Errors
    ///
    /// [`Error::NoHost`], [`Error::NoMatch`] with the reason if the archive has no BTF for the host, or
    /// [`Error::Damaged`] if a broken program wrote the archive.
    pub fn find(&self, host: &Host) -> Result<Found, Error> {
        self.find_system(&host.system()?, 0)
    }

    fn find_system(&self, host: &System, neighbours: usize) -> Result<Found, Error> {
        let matched = self.lookup(host, neighbours);
        if !matched.is_found() {
            return Err(Error::NoMatch(Box::new(matched)));
        }
        let btf = self.btf(&matched.key)?;
        Ok(Found { matched, btf })
    }

    /// Checks that the archive was made for an object with the relocations of this one, a BPF ELF file; code may differ.
    /// Unless `arch` is empty, the archive's object must be for that machine. An object without relocations needs no
    /// archive.
    ///
    /// # Errors
    ///
    /// [`Error::NotCovered`]
    pub fn covers(&self, object: &[u8], arch: &str) -> Result<(), Error> {
        self.made.covers(object, arch.as_bytes())
    }
}

/// Options of [`find`]. The default is the kernel's own BTF, or else the archive's.
#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    /// A file that the user named, which comes first.
    pub file: Option<PathBuf>,
    /// Skips the kernel's own BTF, for tests.
    pub ignore_kernel: bool,
    /// As for [`Archive::lookup`].
    pub neighbours: usize,
    /// The kernel to find in the archive.
    pub host: Host,
    /// Looks where packages install a vmlinux of the host's release, such as `/boot` and `/usr/lib/debug`, before the
    /// archive.
    pub installed: bool,
    /// A BPF object. The archive must be made for it, see [`Archive::covers`].
    pub object: Option<&'a [u8]>,
}

/// The types to relocate programs against.
#[derive(Clone, Debug)]
pub enum Types {
    /// The file that the user named, or an installed vmlinux. The loader reads and checks it.
    File(PathBuf),
    /// The running kernel has BTF, in `/sys/kernel/btf/vmlinux`. Loaders find it by themselves.
    Kernel,
    /// The archive has BTF for the host.
    Archive(Found),
}

/// Finds the types to relocate programs against: the file that the user named, else the kernel's own BTF, else, with
/// [`Options::installed`], that of an installed vmlinux, else the BTF for the host in the archive.
///
/// # Errors
///
/// [`Error::Io`] if the named file cannot be opened, [`Error::NoArchive`], [`Error::NotCovered`], or an error of
/// [`Archive::find`].
pub fn find(archive: Option<&Archive>, options: &Options) -> Result<Types, Error> {
    if let Some(path) = &options.file {
        File::open(path).map_err(|e| Error::Io(path.clone(), e))?;
        return Ok(Types::File(path.clone()));
    }
    if !options.ignore_kernel && File::open("/sys/kernel/btf/vmlinux").is_ok() {
        return Ok(Types::Kernel);
    }
    if options.installed {
        let key = options.host.system()?.key;
        if let Some(path) = installed::find(options.host.root_path(), key.parts()[key::RELEASE]) {
            return Ok(Types::File(path));
        }
    }
    let archive = archive.ok_or(Error::NoArchive)?;
    let host = options.host.system()?;
    if let Some(object) = options.object {
        archive.made.covers(object, host.key.parts()[key::ARCH])?;
    }
    archive.find_system(&host, options.neighbours).map(Types::Archive)
}

/// Reads the streams of a payload.
fn read(payload: &[u8]) -> Result<Archive, pool::Located> {
    let [meta, kernels, names, shapes, parents, numbers, layouts, fingerprints] =
        split(payload).map_err(|e| ("payload", e))?;
    let mut made = covers::Made::read(meta).map_err(|e| ("meta", e))?;
    made.read_fingerprints(fingerprints).map_err(|e| ("fingerprints", e))?;
    let pool = pool::Pool::read(names, parents, shapes, numbers)?;
    let layouts = pool::Layouts::read(layouts, &pool).map_err(|e| ("layouts", e))?;
    let kernels = key::Kernels::read(kernels, layouts.len()).map_err(|e| ("kernels", e))?;
    Ok(Archive { made, pool, layouts, kernels })
}

/// Cuts a payload into the streams that this version knows. One that is absent is empty.
fn split(payload: &[u8]) -> Result<[Cursor<'_>; 8], Problem> {
    const WANT: Problem = "want 7 to 64 streams";
    let mut c = Cursor(payload);
    let n = c.count(MAX_STREAMS, WANT)?;
    if n < 7 {
        return Err(WANT);
    }
    let mut lengths = Vec::with_capacity(n);
    for _ in 0..n {
        lengths.push(c.number()?.min(MAX_PAYLOAD as u64 + 1) as usize);
    }
    if lengths.iter().sum::<usize>() != c.left() {
        return Err("streams have other lengths");
    }
    let mut streams = [Cursor(&[]); 8];
    for (s, &length) in streams.iter_mut().zip(&lengths) {
        *s = Cursor(c.bytes(length)?);
    }
    Ok(streams)
}
