//! Requests as bytes; the stream against the file it was made from.

#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn requests_are_read_and_cut_ones_refused() {
    let mut dump = vec![4, 0, 0, 0, 1, 0, 7, 0, 0, 0];
    dump.extend_from_slice(b"binlog.000001\0");
    let request = DumpRequest::decode(&dump).unwrap();
    assert_eq!((request.position, request.server_id, &*request.file), (4, 7, "binlog.000001"));
    assert!(request.ends_at_end());
    for cut in 0..10 {
        assert!(DumpRequest::decode(&dump[..cut]).is_err(), "cut at {cut}");
    }
    let mut register = vec![9, 0, 0, 0, 1, b'h', 1, b'u', 1, b'p', 0xea, 0x0c, 0, 0, 0, 0, 3, 0, 0, 0];
    let registration = Registration::decode(&register).unwrap();
    assert_eq!(registration.port, 3306);
    assert_eq!((registration.server_id, registration.source_id), (9, 3));
    register[4] = 255;
    assert!(Registration::decode(&register).is_err());
}

#[test]
fn a_gtid_request_cannot_claim_more_than_it_sends() {
    let mut dump = vec![4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(DumpRequest::decode_gtid(&dump).unwrap().executed, Some(Default::default()));
    dump.extend_from_slice(&48u32.to_le_bytes());
    assert!(DumpRequest::decode_gtid(&dump).is_err());
    // One server, interval count of 2^60.
    dump.extend_from_slice(&1u64.to_le_bytes());
    dump.extend_from_slice(&[0xaa; 16]);
    dump.extend_from_slice(&(1u64 << 60).to_le_bytes());
    dump.extend_from_slice(&1u64.to_le_bytes());
    dump.extend_from_slice(&5u64.to_le_bytes());
    dump.extend_from_slice(&[0; 8]);
    dump[18] = 56;
    assert!(DumpRequest::decode_gtid(&dump).is_err());
}

#[test]
fn what_a_client_says_about_itself_is_read_under_both_names() {
    let of = |set: &'static [(&str, &str)]| {
        Peer::from_variables(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    let silent = of(&[]);
    assert_eq!(silent.checksum, WantedChecksum::Unsaid);
    assert_eq!(silent.heartbeat, Some(std::time::Duration::from_secs(30)));
    let maria = of(&[
        ("master_binlog_checksum", "crc32"),
        ("master_heartbeat_period", "0"),
        ("mariadb_slave_capability", "4"),
        ("rpl_semi_sync_slave", "1"),
    ]);
    assert!(maria.is_mariadb() && maria.semi_sync);
    assert_eq!((maria.checksum, maria.heartbeat), (WantedChecksum::Crc32, None));
    let mysql = of(&[("replica_uuid", "ABC"), ("source_heartbeat_period", "1500000000")]);
    assert_eq!((mysql.heartbeat, &*mysql.uuid), (Some(std::time::Duration::from_millis(1500)), "abc"));
}
