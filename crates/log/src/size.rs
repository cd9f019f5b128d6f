//! Sizes of files as people write them.

/// A number of bytes with an optional unit of 1024: `4096`, `512K`, `2G`. For options of programs.
///
/// # Errors
/// A sentence for who wrote it: no number, an unknown unit, 0, or more than a file can hold.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 =
        digits.parse().map_err(|_| format!("{text:?} is no size; write 4096, 512K, 100M, 2G"))?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("a size of 0 prepares nothing".to_owned()),
        Some(size) if i64::try_from(size).is_ok() => Ok(size),
        _ => Err(format!("{text} is more than any file can hold")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("512k"), Ok(512 << 10));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for bad in ["", "G", "2X", "-1", "1.5G", "0", "0M", "99999999999T", "18446744073709551615", "\u{e9}"]
        {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
