//! Numbers as MySQL prints them.

/// A DOUBLE: the shortest digits that read back the same; with an exponent outside 1e-15 to 1e15, but not for digits
/// behind the point.
pub fn write_f64(n: f64, out: &mut Vec<u8>) {
    let shortest = format!("{n:e}");
    let places = shortest
        .split_once('e')
        .map_or(0, |(mantissa, _)| mantissa.trim_start_matches('-').len().saturating_sub(2));
    write_general(&to_even(n, shortest, places, |places| format!("{n:.places$e}")), out);
}

/// Of two equally near shortest texts returns the even one, as MySQL does; the library takes the greater. Only the
/// longest texts have such neighbours.
fn to_even(n: f64, shortest: String, places: usize, round: impl Fn(usize) -> String) -> String {
    if shortest.len() < 16 {
        return shortest;
    }
    let even = round(places);
    if even != shortest && even.parse() == Ok(n) { even } else { shortest }
}

/// A FLOAT: six significant digits at most.
pub fn write_f32(n: f32, out: &mut Vec<u8>) {
    write_general(&format!("{n:.5e}"), out);
}

/// A DOUBLE(m,d) or FLOAT(m,d): exactly `decimals` places. Behind the shortest digits that read back the same come zeros, as in
/// MySQL, not the digits of the binary number.
pub fn write_f64_fixed(n: f64, decimals: u8, out: &mut Vec<u8>) {
    let decimals = usize::from(decimals);
    let mut text = format!("{n}");
    let places = text.find('.').map_or(0, |point| text.len() - point - 1);
    if places > 0 {
        text = to_even(n, text, places, |places| format!("{n:.places$}"));
    }
    match (places, decimals) {
        (0, 1..) => text.push_str(&format!(".{:0<decimals$}", "")),
        (places, _) if places <= decimals => text.extend(std::iter::repeat_n('0', decimals - places)),
        _ => text = format!("{n:.decimals$}"),
    }
    out.extend_from_slice(text.as_bytes());
}

/// Writes a number like C's `%g` with MySQL's limits. `scientific` is '[-]d[.ddd]e[-]x'.
fn write_general(scientific: &str, out: &mut Vec<u8>) {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        // Infinity and NaN never reach a client from a column; show zero rather than words.
        return out.push(b'0');
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let mut digits: Vec<u8> = mantissa.bytes().filter(|&c| c != b'.').collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    if negative {
        out.push(b'-');
    }
    if digits == b"0" {
        return out.push(b'0');
    }
    match exponent {
        -15..0 => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            out.extend_from_slice(&digits);
        }
        0.. if exponent < 15 || digits.len() > exponent as usize + 1 => {
            let int = exponent as usize + 1;
            if digits.len() < int {
                digits.resize(int, b'0');
            }
            out.extend_from_slice(&digits[..int]);
            push_fraction(&digits[int..], out);
        }
        _ => {
            out.push(digits[0]);
            push_fraction(&digits[1..], out);
            out.extend_from_slice(format!("e{exponent}").as_bytes());
        }
    }
}

fn push_fraction(digits: &[u8], out: &mut Vec<u8>) {
    if !digits.is_empty() {
        out.push(b'.');
        out.extend_from_slice(digits);
    }
}

/// An integer.
pub fn write_u64(n: u64, out: &mut Vec<u8>) {
    let mut buf = [0u8; 20];
    let mut at = buf.len();
    let mut rest = n;
    loop {
        at -= 1;
        buf[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&buf[at..]);
}

/// A signed integer.
pub fn write_i64(n: i64, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    write_u64(n.unsigned_abs(), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_like_a_server_prints_them() {
        for (n, want) in [
            (1e15, "1e15"),
            (1_145_921_377_135_377.0 + 0.25, "1145921377135377.2"),
            (72_765_640_924_123.0 + 0.625, "72765640924123.62"),
            (1e14, "100000000000000"),
            (1.2345678901234568e17, "1.2345678901234568e17"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.5e-15, "0.0000000000000015"),
            (1e100, "1e100"),
            (5e-324, "5e-324"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1.234567890123456e-10, "0.0000000001234567890123456"),
        ] {
            let mut out = Vec::new();
            write_f64(n, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
        for (n, want) in [
            (123456789f32, "123457000"),
            (1234567.0, "1234570"),
            (0.1, "0.1"),
            (1e20, "1e20"),
            (0.000_123_456_78, "0.000123457"),
        ] {
            let mut out = Vec::new();
            write_f32(n, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
    }
}
