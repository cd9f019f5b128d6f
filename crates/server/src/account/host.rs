//! Host patterns of accounts.

use crate::net::ClientHost;
use std::net::IpAddr;

/// The host part of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    text: String,
}

impl HostPattern {
    /// From the text in an account name. Host names have no case.
    #[must_use]
    pub fn new(text: &str) -> HostPattern {
        let text = if text.is_empty() { "%" } else { text };
        HostPattern { text: text.to_ascii_lowercase() }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a client is in it.
    #[must_use]
    pub fn matches(&self, client: &ClientHost) -> bool {
        if self.text == "%" {
            return true;
        }
        if client.is_local() && like(b"localhost", self.text.as_bytes()) {
            return true;
        }
        let Some(ip) = client.ip else { return false };
        if let Some((network, mask)) = self.text.split_once('/') {
            return in_network(ip, network, mask);
        }
        match self.text.parse::<IpAddr>() {
            Ok(own) => own == ip,
            Err(_) => like(ip.to_string().as_bytes(), self.text.as_bytes()),
        }
    }

    /// Smaller is more specific: names and addresses, networks by mask, patterns by how late their
    /// first wildcard is, `%` last.
    #[must_use]
    pub fn rank(&self) -> (u8, usize) {
        if self.text == "%" {
            return (3, 0);
        }
        if let Some((_, mask)) = self.text.split_once('/') {
            let bits = mask.parse::<usize>().unwrap_or(32);
            return (1, 128usize.saturating_sub(bits));
        }
        match self.text.find(['%', '_']) {
            Some(at) => (2, usize::MAX - at),
            None => (0, 0),
        }
    }
}

fn in_network(ip: IpAddr, network: &str, mask: &str) -> bool {
    let Ok(network) = network.parse::<IpAddr>() else { return false };
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            let mask = match mask.parse::<u32>() {
                Ok(bits) if bits <= 32 => u32::MAX.checked_shl(32 - bits).unwrap_or(0),
                Ok(_) => return false,
                Err(_) => match mask.parse::<std::net::Ipv4Addr>() {
                    Ok(mask) => mask.to_bits(),
                    Err(_) => return false,
                },
            };
            ip.to_bits() & mask == network.to_bits()
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            let Some(bits) = mask.parse::<u32>().ok().filter(|b| *b <= 128) else { return false };
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            ip.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

/// How long the character is that begins with this byte.
fn width(first: u8) -> usize {
    match first {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => 1,
    }
}

/// SQL's LIKE without case folding: `%` any characters, `_` one character, `\` takes the next as it is.
/// Linear in the text for each `%`: the last `%` is the only one ever gone back to.
#[must_use]
pub fn like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        let escaped = pattern.get(p) == Some(&b'\\') && p + 1 < pattern.len();
        let step = match pattern.get(p) {
            Some(b'%') => {
                back = Some((t, p + 1));
                p += 1;
                continue;
            }
            Some(b'_') => {
                t += width(text[t]) - 1;
                Some(1)
            }
            Some(_) if escaped => (pattern[p + 1] == text[t]).then_some(2),
            Some(c) => (*c == text[t]).then_some(1),
            None => None,
        };
        match (step, back) {
            (Some(n), _) => {
                t += 1;
                p += n;
            }
            (None, Some((from, resume))) => {
                t = from + width(text[from]);
                p = resume;
                back = Some((t, resume));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == b'%')
}

/// One place of a LIKE pattern.
#[derive(Clone, Copy, PartialEq)]
enum PatternPart {
    Char(char),
    One,
    Many,
}

fn places(pattern: &str) -> Vec<PatternPart> {
    let mut places = Vec::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        places.push(match (char, chars.peek()) {
            ('%', _) => PatternPart::Many,
            ('_', _) => PatternPart::One,
            ('\\', Some(_)) => PatternPart::Char(chars.next().unwrap_or(char)),
            _ => PatternPart::Char(char),
        });
    }
    places
}

/// Whether everything that is LIKE `inner` is LIKE `outer` as well. May say no where it is so (`_%` and `%_` are the same and
/// neither covers the other), never yes where it is not.
#[must_use]
pub fn covers(outer: &str, inner: &str) -> bool {
    let (outer, inner) = (places(outer), places(inner));
    // `reach[i]`: the places of `outer` so far cover the first `i` of `inner`.
    let mut reach = vec![false; inner.len() + 1];
    reach[0] = true;
    for place in outer {
        let mut next = vec![false; inner.len() + 1];
        for at in 0..=inner.len() {
            next[at] = match (place, at.checked_sub(1)) {
                (PatternPart::Many, before) => reach[at] || before.is_some_and(|before| next[before]),
                (_, None) => false,
                (PatternPart::One, Some(before)) => reach[before] && inner[before] != PatternPart::Many,
                (PatternPart::Char(_), Some(before)) => reach[before] && inner[before] == place,
            };
        }
        reach = next;
    }
    reach[inner.len()]
}
