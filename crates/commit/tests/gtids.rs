//! Global transaction ids on real files (GTID-1, GTID-2): whose they are, that none is there twice or missing.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use omnibus_commit::{
    CommitError, CommitRequest, CommitSettings, GtidModeError, Ownership, Refusal, SetGtidsError,
    ticket_to_complete,
};
use omnibus_engine::{CommitNo, Engine};
use omnibus_format::events::Gtid;
use omnibus_format::{AnyGtid, EventType, GtidMode, GtidSet, Origin, ServerUuid, Tsid, Unnamed};
use omnibus_log::{FileSeq, LogConfig, LogDir, Next};
use std::path::Path;
use std::sync::atomic::Ordering;
use support::{MapEngine, Server, crash, open_engine, request};

const OWN: ServerUuid = ServerUuid([9; 16]);
const OTHER: ServerUuid = ServerUuid([4; 16]);

fn start(path: &Path, engine: MapEngine) -> Server {
    open_engine(path, 1 << 20, CommitSettings::default(), engine, Box::new(|_| {}))
}

fn given(server: &Server, uuid: ServerUuid, gno: u64, value: &str) -> CommitRequest {
    let mut foreign = request(&server.coordinator, &format!("{uuid}{gno}"), value);
    foreign.cache.set_origin(Origin {
        gtid: Some(AnyGtid::mysql(uuid, gno)),
        server_id: 44,
        original_commit_us: 77,
        original_version: 50_740,
    });
    foreign
}

fn commit(server: &Server, request: CommitRequest) -> CommitNo {
    server.coordinator.commit(request).wait().unwrap()
}

fn own(server: &Server, key: &str) -> CommitNo {
    commit(server, request(&server.coordinator, key, "v"))
}

fn executed(server: &Server) -> String {
    server.coordinator.gtids().executed().to_string()
}

/// The GTID events of a log, with the server id in their headers.
fn events(path: &Path) -> Vec<(u32, Gtid)> {
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    let mut found = Vec::new();
    for &file in dir.files() {
        let mut reader = dir.read(file).unwrap();
        while let Next::Event(event) = reader.next().unwrap() {
            if event.header.event_type == EventType::GTID {
                found.push((event.header.server_id, Gtid::decode(event.body).unwrap()));
            }
        }
    }
    found
}

#[test]
fn foreign_ids_are_kept_and_own_numbers_have_no_hole_whatever_comes_between() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    server.coordinator.cache_settings().large.threshold.store(50_000, Ordering::Relaxed);
    own(&server, "a");
    commit(&server, given(&server, OTHER, 500, "v"));
    own(&server, "b");
    let mut reader = server.coordinator.reader();
    assert_eq!(reader.take(), CommitNo(3));
    // A large one of each kind: its file is the log's next one.
    commit(&server, given(&server, OTHER, 501, &"x".repeat(100_000)));
    commit(&server, request(&server.coordinator, "large", &"y".repeat(100_000)));
    assert_eq!(server.coordinator.cache_settings().large.promoted.load(Ordering::Relaxed), 2);
    server.coordinator.rotate().unwrap();
    assert_eq!(own(&server, "c"), CommitNo(6), "commit numbers count everything");
    let all = format!("{OTHER}:500-501,{OWN}:1-4");
    assert_eq!(executed(&server), all);
    assert_eq!(
        server.coordinator.gtids().executed_at(CommitNo(3)).to_string(),
        format!("{OTHER}:500,{OWN}:1-2")
    );
    reader.release();
    let rows = server.engine.rows.lock().unwrap().clone();
    crash(server.coordinator);

    let server = start(dir.path(), MapEngine::lazy());
    assert_eq!((server.recovered.last, server.replayed.len()), (CommitNo(6), 6), "RECOVER-2");
    assert_eq!((*server.engine.rows.lock().unwrap()).clone(), rows, "RECOVER-2");
    assert_eq!(executed(&server), all);
    own(&server, "d");
    assert_eq!(executed(&server), format!("{OTHER}:500-501,{OWN}:1-5"));
    server.coordinator.close().unwrap();

    let events = events(dir.path());
    let own_numbers: Vec<u64> = events.iter().filter(|(_, g)| g.uuid == OWN).map(|(_, g)| g.gno).collect();
    assert_eq!(own_numbers, [1, 2, 3, 4, 5]);
    let (server_id, foreign) = events.iter().find(|(_, gtid)| gtid.gno == 501).unwrap();
    let times = foreign.times.unwrap();
    assert_eq!((*server_id, times.original_commit_us, times.original_version), (44, 77, 50_740));
    assert_eq!((times.immediate_commit_us, times.immediate_version), (1_700_000_000_000_000, 80_400));
}

#[test]
fn own_numbers_given_by_a_session_leave_no_hole_and_are_never_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    own(&server, "a");
    commit(&server, given(&server, OWN, 3, "v"));
    assert_eq!(own(&server, "b"), CommitNo(3));
    assert_eq!(executed(&server), format!("{OWN}:1-3"), "the hole is filled, and 3 stepped over");
    let Ownership::Owned(four) = server.coordinator.gtids().own(AnyGtid::mysql(OWN, 4)) else {
        panic!("free")
    };
    own(&server, "c");
    assert_eq!(executed(&server), format!("{OWN}:1-3:5"), "4 is owned");
    drop(four);
    own(&server, "d");
    own(&server, "e");
    assert_eq!(executed(&server), format!("{OWN}:1-6"), "4 was given back");
    // Without owning it, and too late.
    assert!(server.coordinator.commit(given(&server, OWN, 6, "v")).wait().is_err());
    assert_eq!(own(&server, "f"), CommitNo(7), "nothing of it is in the log");
    server.coordinator.close().unwrap();
}

#[test]
fn of_two_sessions_with_one_id_the_second_waits_and_then_skips_or_takes_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    let id = AnyGtid::mysql(OTHER, 5);
    let Ownership::Owned(guard) = server.coordinator.gtids().own(id) else { panic!("free") };
    assert_eq!(server.coordinator.gtids().owned(), [id]);
    let Ownership::Busy(ticket) = server.coordinator.gtids().own(id) else { panic!("owned") };
    assert!(ticket.poll_now().is_none());
    drop(guard);
    ticket.wait().unwrap();
    let Ownership::Owned(guard) = server.coordinator.gtids().own(id) else { panic!("rolled back, so free") };
    let Ownership::Busy(ticket) = server.coordinator.gtids().own(id) else { panic!("owned") };
    let no = commit(&server, given(&server, OTHER, 5, "v"));
    drop(guard);
    ticket.wait().unwrap();
    assert!(server.coordinator.gtids().contains(id));
    match server.coordinator.gtids().own(id) {
        Ownership::Executed(durable) => assert!(durable == CommitNo::ZERO || durable >= no),
        other => panic!("{other:?}"),
    }
    // A ticket that nobody waits for must not keep others from theirs.
    drop(ticket_to_complete());
    server.coordinator.close().unwrap();
}

#[test]
fn purged_ids_count_as_executed_and_survive() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    own(&server, "a");
    let set = |text: &str| text.parse::<GtidSet>().unwrap();
    let coordinator = &server.coordinator;
    coordinator.gtids().set_purged(&set(&format!("{OTHER}:1-10")), false).unwrap();
    coordinator.gtids().set_purged(&set(&format!("{OWN}:2-3")), true).unwrap();
    let overlap = coordinator.gtids().set_purged(&set(&format!("{OWN}:1")), true);
    assert!(matches!(overlap, Err(SetGtidsError::Overlaps)));
    let less = coordinator.gtids().set_purged(&set(&format!("{OTHER}:1-9")), false);
    assert!(matches!(less, Err(SetGtidsError::NotSuperset)));
    let held = coordinator.gtids().own(AnyGtid::mysql(OTHER, 11));
    let owned = coordinator.gtids().set_purged(&set(&format!("{OTHER}:11")), true);
    assert!(matches!(owned, Err(SetGtidsError::Owned)));
    drop(held);
    own(&server, "b");
    let all = format!("{OTHER}:1-10,{OWN}:1-4");
    let purged = format!("{OTHER}:1-10,{OWN}:2-3");
    assert_eq!(
        (executed(&server), coordinator.gtids().purged().unwrap().to_string()),
        (all.clone(), purged.clone())
    );
    crash(server.coordinator);
    let server = start(dir.path(), MapEngine::lazy());
    let purged_now = server.coordinator.gtids().purged().unwrap().to_string();
    assert_eq!((executed(&server), purged_now), (all, purged));
    // A reset forgets them.
    server.engine.checkpoint().unwrap();
    server.coordinator.reset_log(FileSeq(1)).unwrap();
    assert!(server.coordinator.gtids().purged().unwrap().is_empty() && executed(&server).is_empty());
    own(&server, "c");
    assert_eq!(executed(&server), format!("{OWN}:1"));
    server.coordinator.close().unwrap();
}

#[test]
fn many_sessions_with_their_own_and_foreign_ids_leave_each_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let server = &server;
            scope.spawn(move || {
                for n in 1..=100_u64 {
                    // Every id is wanted by two threads.
                    let id = AnyGtid::mysql(ServerUuid([thread as u8 / 2; 16]), n);
                    loop {
                        match server.coordinator.gtids().own(id) {
                            Ownership::Owned(guard) => {
                                let uuid = ServerUuid([thread as u8 / 2; 16]);
                                commit(server, given(server, uuid, n, "v"));
                                drop(guard);
                                break;
                            }
                            Ownership::Executed(_) => break,
                            Ownership::Off => unreachable!("gtid_mode is ON"),
                            Ownership::Busy(ticket) => drop(ticket.wait()),
                        }
                    }
                    own(server, &format!("{thread}-{n}"));
                }
            });
        }
    });
    let expected = format!("{}:1-100,{}:1-100,{OWN}:1-400", ServerUuid([0; 16]), ServerUuid([1; 16]));
    assert_eq!(executed(&server), expected);
    crash(server.coordinator);
    let server = start(dir.path(), MapEngine::lazy());
    assert_eq!(executed(&server), expected);
    assert_eq!(server.recovered.last, CommitNo(600));
    server.coordinator.close().unwrap();
    assert_eq!(events(dir.path()).len(), 600);
}

fn unnamed(server: &Server, key: &str, unnamed: Unnamed) -> CommitRequest {
    let mut request = request(&server.coordinator, key, "v");
    request.cache.naming.unnamed = unnamed;
    request
}

/// The kinds of first events in a log, in order, with their sequence numbers.
fn firsts(path: &Path) -> Vec<(EventType, u64)> {
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    let mut found = Vec::new();
    for &file in dir.files() {
        let mut reader = dir.read(file).unwrap();
        while let Next::Event(event) = reader.next().unwrap() {
            if matches!(event.header.event_type, EventType::GTID | EventType::ANONYMOUS_GTID) {
                found.push((event.header.event_type, Gtid::decode(event.body).unwrap().sequence_number));
            }
        }
    }
    found
}

#[test]
fn anonymous_transactions_use_no_number_up_and_are_replayed_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    server.coordinator.log().set_gtid_mode(GtidMode::OffPermissive);
    own(&server, "a");
    commit(&server, given(&server, OWN, 2, "v"));
    server.coordinator.gtids().change_mode(GtidMode::OnPermissive).unwrap();
    own(&server, "b");
    commit(&server, unnamed(&server, "c", Unnamed::Anonymous));
    own(&server, "d");
    commit(&server, unnamed(&server, "e", Unnamed::NextOf(OTHER.into())));
    commit(&server, given(&server, OTHER, 2, "v"));
    assert_eq!(commit(&server, unnamed(&server, "f", Unnamed::NextOf(OTHER.into()))), CommitNo(8));
    let all = format!("{OTHER}:1-3,{OWN}:1-3");
    assert_eq!(executed(&server), all, "1 and 3 around the given 2");
    assert_eq!(server.coordinator.gtids().of(CommitNo(4)), None);
    let rows = server.engine.rows.lock().unwrap().clone();
    crash(server.coordinator);

    let server = start(dir.path(), MapEngine::lazy());
    assert_eq!((server.recovered.last, server.replayed.len()), (CommitNo(8), 8), "RECOVER-2");
    assert_eq!((*server.engine.rows.lock().unwrap()).clone(), rows, "RECOVER-2");
    assert_eq!(executed(&server), all, "GTID-2");
    server.coordinator.close().unwrap();
    let (named, not) = (EventType::GTID, EventType::ANONYMOUS_GTID);
    // The second file began with the change of the mode.
    let expected =
        [(not, 1), (named, 2), (named, 1), (not, 2), (named, 3), (named, 4), (named, 5), (named, 6)];
    assert_eq!(firsts(dir.path()), expected);
}

#[test]
fn the_mode_changes_by_one_step_and_not_under_those_who_rely_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    let coordinator = &server.coordinator;
    let change = |mode| coordinator.gtids().change_mode(mode);
    assert!(matches!(change(GtidMode::OffPermissive), Err(GtidModeError::NotAStep)));
    assert!(coordinator.gtids().own_anonymity().is_none(), "ON");
    let refused = coordinator.commit(unnamed(&server, "a", Unnamed::Anonymous)).wait();
    assert!(matches!(refused, Err(CommitError::Refused(Refusal::Anonymous))));
    change(GtidMode::OnPermissive).unwrap();
    let anonymous = coordinator.gtids().own_anonymity().unwrap();
    assert!(matches!(change(GtidMode::On), Err(GtidModeError::Anonymous)));
    assert_eq!(coordinator.gtids().mode(), GtidMode::OnPermissive);
    drop(anonymous);
    change(GtidMode::On).unwrap();
    change(GtidMode::OnPermissive).unwrap();
    change(GtidMode::OffPermissive).unwrap();
    let id = AnyGtid::mysql(OTHER, 5);
    let Ownership::Owned(guard) = coordinator.gtids().own(id) else { panic!("free") };
    assert!(matches!(change(GtidMode::Off), Err(GtidModeError::Owned)));
    drop(guard);
    let wait = coordinator.gtids().count_wait().unwrap();
    assert!(matches!(change(GtidMode::Off), Err(GtidModeError::Awaited)));
    drop(wait);
    change(GtidMode::Off).unwrap();
    assert!(matches!(coordinator.gtids().own(id), Ownership::Off));
    assert!(coordinator.gtids().count_wait().is_none() && coordinator.gtids().owned().is_empty());
    own(&server, "b");
    assert_eq!(executed(&server), "");
}

#[test]
fn tagged_numbers_count_by_tag_and_come_back_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    let tagged = |tag: &str| Unnamed::NextOf(Tsid::new(OWN, tag.parse().unwrap()));
    own(&server, "a");
    commit(&server, unnamed(&server, "b", tagged("blue")));
    commit(&server, unnamed(&server, "c", tagged("blue")));
    server.coordinator.rotate().unwrap();
    commit(&server, unnamed(&server, "d", tagged("red")));
    own(&server, "e");
    let all = format!("{OWN}:1-2:blue:1-2:red:1");
    assert_eq!(executed(&server), all);
    crash(server.coordinator);
    let server = start(dir.path(), MapEngine::lazy());
    assert_eq!((server.recovered.last, server.replayed.len()), (CommitNo(5), 5), "RECOVER-2");
    assert_eq!(executed(&server), all, "GTID-2");
    commit(&server, unnamed(&server, "f", tagged("blue")));
    assert_eq!(executed(&server), format!("{OWN}:1-2:blue:1-3:red:1"));
    server.coordinator.close().unwrap();
}

/// Returns a request as `sql_log_bin=0` makes it, with a given GTID.
fn unlogged(server: &Server, uuid: ServerUuid, gno: u64, key: &str) -> CommitRequest {
    let mut unlogged = request(&server.coordinator, key, "v");
    unlogged.cache.clear();
    unlogged.cache.set_origin(Origin { gtid: Some(AnyGtid::mysql(uuid, gno)), ..Origin::default() });
    unlogged.cache.append_event(EventType::IGNORABLE.0, 0x80, b"OMNI\x01\x01something").unwrap();
    unlogged.logged = false;
    unlogged
}

#[test]
fn an_id_given_to_what_is_not_logged_counts_as_executed_also_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), MapEngine::lazy());
    own(&server, "a");
    commit(&server, unlogged(&server, OTHER, 7, "x"));
    let (all, purged) = (format!("{OTHER}:7,{OWN}:1"), format!("{OTHER}:7"));
    let check = |server: &Server| {
        assert_eq!(executed(server), all);
        assert_eq!(
            server.coordinator.gtids().purged().unwrap().to_string(),
            purged,
            "no file has it for others"
        );
    };
    check(&server);
    let again = server.coordinator.commit(unlogged(&server, OTHER, 7, "y")).wait();
    assert!(matches!(again, Err(CommitError::Refused(Refusal::Executed(_)))), "GTID-1");
    crash(server.coordinator);
    let server = start(dir.path(), MapEngine::lazy());
    check(&server);
    server.coordinator.rotate().unwrap();
    crash(server.coordinator);
    let server = start(dir.path(), MapEngine::lazy());
    check(&server);
    server.coordinator.close().unwrap();
}
