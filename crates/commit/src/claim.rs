//! What a GTID event says about how far the log was durable when it was appended, and what follows from it.
//!
//! A crash leaves a torn tail: groups that were in flight. Nothing in it was acknowledged, so it is cut. Damage of the
//! device leaves a torn place too, but behind it stand groups that were appended when the damaged part was durable
//! already. To tell the two apart each GTID event carries a *claim*: everything up to its own number less a distance is
//! durable. It lives in the seven bits of the event's flags that have no other meaning and that readers mask out, so it
//! costs no byte. A claim is only ever too modest: the distance is rounded up, and `durable` is read before it moves.
//!
//! Used in the flush stage (`encode`) and by recovery (`decode`). Pure.

use omnibus_engine::CommitNo;

/// Bit 0 of the flags has MySQL's meaning.
const SHIFT: u32 = 1;
/// Up to this distance the code is the distance.
const EXACT: u64 = 64;
/// The largest code; 0 says nothing.
const CODE_MAX: u64 = 104;

/// The flag bits for transaction `no` appended while everything up to `durable` was durable.
#[inline]
pub(crate) fn encode(no: CommitNo, durable: CommitNo) -> u8 {
    let distance = no.0.saturating_sub(durable.0).max(1);
    let code = if distance <= EXACT {
        distance
    } else {
        // The smallest k with EXACT << k >= distance.
        EXACT + u64::from((distance - 1).ilog2() + 1 - EXACT.ilog2())
    };
    if code > CODE_MAX { 0 } else { (code as u8) << SHIFT }
}

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

/// The commit id of a group in MariaDB's dialect, where no bit of the GTID event is free: its first transaction's number,
/// and that one's claim. Readers only compare it with the ids before and after.
#[inline]
pub(crate) fn group_id(first: CommitNo, durable: CommitNo) -> u64 {
    first.0 << 8 | u64::from(encode(first, durable))
}

/// What a group's commit id claims: everything up to the result was durable.
pub(crate) fn of_group(id: u64) -> Option<CommitNo> {
    decode(CommitNo(id >> 8), id as u8)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_groups_id_says_the_same() {
        let (first, durable) = (CommitNo(1 << 40 | 77), CommitNo(1 << 40 | 70));
        assert_eq!(of_group(group_id(first, durable)), Some(durable));
        assert_ne!(group_id(first, durable), group_id(first.next(), durable));
    }

    #[test]
    fn a_claim_is_exact_nearby_and_never_too_bold() {
        let no = CommitNo(1 << 50);
        for distance in (1..5000).chain((12..50).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1])) {
            let durable = CommitNo(no.0 - distance);
            let flags = encode(no, durable);
            assert_eq!(flags & 1, 0, "MySQL's flag is left alone");
            match decode(no, flags) {
                Some(claimed) => {
                    assert!(claimed <= durable, "distance {distance}");
                    assert!(distance > 64 || claimed == durable, "distance {distance}");
                    assert!(distance <= 64 || no.0 - claimed.0 < 2 * distance, "distance {distance}");
                }
                None => assert!(distance > EXACT << 39, "distance {distance}"),
            }
        }
        assert_eq!(decode(CommitNo(5), 0), None, "events of other servers claim nothing");
        assert_eq!(decode(CommitNo(5), encode(CommitNo(5), CommitNo(9))), Some(CommitNo(4)));
        assert_eq!(decode(CommitNo(5), 255), None);
    }
}
