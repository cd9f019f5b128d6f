//! Finishing events and scanning them back; every kind of ending (LOG-2: bytes behind the end never
//! parse as an event).

use crate::checksum::Checksum;
use crate::event_type::EventType;
use crate::events::{FormatDescription, Xid};
use crate::header::{FLAG_IN_USE, FLAGS_OFFSET, HEADER_LEN, MAGIC};
use crate::scan::{EventIter, ScanErrorKind, ScanRules, frame_len, parse_event};
use crate::writer::{EventContext, append_event, finish_cached, finished_len, write_final};

const CONTEXT: EventContext = EventContext { timestamp: 100, server_id: 7 };

/// A file of a format description and `n` XID events.
fn file(n: u64, checksum: Checksum) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let format = FormatDescription::new("8.4.0-omnibus", 0, checksum);
    let end =
        write_final(&mut out, CONTEXT, EventType::FORMAT_DESCRIPTION, FLAG_IN_USE, 4, checksum, |body| {
            format.encode(body)
        });
    assert_eq!(end, out.len() as u64);
    let mut cached = Vec::new();
    for i in 0..n {
        let mut body = Vec::new();
        Xid(i).encode(&mut body);
        append_event(&mut cached, CONTEXT, EventType::XID, 0, &body);
    }
    let (len, events) = finished_len(&cached, checksum).unwrap();
    let before = out.len();
    let end = finish_cached(&mut out, &cached, end, checksum).unwrap();
    assert_eq!((end, events as u64, len), (out.len() as u64, n, out.len() - before));
    out
}

fn scan(bytes: &[u8]) -> (usize, u64, Option<ScanErrorKind>) {
    let mut iter = EventIter::of_file(bytes, ScanRules::default()).unwrap();
    let mut good = 0;
    let mut error = None;
    for event in iter.by_ref() {
        match event {
            Ok(_) => good += 1,
            Err(e) => error = Some(e.kind),
        }
    }
    (good, iter.offset(), error)
}

#[test]
fn whole_files_scan_to_their_end_with_and_without_checksums() {
    for checksum in [Checksum::Crc32, Checksum::None] {
        let bytes = file(3, checksum);
        assert_eq!(scan(&bytes), (4, bytes.len() as u64, None));
        let events: Vec<_> =
            EventIter::of_file(&bytes, ScanRules::default()).unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(Xid::decode(events[3].body).unwrap(), Xid(2));
        assert_eq!(events[3].body.len(), 8);
    }
}

#[test]
fn every_cut_is_torn_or_a_clean_end_at_the_last_whole_event() {
    let bytes = file(3, Checksum::Crc32);
    let ends: Vec<u64> =
        EventIter::of_file(&bytes, ScanRules::default()).unwrap().map(|e| e.unwrap().end()).collect();
    for cut in 4..bytes.len() {
        let (good, end, error) = scan(&bytes[..cut]);
        assert_eq!(end, ends[..good].last().copied().unwrap_or(4));
        match error {
            None => assert_eq!(end, cut as u64),
            Some(kind) => assert!(matches!(kind, ScanErrorKind::Torn { .. }), "{kind:?} at {cut}"),
        }
    }
}

#[test]
fn zeros_behind_the_end_are_preallocated_space() {
    let mut bytes = file(2, Checksum::Crc32);
    let end = bytes.len() as u64;
    bytes.resize(bytes.len() + 4096, 0);
    assert_eq!(scan(&bytes), (3, end, Some(ScanErrorKind::Preallocated)));
}

#[test]
fn every_flipped_bit_is_found() {
    let good = file(1, Checksum::Crc32);
    for at in 4..good.len() {
        for bit in 0..8 {
            if at == 4 + FLAGS_OFFSET && bit == 0 {
                continue; // The in-use bit is not covered by the checksum, on purpose.
            }
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let (_, end, error) = scan(&bytes);
            assert!(error.is_some() && end <= at as u64, "byte {at} bit {bit}");
        }
    }
}

#[test]
fn a_frame_that_is_taken_for_whole_is_an_event() {
    let bytes = file(2, Checksum::Crc32);
    let rules = ScanRules { verify_checksum: false, ..ScanRules::default() };
    let mut whole = 0;
    for from in 4..bytes.len() {
        for bit in 0..=HEADER_LEN * 8 {
            let mut damaged = bytes[from..].to_vec();
            if let Some(byte) = damaged.get_mut(bit / 8).filter(|_| bit < HEADER_LEN * 8) {
                *byte ^= 1 << (bit % 8);
            }
            let Some(len) = frame_len(&damaged, from as u64, &rules) else { continue };
            let event = parse_event(&damaged, from as u64, &rules).unwrap().unwrap();
            assert_eq!(event.bytes.len(), len, "bit {bit} at {from}");
            whole += 1;
        }
    }
    assert!(whole > 2, "{whole}");
    let first = &bytes[4..];
    assert_eq!(frame_len(first, 4, &rules), None, "its checksum byte decides about the others");
    assert_eq!(frame_len(first, 4, &ScanRules::default()), None);
}

#[test]
fn an_event_at_another_offset_is_not_an_event() {
    let bytes = file(2, Checksum::Crc32);
    let xid = &bytes[bytes.len() - 31..];
    let mut moved = bytes.clone();
    moved.extend_from_slice(xid);
    let (good, _, error) = scan(&moved);
    assert_eq!(good, 3);
    assert!(matches!(error, Some(ScanErrorKind::BadPosition { .. })));
}

#[test]
fn damaged_caches_are_refused_and_leave_the_buffer_alone() {
    let mut cached = Vec::new();
    append_event(&mut cached, CONTEXT, EventType::XID, 0, &[0; 8]);
    let mut out = vec![1];
    assert!(finish_cached(&mut out, &cached[..20], 4, Checksum::Crc32).is_err());
    cached.extend_from_slice(&[0; 19]);
    assert!(finish_cached(&mut out, &cached, 4, Checksum::Crc32).is_err());
    assert_eq!(out, [1]);
}
