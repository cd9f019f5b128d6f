//! Sets of GTIDs: MySQL's text and bytes, tags included, and MariaDB's lists.

use omnibus_format::events::{MariadbGtidList, PreviousGtids};
use omnibus_format::{AnyGtid, BinlogState, GtidPosition, GtidSet};

fn set(bytes: &[u8]) -> Option<GtidSet> {
    let found = match std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<GtidSet>().ok()) {
        Some(set) => set,
        None => PreviousGtids::decode(bytes).ok()?.set,
    };
    let text = found.to_string();
    assert_eq!(text.parse::<GtidSet>().ok().as_ref(), Some(&found), "{text}");
    let mut body = Vec::new();
    PreviousGtids { set: found.clone() }.encode(&mut body);
    assert_eq!(PreviousGtids::decode(&body).map(|event| event.set).as_ref(), Ok(&found));
    for (source, intervals) in found.iter() {
        assert!(!intervals.is_empty() && intervals.iter().all(|interval| interval.start < interval.end));
        assert!(
            intervals.windows(2).all(|pair| pair[0].end < pair[1].start),
            "sorted, and they do not touch"
        );
        assert!(found.contains(source, intervals[0].start) && !found.contains(source, intervals[0].end));
        assert_eq!(found.free_from(source, intervals[0].start), intervals[0].end);
    }
    Some(found)
}

/// Two sets, in text or in bytes, and what sets obey.
pub(super) fn mysql(input: &[u8]) {
    let (len, rest) = input.split_first().map_or((0, input), |(len, rest)| (usize::from(*len), rest));
    let (first, second) = rest.split_at(len.min(rest.len()));
    if let Some(gtid) = std::str::from_utf8(first).ok().and_then(AnyGtid::parse_mysql) {
        assert_eq!(AnyGtid::parse_mysql(&gtid.to_string()), Some(gtid));
    }
    let (Some(a), Some(b)) = (set(first), set(second)) else { return };
    let mut both = a.clone();
    both.union(&b);
    assert!(both.contains_set(&a) && both.contains_set(&b));
    let mut only_a = a.clone();
    only_a.subtract(&b);
    assert!(!only_a.intersects(&b) && a.contains_set(&only_a));
    only_a.union(&b);
    assert_eq!(only_a, both, "what was taken out and put back");
    assert_eq!(a.intersects(&b), b.intersects(&a));
    assert_eq!(a.contains_set(&b), both == a);
    assert!(both.count() >= a.count());
}

/// A list as text, or as an event has it.
pub(super) fn mariadb(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        if let Ok(state) = text.parse::<BinlogState>() {
            assert_eq!(state.to_string().parse::<BinlogState>().ok().as_ref(), Some(&state));
        }
        if let Ok(position) = text.parse::<GtidPosition>() {
            assert_eq!(position.to_string().parse::<GtidPosition>().ok().as_ref(), Some(&position));
            assert!(position.reaches(&position));
        }
    }
    if let Ok(list) = MariadbGtidList::decode(input) {
        let state = BinlogState::from_list(&list.gtids);
        let mut body = Vec::new();
        MariadbGtidList { gtids: state.list(), ..list }.encode(&mut body);
        let again = MariadbGtidList::decode(&body).expect("what was encoded");
        // Numbers of a server that went backwards: the list has its last one only.
        assert_eq!(BinlogState::from_list(&again.gtids).list(), state.list());
        assert!(state.list().iter().all(|gtid| state.contains(*gtid)));
    }
}
