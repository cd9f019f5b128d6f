//! Beginnings and ends of transactions.

use super::*;
use omnibus_format::EventIter;
use omnibus_format::ScanRules;

/// The places of a sequence of events.
fn places(events: Vec<(EventType, Vec<u8>)>) -> Vec<EventPlace> {
    let mut bytes = Vec::new();
    let mut at = 4;
    for (kind, body) in events {
        at = event(&mut bytes, kind, at, |out| out.extend(&body));
    }
    let mut tracker = TransactionTracker::new();
    EventIter::new(&bytes, 4, ScanRules::default()).map(|event| tracker.step(&event.unwrap())).collect()
}

fn gtid_event() -> (EventType, Vec<u8>) {
    let mut body = Vec::new();
    gtid(1)(&mut body);
    (EventType::GTID, body)
}

fn sql(text: &str) -> (EventType, Vec<u8>) {
    let mut body = Vec::new();
    query(text.as_bytes())(&mut body);
    (EventType::QUERY, body)
}

fn mariadb_gtid(flags: u8) -> (EventType, Vec<u8>) {
    let mut body = vec![0; 19];
    body[12] = flags;
    (EventType::MARIADB_GTID, body)
}

const XID: (EventType, Vec<u8>) = (EventType::XID, Vec::new());
const PRIVATE: (EventType, Vec<u8>) = (EventType::IGNORABLE, Vec::new());

#[test]
fn transactions_of_both_dialects_end_where_they_become_whole() {
    use EventPlace::{First, Inside, Last, Outside};
    assert_eq!(places(vec![gtid_event(), sql("BEGIN"), sql("INSERT x"), XID]), [First, Inside, Inside, Last]);
    assert_eq!(
        places(vec![gtid_event(), sql("BEGIN"), sql("commit"), PRIVATE]),
        [First, Inside, Last, Outside]
    );
    assert_eq!(places(vec![gtid_event(), PRIVATE, sql("CREATE TABLE t (a INT)")]), [First, Inside, Last]);
    assert_eq!(
        places(vec![
            gtid_event(),
            sql("XA START X'31'"),
            sql("XA END X'31'"),
            (EventType::XA_PREPARE, vec![0])
        ]),
        [First, Inside, Inside, Last]
    );
    assert_eq!(places(vec![gtid_event(), sql("XA COMMIT X'31'"), sql("BEGIN")]), [First, Last, First]);
    assert_eq!(places(vec![mariadb_gtid(1), sql("DROP TABLE t")]), [First, Last]);
    assert_eq!(places(vec![mariadb_gtid(0), sql("INSERT x"), XID]), [First, Inside, Last]);
    assert_eq!(
        places(vec![sql("BEGIN"), sql("INSERT x"), XID, sql("DROP TABLE t")]),
        [First, Inside, Last, Last]
    );
    assert_eq!(places(vec![gtid_event(), (EventType::TRANSACTION_PAYLOAD, vec![1])]), [First, Last]);
    assert_eq!(places(vec![gtid_event(), sql("BEGIN"), (EventType::STOP, vec![])]), [First, Inside, Outside]);
}

#[test]
fn a_query_too_short_to_hold_a_statement_is_no_begin() {
    assert_eq!(
        places(vec![gtid_event(), (EventType::QUERY, vec![1, 2])]),
        [EventPlace::First, EventPlace::Last]
    );
}
