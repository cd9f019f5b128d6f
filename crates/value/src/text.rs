//! Numbers as MySQL prints them.

/// A DOUBLE: the shortest digits that read back the same; with an exponent outside 1e-15 to 1e15, but not for digits
/// behind the point.
pub fn write_f64(n: f64, out: &mut Vec<u8>) {
    write_general(&shortest_f64(n), out);
}

fn shortest_f64(n: f64) -> String {
    let shortest = format!("{n:e}");
    let places = shortest
        .split_once('e')
        .map_or(0, |(mantissa, _)| mantissa.trim_start_matches('-').len().saturating_sub(2));
    to_even(n, shortest, places, |places| format!("{n:.places$e}"))
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

/// A DOUBLE in at most `width` characters, as a column of text that is so long keeps it: with as many digits at most, and with an exponent
/// where that leaves more of them. Returns false where not one digit has room: what is written may be too long then.
pub fn write_f64_within(n: f64, width: usize, out: &mut Vec<u8>) -> bool {
    let round = |places| format!("{n:.places$e}");
    let Some(whole) = Digits::of(&shortest_f64(n)) else {
        write_f64(n, out);
        return true;
    };
    let (whole, small) = (whole.at_most(width, round), (-3..0).contains(&whole.exponent));
    if whole.write_within(width, round, out) {
        return true;
    }
    let width = width.saturating_sub(usize::from(n < 0.0));
    if small {
        // Zero, or the next number of so few places.
        let near = format!("{n:.0$}", width.saturating_sub(2));
        write_f64(near.parse().unwrap_or(0.0) + 0.0, out);
        return width >= 2;
    }
    whole.at_most(1, round).write_scientific(out);
    false
}

/// A FLOAT, as [`write_f64_within`].
pub fn write_f32_within(n: f32, width: usize, out: &mut Vec<u8>) -> bool {
    let round = |places: usize| format!("{n:.0$e}", places.min(5));
    match Digits::of(&round(5)) {
        None => write_f32(n, out),
        Some(whole) => return whole.at_most(width, round).write_within(width, round, out),
    }
    true
}

/// Writes a number like C's `%g` with MySQL's limits. `scientific` is '[-]d[.ddd]e[-]x'.
fn write_general(scientific: &str, out: &mut Vec<u8>) {
    match Digits::of(scientific) {
        // Infinity and NaN never reach a client from a column; show zero rather than words.
        None => out.push(b'0'),
        Some(digits) => digits.write(digits.is_plain(), out),
    }
}

/// The digits of a number, without zeros at their end.
#[derive(Clone)]
struct Digits {
    negative: bool,
    digits: Vec<u8>,
    exponent: i32,
}

impl Digits {
    /// Those of '[-]d[.ddd]e[-]x'.
    fn of(scientific: &str) -> Option<Digits> {
        let (mantissa, exponent) = scientific.split_once('e')?;
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        Some(Digits { negative: mantissa.starts_with('-'), digits, exponent: exponent.parse().unwrap_or(0) })
    }

    /// The same in no more than so many digits.
    fn at_most(&self, digits: usize, round: impl Fn(usize) -> String) -> Digits {
        let rounded =
            if self.digits.len() > digits.max(1) { Digits::of(&round(digits.max(1) - 1)) } else { None };
        rounded.unwrap_or_else(|| self.clone())
    }

    /// Whether it is written without an exponent where there is room.
    fn is_plain(&self) -> bool {
        match self.exponent {
            -15..0 => true,
            0.. => self.exponent < 15 || self.digits.len() > self.exponent as usize + 1,
            _ => false,
        }
    }

    /// Digits that are left in `width` characters without an exponent.
    fn plain_room(&self, width: usize) -> usize {
        let before = self.exponent + 1;
        match usize::try_from(before) {
            Ok(before @ 1..) if before > width => 0,
            Ok(before @ 1..) if self.digits.len() > before => before.max(width - 1),
            Ok(1..) => self.digits.len(),
            _ => width.saturating_sub(2 + before.unsigned_abs() as usize),
        }
    }

    /// The same with one.
    fn scientific_room(&self, width: usize) -> usize {
        let point = usize::from(self.digits.len() > 1);
        width.saturating_sub(point + format!("e{}", self.exponent).len())
    }

    fn write_within(&self, width: usize, round: impl Fn(usize) -> String, out: &mut Vec<u8>) -> bool {
        let width = width.saturating_sub(usize::from(self.negative));
        let scientific = self.scientific_room(width).min(self.digits.len());
        let plain = if self.is_plain() { self.plain_room(width).min(self.digits.len()) } else { 0 };
        let room = plain.max(scientific);
        if room == 0 {
            return false;
        }
        self.at_most(room, round).write(plain >= scientific, out);
        true
    }

    fn write(&self, plain: bool, out: &mut Vec<u8>) {
        if plain { self.write_plain(out) } else { self.write_scientific(out) }
    }

    fn write_plain(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let Ok(exponent) = usize::try_from(self.exponent) else {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + self.exponent.unsigned_abs() as usize - 1, b'0');
            return out.extend_from_slice(&self.digits);
        };
        let whole = self.digits.len().min(exponent + 1);
        out.extend_from_slice(&self.digits[..whole]);
        out.resize(out.len() + exponent + 1 - whole, b'0');
        push_fraction(&self.digits[whole..], out);
    }

    fn write_scientific(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        out.push(self.digits[0]);
        push_fraction(&self.digits[1..], out);
        out.extend_from_slice(format!("e{}", self.exponent).as_bytes());
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
    out.extend_from_slice(digits(n, &mut [0; 20]));
}

/// The decimal digits of an integer, made in the room given.
pub fn digits(n: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut at = room.len();
    let mut rest = n;
    loop {
        at -= 1;
        room[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    &room[at..]
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

    /// Columns of these lengths keep in MySQL 9.7 the same.
    #[test]
    fn doubles_keep_what_digits_have_room() {
        for (n, width, want) in [
            (1.2345678901234567e-1, 12, "0.123456789"),
            (1.2345678901234567e-3, 12, "0.0012345679"),
            (1.2345678901234567e-4, 12, "1.2345679e-4"),
            (1.2345678901234567e-3, 10, "0.00123457"),
            (1.2345678901234568e17, 6, "1.2e17"),
            (-1.2345678901234567e14, 12, "-1.234568e14"),
            (-1.234567890123456e-100, 22, "-1.23456789012346e-100"),
            (0.1 + 0.2, 6, "0.3"),
            (123_456.7, 6, "123457"),
            (123_456.7, 5, "1.2e5"),
            (1e-7, 6, "1e-7"),
            (1e-4, 6, "0.0001"),
            (1e5, 3, "1e5"),
            (0.12, 3, "0.1"),
            (1.234567890123456e-5, 22, "0.00001234567890123456"),
            (1.2345678901234568e-5, 22, "1.2345678901234568e-5"),
        ] {
            let mut out = Vec::new();
            assert!(write_f64_within(n, width, &mut out));
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
        let mut out = Vec::new();
        assert!(write_f32_within(1e14, 12, &mut out));
        assert_eq!(out, b"1e14");
        // Where none has room, one is written, and cut; small ones are rounded.
        for (n, width, said, want) in [
            (1e30_f32.into(), 4, true, "1e30"),
            (1e30_f32.into(), 3, false, "1e30"),
            (1234.0, 3, false, "1e3"),
            (1e-5, 3, false, "1e-5"),
            (1.5e300, 5, false, "2e300"),
            (0.05, 3, true, "0.1"),
            (0.005, 3, true, "0"),
            (-0.05, 2, false, "0"),
            (-0.95, 2, false, "-1"),
            (0.5, 2, true, "0"),
        ] {
            let mut out = Vec::new();
            assert_eq!(write_f64_within(n, width, &mut out), said, "{n} in {width}");
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
    }
}
