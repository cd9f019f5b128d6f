//! Bodies of binlog events, MySQL's, MariaDB's and those of versions long gone.

use omnibus_format::events::{
    BeginLoadQuery, ExecuteLoadQuery, FormatDescription, Gtid, Heartbeat, Incident, IntVar, MariadbGtidEvent,
    MariadbGtidList, Modern, OptionalMetadata, PreviousGtids, Query, Rand, Rotate, RowsQuery, StatusVars,
    TableMap, UserVar, XaPrepare, Xid,
};
use omnibus_format::{EventHeader, EventType, LogPrivate, RawEvent, describe};
use omnibus_replication::changes::{Borders, mariadb_xa_start};

/// Checks that a decoded value that is encoded and decoded again is the same. Compared as text, where NaN equals
/// itself.
macro_rules! comes_back {
    ($decode:expr, $encode:expr, $body:expr) => {
        if let Ok(first) = $decode($body) {
            let mut bytes = Vec::new();
            $encode(&first, &mut bytes);
            let second = $decode(&bytes);
            assert_eq!(
                format!("{:?}", Ok::<_, ()>(&first)),
                format!("{:?}", second.as_ref().map_err(|_| ()))
            );
        }
    };
}

/// The first byte is the event's type, the second says how it is read, the rest is the body.
pub(super) fn body(input: &[u8]) {
    let [kind, how, body @ ..] = input else { return };
    let event_type = EventType(*kind);
    let size = (omnibus_format::HEADER_LEN + body.len()) as u32;
    let header =
        EventHeader { timestamp: 7, event_type, server_id: 3, size, log_pos: 0, flags: u16::from(*how) };
    let mut modern = Modern::default();
    let body = &*modern.body(&header, body);
    let event = RawEvent { offset: 4, header, body, bytes: body };
    let _ = describe::info(&event);
    let _ = describe::summary(&event);
    let _ = Borders::default().classify(&header, body);
    let _ = mariadb_xa_start(body);
    let _ = MariadbGtidEvent::alter_phase(body);
    round_trip(event_type, *how, body);
    if let Some(private) = LogPrivate::of_event(&event) {
        let mut bytes = Vec::new();
        private.encode(&mut bytes);
        let again = LogPrivate::of_event(&RawEvent { body: &bytes, bytes: &bytes, ..event });
        assert_eq!(again, Some(private));
    }
}

fn round_trip(event_type: EventType, how: u8, body: &[u8]) {
    use EventType as E;
    match event_type {
        E::FORMAT_DESCRIPTION => comes_back!(FormatDescription::decode, FormatDescription::encode, body),
        E::GTID | E::ANONYMOUS_GTID | E::GTID_TAGGED => gtid(event_type, body),
        E::PREVIOUS_GTIDS => comes_back!(PreviousGtids::decode, PreviousGtids::encode, body),
        E::QUERY => query(body),
        E::TABLE_MAP => table_map(how & 1 != 0, body),
        E::XID => comes_back!(Xid::decode, Xid::encode, body),
        E::ROTATE => comes_back!(Rotate::decode, Rotate::encode, body),
        E::INTVAR => comes_back!(IntVar::decode, IntVar::encode, body),
        E::RAND => comes_back!(Rand::decode, Rand::encode, body),
        E::USER_VAR => comes_back!(UserVar::decode, UserVar::encode, body),
        E::ROWS_QUERY => comes_back!(RowsQuery::decode, RowsQuery::encode, body),
        E::INCIDENT => comes_back!(Incident::decode, Incident::encode, body),
        E::HEARTBEAT_V2 => comes_back!(Heartbeat::decode_v2, Heartbeat::encode_v2, body),
        E::XA_PREPARE => comes_back!(XaPrepare::decode, XaPrepare::encode, body),
        E::BEGIN_LOAD_QUERY => comes_back!(BeginLoadQuery::decode, BeginLoadQuery::encode, body),
        E::EXECUTE_LOAD_QUERY => comes_back!(ExecuteLoadQuery::decode, ExecuteLoadQuery::encode, body),
        E::MARIADB_GTID => comes_back!(MariadbGtidEvent::decode, MariadbGtidEvent::encode, body),
        E::MARIADB_GTID_LIST => comes_back!(MariadbGtidList::decode, MariadbGtidList::encode, body),
        _ => {}
    }
}

fn gtid(event_type: EventType, body: &[u8]) {
    let Ok(gtid) = Gtid::decode_as(event_type, body) else { return };
    let mut bytes = Vec::new();
    gtid.encode(&mut bytes);
    assert_eq!(bytes.len(), gtid.encoded_len());
    assert_eq!(Gtid::decode_as(gtid.event_type(), &bytes), Ok(gtid));
}

fn query(body: &[u8]) {
    comes_back!(Query::decode, Query::encode, body);
    if let Ok(query) = Query::decode(body) {
        comes_back!(StatusVars::decode, StatusVars::encode, query.status);
    }
}

fn table_map(mariadb: bool, body: &[u8]) {
    let _ = TableMap::decode_dialect(body, mariadb);
    let Ok(map) = TableMap::decode(body) else { return };
    let encoded = |map: &TableMap| {
        let mut out = Vec::new();
        map.encode(OptionalMetadata::Full, &mut out);
        out
    };
    // The first time signs are said that the event may have left out.
    let first = encoded(&map);
    let again = TableMap::decode(&first).expect("what was encoded");
    assert_eq!(
        (&again.columns, &again.nullable, &again.primary_key),
        (&map.columns, &map.nullable, &map.primary_key)
    );
    assert_eq!(encoded(&again), first);
}
