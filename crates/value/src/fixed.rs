//! MariaDB's types of fixed size: UUID, INET4, INET6.
//!
//! A value is stored as its bytes in network order, which CAST AS BINARY returns and row events hold. Its text is made
//! on request. Addresses are ordered by their bytes; UUIDs have an order of their own ([`Fixed::sort_key`]).

use crate::column::ColumnKind;
use crate::uuid;
use std::cmp::Ordering;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A UUID or an Internet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fixed {
    kind: FixedKind,
    /// The first `kind.width()` bytes count; the others are zero.
    bytes: [u8; 16],
}

/// The kind of a fixed-length type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum FixedKind {
    Uuid,
    Inet4,
    Inet6,
}

impl FixedKind {
    /// The type of a column, if it is one of these.
    #[must_use]
    pub const fn of(kind: ColumnKind) -> Option<FixedKind> {
        Some(match kind {
            ColumnKind::Uuid => FixedKind::Uuid,
            ColumnKind::Inet4 => FixedKind::Inet4,
            ColumnKind::Inet6 => FixedKind::Inet6,
            _ => return None,
        })
    }

    /// The type of its columns.
    #[must_use]
    pub const fn column(self) -> ColumnKind {
        match self {
            FixedKind::Uuid => ColumnKind::Uuid,
            FixedKind::Inet4 => ColumnKind::Inet4,
            FixedKind::Inet6 => ColumnKind::Inet6,
        }
    }

    /// Its name, as definitions and errors have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FixedKind::Uuid => "uuid",
            FixedKind::Inet4 => "inet4",
            FixedKind::Inet6 => "inet6",
        }
    }

    /// Bytes of a value.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            FixedKind::Inet4 => 4,
            FixedKind::Uuid | FixedKind::Inet6 => 16,
        }
    }

    /// Characters of the longest text.
    #[must_use]
    pub const fn text_width(self) -> u32 {
        match self {
            FixedKind::Uuid => 36,
            FixedKind::Inet4 => 15,
            FixedKind::Inet6 => 39,
        }
    }

    /// All bytes zero: what a column without a default is given where sql_mode is not strict.
    #[must_use]
    pub const fn zero(self) -> Fixed {
        Fixed { kind: self, bytes: [0; 16] }
    }

    /// The value of just these bytes; `None` if it has others in number, or they are no UUID.
    #[must_use]
    pub fn from_bytes(self, bytes: &[u8]) -> Option<Fixed> {
        if bytes.len() != self.width() {
            return None;
        }
        let mut value = self.zero();
        value.bytes[..bytes.len()].copy_from_slice(bytes);
        // MariaDB could not tell such a one from one of which it swaps the parts.
        let bad =
            self == FixedKind::Uuid && value.bytes[6] & 0x80 != 0 && (1..=0x80).contains(&value.bytes[8]);
        (!bad).then_some(value)
    }

    /// The value of bytes without their trailing zeros, as rows have them.
    #[must_use]
    pub fn from_stored(self, bytes: &[u8]) -> Option<Fixed> {
        let mut whole = [0; 16];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        if bytes.len() > self.width() {
            return None;
        }
        Some(Fixed { kind: self, bytes: whole })
    }

    /// The value that a text says; no space is passed over.
    #[must_use]
    pub fn parse(self, text: &[u8]) -> Option<Fixed> {
        match self {
            FixedKind::Uuid => self.from_bytes(&uuid::parse_loose(text)?),
            FixedKind::Inet4 => self.from_bytes(&parse_v4(text)?.octets()),
            FixedKind::Inet6 => self.from_bytes(&parse_v6(text)?.octets()),
        }
    }
}

/// Four numbers of at most three digits each: 01.2.3.4 is an address.
#[must_use]
pub fn parse_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut count = 0;
    for part in text.split(|byte| *byte == b'.') {
        let digits = !part.is_empty() && part.len() <= 3 && part.iter().all(u8::is_ascii_digit);
        *octets.get_mut(count).filter(|_| digits)? = std::str::from_utf8(part).ok()?.parse().ok()?;
        count += 1;
    }
    (count == 4).then_some(Ipv4Addr::from(octets))
}

/// Eight groups, `::` for groups of zeros, or with an IPv4 address for the last two.
#[must_use]
pub fn parse_v6(text: &[u8]) -> Option<Ipv6Addr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some((head, tail)) = text.rsplit_once(':')
        && tail.contains('.')
    {
        // The standard library knows no leading zeros there.
        let [a, b, c, d] = parse_v4(tail.as_bytes())?.octets();
        return format!("{head}:{:x}:{:x}", u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
            .parse()
            .ok();
    }
    text.parse().ok()
}

/// Appends an address as servers write it: the first longest run of zero groups as `::`, even a run of one, and an IPv4 address
/// that was put into IPv6 in dots.
pub fn write_v6(address: Ipv6Addr, out: &mut Vec<u8>) {
    let groups = address.segments();
    let (mut start, mut length) = (0, 0);
    let mut at = 0;
    while at < 8 {
        let run = groups[at..].iter().take_while(|group| **group == 0).count();
        if run > length {
            (start, length) = (at, run);
        }
        at += run.max(1);
    }
    let embedded = start == 0 && (length == 6 || length == 5 && groups[5] == 0xffff);
    let (mut text, last) = (String::new(), if embedded { 6 } else { 8 });
    let mut at = 0;
    while at < last {
        if at == start && length > 0 {
            text.push_str("::");
            at += length;
            continue;
        }
        if !text.is_empty() && !text.ends_with(':') {
            text.push(':');
        }
        text.push_str(&format!("{:x}", groups[at]));
        at += 1;
    }
    if embedded {
        let [.., a, b, c, d] = address.octets();
        let separator = if text.ends_with(':') { "" } else { ":" };
        text.push_str(&format!("{separator}{}", Ipv4Addr::new(a, b, c, d)));
    }
    out.extend_from_slice(text.as_bytes());
}

impl Fixed {
    /// The kind of the value.
    #[must_use]
    pub const fn kind(&self) -> FixedKind {
        self.kind
    }

    /// Its bytes, in network order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.kind.width()]
    }

    /// Returns whether all its bytes are zero, which counts as false.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.bytes == [0; 16]
    }

    /// Its bytes without trailing zeros, as rows have them.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        &self.bytes[..self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)]
    }

    /// Bytes whose order is that of the values, as many as `bytes`. UUIDs of the versions up to 5 sort by their node, then by
    /// their time from its slowest part on; later versions and what has no variant sort as they are written.
    #[must_use]
    pub fn sort_key(&self) -> [u8; 16] {
        let b = &self.bytes;
        if self.kind != FixedKind::Uuid || !(1..0x60).contains(&b[6]) || b[8] & 0x80 == 0 {
            return *b;
        }
        let mut key = [0; 16];
        for (to, from) in [(0, 10..16), (6, 8..10), (8, 6..8), (10, 4..6), (12, 0..4)] {
            key[to..to + from.len()].copy_from_slice(&b[from]);
        }
        key
    }

    /// Appends its text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let b = &self.bytes;
        match self.kind {
            FixedKind::Uuid => uuid::write(b, out),
            FixedKind::Inet4 => {
                out.extend_from_slice(Ipv4Addr::new(b[0], b[1], b[2], b[3]).to_string().as_bytes());
            }
            FixedKind::Inet6 => write_v6(Ipv6Addr::from(*b), out),
        }
    }
}

impl std::fmt::Debug for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = Vec::new();
        self.write_text(&mut text);
        write!(f, "{}'{}'", self.kind.name(), String::from_utf8_lossy(&text))
    }
}

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fixed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sort_key().cmp(&other.sort_key())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn shown(kind: FixedKind, text: &str) -> Option<String> {
        let value = kind.parse(text.as_bytes())?;
        assert_eq!(kind.from_stored(value.stored()), Some(value));
        let mut out = Vec::new();
        value.write_text(&mut out);
        Some(String::from_utf8(out).unwrap())
    }

    /// Each as a MariaDB shows it.
    #[test]
    fn texts_are_read_and_written_as_mariadb_does() {
        for (text, want) in [
            ("1:0:2:3:4:5:6:7", "1::2:3:4:5:6:7"),
            ("0:1:2:3:4:5:6:7", "::1:2:3:4:5:6:7"),
            ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
            ("0:0:0:1:0:0:0:0", "0:0:0:1::"),
            ("1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7::"),
            ("::1:2", "::0.1.0.2"),
            ("::0.0.1.2", "::102"),
            ("::", "::"),
            ("::1", "::1"),
            ("::01.2.3.4", "::1.2.3.4"),
            ("::FFFF:0:1", "::ffff:0.0.0.1"),
            ("::fffe:1.2.3.4", "::fffe:102:304"),
            ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
            ("2001:DB8::0001", "2001:db8::1"),
        ] {
            assert_eq!(shown(FixedKind::Inet6, text).as_deref(), Some(want), "{text}");
        }
        for bad in
            ["", "::1 ", "::00001", "1.2.3.4", "1:::", ":1::", "1:2:3:4::5:6:7:8", "::1.2.3", "fe80::1%eth0"]
        {
            assert_eq!(shown(FixedKind::Inet6, bad), None, "{bad}");
        }
        assert_eq!(shown(FixedKind::Inet4, "001.2.3.255").as_deref(), Some("1.2.3.255"));
        for bad in ["", "0001.2.3.4", "1.2.3", "1.2.3.4 ", "256.1.1.1", "1..2.3", "+1.2.3.4", "1.2.3.4.5"] {
            assert_eq!(shown(FixedKind::Inet4, bad), None, "{bad}");
        }
        let uuid = "00112233-4455-6677-8899-aabbccddeeff";
        for text in ["00112233445566778899AABBCCDDEEFF", uuid, "0-0--112233445566778899aabbccddeeff"] {
            assert_eq!(shown(FixedKind::Uuid, text).as_deref(), Some(uuid));
        }
        for bad in [
            "",
            "-00112233445566778899aabbccddeeff",
            "{00112233-4455-6677-8899-aabbccddeeff}",
            "00112233445566778899aabbccddeefg",
            "00112233445566778899aabbccddeeff0",
            "00000000-0000-8000-8000-000000000000",
        ] {
            assert_eq!(shown(FixedKind::Uuid, bad), None, "{bad}");
        }
    }

    /// As `ORDER BY` of a MariaDB 10.11 gave them.
    #[test]
    fn uuids_sort_by_node_and_time_up_to_version_5() {
        let sorted = [
            "02890000-0000-1000-8000-000000000000",
            "02890000-0000-4000-8000-000000000000",
            "00112233-4455-6677-8899-aabbccddeeff",
            "01890000-0000-1000-0000-000000000000",
            "01890000-0000-7000-8000-000000000000",
            "02890000-0000-7000-8000-000000000000",
            "6d1a0000-1111-1222-b333-444455556666",
            "6d1a0000-1111-1222-b333-444455556667",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        ];
        let values: Vec<Fixed> =
            sorted.iter().map(|text| FixedKind::Uuid.parse(text.as_bytes()).unwrap()).collect();
        assert!(values.is_sorted(), "{values:?}");
    }
}
