//! The trx cache: spilling, rolling back into and over the spill, limits.
#![allow(clippy::unwrap_used)]

use super::*;

fn cache(memory: u64, max: u64) -> TrxCache {
    let settings = CacheSettings::new(std::env::temp_dir());
    settings.cache_size.store(memory, Ordering::Relaxed);
    settings.max_cache_size.store(max, Ordering::Relaxed);
    TrxCache::new(Arc::new(settings))
}

/// The first body byte of each event, in reading order, and that pieces hold whole events.
fn read(cache: &mut TrxCache, piece: usize) -> Vec<u8> {
    let mut seen = Vec::new();
    let result: Result<(), CacheError> = cache.read_events(piece, |bytes| {
        assert_eq!(whole_events(bytes).0, bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let header = EventHeader::decode(&bytes[at..]).unwrap();
            assert_eq!(header.server_id, 7);
            seen.push(bytes[at + HEADER_LEN]);
            at += header.size as usize;
        }
        Ok(())
    });
    result.unwrap();
    seen
}

fn fill(cache: &mut TrxCache, numbers: std::ops::Range<u8>) {
    cache.set_context(1, 7);
    for n in numbers {
        cache.append_event(30, 0, &[n; 50]).unwrap();
    }
}

#[test]
fn events_come_back_in_order_with_and_without_spill() {
    for memory in [10, 100, 1000, 1 << 20] {
        for piece in [1, 70, 1000, 1 << 20] {
            let mut cache = cache(memory, u64::MAX);
            fill(&mut cache, 0..100);
            assert_eq!(cache.len(), 100 * 69);
            assert_eq!(cache.spilled() > 0, memory < 100 * 69);
            assert_eq!(read(&mut cache, piece), (0..100).collect::<Vec<u8>>());
            // Reading leaves the cache as it was.
            fill(&mut cache, 100..120);
            assert_eq!(read(&mut cache, piece), (0..120).collect::<Vec<u8>>());
        }
    }
}

#[test]
fn rolling_back_forgets_exactly_what_came_after() {
    for memory in [10, 200, 1 << 20] {
        for cut in [0, 1, 17, 50] {
            let mut cache = cache(memory, u64::MAX);
            fill(&mut cache, 0..cut);
            let mark = cache.mark();
            fill(&mut cache, cut..60);
            cache.rollback_to(mark).unwrap();
            assert_eq!(cache.events(), u64::from(cut));
            fill(&mut cache, 200..203);
            let expected: Vec<u8> = (0..cut).chain(200..203).collect();
            assert_eq!(read(&mut cache, 100), expected, "memory {memory}, cut {cut}");
        }
    }
}

#[test]
fn past_the_maximum_the_event_is_refused_and_the_rest_stays() {
    let mut cache = cache(100, 300);
    fill(&mut cache, 0..4);
    assert!(matches!(cache.append_event(30, 0, &[9; 50]), Err(CacheError::TooLarge)));
    assert_eq!(read(&mut cache, 100), vec![0, 1, 2, 3]);
}

#[test]
fn a_spill_directory_that_is_gone_is_a_clear_error() {
    let settings = CacheSettings::new("/nonexistent/tmp".into());
    settings.cache_size.store(1, Ordering::Relaxed);
    let mut cache = TrxCache::new(Arc::new(settings));
    cache.append_event(30, 0, &[1]).unwrap();
    let error = cache.append_event(30, 0, &[1]).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/tmp"), "{error}");
}

/// A cache whose transactions are large from `threshold` bytes on.
fn large(dir: &std::path::Path, threshold: u64, checksums: bool) -> TrxCache {
    let settings = CacheSettings::new(dir.to_path_buf());
    settings.cache_size.store(500, Ordering::Relaxed);
    settings.large.threshold.store(threshold, Ordering::Relaxed);
    settings.large.open(
        &omnibus_log::Disk::default(),
        dir,
        Arc::new(std::sync::atomic::AtomicBool::new(checksums)),
    );
    TrxCache::new(Arc::new(settings))
}

fn files(dir: &std::path::Path) -> usize {
    std::fs::read_dir(dir.join("#binlog_cache_files")).map_or(0, |entries| entries.count())
}

#[test]
fn a_large_transaction_gives_its_events_back_as_they_came() {
    for checksums in [false, true] {
        for (threshold, piece) in [(1, 1), (1, 1000), (3000, 70), (3000, 1 << 20)] {
            let dir = tempfile::tempdir().unwrap();
            let mut cache = large(dir.path(), threshold, checksums);
            fill(&mut cache, 0..100);
            assert!(cache.is_large());
            assert_eq!((cache.len(), cache.events()), (100 * 69, 100));
            assert_eq!(cache.settings.disk_uses.load(Ordering::Relaxed), 1);
            assert_eq!(read(&mut cache, piece), (0..100).collect::<Vec<u8>>());
            cache.settle().unwrap();
            assert_eq!(read(&mut cache, piece), (0..100).collect::<Vec<u8>>());
            assert_eq!(files(dir.path()), 1);
            cache.clear();
            assert_eq!(files(dir.path()), 0);
            // And small again.
            fill(&mut cache, 7..9);
            assert!(!cache.is_large());
            assert_eq!(read(&mut cache, piece), [7, 8]);
        }
    }
}

/// The file holds the bytes that the log would hold at that offset: whole events with their end position and checksum.
#[test]
fn a_settled_file_holds_final_events() {
    for checksum in [Checksum::None, Checksum::Crc32] {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = large(dir.path(), 2000, checksum == Checksum::Crc32);
        // Rolling back into what was copied from the small spill file, into what came later, and into memory.
        fill(&mut cache, 0..20);
        let early = cache.mark();
        fill(&mut cache, 20..60);
        cache.rollback_to(early).unwrap();
        fill(&mut cache, 60..90);
        let late = cache.mark();
        fill(&mut cache, 90..92);
        cache.rollback_to(late).unwrap();
        fill(&mut cache, 92..100);
        cache.settle().unwrap();
        let (made_with, spilled, _) = cache.settled().unwrap();
        assert_eq!(made_with, checksum);
        let bytes = std::fs::read(&spilled.path).unwrap();
        assert!(bytes[..spilled.reserve as usize].iter().all(|&byte| byte == 0));
        let partial = spilled.end % omnibus_log::BLOCK as u64;
        assert_eq!(spilled.tail, bytes[(spilled.end - partial) as usize..spilled.end as usize]);
        assert!(bytes[spilled.end as usize..].iter().all(|&byte| byte == 0));
        assert_eq!(bytes.len() % omnibus_log::BLOCK, 0);
        let rules = omnibus_format::ScanRules { checksum, ..Default::default() };
        let (mut at, mut seen) = (spilled.reserve, Vec::new());
        while at < spilled.end {
            let event = omnibus_format::scan::parse_event(&bytes[at as usize..], at, &rules);
            let event = event.unwrap().unwrap();
            assert_eq!(event.header.log_pos, event.end() as u32);
            seen.push(event.body[0]);
            at = event.end();
        }
        assert_eq!(at, spilled.end);
        assert_eq!(seen, (0..20).chain(60..90).chain(92..100).collect::<Vec<u8>>());
        assert_eq!(cache.events(), 58);
    }
}

#[test]
fn the_next_start_removes_what_a_crash_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut cache = large(dir.path(), 1, true);
    fill(&mut cache, 0..100);
    std::mem::forget(cache);
    assert_eq!(files(dir.path()), 1);
    large(dir.path(), 1, true);
    assert_eq!(files(dir.path()), 0);
}

#[test]
fn without_a_threshold_nothing_is_large() {
    let dir = tempfile::tempdir().unwrap();
    let mut cache = large(dir.path(), 0, true);
    fill(&mut cache, 0..100);
    assert!(!cache.is_large() && cache.spilled() > 0);
    assert_eq!(files(dir.path()), 0);
}

#[test]
fn rows_become_one_event_and_text_stays() {
    use omnibus_format::events::Query;
    use omnibus_format::payload::Payload;
    let query = |sql: &'static [u8]| {
        let mut body = Vec::new();
        Query { thread_id: 1, exec_time: 0, error_code: 0, status: b"", database: b"d", sql }
            .encode(&mut body);
        body
    };
    // In memory, and read back from a file.
    for memory in [200, 1 << 20] {
        let mut cache = cache(memory, u64::MAX);
        cache.set_context(1, 7);
        cache.append_event(EventType::QUERY.0, 0, &query(b"BEGIN")).unwrap();
        fill(&mut cache, 0..20);
        cache.append_event(EventType::XID.0, 0, &[9; 8]).unwrap();
        let before = cache.len();
        assert!(!cache.takes_long_to_compress());
        cache.compress(3).unwrap();
        assert!(cache.events() == 1 && cache.len() * 2 < before && cache.spilled() == 0, "{}", cache.len());
        let mut kinds = Vec::new();
        let read: Result<(), CacheError> = cache.read_events(1 << 20, |event| {
            let mut payload = Payload::new(&event[HEADER_LEN..]).unwrap();
            while let Some((header, _)) = payload.next().unwrap() {
                kinds.push(header.event_type);
            }
            Ok(())
        });
        read.unwrap();
        assert_eq!((kinds.len(), kinds[0], kinds[21]), (22, EventType::QUERY, EventType::XID));
        let stats = &cache.settings.compressed;
        assert_eq!(stats.before.load(Ordering::Relaxed), before);
    }
    let mut text = cache(1 << 20, u64::MAX);
    text.set_context(1, 7);
    text.append_event(EventType::QUERY.0, 0, &query(b"BEGIN")).unwrap();
    for _ in 0..9 {
        text.append_event(EventType::QUERY.0, 0, &query(b"INSERT INTO t VALUES (1)")).unwrap();
    }
    // A private event among rows: recovery needs to see it.
    let mut private = cache(1 << 20, u64::MAX);
    fill(&mut private, 0..20);
    private.append_event(EventType::IGNORABLE.0, 0, &[0; 50]).unwrap();
    for mut cache in [text, private] {
        let before = (cache.events(), cache.len());
        cache.compress(3).unwrap();
        assert_eq!((cache.events(), cache.len()), before);
    }
}
