//! Damaged and hostile events from a source: an error and nothing applied, or something harmless; never a panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, TestPort};
use omnibus_format::{EventHeader, EventType};
use omnibus_replication::changes::{ApplyTarget, EventDecoder};
use omnibus_sql::apply::{Applier, ApplySettings, Conversions};
use omnibus_sql::{Database, KillFlag, SqlSession};
use std::sync::Arc;

const TABLE: &str = "CREATE TABLE d.t (a int, b varchar(20), c decimal(10,3), d datetime(3), e enum('x','y'), f set('p','q'), \
                     g bit(9), h json, i blob, j time, k double, l char(5), m year, KEY (a), UNIQUE KEY (b))";

const WORK: [&str; 5] = [
    "INSERT INTO d.t VALUES (1, 'one', 1.5, '2020-01-01 00:00:00.5', 'x', 'p,q', 5, '{\"a\": [1, 2]}', 'blob', '-1:00:00', 0.5, 'c', 2020)",
    "INSERT INTO d.t (a, b) VALUES (2, 'two'), (3, NULL), (3, NULL)",
    "UPDATE d.t SET a = a + 10, h = '[3]', l = 'ä' WHERE a = 1",
    "UPDATE d.t SET c = NULL WHERE a = 3",
    "DELETE FROM d.t",
];

/// Numbers that look like chance and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

fn header(event_type: EventType) -> EventHeader {
    EventHeader { timestamp: 1_700_000_000, event_type, server_id: 77, size: 0, log_pos: 0, flags: 0 }
}

fn database() -> (Arc<TestPort>, Arc<Database>, Client) {
    let port = TestPort::new();
    let database = Database::open(port.clone()).unwrap();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE d");
    client.ok(TABLE);
    (port, database, client)
}

#[test]
fn no_bytes_of_a_source_make_it_panic() {
    let (source, _, mut client) = database();
    let from = source.log.lock().len();
    WORK.iter().for_each(|sql| drop(client.ok(sql)));
    let transactions: Vec<_> =
        source.log.lock().iter().skip(from).map(|(.., events)| events.clone()).collect();
    let (_, database, mut client) = database();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut outcomes = [0, 0];
    for round in 0..3000 {
        let session = SqlSession::new(database.clone(), 900, Arc::new(KillFlag::default()));
        let idempotent = round % 2 == 0;
        let conversions = Conversions { lossy: round % 3 == 0, ..Conversions::default() };
        let settings = ApplySettings { idempotent, conversions, ..ApplySettings::default() };
        let mut applier = Applier::new(session, settings);
        let mut decoder = EventDecoder::default();
        let events = &transactions[random.below(transactions.len())];
        let hurt = random.below(events.len());
        let mut failed = false;
        for (at, event) in events.iter().enumerate() {
            let mut body = event.body.to_vec();
            if at == hurt && !body.is_empty() {
                for _ in 0..1 + random.below(3) {
                    let byte = random.below(body.len());
                    match random.below(3) {
                        0 => body[byte] = random.below(256) as u8,
                        1 => body.truncate(byte.max(1)),
                        _ => body.insert(byte, random.below(256) as u8),
                    }
                }
            }
            if let Err(error) = decoder.apply(&header(event.event_type), &body, &mut applier, None) {
                assert!(error.code > 1000 && !error.message.is_empty(), "{error:?}");
                decoder.reset();
                applier.rollback();
                failed = true;
                break;
            }
        }
        outcomes[usize::from(failed)] += 1;
    }
    assert!(outcomes[0] > 50 && outcomes[1] > 500, "{outcomes:?}");
    // What got in is readable, and the indexes agree with it.
    client.ok("SELECT * FROM d.t");
    assert_eq!(client.rows("CHECK TABLE d.t")[0][2..], ["status", "OK"]);
}
