//! Tests of the whole crate on real files in a temporary directory. The events come from `omnibus_format`'s encoders.

#![allow(clippy::unwrap_used)]

mod basic;
mod behind;
mod clip;
mod decoder;
mod durable;
mod faults;
mod files;
mod generations;
mod links;
mod model;
mod prealloc;
mod promote;
mod purge;
mod reserve;
mod reset;
mod run;
mod tail;
mod torn;
mod transactions;

use crate::*;
use omnibus_format::events::{FormatDescription, Gtid, IntVar, PreviousGtids, Query, Rotate, Xid};
use omnibus_format::header::{FLAG_IGNORABLE, FLAG_IN_USE};
use omnibus_format::writer::write_final;
use omnibus_format::{Checksum, EventContext, EventType, GtidSet, ServerUuid};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CONTEXT: EventContext = EventContext { timestamp: 1_700_000_000, server_id: 7 };

/// Runs `check` for every number below `count`, several at a time: each spends its time waiting for the device.
fn at_once(count: usize, check: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(n) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count) {
                    check(n);
                }
            });
        }
    });
}

/// The operating system's numbers of two errors that tests plant.
const DISK_FULL: i32 = if cfg!(windows) { 112 } else { libc::ENOSPC };
const IO_ERROR: i32 = if cfg!(windows) { 1117 } else { libc::EIO };

/// A full disk is waited for.
fn patient() -> Room {
    Room { full_disk: Arc::new(FullDisk::patient()), reserve: 0 }
}

/// Appends one event at file offset `at` and gives its end.
fn event(out: &mut Vec<u8>, kind: EventType, at: u64, body: impl FnOnce(&mut Vec<u8>)) -> u64 {
    let flags = match kind {
        EventType::FORMAT_DESCRIPTION => FLAG_IN_USE,
        EventType::IGNORABLE => FLAG_IGNORABLE,
        _ => 0,
    };
    write_final(out, CONTEXT, kind, flags, at, Checksum::Crc32, body)
}

/// FORMAT_DESCRIPTION, PREVIOUS_GTIDS and a private note for the start of a file.
fn head() -> Vec<u8> {
    let mut out = Vec::new();
    let format = FormatDescription::new("8.4.0-omnibus", 0, Checksum::Crc32);
    let at = event(&mut out, EventType::FORMAT_DESCRIPTION, 4, |out| format.encode(out));
    let previous = PreviousGtids { set: GtidSet::new() };
    let at = event(&mut out, EventType::PREVIOUS_GTIDS, at, |out| previous.encode(out));
    event(&mut out, EventType::IGNORABLE, at, |out| out.extend(b"a private note"));
    out
}

fn query(sql: &[u8]) -> impl FnOnce(&mut Vec<u8>) + '_ {
    move |out| {
        let status = &[];
        Query { thread_id: 1, exec_time: 0, error_code: 0, status, database: b"test", sql }.encode(out);
    }
}

fn gtid(gno: u64) -> impl FnOnce(&mut Vec<u8>) {
    move |out| Gtid { uuid: ServerUuid([9; 16]), gno, sequence_number: gno, ..Gtid::default() }.encode(out)
}

/// A transaction number `gno` whose statement has `payload` bytes, for file offset `at`.
fn transaction(at: u64, gno: u64, payload: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let at = event(&mut out, EventType::GTID, at, gtid(gno));
    let at = event(&mut out, EventType::QUERY, at, query(b"BEGIN"));
    let at = event(&mut out, EventType::INTVAR, at, |out| IntVar { kind: 2, value: gno }.encode(out));
    let at = event(&mut out, EventType::QUERY, at, query(&vec![b'x'; payload]));
    event(&mut out, EventType::XID, at, |out| Xid(gno).encode(out));
    out
}

fn rotate_event(at: u64, next: &str) -> Vec<u8> {
    let mut out = Vec::new();
    event(&mut out, EventType::ROTATE, at, |out| Rotate { position: 4, file: next.as_bytes() }.encode(out));
    out
}

fn config(method: FlushMethod) -> LogConfig {
    LogConfig { flush_method: method, max_size: 1 << 20, ..LogConfig::default() }
}

const METHODS: [FlushMethod; 3] = [FlushMethod::Fdatasync, FlushMethod::ODsync, FlushMethod::ODirectDsync];

fn start(path: &Path, config: LogConfig) -> LogWriter {
    LogWriter::start(LogDir::open(path, config).unwrap(), &head()).unwrap()
}

/// Appends a transaction.
fn append(writer: &mut LogWriter, gno: u64, payload: usize) {
    let bytes = transaction(writer.position().offset.0, gno, payload);
    writer.buffer().extend_from_slice(&bytes);
}

/// Appends a transaction and makes it durable.
fn commit(writer: &mut LogWriter, gno: u64, payload: usize) -> Result<LogPosition, WriteError> {
    append(writer, gno, payload);
    let job = writer.seal();
    let end = job.end();
    job.run()?;
    writer.handle().durable_end().advance(end);
    Ok(end)
}

/// Appends the ROTATE event and switches to the next file.
fn rotate(writer: &mut LogWriter) -> Result<LogPosition, RotateError> {
    let event = rotate_event(writer.position().offset.0, &writer.next_file_name().unwrap());
    writer.buffer().extend_from_slice(&event);
    writer.rotate(&head())
}

/// As [`rotate`], for a reset.
fn rotate_alone(writer: &mut LogWriter) -> Result<LogPosition, RotateError> {
    let event = rotate_event(writer.position().offset.0, &writer.next_file_name().unwrap());
    writer.buffer().extend_from_slice(&event);
    writer.rotate_alone(&head())
}

/// Appends the STOP event and closes the log.
fn close(writer: &mut LogWriter) -> Result<(), RotateError> {
    let at = writer.position().offset.0;
    let mut out = Vec::new();
    event(&mut out, EventType::STOP, at, |_| {});
    writer.buffer().extend_from_slice(&out);
    writer.close()
}

/// Opens the log after a crash: the numbers of all whole transactions, and the tail, cut if need be.
fn recover(path: &Path) -> (Vec<u64>, Option<LogTail>) {
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    let Some(&first) = dir.files().first() else { return (Vec::new(), None) };
    let (found, tail) = numbers(&dir, first);
    if tail.needs_truncation() {
        dir.truncate_tail(tail.end.file, tail.end.offset).unwrap();
    }
    (found, Some(tail))
}

fn numbers(dir: &LogDir, first: FileSeq) -> (Vec<u64>, LogTail) {
    let mut scan = RecoveryScan::new(dir, first).unwrap().unwrap();
    let (mut found, mut open) = (Vec::new(), None);
    loop {
        match scan.next().unwrap() {
            RecoveryItem::Event { event, place: EventPlace::First, .. } => {
                open = Some(Gtid::decode(event.body).unwrap().gno);
            }
            RecoveryItem::Event { place: EventPlace::Last, .. } => found.extend(open.take()),
            RecoveryItem::Event { .. } | RecoveryItem::FileEnd(_) => {}
            RecoveryItem::Tail(tail) => return (found, tail),
        }
    }
}

/// Opens a file for changes behind the log's back.
fn open(path: &Path) -> omnibus_disk::File {
    omnibus_disk::Disk::default().open(path, omnibus_disk::Open::Write).unwrap()
}

fn file_len(path: &Path, name: &str) -> u64 {
    fs::metadata(path.join(name)).unwrap().len()
}
