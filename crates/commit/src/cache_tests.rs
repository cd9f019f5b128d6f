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
        assert_eq!(whole_events(bytes), bytes.len());
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
