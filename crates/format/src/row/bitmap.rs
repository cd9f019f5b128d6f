//! Column bitmaps of row events: bit `i % 8` of byte `i / 8` stands for column `i`.

/// Returns whether column `i` is in the bitmap; false past its end.
#[inline]
pub fn is_set(bits: &[u8], i: usize) -> bool {
    bits.get(i / 8).is_some_and(|byte| byte & (1 << (i % 8)) != 0)
}

/// Returns whether none of the first `columns` columns is in the bitmap.
#[inline]
pub fn none_set(bits: &[u8], columns: usize) -> bool {
    let (whole, rest) = (columns / 8, columns % 8);
    bits.len() > whole && bits[..whole].iter().all(|byte| *byte == 0) && bits[whole] & ((1 << rest) - 1) == 0
}

/// Returns the number of the first `columns` columns that are in the bitmap.
#[inline]
pub fn count_bits(bits: &[u8], columns: usize) -> usize {
    let whole: u32 = bits.iter().take(columns / 8).map(|byte| byte.count_ones()).sum();
    let rest = match columns % 8 {
        0 => 0,
        n => bits.get(columns / 8).map_or(0, |byte| (byte & ((1 << n) - 1)).count_ones()),
    };
    (whole + rest) as usize
}

/// An owned bitmap over a table's columns. Unused bits of the last byte are 1 in `full`, as MySQL
/// writes them, and 0 otherwise.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Bitmap(Vec<u8>);

impl Clone for Bitmap {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    /// Reuses the memory: a row event copies two bitmaps.
    fn clone_from(&mut self, source: &Self) {
        self.0.clone_from(&source.0);
    }
}

impl Bitmap {
    /// Creates a bitmap without columns.
    pub fn empty(columns: usize) -> Self {
        Self(vec![0; columns.div_ceil(8)])
    }

    /// Creates a bitmap of all columns.
    pub fn full(columns: usize) -> Self {
        Self(vec![0xff; columns.div_ceil(8)])
    }

    /// Creates a bitmap of the given columns.
    pub fn of(columns: usize, members: impl IntoIterator<Item = usize>) -> Self {
        let mut bitmap = Self::empty(columns);
        for member in members {
            bitmap.set(member);
        }
        bitmap
    }

    /// Adds a column; ignored past the end.
    #[inline]
    pub fn set(&mut self, i: usize) {
        if let Some(byte) = self.0.get_mut(i / 8) {
            *byte |= 1 << (i % 8);
        }
    }

    /// Removes all columns and sets the size to `columns`, reusing the memory.
    pub fn reset(&mut self, columns: usize) {
        self.0.clear();
        self.0.resize(columns.div_ceil(8), 0);
    }

    /// Returns whether a column is in the bitmap.
    #[inline]
    pub fn contains(&self, i: usize) -> bool {
        is_set(&self.0, i)
    }

    /// The bytes, as in a rows event.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
