// SPDX-License-Identifier: Apache-2.0

//! Reading numbers and text from a stream.

/// What is wrong with a stream.
pub(crate) type Problem = &'static str;

pub(crate) const CUT_SHORT: Problem = "cut short";

/// The unread part of a stream.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// Reads an unsigned LEB128 of at most 64 bits.
    pub fn number(&mut self) -> Result<u64, Problem> {
        let mut v = 0;
        for (i, &b) in self.0.iter().enumerate() {
            if i == 9 && b > 1 {
                return Err("number of more than 64 bits");
            }
            v |= u64::from(b & 0x7f) << (7 * i);
            if b < 0x80 {
                self.0 = &self.0[i + 1..];
                return Ok(v);
            }
        }
        Err(CUT_SHORT)
    }

    /// Reads a number that is at most limit.
    pub fn count(&mut self, limit: usize, problem: Problem) -> Result<usize, Problem> {
        match usize::try_from(self.number()?) {
            Ok(v) if v <= limit => Ok(v),
            _ => Err(problem),
        }
    }

    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Problem> {
        if n > self.0.len() {
            return Err(CUT_SHORT);
        }
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        Ok(head)
    }

    /// Reads up to a NUL.
    pub fn text(&mut self) -> Result<&'a [u8], Problem> {
        let n = self.0.iter().position(|&b| b == 0).ok_or(CUT_SHORT)?;
        let (head, tail) = self.0.split_at(n);
        self.0 = &tail[1..];
        Ok(head)
    }

    /// Returns the number of numbers in the rest of a stream that has only numbers.
    pub fn numbers(&self) -> usize {
        self.0.iter().filter(|&&b| b < 0x80).count()
    }

    /// Checks that all of the stream was read.
    pub fn end(&self) -> Result<(), Problem> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err("bytes too many")
        }
    }
}
