//! The name of an XA branch: format id, global transaction id, branch qualifier.

use bytes::Bytes;
use omnibus_parser::ParseOptions;
use omnibus_parser::ast::{Statement, Xa, XaId};
use std::fmt;

/// Two names are the same if all three parts are, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid {
    /// 1 unless the client said otherwise.
    pub format_id: u32,
    /// At most 64 bytes.
    pub gtrid: Bytes,
    /// At most 64 bytes.
    pub bqual: Bytes,
}

impl From<&XaId> for Xid {
    fn from(id: &XaId) -> Xid {
        // A parsed statement keeps its whole text alive; a name may outlive it by days.
        Xid {
            format_id: id.format_id,
            gtrid: Bytes::copy_from_slice(&id.gtrid),
            bqual: Bytes::copy_from_slice(&id.bqual),
        }
    }
}

/// As the binary log writes it: `X'61',X'',1`.
impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| -> fmt::Result {
            f.write_str("X'")?;
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("',")
        };
        hex(f, &self.gtrid)?;
        hex(f, &self.bqual)?;
        write!(f, "{}", self.format_id)
    }
}

impl Xid {
    /// Appends the key form: format id u32 big-endian, then each part behind its length byte. No name's form is the
    /// beginning of another's.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.format_id.to_be_bytes());
        for part in [&self.gtrid, &self.bqual] {
            out.push(part.len() as u8);
            out.extend_from_slice(part);
        }
    }

    /// Reads the key form back; also what follows it.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Xid, &[u8])> {
        let (format_id, rest) = bytes.split_first_chunk::<4>()?;
        let part = |bytes: &'_ [u8]| -> Option<(Bytes, usize)> {
            let length = usize::from(*bytes.first()?);
            Some((Bytes::copy_from_slice(bytes.get(1..=length)?), length + 1))
        };
        let (gtrid, used) = part(rest)?;
        let rest = &rest[used..];
        let (bqual, used) = part(rest)?;
        Some((Xid { format_id: u32::from_be_bytes(*format_id), gtrid, bqual }, &rest[used..]))
    }

    /// The `data` column of XA RECOVER: both parts, one after the other.
    #[must_use]
    pub fn data(&self) -> Vec<u8> {
        [&self.gtrid[..], &self.bqual[..]].concat()
    }
}

/// The second phase of a QUERY event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// XA COMMIT.
    Commit(Xid),
    /// XA ROLLBACK.
    Rollback(Xid),
}

/// The second phase in a QUERY event's statement, if it is one.
pub(crate) fn completion(sql: &[u8]) -> Option<Completion> {
    if !sql.starts_with(b"XA COMMIT ") && !sql.starts_with(b"XA ROLLBACK ") {
        return None;
    }
    let text = Bytes::copy_from_slice(sql);
    let (statement, _) = omnibus_parser::parse_first(&text, &ParseOptions::default()).ok()?;
    let Statement::Xa(xa) = statement.node else { return None };
    match *xa {
        Xa::Commit { xid, one_phase: false } => Some(Completion::Commit((&xid).into())),
        Xa::Rollback(xid) => Some(Completion::Rollback((&xid).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn xid(format_id: u32, gtrid: &'static [u8], bqual: &'static [u8]) -> Xid {
        Xid { format_id, gtrid: Bytes::from_static(gtrid), bqual: Bytes::from_static(bqual) }
    }

    #[test]
    fn key_forms_round_trip_and_none_begins_another() {
        let names =
            [xid(1, b"a", b""), xid(1, b"", b"a"), xid(1, b"ab", b""), xid(2, b"a", b""), xid(1, b"a", b"b")];
        let forms: Vec<Vec<u8>> = names
            .iter()
            .map(|name| {
                let mut form = Vec::new();
                name.encode(&mut form);
                form
            })
            .collect();
        for (name, form) in names.iter().zip(&forms) {
            let followed = [&form[..], b"rest"].concat();
            assert_eq!(Xid::decode(&followed).unwrap(), (name.clone(), &b"rest"[..]));
            assert_eq!(forms.iter().filter(|other| other.starts_with(form)).count(), 1, "{name}");
            assert!(Xid::decode(&form[..form.len() - 1]).is_none(), "{name}");
        }
    }

    #[test]
    fn the_logged_text_is_understood_again() {
        let name = xid(7, b"g'\\\0\xff", b"\x01");
        assert_eq!(name.to_string(), "X'67275c00ff',X'01',7");
        assert_eq!(
            completion(format!("XA COMMIT {name}").as_bytes()),
            Some(Completion::Commit(name.clone()))
        );
        assert_eq!(
            completion(format!("XA ROLLBACK {name}").as_bytes()),
            Some(Completion::Rollback(name.clone()))
        );
        assert_eq!(completion(format!("XA START {name}").as_bytes()), None);
        assert_eq!(completion(b"XA COMMIT X'61',X'',1 ONE PHASE"), None);
        assert_eq!(completion(b"DROP TABLE t"), None);
    }
}
