//! Base64 as MySQL writes and reads it: the standard alphabet with padding, in lines or without, as one text or as several in a row.

use base64::Engine as _;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Unused bits of the last digit are ignored, as in MySQL.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);
/// Digits of a line, and the bytes behind them.
const LINE: usize = 76;
const LINE_BYTES: usize = LINE / 4 * 3;

/// Appends the digits of `bytes`, without line ends.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + bytes.len().div_ceil(3) * 4, 0);
    let length = ENGINE.encode_slice(bytes, &mut out[from..]).unwrap_or(0);
    out.truncate(from + length);
}

/// Lines of 76 digits with a line feed between them.
#[must_use]
pub fn encode_lines(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / LINE_BYTES * (LINE + 1) + LINE);
    for (number, part) in bytes.chunks(LINE_BYTES).enumerate() {
        if number > 0 {
            out.push(b'\n');
        }
        encode(part, &mut out);
    }
    out
}

/// The bytes behind a text that is base64 from its first byte to its last. `None` if it is not.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
}

/// The same with white space anywhere.
#[must_use]
pub fn decode_lines(text: &[u8]) -> Option<Vec<u8>> {
    decode(&without_space(text))
}

/// The bytes behind several texts in a row, each with its own padding, with white space anywhere: a BINLOG statement's.
#[must_use]
pub fn decode_runs(text: &[u8]) -> Option<Vec<u8>> {
    let digits = without_space(text);
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    for run in digits.chunks(4).collect::<Vec<_>>().chunk_by(|group, _| group.last() != Some(&b'=')) {
        ENGINE.decode_vec(run.concat(), &mut out).ok()?;
    }
    Some(out)
}

fn without_space(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_each_other() {
        let text = b"\nAP8n\nAQ==\n/+8=\n";
        assert_eq!(decode_runs(text).as_deref(), Some(&b"\x00\xff\x27\x01\xff\xef"[..]));
        assert_eq!(decode_lines(text), None);
        for bad in ["A", "AA=A", "=AAA", "A===", "AA*A", "AAAAA"] {
            assert_eq!(decode_runs(bad.as_bytes()), None, "{bad}");
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn lines_have_76_digits_and_no_end() {
        let bytes: Vec<u8> = (0..=255).cycle().take(171).collect();
        let text = encode_lines(&bytes);
        assert_eq!(text.split(|byte| *byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>(), [76, 76, 76]);
        assert_eq!(decode_lines(&text), Some(bytes));
        assert_eq!(encode_lines(b""), b"");
        assert_eq!(decode(b"YR=="), Some(b"a".to_vec()), "bits left over count for nothing");
    }
}
