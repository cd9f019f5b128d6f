//! Column bitmaps of row events: bit `i % 8` of byte `i / 8` stands for column `i`.

/// Whether column `i` is in the bitmap; false past its end.
#[inline]
pub fn is_set(bits: &[u8], i: usize) -> bool {
    bits.get(i / 8).is_some_and(|byte| byte & (1 << (i % 8)) != 0)
}

/// Whether none of the first `columns` columns is in the bitmap.
#[inline]
pub fn none_set(bits: &[u8], columns: usize) -> bool {
    let (whole, rest) = (columns / 8, columns % 8);
    bits.len() > whole && bits[..whole].iter().all(|byte| *byte == 0) && bits[whole] & ((1 << rest) - 1) == 0
}

/// How many of the first `columns` columns are in the bitmap.
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

    /// Keeps its memory: a row event copies two.
    fn clone_from(&mut self, source: &Self) {
        self.0.clone_from(&source.0);
    }
}

impl Bitmap {
    /// No columns.
    pub fn empty(columns: usize) -> Self {
        Self(vec![0; columns.div_ceil(8)])
    }

    /// All columns.
    pub fn full(columns: usize) -> Self {
        Self(vec![0xff; columns.div_ceil(8)])
    }

    /// The given columns.
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

    /// Makes it hold no columns of `columns`, keeping its memory.
    pub fn reset(&mut self, columns: usize) {
        self.0.clear();
        self.0.resize(columns.div_ceil(8), 0);
    }

    /// Whether a column is in it.
    #[inline]
    pub fn contains(&self, i: usize) -> bool {
        is_set(&self.0, i)
    }

    /// The bytes, as in a rows event.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
