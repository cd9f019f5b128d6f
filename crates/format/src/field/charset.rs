//! The maximum bytes per character of a collation, which relates CHAR(n) to the byte length in TABLE_MAP.

/// Returns the maximum number of bytes of one character in the collation's character set.
///
/// Ids are MySQL's, and MariaDB's NO PAD (1024 + id) and UCA 14 (from 2048) ranges.
pub fn charset_max_len(collation: u16) -> u32 {
    match collation {
        45 | 46 | 224..=247 | 255..=323 => 4,                          // utf8mb4
        33 | 76 | 83 | 192..=223 => 3,                                 // utf8mb3
        54 | 55 | 101..=124 | 56 | 62 => 4,                            // utf16, utf16le
        60 | 61 | 160..=183 => 4,                                      // utf32
        248..=250 => 4,                                                // gb18030
        12 | 91 | 97 | 98 => 3,                                        // ujis, eucjpms
        35 | 90 | 128..=159 => 2,                                      // ucs2
        1 | 84 | 13 | 88 | 19 | 85 | 24 | 86 | 28 | 87 | 95 | 96 => 2, // big5 sjis euckr gb cp932
        1024..=2047 => charset_max_len(collation - 1024),
        2048..=2303 => 3,
        2304..=2559 => 4,
        2560..=2815 => 2,
        2816..=3327 => 4,
        _ => 1,
    }
}
