//! What a GTID event of a file without groups says about how far the log was durable when it was appended.
//!
//! Earlier versions wrote such files. A crash left a torn tail in them, of which nothing was acknowledged; damage of the
//! device left a torn place with whole events behind it. To tell the two apart each GTID event carries a *claim*:
//! everything up to its own number less a distance is durable, in the seven bits of the event's flags that have no other meaning.
//! Files with groups say it in the groups' heads; no claim is written any more.
//!
//! Used by recovery. Pure.

use omnibus_engine::CommitNo;

/// Bit 0 of the flags has MySQL's meaning.
const SHIFT: u32 = 1;
/// Up to this distance the code is the distance.
const EXACT: u64 = 64;
/// The largest code; 0 says nothing.
const CODE_MAX: u64 = 104;

/// What the flags of transaction `no`'s GTID event claim: everything up to the result was durable. `None` without a
/// claim.
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

/// What a commit id of MariaDB's dialect claims, where no bit of the GTID event is free: it is the number of the group's first
/// transaction, and that one's claim in the low byte.
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
