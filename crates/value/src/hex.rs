//! Hexadecimal digits of bytes, and bytes of digits.

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

fn write(bytes: &[u8], digits: &[u8; 16], out: &mut Vec<u8>) {
    out.reserve(2 * bytes.len());
    out.extend(bytes.iter().flat_map(|b| [digits[usize::from(b >> 4)], digits[usize::from(b & 15)]]));
}

/// Appends digits in lower case.
pub fn write_lower(bytes: &[u8], out: &mut Vec<u8>) {
    write(bytes, LOWER, out);
}

/// Appends digits in upper case.
pub fn write_upper(bytes: &[u8], out: &mut Vec<u8>) {
    write(bytes, UPPER, out);
}

/// Returns digits in lower case.
#[must_use]
pub fn lower(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_lower(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}

/// Returns digits in upper case.
#[must_use]
pub fn upper(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_upper(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}

/// The number that a digit of either case stands for.
#[must_use]
pub fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The bytes that digits stand for; an odd first digit stands alone. `None` if there is something else among them.
#[must_use]
pub fn parse(digits: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(digits.len() / 2 + 1);
    let odd = digits.len() % 2;
    if odd == 1 {
        out.push(digit(digits[0])?);
    }
    for pair in digits[odd..].chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(parse(lower(&bytes).as_bytes()), Some(bytes.clone()));
        assert_eq!(parse(upper(&bytes).as_bytes()), Some(bytes));
        assert_eq!(lower(&[0x0a, 0xf1]), "0af1");
        assert_eq!(upper(&[0x0a, 0xf1]), "0AF1");
    }

    #[test]
    fn an_odd_digit_stands_alone_and_nothing_else_is_a_digit() {
        assert_eq!(parse(b"abc"), Some(vec![0x0a, 0xbc]));
        assert_eq!(parse(b""), Some(Vec::new()));
        for bad in [&b"0g"[..], b"+1", b" 1", b"0x12", b"\xff\xff"] {
            assert_eq!(parse(bad), None);
        }
    }
}
