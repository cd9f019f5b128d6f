//! Packets of long events: sent from their block, framed as if they had been copied.

#![allow(clippy::unwrap_used)]

use super::parts::Unsent;
use super::{BlockReader, BlockStep, DumpRequest, Peer, Stream};
use omnibus_format::writer::write_final;
use omnibus_format::{Checksum, EventContext, EventType, FormatDescription};
use omnibus_log::{LogConfig, LogDir, LogPosition, LogWriter};
use omnibus_wire::{InBuf, MAX_FRAME, OutBuf};

/// A log with one event for each of these lengths; its events.
fn log_of(dir: &std::path::Path, lengths: &[usize]) -> (omnibus_log::LogWriter, Vec<Vec<u8>>) {
    let event = |kind, at, body: &[u8]| {
        let mut out = Vec::new();
        let context = EventContext { timestamp: 0, server_id: 1 };
        write_final(&mut out, context, kind, 0, at, Checksum::Crc32, |out| out.extend_from_slice(body));
        out
    };
    let mut format = Vec::new();
    FormatDescription::new("8.4.0", 0, Checksum::Crc32).encode(&mut format);
    let config = LogConfig { preallocate: false, ..LogConfig::default() };
    let head = event(EventType::FORMAT_DESCRIPTION, 4, &format);
    let mut writer = LogWriter::start(LogDir::open(dir, config).unwrap(), &head).unwrap();
    let mut events = Vec::new();
    for (n, length) in lengths.iter().enumerate() {
        let bytes = event(EventType::WRITE_ROWS, writer.position().offset.0, &vec![n as u8; length - 23]);
        assert_eq!(bytes.len(), *length);
        writer.buffer().extend_from_slice(&bytes);
        let job = writer.seal();
        let end = job.end();
        job.run_without_sync().unwrap();
        writer.handle().durable_end().advance(end);
        events.push(bytes);
    }
    (writer, events)
}

/// Returns what a client receives of the log from its first event on: payloads, and the number of the packet that
/// follows.
fn packets(
    log: &omnibus_log::LogHandle,
    (wanted, verify): (usize, bool),
    variables: &[(&str, &str)],
) -> Vec<Vec<u8>> {
    let peer = Peer::from_variables(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    });
    let request = DumpRequest::decode(&[4, 0, 0, 0, 0, 0, 7, 0, 0, 0]).unwrap();
    let start = LogPosition::new(omnibus_log::FileSeq(1), 4);
    let mut stream = Stream::new(&peer, &request, log.names().clone(), 1, start);
    let mut reader = BlockReader::open(log, start, verify).unwrap();
    let (mut out, mut wire) = (OutBuf::new(), Vec::new());
    while let BlockStep::Block(block) = reader.next(wanted).unwrap() {
        stream.block(&block, &mut out).unwrap();
        let mut unsent = Unsent { own: out.bytes(), parts: stream.parts(), block: block.bytes(), done: 0 };
        while let slices = unsent.slices()
            && !slices.is_empty()
        {
            slices.iter().for_each(|slice| wire.extend_from_slice(slice));
            unsent.done += slices.iter().map(|slice| slice.len()).sum::<usize>();
        }
        assert!(verify || block.len() <= wanted.max(200), "{} bytes are in memory", block.len());
        assert_eq!(stream.is_inside(), stream.position().offset.0 < reader.position().offset.0);
        out.sent();
        stream.sent();
        reader.give_back(block);
    }
    let mut input = InBuf::new();
    input.writable(wire.len()).extend_from_slice(&wire);
    let (mut seq, mut found) = (0, Vec::new());
    while let Some(range) = input.next_packet(&mut seq, usize::MAX).unwrap() {
        found.push(input.payload(range).to_vec());
    }
    assert_eq!(input.pending(), 0);
    assert_eq!(seq, out.seq(), "every frame has its number");
    found
}

const CRC32: (&str, &str) = ("source_binlog_checksum", "CRC32");

fn check(lengths: &[usize], wanted: usize) {
    let dir = tempfile::tempdir().unwrap();
    let (writer, events) = log_of(dir.path(), lengths);
    // Whole events where they are verified, and pieces where they are not.
    for verify in [true, false] {
        let got = packets(&writer.handle(), (wanted, verify), &[CRC32]);
        assert_eq!(got.len(), 1 + events.len());
        for (packet, event) in got[1..].iter().zip(&events) {
            assert!(packet[0] == 0 && packet[1..] == event[..], "an event of {} bytes", event.len());
        }
        let got = packets(&writer.handle(), (wanted, verify), &[CRC32, ("rpl_semi_sync_replica", "1")]);
        for (packet, event) in got[1..].iter().zip(&events) {
            assert!(
                packet[..3] == [0, 0xef, 0] && packet[3..] == event[..],
                "{} bytes, asked for",
                event.len()
            );
        }
    }
    let got = packets(&writer.handle(), (wanted, true), &[("source_binlog_checksum", "NONE")]);
    for (packet, event) in got[1..].iter().zip(&events) {
        let short = event.len() - 4;
        assert_eq!(packet[10..14], (short as u32).to_le_bytes(), "its own length");
        assert!(
            packet[1..10] == event[..9] && packet[14..] == event[13..short],
            "{short} bytes, no checksum"
        );
    }
}

#[test]
fn long_events_are_framed_as_short_ones_are() {
    for wanted in [1, 30, 10_000, 50_000, 256 << 10] {
        check(&[100, (16 << 10) - 1, 16 << 10, 300_000, 40, 40, 16 << 10, 70_000], wanted);
    }
}

#[test]
fn an_event_that_fills_a_frame_is_followed_by_another_frame() {
    // With what is in front of it, it fills one with and without the request to acknowledge it, or needs another byte.
    check(&[MAX_FRAME - 3, MAX_FRAME - 1, MAX_FRAME], 1 << 20);
}
