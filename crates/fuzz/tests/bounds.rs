//! WIRE-1: a few bytes that stand for very many do not take the memory, or the time, of very many.

use omnibus_format::events::{Gtid, Query, RowsQuery, Xid};
use omnibus_format::row::{JsonDiff, JsonDiffOp, JsonDiffs, put_json_diff};
use omnibus_format::{EventHeader, EventType, HEADER_LEN, MAX_EVENT_SIZE, ServerUuid};
use omnibus_fuzz::peak_of;
use omnibus_replication::changes::{
    ApplyError, ApplyTarget, EventDecoder, Position, Step, inflate, plain_event,
};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};
use omnibus_value::json::{Json, JsonError};

const MIB: usize = 1 << 20;

/// Counts commits.
#[derive(Default)]
struct Commits(u32);

impl ApplyTarget for Commits {
    type Ticket = ();

    fn begin(&mut self, _: &TrxHeader) -> Result<(), ApplyError> {
        Ok(())
    }
    fn statement(&mut self, _: &dyn StatementView) -> Result<(), ApplyError> {
        Ok(())
    }
    fn rows(&mut self, _: &dyn RowsView) -> Result<(), ApplyError> {
        Ok(())
    }
    fn commit(&mut self, _: Option<&Position>) -> Result<(), ApplyError> {
        self.0 += 1;
        Ok(())
    }
    fn prepare(
        &mut self,
        _: &omnibus_format::events::XaPrepare<'_>,
        _: Option<&Position>,
    ) -> Result<(), ApplyError> {
        Ok(())
    }
    fn rollback(&mut self) {}
}

fn header(event_type: EventType, body: usize) -> EventHeader {
    EventHeader {
        timestamp: 1,
        event_type,
        server_id: 3,
        size: (HEADER_LEN + body) as u32,
        log_pos: 0,
        flags: 0,
    }
}

fn event(event_type: EventType, body: &[u8]) -> Vec<u8> {
    [&header(event_type, body.len()).encode()[..], body].concat()
}

fn body(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// A zstd frame by hand (RFC 8878): blocks as they are, and blocks that repeat what is `back` bytes before, 128 KiB each.
struct Frame(Vec<u8>);

impl Frame {
    fn new() -> Frame {
        // No checksum, no length, a window of 1 MiB.
        Frame(vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3])
    }

    fn block(&mut self, kind: u32, size: usize, bytes: &[u8]) {
        self.0.extend_from_slice(&(((size as u32) << 3) | kind << 1).to_le_bytes()[..3]);
        self.0.extend_from_slice(bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        bytes.chunks(128 << 10).for_each(|bytes| self.block(0, bytes.len(), bytes));
    }

    fn zeros(&mut self, len: usize) {
        (0..len / (128 << 10)).for_each(|_| self.block(1, 128 << 10, &[0]));
    }

    fn repeat(&mut self, back: usize) {
        let value = back as u64 + 3;
        let code = value.ilog2();
        // No literals; one sequence, whose three codes are tables of one symbol: no literals, this distance, the longest match.
        let mut bytes = vec![0, 1, 0b0101_0100, 0, code as u8, 52];
        let length = (128 << 10) - 65539;
        // Read from the end: a bit that ends it, what the distance has more than its code, what the length has.
        let bits = ((1 << code) | (value - (1 << code))) << 16 | length;
        let count = code as usize + 17;
        bytes.extend_from_slice(&bits.to_le_bytes()[..count.div_ceil(8)]);
        self.block(2, bytes.len(), &bytes);
    }

    fn payload(mut self) -> Vec<u8> {
        self.block(0, 0, &[]);
        let last = self.0.len() - 3;
        self.0[last] |= 1;
        // The field that says how it is compressed, then the end of the fields.
        [&[2, 1, 0, 0][..], &self.0].concat()
    }
}

fn apply(
    decoder: &mut EventDecoder,
    target: &mut Commits,
    kind: EventType,
    body: &[u8],
) -> Result<Step<()>, ApplyError> {
    decoder.apply(&header(kind, body.len()), body, target, None)
}

fn gtid(gno: u64) -> Vec<u8> {
    body(|out| Gtid { uuid: ServerUuid([1; 16]), gno, ..Gtid::default() }.encode(out))
}

fn begin() -> Vec<u8> {
    let query =
        Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"d", sql: b"BEGIN" };
    event(EventType::QUERY, &body(|out| query.encode(out)))
}

/// 512 MiB of events in 60 KB: more is only longer.
#[test]
fn a_compressed_transaction_is_applied_event_by_event() {
    let text =
        event(EventType::ROWS_QUERY, &body(|out| RowsQuery(&[b'x'; 8192 - HEADER_LEN - 1]).encode(out)));
    assert_eq!(text.len(), 8192);
    let mut frame = Frame::new();
    frame.raw(&begin());
    frame.raw(&text);
    (0..4096).for_each(|_| frame.repeat(8192));
    frame.raw(&event(EventType::XID, &body(|out| Xid(1).encode(out))));
    let payload = frame.payload();
    assert!(payload.len() < 64 << 10, "{}", payload.len());
    let (mut decoder, mut target) = (EventDecoder::default(), Commits::default());
    let peak = peak_of(|| {
        apply(&mut decoder, &mut target, EventType::GTID, &gtid(1)).expect("a GTID");
        apply(&mut decoder, &mut target, EventType::TRANSACTION_PAYLOAD, &payload).expect("a transaction");
    });
    assert_eq!(target.0, 1);
    assert!(peak < 8 * MIB, "{peak} bytes");
}

/// A length that was promised is not an allocation, and one past every limit is not waited for.
#[test]
fn an_event_that_is_not_all_there_takes_what_there_is() {
    for promised in [64 * MIB, 3 << 30] {
        let mut frame = Frame::new();
        frame.raw(&header(EventType::ROWS_QUERY, promised).encode());
        frame.zeros(4 * MIB);
        let payload = frame.payload();
        let (mut decoder, mut target) = (EventDecoder::default(), Commits::default());
        let peak = peak_of(|| {
            apply(&mut decoder, &mut target, EventType::GTID, &gtid(1)).expect("a GTID");
            let error = apply(&mut decoder, &mut target, EventType::TRANSACTION_PAYLOAD, &payload)
                .expect_err("an event that is cut");
            assert_eq!(error.code, 1594);
        });
        assert!(peak < 16 * MIB, "{peak} bytes");
        assert_eq!(target.0, 0);
    }
}

/// The events that MariaDB compresses say how long they are: neither more nor less is taken.
#[test]
fn a_zlib_block_takes_what_comes_of_it() {
    let zeros = zlib_of_zeros(32 * MIB);
    assert!(zeros.len() < 256 << 10, "{}", zeros.len());
    for said in [1000u32, 1 << 30] {
        let block = [&[0x84][..], &said.to_be_bytes(), &zeros].concat();
        let peak = peak_of(|| assert!(inflate(&block, MAX_EVENT_SIZE).is_err()));
        // The buffer doubles as it grows.
        let limit = if said == 1000 { MIB } else { 130 * MIB };
        assert!(peak < limit, "{said}: {peak} bytes");
    }
    let block = [&[0x84][..], &(32u32 << 20).to_be_bytes(), &zeros].concat();
    let query = Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"d", sql: &block };
    let body = body(|out| query.encode(out));
    let peak = peak_of(|| {
        let plain =
            plain_event(EventType::MARIADB_QUERY_COMPRESSED, &body, MAX_EVENT_SIZE).expect("a whole event");
        assert_eq!(plain.map(|(_, plain)| plain.len()), Some(body.len() - block.len() + 32 * MIB));
    });
    assert!(peak < 100 * MIB, "{peak} bytes");
}

/// A zlib stream: matches at distance 1, 258 bytes each, with the fixed codes of DEFLATE (RFC 1951).
fn zlib_of_zeros(len: usize) -> Vec<u8> {
    let (mut out, mut bits, mut count) = (vec![0x78, 0x01], 0u64, 0);
    let mut put = |out: &mut Vec<u8>, value: u64, len: u32| {
        bits |= value << count;
        count += len;
        while count >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    };
    put(&mut out, 0b011, 3);
    // Literal 0: code 00110000, highest bit first.
    put(&mut out, 0b0000_1100, 8);
    for _ in 0..(len - 1) / 258 {
        // Length 258: code 285, which is 11000101, and distance 1: code 00000.
        put(&mut out, 0b1010_0011, 8);
        put(&mut out, 0, 5);
    }
    for _ in 0..(len - 1) % 258 {
        put(&mut out, 0b0000_1100, 8);
    }
    put(&mut out, 0, 7 + 7);
    // Adler-32 of zeros.
    let sum = ((len % 65521) as u32) << 16 | 1;
    out.extend_from_slice(&sum.to_be_bytes());
    out
}

/// Every array has its only child twice: decoded it would have 2^60 elements.
#[test]
fn a_document_whose_values_share_bytes_is_damaged() {
    let mut inner = vec![0, 0, 4, 0];
    for _ in 0..60 {
        let size = 10 + inner.len() as u16;
        let mut outer = vec![2, 0];
        outer.extend_from_slice(&size.to_le_bytes());
        outer.extend_from_slice(&[2, 10, 0, 2, 10, 0]);
        outer.extend_from_slice(&inner);
        inner = outer;
    }
    let document = [&[2][..], &inner].concat();
    let peak = peak_of(|| assert_eq!(Json::decode(&document), Err(JsonError::Damaged)));
    assert!(peak < MIB, "{peak} bytes");
}

/// The changes of a document cost their own size, not that of the document each time.
#[test]
fn partial_updates_do_not_copy_the_document() {
    let document = Json::Array((0..100_000).map(Json::Int).collect());
    let mut changes = Vec::new();
    for _ in 0..20_000 {
        let change = JsonDiff { op: JsonDiffOp::Insert, path: "$[100000]", value: Some(b"\x05\x01\x00") };
        put_json_diff(&mut changes, &change);
    }
    let mut changed = document;
    let peak = peak_of(|| JsonDiffs(&changes).apply_to(&mut changed).expect("places that are there"));
    assert_eq!(changed.length(), 120_000);
    assert!(peak < 32 * MIB, "{peak} bytes");
}
