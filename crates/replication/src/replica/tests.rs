//! Filters, places, positions and settings, and a stream cut into transactions.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::model::TrxHeader;
use omnibus_format::events::{FormatDescription, Query, Rotate, Xid};
use omnibus_format::{Checksum, EventHeader, EventType, HEADER_LEN, RawEvent};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn patterns_match_as_like_does() {
    let yes = [("a%.t_", "abc.t1"), ("%", ""), ("a\\_b.%", "a_b.x"), ("%.x%y", "d.xaay"), ("d.t", "d.t")];
    let no = [("a%.t_", "abc.t"), ("a\\_b.%", "acb.x"), ("d.t", "d.tt"), ("_", ""), ("%a", "ab")];
    for (pattern, text) in yes {
        assert!(wild_match(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
    }
    for (pattern, text) in no {
        assert!(!wild_match(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
    }
}

#[test]
fn filters_follow_their_order() {
    let mut filters = Filters::default();
    let text = "REPLICATE_DO_DB = (a, `b`), REPLICATE_IGNORE_TABLE = (a.secret), REPLICATE_WILD_DO_TABLE = ('a.s%'), \
                REPLICATE_REWRITE_DB = ((x, a)) FOR CHANNEL 'one'";
    assert_eq!(filters.change(text).unwrap().as_deref(), Some("one"));
    assert!(filters.database_passes(b"a") && filters.database_passes(b"") && !filters.database_passes(b"c"));
    assert!(!filters.table_passes(b"a", b"secret"), "named tables come before patterns");
    assert!(filters.table_passes(b"a", b"some") && !filters.table_passes(b"a", b"other"));
    assert_eq!(filters.rewritten(b"x"), b"a");
    // Of a statement the first table that a rule names decides, and nothing is said of none.
    let tables = |names: &[&str]| {
        names.iter().map(|name| (b"a".to_vec(), name.as_bytes().to_vec())).collect::<Vec<_>>()
    };
    assert!(
        filters.tables_pass(&tables(&["some", "secret"]))
            && !filters.tables_pass(&tables(&["secret", "some"]))
    );
    assert!(filters.tables_pass(&[]) && !filters.tables_pass(&tables(&["other"])));
    // A database goes by its own name, and by patterns for all of its tables.
    assert!(!filters.definition_passes(b"a") && !filters.definition_passes(b"c"));
    assert!(filters.change("REPLICATE_WILD_DO_TABLE = ('a.%')").is_ok() && filters.definition_passes(b"a"));
    assert!(filters.change("REPLICATE_WILD_DO_TABLE = ('a.s%')").is_ok());
    assert!(filters.change("REPLICATE_DO_DB = ()").unwrap().is_none());
    assert!(filters.database_passes(b"c"));
    for wrong in [
        "",
        "REPLICATE_DO_DB",
        "REPLICATE_DO_DB = (a",
        "X = (a)",
        "REPLICATE_REWRITE_DB = (a)",
        "REPLICATE_DO_DB=(a) FOR",
    ] {
        assert!(filters.change(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn settings_and_positions_come_back_as_they_were() {
    let mut config =
        ChannelConfig { host: "h".into(), password: "secret".into(), delay: 7, ..ChannelConfig::default() };
    config.heartbeat_ms = Some(1500);
    config.ignore_server_ids = vec![3, 4];
    config.gtid_use = GtidUse::SlavePos;
    config.start = SourcePosition::new("log.000007", 1 << 40);
    config.shown.push(("shown_source_bind".into(), "x".into()));
    config.user = "a\nb\\n=c".into();
    let back = ChannelConfig::decode(&config.encode());
    assert!(back == ChannelConfig { password: String::new(), ..config.clone() }, "{}", config.encode());
    assert!(!format!("{config:?}").contains("secret"), "a password is never shown");

    let place = ChannelPosition {
        source: SourcePosition::new("b.000002", 99),
        gtids: "0-1-5,7-2-9".parse().unwrap(),
        unlogged: "11111111-2222-3333-4444-555555555555:1-7:9".parse().unwrap(),
    };
    assert_eq!(ChannelPosition::decode(&place.encode()), Some(place));
    let at = |file: &str, position| SourcePosition::new(file, position);
    assert_eq!(at("b.000009", 5).compare(&at("b.000010", 4)), Some(std::cmp::Ordering::Less));
    assert_eq!(at("b.999999", 5).compare(&at("b.1000000", 4)), Some(std::cmp::Ordering::Less));
    assert_eq!(at("a.000001", 5).compare(&at("b.000001", 5)), None);
}

/// A stream as a source without GTIDs sends it.
struct Stream {
    position: u64,
    bytes: Vec<Vec<u8>>,
}

impl Stream {
    fn add(&mut self, event_type: EventType, body: &[u8]) {
        let size = HEADER_LEN + body.len();
        let artificial = matches!(event_type, EventType::ROTATE);
        if !artificial {
            self.position += size as u64;
        }
        let header = EventHeader {
            timestamp: 1,
            event_type,
            server_id: 1,
            size: size as u32,
            log_pos: if artificial { 0 } else { self.position as u32 },
            flags: if artificial { 0x20 } else { 0 },
        };
        let mut event = header.encode().to_vec();
        event.extend_from_slice(body);
        self.bytes.push(event);
    }

    fn query(&mut self, sql: &str) {
        let mut body = Vec::new();
        let query = Query {
            thread_id: 1,
            exec_time: 0,
            error_code: 0,
            status: &[],
            database: b"d",
            sql: sql.as_bytes(),
        };
        query.encode(&mut body);
        self.add(EventType::QUERY, &body);
    }

    fn new() -> Stream {
        let mut stream = Stream { position: 4, bytes: Vec::new() };
        let mut body = Vec::new();
        Rotate { position: 4, file: b"log.000003" }.encode(&mut body);
        stream.add(EventType::ROTATE, &body);
        body.clear();
        FormatDescription::new("8.0.1", 0, Checksum::None).encode(&mut body);
        stream.add(EventType::FORMAT_DESCRIPTION, &body);
        stream
    }

    fn feed(&self, grouper: &mut Grouper) -> Vec<Item> {
        let mut items = Vec::new();
        for bytes in &self.bytes {
            let header = EventHeader::decode(bytes).unwrap();
            let event = RawEvent { offset: 0, header, body: &bytes[HEADER_LEN..], bytes };
            if let Feed::Item(item) = grouper.feed(&event, false).unwrap() {
                items.push(item);
            }
        }
        items
    }
}

fn xid() -> Vec<u8> {
    let mut body = Vec::new();
    Xid(5).encode(&mut body);
    body
}

#[test]
fn a_transaction_is_handed_on_when_it_is_whole() {
    let mut stream = Stream::new();
    stream.query("BEGIN");
    stream.query("INSERT INTO t VALUES (1)");
    let mut grouper = Grouper::new(SourcePosition::default(), 1 << 20);
    let items = stream.feed(&mut grouper);
    assert!(items.iter().all(|item| matches!(item, Item::Moved(..))), "{items:?}");
    assert!(grouper.is_open());
    let before = stream.bytes.len();
    stream.add(EventType::XID, &xid());
    let end = stream.position;
    stream.query("CREATE TABLE x (a INT)");
    stream.bytes.drain(..before);
    let items = stream.feed(&mut grouper);
    let [Item::Trx(first), Item::Trx(second)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((first.events.len(), second.events.len()), (3, 1));
    assert_eq!(first.end, SourcePosition::new("log.000003", end));
    assert_eq!(second.start, first.end);
    assert!(second.trx.standalone);
}

#[test]
fn events_that_come_twice_or_in_another_order_are_refused() {
    let good = || {
        let mut stream = Stream::new();
        stream.query("BEGIN");
        stream.query("INSERT INTO t VALUES (1)");
        stream.add(EventType::XID, &xid());
        stream
    };
    let refused = |stream: &Stream| {
        let mut grouper = Grouper::new(SourcePosition::default(), 1 << 20);
        let found = stream.bytes.iter().find_map(|bytes| {
            let header = EventHeader::decode(bytes).unwrap();
            grouper.feed(&RawEvent { offset: 0, header, body: &bytes[HEADER_LEN..], bytes }, false).err()
        });
        found.is_some()
    };
    assert!(!refused(&good()));
    let mut twice = good();
    twice.bytes.insert(3, twice.bytes[3].clone());
    let mut swapped = good();
    swapped.bytes.swap(3, 4);
    // An event that only says that it is the end.
    let mut false_end = good();
    false_end.bytes[3][4] = EventType::XID.0;
    assert!(refused(&twice) && refused(&swapped) && refused(&false_end));
}

#[test]
fn a_large_transaction_comes_in_pieces_and_may_be_lost() {
    let mut stream = Stream::new();
    stream.query("BEGIN");
    for _ in 0..10 {
        stream.query(&"x".repeat(100));
    }
    let mut grouper = Grouper::new(SourcePosition::default(), 400);
    let items = stream.feed(&mut grouper);
    let pieces =
        items.iter().filter(|item| matches!(item, Item::First(_) | Item::More { end: None, .. })).count();
    assert!(pieces >= 2, "{items:?}");
    assert!(matches!(grouper.abandon(), Some(Item::Gone)));
    assert!(grouper.abandon().is_none());
}

#[test]
fn a_queue_is_bounded_and_forgets_what_an_older_epoch_brings() {
    let queue = Arc::new(Queue::new(200));
    let item = || Item::Moved(SourcePosition::default(), false);
    let epoch = queue.epoch();
    let push = |items: Vec<Item>, epoch| queue.push(&mut { items }, epoch);
    assert!(push(vec![item(), item()], epoch) && push(vec![item()], epoch));
    let full = {
        let queue = queue.clone();
        std::thread::spawn(move || queue.push(&mut vec![Item::Gone], epoch))
    };
    assert!(queue.pop(Duration::from_secs(120)).is_some());
    assert!(full.join().unwrap());
    let newer = queue.clear();
    assert!(queue.is_empty() && !push(vec![item()], epoch) && push(vec![item()], newer));
    queue.set_closed(true);
    assert!(!push(vec![item()], newer));
}

#[test]
fn what_is_taken_from_a_queue_ends_with_the_first_piece_of_a_large_transaction() {
    let queue = Queue::new(1 << 20);
    let trx = || Box::new(received(TrxHeader::default()));
    let more = || Item::More { events: EventBuf::default(), end: None };
    let mut items = vec![Item::Trx(trx()), Item::First(trx()), more(), Item::Trx(trx())];
    assert!(queue.push(&mut items, queue.epoch()) && items.is_empty());
    let mut taken = std::collections::VecDeque::new();
    queue.pop_some(10, Duration::from_secs(5), &mut taken);
    assert!(matches!(taken.make_contiguous(), [Item::Trx(_), Item::First(_)]), "{taken:?}");
    assert!(
        matches!(queue.pop(Duration::ZERO), Some(Item::More { .. })),
        "left to whoever applies the transaction"
    );
    queue.pop_some(10, Duration::from_secs(5), &mut taken);
    assert_eq!((taken.len(), queue.bytes()), (3, 0));
}

fn received(trx: TrxHeader) -> Received {
    Received {
        trx,
        format: Arc::new(FormatDescription::new("8.0.1", 0, Checksum::None)),
        events: EventBuf::default(),
        start: SourcePosition::default(),
        end: SourcePosition::default(),
        wants_ack: false,
    }
}

#[test]
fn transactions_wait_for_what_wrote_their_keys_unless_the_source_knows_better() {
    let mut schedule = Schedule::default();
    let bare = received(TrxHeader::default());
    let mut place = |keys: &[u64]| schedule.place(&bare, &WriteSet::Keys(keys.to_vec())).after;
    assert_eq!(place(&[1, 2]), 0);
    assert_eq!(place(&[3]), 0);
    assert_eq!(place(&[2, 3]), 2);
    assert_eq!(place(&[1]), 1);
    assert_eq!(schedule.place(&bare, &WriteSet::Unknown), Turn { number: 5, after: 4 });
    assert_eq!(schedule.place(&bare, &WriteSet::Keys(vec![9])).after, 5, "nothing is known of what it wrote");
    assert_eq!(schedule.place(&bare, &WriteSet::Alone), Turn { number: 7, after: 6 });
    assert_eq!(schedule.place(&bare, &WriteSet::Keys(vec![8])).after, 7);

    let mut schedule = Schedule::default();
    let mut clocked = |last_committed, sequence_number| {
        let trx = TrxHeader { last_committed, sequence_number, ..TrxHeader::default() };
        schedule.place(&received(trx), &WriteSet::Keys(vec![1])).after
    };
    assert_eq!([clocked(10, 11), clocked(10, 12), clocked(10, 13), clocked(12, 14)], [0, 0, 0, 2]);
    assert_eq!(clocked(0, 1), 4, "another file");
    assert_eq!(clocked(0, 2), 4);

    let mut schedule = Schedule::default();
    let mut grouped = |id| {
        let trx = TrxHeader { group_commit_id: Some(id), ..TrxHeader::default() };
        schedule.place(&received(trx), &WriteSet::Keys(vec![1])).after
    };
    assert_eq!([grouped(7), grouped(7), grouped(7), grouped(8), grouped(9)], [0, 0, 0, 3, 4]);
}

#[test]
fn turns_come_in_order_and_end() {
    let turns = Arc::new(Turns::default());
    assert_eq!(turns.wait(0, Duration::from_millis(1)), Some(true));
    assert_eq!(turns.wait(2, Duration::from_millis(1)), Some(false));
    let other = turns.clone();
    let waiter = std::thread::spawn(move || other.wait(2, Duration::from_secs(120)));
    turns.advance(1);
    turns.advance(2);
    assert_eq!(waiter.join().unwrap(), Some(true));
    turns.end();
    assert_eq!(turns.wait(2, Duration::from_secs(120)), Some(true), "what is done is done");
    assert_eq!(turns.wait(3, Duration::from_secs(120)), None);
}
