//! Event bodies: round trips, and golden bytes known from other servers.

use crate::checksum::Checksum;
use crate::events::*;
use crate::field::{FieldType, code};
use crate::gtid::{GtidSet, Interval, ServerUuid};
use proptest::prelude::*;

fn uuid(n: u8) -> ServerUuid {
    ServerUuid([n; 16])
}

#[test]
fn format_description_has_the_shape_of_mysql_8_4() {
    let mut body = Vec::new();
    FormatDescription::new("8.4.0-omnibus", 7, Checksum::Crc32).encode(&mut body);
    assert_eq!(body.len(), 57 + 42 + 1);
    assert_eq!(&body[..6], &[4, 0, b'8', b'.', b'4', b'.']);
    // As 8.x servers write it: QUERY 13, STOP 0, ROTATE 8, ..., its own length 99 at type 15.
    assert_eq!(&body[57..57 + 16], &[0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0]);
    assert_eq!(&body[57 + 32..], &[42, 42, 0, 18, 52, 0, 10, 40, 0, 0, 1]);
    let decoded = FormatDescription::decode(&body).unwrap();
    assert_eq!(decoded, FormatDescription::new("8.4.0-omnibus", 7, Checksum::Crc32));
}

#[test]
fn gtid_round_trips_with_and_without_original_fields() {
    for (original_us, original_version) in [(77, 80400), (5, 80400), (5, 50744)] {
        let mut gtid = Gtid {
            uuid: uuid(3),
            gno: 9,
            row_format_only: true,
            last_committed: 4,
            sequence_number: 5,
            times: Some(GtidTimes {
                immediate_commit_us: 77,
                original_commit_us: original_us,
                immediate_version: 80400,
                original_version,
            }),
            transaction_length: 0,
            ..Gtid::default()
        };
        gtid.set_transaction_length(300, 23);
        let mut body = Vec::new();
        gtid.encode(&mut body);
        assert_eq!(body.len(), gtid.encoded_len());
        assert_eq!(gtid.transaction_length, 300 + 23 + body.len() as u64);
        assert_eq!(Gtid::decode(&body).unwrap(), gtid);
    }
}

#[test]
fn xa_prepare_has_the_documented_layout() {
    let event = XaPrepare { one_phase: true, format_id: 0x0102_0304, gtrid: b"global", bqual: b"b" };
    let mut body = Vec::new();
    event.encode(&mut body);
    // One byte, then three little-endian integers of four bytes, then both parts.
    assert_eq!(body, b"\x01\x04\x03\x02\x01\x06\0\0\0\x01\0\0\0globalb");
    assert_eq!(XaPrepare::decode(&body).unwrap(), event);
    assert!(XaPrepare::decode(&body[..body.len() - 1]).is_err(), "cut short");
    body[5] = 65;
    assert!(XaPrepare::decode(&body).is_err(), "a part is longer than XA allows");
}

#[test]
fn transaction_length_counts_its_own_width_at_each_border() {
    for others in (0..400).chain(65_300..65_700).chain(16_777_000..16_777_300) {
        let mut gtid = Gtid { times: Some(GtidTimes::default()), ..Gtid::default() };
        gtid.set_transaction_length(others, 23);
        let total = others + 23 + gtid.encoded_len() as u64;
        assert_eq!(gtid.transaction_length, total, "others {others}");
    }
}

#[test]
fn gtid_sets_merge_subtract_and_print() {
    let mut set = GtidSet::new();
    for gno in [1, 2, 5, 3, 9, 8] {
        set.add(uuid(0x11), gno);
    }
    set.add_interval(uuid(0x22), Interval { start: 4, end: 5 });
    let text = "11111111-1111-1111-1111-111111111111:1-3:5:8-9,\
                22222222-2222-2222-2222-222222222222:4";
    assert_eq!(set.to_string(), text);
    assert_eq!(text.parse::<GtidSet>().unwrap(), set);
    assert!(set.contains(uuid(0x11), 8) && !set.contains(uuid(0x11), 4));
    assert_eq!((set.count(), set.last(uuid(0x11))), (7, 9));
    let mut body = Vec::new();
    PreviousGtids { set: set.clone() }.encode(&mut body);
    assert_eq!(PreviousGtids::decode(&body).unwrap().set, set);
    let mut rest = set.clone();
    rest.subtract(&"11111111-1111-1111-1111-111111111111:2-8".parse().unwrap());
    assert_eq!(rest.to_string().split(',').next().unwrap(), "11111111-1111-1111-1111-111111111111:1:9");
    assert!(set.contains_set(&rest) && !rest.contains_set(&set));
    for bad in ["x", "11111111-1111-1111-1111-111111111111", "11111111-1111-1111-1111-111111111111:0"] {
        assert!(bad.parse::<GtidSet>().is_err(), "{bad}");
    }
}

/// The numbers below 40 of a set of one UUID.
fn members(set: &GtidSet) -> Vec<u64> {
    (1..40).filter(|gno| set.contains(uuid(0x11), *gno)).collect()
}

proptest! {
    /// Intervals come in any order, overlap and touch.
    #[test]
    fn sets_are_what_their_numbers_are(
        a in prop::collection::vec((1u64..36, 0u64..4), 0..20),
        b in prop::collection::vec((1u64..36, 0u64..4), 0..20),
    ) {
        let read = |list: &[(u64, u64)]| {
            let texts: Vec<String> = list.iter().map(|(from, more)| format!("{from}-{}", from + more)).collect();
            let text = format!("{}:{}", uuid(0x11), texts.join(":"));
            if list.is_empty() { GtidSet::new() } else { text.parse::<GtidSet>().unwrap() }
        };
        let added = |list: &[(u64, u64)]| {
            let mut set = GtidSet::new();
            for (from, more) in list {
                set.add_interval(uuid(0x11), Interval { start: *from, end: from + more + 1 });
            }
            set
        };
        let (one, other) = (read(&a), read(&b));
        prop_assert_eq!(&one, &added(&a));
        let (left, right) = (members(&one), members(&other));
        let mut rest = one.clone();
        rest.subtract(&other);
        let expected: Vec<u64> = left.iter().copied().filter(|gno| !right.contains(gno)).collect();
        prop_assert_eq!(members(&rest), &expected[..]);
        prop_assert_eq!(rest.is_empty(), expected.is_empty());
        prop_assert_eq!(one.intersects(&other), expected.len() < left.len());
        prop_assert_eq!(other.contains_set(&one), expected.is_empty());
        let mut both = one.clone();
        both.union(&other);
        prop_assert_eq!(&both, &added(&[&a[..], &b[..]].concat()));
    }
}

/// A client may write a set of as many intervals as a packet holds, and in the worst order.
#[test]
fn sets_of_many_intervals_take_linear_time() {
    let text = |odd: u64| {
        let numbers: Vec<String> = (1..=200_000u64).rev().map(|n| (2 * n + odd).to_string()).collect();
        format!("{}:{}", uuid(0x11), numbers.join(":"))
    };
    let begun = std::time::Instant::now();
    let (even, odd) = (text(0).parse::<GtidSet>().unwrap(), text(1).parse::<GtidSet>().unwrap());
    let mut rest = even.clone();
    rest.subtract(&odd);
    assert!(rest == even && !even.intersects(&odd) && !even.contains_set(&odd));
    rest.union(&odd);
    assert_eq!(rest.to_string(), format!("{}:2-400001", uuid(0x11)));
    // Minutes if each interval looks at all others.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn status_vars_round_trip_and_keep_unknown_codes() {
    let vars = StatusVars {
        flags2: Some(flags2::AUTO_IS_NULL),
        sql_mode: Some(1 << 22),
        catalog: Some(b"std".to_vec()),
        auto_increment: Some((2, 1)),
        charset: Some([45, 45, 255]),
        time_zone: Some(b"SYSTEM".to_vec()),
        lc_time_names: Some(3),
        charset_database: Some(255),
        table_map_for_update: Some(6),
        invoker: Some((b"root".to_vec(), b"localhost".to_vec())),
        updated_databases: Some(Some(vec![b"a".to_vec(), b"b".to_vec()])),
        microseconds: Some(999_999),
        explicit_defaults_for_timestamp: Some(true),
        ddl_xid: Some(12),
        default_collation_for_utf8mb4: Some(255),
        sql_require_primary_key: Some(0),
        default_table_encryption: Some(0),
        mariadb_hrnow: Some(5),
        mariadb_flags: Some((4, Some(38))),
        charset_collations: vec![(33, 2048), (45, 2304)],
        mariadb_xid: Some(6),
        unknown: vec![0xee, 1, 2],
    };
    let mut block = Vec::new();
    vars.encode(&mut block);
    assert_eq!(StatusVars::decode(&block).unwrap(), vars);
    assert!(StatusVars::decode(&block[..3]).is_err());
}

#[test]
fn table_map_round_trips_with_full_metadata() {
    let fields = [
        (code::LONGLONG, 0),
        (code::NEWDECIMAL, 10 << 8 | 2),
        (code::STRING, 1020),
        (code::VARCHAR, 400),
        (code::ENUM, 1),
        (code::SET, 8),
        (code::BIT, 13),
        (code::BLOB, 4),
        (code::GEOMETRY, 4),
        (code::JSON, 4),
        (code::DATETIME2, 6),
    ];
    let metadata = fields.iter().enumerate().map(|(i, &(c, m))| {
        let field = FieldType { code: c, meta: m };
        let labelled = matches!(c, code::ENUM | code::SET);
        ColumnMetadata {
            unsigned: field.is_numeric().then_some(i == 0),
            collation: (field.is_character() || labelled).then_some(if c == code::BLOB { 63 } else { 255 }),
            name: Some(format!("c{i}").into_bytes()),
            labels: if labelled { vec![b"x".to_vec(), b"yy".to_vec()] } else { vec![] },
            geometry_type: (c == code::GEOMETRY).then_some(1),
            visible: Some(i != 10),
        }
    });
    let map = TableMap {
        table_id: 0x1234_5678_9abc,
        flags: 1,
        database: b"db".to_vec(),
        table: b"t".to_vec(),
        columns: fields.iter().map(|&(code, meta)| FieldType { code, meta }).collect(),
        nullable: (0..fields.len()).map(|i| i % 2 == 1).collect(),
        metadata: metadata.collect(),
        primary_key: vec![PrimaryKeyPart { column: 0, prefix: 0 }, PrimaryKeyPart { column: 3, prefix: 5 }],
    };
    let mut body = Vec::new();
    map.encode(OptionalMetadata::Full, &mut body);
    assert_eq!(TableMap::decode(&body).unwrap(), map);
    for len in 0..body.len() {
        let _ = TableMap::decode(&body[..len]);
    }
}

#[test]
fn small_events_round_trip() {
    let mut out = Vec::new();
    let xa = XaPrepare { one_phase: false, format_id: 1, gtrid: b"g", bqual: b"b" };
    xa.encode(&mut out);
    assert_eq!(XaPrepare::decode(&out).unwrap(), xa);
    out.clear();
    let value = UserVarValue::Int { bits: u64::MAX, unsigned: true };
    let var = UserVar { name: b"v", value, collation: 63 };
    var.encode(&mut out);
    assert_eq!(UserVar::decode(&out).unwrap(), var);
    out.clear();
    let heartbeat = Heartbeat { file: b"binlog.000001", position: Some(5 << 32) };
    heartbeat.encode_v2(&mut out);
    assert_eq!(Heartbeat::decode_v2(&out).unwrap(), heartbeat);
    out.clear();
    let event = MariadbGtidEvent { domain: 1, sequence: 2, flags: 2, commit_id: Some(3) };
    event.encode(&mut out);
    assert_eq!((out.len(), MariadbGtidEvent::decode(&out).unwrap()), (21, event));
    out.clear();
    let query =
        Query { thread_id: 1, exec_time: 2, error_code: 3, status: b"", database: b"d", sql: b"BEGIN" };
    query.encode(&mut out);
    assert_eq!(Query::decode(&out).unwrap(), query);
}

#[test]
fn load_data_round_trips() {
    let query = Query {
        thread_id: 3,
        exec_time: 4,
        error_code: 0,
        status: &[0, 1, 2, 3, 4],
        database: b"d",
        sql: b"LOAD DATA",
    };
    let event = ExecuteLoadQuery { query, file_id: 9, file_name_span: (5, 9), duplicate_handling: 2 };
    let mut out = vec![7];
    event.encode(&mut out);
    assert_eq!(ExecuteLoadQuery::decode(&out[1..]).unwrap(), event);
    out.clear();
    let block = BeginLoadQuery { file_id: 9, data: b"1,2" };
    block.encode(&mut out);
    assert_eq!(BeginLoadQuery::decode(&out).unwrap(), block);
}

#[test]
fn sets_with_tags_are_grouped_by_uuid_and_have_a_form_of_their_own() {
    let text = "11111111-1111-1111-1111-111111111111:1-3:5:blue:1-2:red_1:7,22222222-2222-2222-2222-222222222222:_x:9";
    let set: GtidSet = text.parse().unwrap();
    assert_eq!(set.to_string(), text);
    assert_eq!((set.source_count(), set.count()), (4, 8));
    let mixed = "11111111-1111-1111-1111-111111111111:BLUE:2:1 , 22222222-2222-2222-2222-222222222222: _X : 9,\
                 11111111-1111-1111-1111-111111111111:red_1:7:5";
    let part: GtidSet = mixed.parse().unwrap();
    assert!(!part.contains(uuid(0x11), 5) && !set.contains_set(&part), "numbers behind a tag are its own");
    let tagged = "11111111-1111-1111-1111-111111111111:blue:1-2".parse().unwrap();
    let mut rest = set.clone();
    rest.subtract(&tagged);
    assert!(set.contains_set(&tagged) && !rest.intersects(&tagged) && rest.count() == 6);
    for bad in [":blue", ":blue:red:1", ":1blue:1", ":bl-ue:1", ":", ":aaaaaaaaaabbbbbbbbbbccccccccccddd:1"] {
        assert!(format!("11111111-1111-1111-1111-111111111111{bad}").parse::<GtidSet>().is_err(), "{bad}");
    }
    let mut body = Vec::new();
    PreviousGtids { set: set.clone() }.encode(&mut body);
    assert_eq!(body[..8], [1, 4, 0, 0, 0, 0, 0, 1]);
    assert_eq!(body[24], 0, "no tag");
    assert_eq!(PreviousGtids::decode(&body).unwrap().set, set);
    for cut in 0..body.len() {
        assert!(PreviousGtids::decode(&body[..cut]).is_err());
    }
    rest.subtract(&set);
    let mut body = Vec::new();
    PreviousGtids { set: rest }.encode(&mut body);
    assert_eq!(body, [0; 8]);
}
