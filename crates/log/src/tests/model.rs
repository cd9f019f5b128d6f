//! Random appends and seals against a model: the file must hold exactly what was appended, however jobs were cut, run
//! on threads, mixed with unsynced ones, or followed by rotations.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn content(path: &Path, name: &str, len: usize) -> Vec<u8> {
    let mut bytes = fs::read(path.join(name)).unwrap();
    assert!(bytes[len..].iter().all(|&byte| byte == 0), "zeros behind the end");
    bytes.truncate(len);
    bytes
}

/// Runs jobs in order, or two at a time when they do not overlap.
fn run_all(jobs: Vec<WriteJob>) {
    let mut jobs = jobs.into_iter().peekable();
    while let Some(job) = jobs.next() {
        match jobs.next_if(|next| !jobs_overlap(&job, next)) {
            None => job.run().unwrap(),
            Some(next) => std::thread::scope(|scope| {
                scope.spawn(|| next.run().unwrap());
                scope.spawn(|| job.run().unwrap());
            }),
        }
    }
}

fn one_run(seed: u64, method: FlushMethod, chunk: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), LogConfig { extend_chunk: chunk, ..config(method) });
    let mut model = b"\xfebin".to_vec();
    model.extend(head());
    let mut jobs = Vec::new();
    for _ in 0..60 {
        let len = match random.random_range(0..4) {
            0 => random.random_range(1..100),
            1 => random.random_range(1..5000),
            2 => 4096 - model.len() % 4096,
            _ => random.random_range(1..200_000),
        };
        let mut bytes = vec![0; len];
        random.fill(&mut bytes[..]);
        // Half of the time through the vector, whose growth may move the bytes off their alignment.
        if random.random() {
            writer.buffer().extend_from_slice(&bytes);
        } else {
            bytes.iter().for_each(|&byte| writer.buffer().vec().push(byte));
        }
        model.extend(&bytes);
        if random.random_bool(0.2) {
            let before = writer.position();
            writer.buffer().extend_from_slice(b"given up");
            writer.rewind(before);
        }
        if random.random_bool(0.7) {
            jobs.push(writer.seal());
        }
        match random.random_range(0..10) {
            0 => jobs.drain(..).for_each(|job| job.run_without_sync().unwrap()),
            1..=4 => run_all(std::mem::take(&mut jobs)),
            _ => {}
        }
        assert_eq!(writer.position().offset.0 as usize, model.len(), "seed {seed}");
    }
    jobs.push(writer.seal());
    run_all(jobs);
    assert!(content(dir.path(), "binlog.000001", model.len()) == model, "seed {seed} {method} {chunk}");
}

#[test]
fn any_pattern_of_appends_and_seals_gives_the_same_bytes() {
    at_once(18, |n| {
        let seed = n as u64 / 3;
        one_run(seed, METHODS[n % 3], if seed.is_multiple_of(2) { 1 << 20 } else { 0 });
    });
}

#[test]
fn padded_groups_do_not_overlap_and_unpadded_ones_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    writer.buffer().extend_from_slice(&[1; 100]);
    let (first, second) = (writer.seal(), {
        writer.buffer().extend_from_slice(&[2; 100]);
        writer.seal()
    });
    assert!(jobs_overlap(&first, &second));
    first.run().unwrap();
    second.run().unwrap();
    for min_filler in [23, 100, 4096, 5000] {
        writer.buffer().extend_from_slice(&[3; 100]);
        assert!(writer.needs_padding());
        let pad = writer.pad_len(min_filler);
        assert!(pad >= min_filler && pad < min_filler + 4096);
        writer.buffer().extend_from_slice(&vec![4; pad]);
        assert!(!writer.needs_padding());
        assert_eq!(writer.pad_len(min_filler), 0);
        let padded = writer.seal();
        writer.buffer().extend_from_slice(&[5; 100]);
        let next = writer.seal();
        assert!(!jobs_overlap(&padded, &next));
        padded.run().unwrap();
        next.run().unwrap();
    }
}

#[test]
fn byte_granular_methods_need_no_padding() {
    for method in [FlushMethod::ODsync, FlushMethod::Fdatasync] {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = start(dir.path(), config(method));
        writer.buffer().extend_from_slice(&[1; 100]);
        assert!(!writer.needs_padding() && writer.pad_len(23) == 0);
        let first = writer.seal();
        writer.buffer().extend_from_slice(&[1; 100]);
        assert!(!jobs_overlap(&first, &writer.seal()));
    }
}

#[test]
fn steady_state_reuses_buffers() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let mut addresses = std::collections::HashSet::new();
    for gno in 1..=100 {
        append(&mut writer, gno, 100);
        addresses.insert(writer.buffer().as_ptr());
        writer.seal().run().unwrap();
    }
    assert!(addresses.len() <= 3, "{} buffers for one job at a time", addresses.len());
}
