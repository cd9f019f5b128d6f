//! Logs that real servers wrote, applied event by event.
#![allow(clippy::unwrap_used)]

mod common;

use common::replica::{Replica, replica};
use omnibus_format::EventHeader;
use omnibus_replication::changes::{Position, Step};
use omnibus_sql::apply::ApplySettings;
use std::path::{Path, PathBuf};

const CHECKSUM: usize = 4;

/// Applies every event of a file that has checksums.
fn apply(replica: &mut Replica, path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let mut at = 4;
    while at < bytes.len() {
        let header = EventHeader::decode(&bytes[at..]).unwrap();
        let event = &bytes[at..at + header.size as usize];
        at += event.len();
        let body = &event[19..event.len() - CHECKSUM];
        let position = Position { channel: "ch".into(), state: at.to_le_bytes().to_vec() };
        let step = replica.decoder.apply(&header, body, &mut replica.applier, Some(&position)).unwrap();
        if let Step::Committed(ticket) = step {
            ticket.wait().unwrap();
        }
    }
}

/// An XA branch of one phase is over with its transaction, compressed or not: the definition behind it is not in it. And what a REPLACE takes
/// along is in the log: the new parent keeps the children that its source kept.
#[test]
fn branches_of_one_phase_end_and_keys_that_the_source_kept_are_left_alone() {
    let mut replica = replica(ApplySettings::default());
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../testdata/binlog/mysql-9.7-keys");
    apply(&mut replica, &folder.join("bin.000001"));
    let client = &mut replica.client;
    for empty in ["behind_compressed", "behind_plain"] {
        assert_eq!(client.rows(&format!("SELECT * FROM k.{empty}")).len(), 0, "{empty}");
    }
    let after = std::fs::read_to_string(folder.join("after.txt")).unwrap();
    for (table, wanted) in after.lines().map(|line| line.split_once(": ").unwrap()) {
        let rows = client.rows(&format!("SELECT * FROM k.{table} ORDER BY id"));
        assert_eq!(format!("{rows:?}"), wanted, "{table}");
    }
}
