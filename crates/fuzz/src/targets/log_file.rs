//! Whole log files: as a stream that is applied, and as the file that recovery finds after a crash.

use crate::sink::Sink;
use crate::targets::state::Folder;
use omnibus_format::header::{HEADER_LEN, MAGIC};
use omnibus_format::{
    Checksum, EventHeader, EventIter, EventType, LogPrivate, ScanRules, describe, parse_event, writer,
};
use omnibus_log::{LogConfig, LogDir, RecoveryItem, RecoveryScan};
use omnibus_replication::changes::EventDecoder;

/// The first byte says whether lengths alone count; the rest is a file, whose checksums need not be right.
pub(super) fn stream(input: &[u8]) {
    let [how, bytes @ ..] = input else { return };
    let rules = ScanRules { verify_checksum: false, verify_position: how & 1 != 0, ..ScanRules::default() };
    let Ok(mut events) = EventIter::of_file(bytes, rules) else { return };
    let mut decoder = EventDecoder::default();
    let mut target = Sink;
    let mut end = MAGIC.len() as u64;
    while let Some(Ok(event)) = events.next() {
        assert_eq!(event.offset, end, "events follow one another");
        end = event.end();
        assert_eq!(end, events.offset());
        let _ = describe::info(&event);
        let _ = describe::summary(&event);
        if decoder.apply(&event.header, event.body, &mut target, None).is_err() {
            decoder.reset();
        }
    }
    assert!(end <= bytes.len() as u64);
}

/// A log of one file, recovered. The first byte says whether its sums are put right before: else hardly any
/// input would get past them.
pub(super) fn file(input: &[u8]) {
    let [how, bytes @ ..] = input else { return };
    let mut bytes = bytes.to_vec();
    if how & 1 != 0 {
        put_right(&mut bytes);
    }
    let folder = Folder::new();
    folder.write("binlog.index", b"./binlog.000001\n");
    folder.write("binlog.000001", &bytes);
    let Some(first) = recovered(&folder) else { return };
    assert!(first <= bytes.len() as u64, "LOG-2: the valid end is inside the file");
    // What is left is a whole log, which ends where it was cut. Not at once, if the sums of a group are right and its events
    // are not, as only fuzzing makes it: then its head goes, too.
    let cut = |end: u64| {
        folder.write("binlog.000001", &bytes[..end as usize]);
        recovered(&folder)
    };
    let second = cut(first).expect("what recovery left");
    assert!(second <= first, "LOG-1");
    assert_eq!(cut(second), Some(second), "LOG-1");
}

/// Where recovery would cut; `None` if it refuses.
fn recovered(folder: &Folder) -> Option<u64> {
    let config = LogConfig { extend_chunk: 0, extend_ahead: 0, ..LogConfig::default() };
    let dir = LogDir::open(folder.path(), config).ok()?;
    let first = *dir.files().first()?;
    let mut scan = RecoveryScan::new(&dir, first).ok()??;
    let mut last = 0;
    loop {
        match scan.next().ok()? {
            RecoveryItem::Event { event, .. } => {
                assert!(event.offset >= last, "forwards");
                last = event.end();
            }
            RecoveryItem::FileEnd(_) => {}
            RecoveryItem::Tail(tail) => return Some(tail.end.offset.0),
        }
    }
}

/// End positions and checksums as the lengths have them, then the chain of the groups.
fn put_right(bytes: &mut [u8]) {
    let mut checksum = Checksum::Crc32;
    each_event(bytes, |bytes, at, header| {
        let event = &mut bytes[at..at + header.size as usize];
        writer::restamp(event, (at + header.size as usize) as u32, header.flags, Checksum::Crc32);
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            let body = omnibus_format::FormatDescription::checksum_of_event(event).ok().flatten();
            checksum = body.unwrap_or(Checksum::None);
        } else {
            writer::restamp(event, (at + header.size as usize) as u32, header.flags, checksum);
        }
    });
    let (mut chain, mut before) = (None, None);
    each_event(bytes, |bytes, at, header| {
        let end = at + header.size as usize;
        let mut rules = ScanRules { verify_checksum: false, checksum, ..ScanRules::default() };
        rules.verify_position = false;
        let Ok(Some(event)) = parse_event(&bytes[at..end], at as u64, &rules) else { return };
        let (log, len) = (LogPrivate::of_event(&event), event.body.len());
        let log = match log {
            Some(LogPrivate::FileStart { first, elsewhere, chain: Some(mut start) }) => {
                let from = before.unwrap_or(at);
                start.crc = start.head_crc(&bytes[from.min(at)..at], &bytes[at..at + HEADER_LEN + len]);
                chain = Some(start.chain());
                LogPrivate::FileStart { first, elsewhere, chain: Some(start) }
            }
            Some(LogPrivate::Group { head, spare }) if chain.is_some() => {
                let Some(chain) = &mut chain else { return };
                let Some(group) =
                    usize::try_from(head.len).ok().and_then(|len| bytes.get(end..end.checked_add(len)?))
                else {
                    return;
                };
                let mut hash = chain.hash();
                hash.update(group);
                LogPrivate::Group { head: chain.add(hash, at as u64, head.len, head.durable), spare }
            }
            _ => {
                before = before.or((header.event_type == EventType::FORMAT_DESCRIPTION).then_some(end));
                return;
            }
        };
        let mut body = Vec::new();
        log.encode(&mut body);
        if body.len() == len {
            bytes[at + HEADER_LEN..at + HEADER_LEN + len].copy_from_slice(&body);
            writer::restamp(&mut bytes[at..end], end as u32, header.flags, checksum);
        }
    });
}

fn each_event(bytes: &mut [u8], mut each: impl FnMut(&mut [u8], usize, EventHeader)) {
    let mut at = MAGIC.len();
    while let Some(header) = bytes.get(at..).and_then(|rest| EventHeader::decode(rest).ok())
        && header.size as usize >= HEADER_LEN
        && header.size as usize <= bytes.len() - at
    {
        each(bytes, at, header);
        at += header.size as usize;
    }
}
