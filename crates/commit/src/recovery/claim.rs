//! The durability claim in a GTID event of a file without groups: up to which commit the log was durable when the event
//! was appended.
//!
//! Earlier versions wrote such files. A crash left a torn tail in them, whose transactions were not acknowledged;
//! damage of the device left a torn place with whole events behind it. To distinguish the two, each GTID event carries
//! a *claim*: everything up to its own number minus a distance is durable. The distance is in the seven bits of the
//! event's flags that have no other meaning. In files with groups the groups' heads have this information; claims are
//! no longer written.
//!
//! Used by recovery. Pure.

use omnibus_engine::CommitNo;

/// Bit 0 of the flags has MySQL's meaning.
const SHIFT: u32 = 1;
/// The largest distance that is its own code.
const EXACT: u64 = 64;
/// The largest code; 0 is no claim.
const CODE_MAX: u64 = 104;

/// Decodes the claim in the flags of transaction `no`'s GTID event: everything up to the result was durable. `None`
/// without a claim.
pub(crate) fn decode(no: CommitNo, flags: u8) -> Option<CommitNo> {
    let code = u64::from(flags >> SHIFT);
    let distance = match code {
        0 => return None,
        1..=EXACT => code,
        _ if code <= CODE_MAX => EXACT << (code - EXACT),
        _ => return None,
    };
    no.0.checked_sub(distance).map(CommitNo)
}

/// Decodes the claim in a commit id of MariaDB's dialect, whose GTID event has no free bit: the id is the number of the
/// group's first transaction, with that transaction's claim in the low byte.
pub(crate) fn of_group(id: u64) -> Option<CommitNo> {
    decode(CommitNo(id >> 8), id as u8)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_are_exact_nearby_and_powers_of_two_beyond() {
        let no = CommitNo(1 << 50);
        for (code, distance) in [(1, 1), (64, 64), (65, 128), (66, 256), (77, 64 << 13), (104, 64 << 40)] {
            assert_eq!(decode(no, code << 1), Some(CommitNo(no.0 - distance)), "code {code}");
            assert_eq!(
                decode(no, code << 1 | 1),
                Some(CommitNo(no.0 - distance)),
                "MySQL's flag is left alone"
            );
        }
        for flags in [0, 1, 105 << 1, 255] {
            assert_eq!(decode(no, flags), None, "flags {flags}");
        }
        assert_eq!(decode(CommitNo(5), 64 << 1), None, "further than the first one");
        assert_eq!(of_group(no.0 << 8 | 7 << 1), Some(CommitNo(no.0 - 7)));
    }
}
