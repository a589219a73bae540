// SPDX-License-Identifier: Apache-2.0

//! The limits of a file and of one layout, as in docs/limits.md.

pub(crate) const MAX_PAYLOAD: usize = 8 << 20; // bytes
pub(crate) const MAX_FILE: usize = MAX_PAYLOAD + (1 << 16);
pub(crate) const MAX_STREAMS: usize = 64;
pub(crate) const MAX_KERNELS: usize = 1 << 18;
pub(crate) const MAX_KEY_BYTES: usize = 16 << 20;
pub(crate) const MAX_OBJECTS: usize = 1 << 16;
pub(crate) const MAX_MACHINES: usize = 64;
pub(crate) const MAX_TYPES: usize = 1 << 16;
pub(crate) const MAX_CONTENT: usize = 8 << 20;
pub(crate) const MAX_FIELDS: usize = 65535;
pub(crate) const MAX_ITEMS: usize = 1 << 20;
pub(crate) const MAX_PART: usize = 255;
pub(crate) const MAX_OS_RELEASE: usize = 1 << 20;
/// Bytes of types and names that a fingerprint hashes.
pub(crate) const MAX_HASHED: usize = 16 << 20;
/// Longer names match nothing.
pub(crate) const MAX_NAME: usize = 4097;
pub(crate) const MAX_LIKE: usize = 8;
