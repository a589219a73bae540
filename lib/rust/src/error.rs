// SPDX-License-Identifier: Apache-2.0

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::key::Key;
use crate::Match;

/// The reason why an archive, a host or its BTF cannot be used. The text is one line, in which characters of foreign
/// names that are not printable are escaped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The data does not begin like an archive.
    NotArchive,
    /// This crate does not support the version of the format, which is the value.
    UnknownVersion(u8),
    /// The archive breaks the rules of its format, such as a truncated one. The text says where and how.
    Damaged(String),
    /// The archive does not have this kernel.
    NoKernel,
    /// The kernel has no BTF, and the archive has none for it. The match says why.
    NoMatch(Box<Match>),
    /// The kernel has no BTF, and there is no archive.
    NoArchive,
    /// The host cannot be identified. The text says why.
    NoHost(String),
    /// The archive was not made for the relocations of an object: it is stale or belongs to another program. The text
    /// says what the archive was made for.
    NotCovered(String),
    /// A file cannot be read.
    Io(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotArchive => f.write_str("archive: not a btfgen archive"),
            Error::UnknownVersion(v) => write!(f, "archive: unknown version of the archive format: {}, want 1", v),
            Error::Damaged(why) => write!(f, "archive: {}", why),
            Error::NoKernel => f.write_str("archive: kernel is not in the archive"),
            Error::NoMatch(m) => {
                write!(f, "kernel {} has no BTF, and the archive has none for it: {}", m.want, m.reason)?;
                let near: Vec<_> = [&m.below, &m.above].into_iter().filter(|k| **k != Key::default()).collect();
                match near[..] {
                    [] => Ok(()),
                    [one] => write!(f, "; the nearest is {}", one),
                    [below, above, ..] => write!(f, "; the nearest are {} and {}", below, above),
                }
            }
            Error::NoArchive => f.write_str("the kernel has no BTF, and there is no archive"),
            Error::NoHost(why) => write!(f, "host: {}", why),
            Error::NotCovered(why) => f.write_str(why),
            Error::Io(path, e) => write!(f, "{}: {}", crate::text::printable(path.to_string_lossy().as_bytes()), e),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(_, e) => Some(e),
            _ => None,
        }
    }
}
