//! Tables read by their indexes in memory, and by the tree where there is no room for these, answer alike.

use super::*;
use omnibus_engine::Snapshot;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The versions of each key, oldest first; `None` is a deletion.
type Model = BTreeMap<Bytes, Vec<(u64, Option<Bytes>)>>;

const COMMITS: u64 = 3000;

/// Short keys, and long ones that begin alike for longer than an index compares at once.
fn any_key(random: &mut SmallRng) -> Bytes {
    let number = random.random_range(0..150u64);
    match random.random_range(0..3) {
        0 => key(1, number),
        1 => [&key(1, 7)[..], b"and so it goes on for long", &number.to_be_bytes()[6..]].concat().into(),
        _ => Bytes::copy_from_slice(&key(2, number)[..random.random_range(10..13)]),
    }
}

/// The same commits for each engine, in several runs of tables.
fn fill(engines: &[&LsmEngine]) -> Model {
    let (mut model, mut random) = (Model::new(), SmallRng::seed_from_u64(5));
    for no in 1..=COMMITS {
        let key = any_key(&mut random);
        let value = match random.random_range(0..20) {
            0..4 => None,
            // Large enough to be packed.
            4 if no % 10 == 0 => Some(noise(no, 100).repeat(1000).into()),
            _ => Some(noise(no, random.random_range(0..300))),
        };
        for engine in engines {
            let mut set = WriteSet::default();
            match &value {
                Some(value) => set.put(key.clone(), value.clone()),
                None => set.delete(key.clone()),
            }
            engine.prepare_ordered(CommitNo(no), set);
            engine.commit_ordered(CommitNo(no));
            if no % 700 == 0 || no == COMMITS {
                engine.checkpoint().unwrap();
            }
        }
        model.entry(key).or_default().push((no, value));
    }
    model
}

fn seen(versions: &[(u64, Option<Bytes>)], at: u64) -> Option<(CommitNo, Bytes)> {
    let (no, value) = versions.iter().rev().find(|(no, _)| *no <= at)?;
    Some((CommitNo(*no), value.clone()?))
}

fn visited(snapshot: &dyn Snapshot, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Vec<(Bytes, Bytes)> {
    let mut pairs = Vec::new();
    let mut add = |key: omnibus_engine::Lent<'_>, value: omnibus_engine::Lent<'_>| {
        pairs.push((key.to_bytes(), value.to_bytes()));
        true
    };
    assert!(snapshot.visit(from, to, &mut add).unwrap());
    pairs
}

fn bound<'k>(random: &mut SmallRng, key: &'k Bytes) -> Bound<&'k [u8]> {
    match random.random_range(0..9) {
        0 => Bound::Unbounded,
        1..4 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

#[test]
fn tables_answer_alike_with_and_without_an_index_in_memory() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let of = |at: usize, cache| open(LsmConfig { block_cache_size: cache, ..tiny(directories[at].path()) });
    let (with, without) = (of(0, 64 << 20), of(1, 7));
    let model = fill(&[&with, &without]);
    let mut random = SmallRng::seed_from_u64(6);
    for _ in 0..3000 {
        let (key, at) = (any_key(&mut random), random.random_range(0..COMMITS + 10));
        let expected = model.get(&key).and_then(|versions| seen(versions, at));
        for engine in [&with, &without] {
            assert_eq!(engine.snapshot(CommitNo(at)).get_version(&key).unwrap(), expected, "{key:?} at {at}");
        }
    }
    for _ in 0..300 {
        let (from, to) = (any_key(&mut random), any_key(&mut random));
        let (from, to) = if from < to { (from, to) } else { (to, from) };
        let bounds = (bound(&mut random, &from), bound(&mut random, &to));
        if let (Bound::Excluded(from), Bound::Excluded(to)) = bounds
            && from == to
        {
            continue;
        }
        let at = random.random_range(0..COMMITS + 10);
        let range = model.range::<[u8], _>(bounds);
        let pairs = range.filter_map(|(key, of)| seen(of, at).map(|(_, value)| (key.clone(), value)));
        let expected: Vec<_> = pairs.collect();
        for engine in [&with, &without] {
            let snapshot = engine.snapshot(CommitNo(at));
            assert_eq!(visited(&*snapshot, bounds.0, bounds.1), expected, "{bounds:?} at {at}");
        }
    }
    let indexes = |engine: &LsmEngine| engine.shared().views.current().tables.indexes();
    assert!(indexes(&with).0 > 0);
    assert_eq!(indexes(&without), (0, 0), "there is no room for one");
}

/// The room of tables that compactions have replaced is there for others.
#[test]
fn indexes_of_tables_that_are_gone_take_no_room() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(tiny(directory.path()));
    for no in 1..=3000 {
        put(&engine, no, key(1, no % 200), 200);
        engine.gc_watermark(CommitNo(no));
        if no % 100 == 0 {
            engine.checkpoint().unwrap();
            for number in 0..200 {
                engine.snapshot(CommitNo(no)).get(&key(1, number)).unwrap();
            }
        }
    }
    assert!(engine.stats().compactions > 0);
    eventually("the end of old views", || {
        let (size, taken) = engine.shared().views.current().tables.indexes();
        size > 0 && size == taken
    });
}

/// Of a table with a damaged block all other blocks are read, by an index in memory and without one.
#[test]
fn damage_is_met_where_it_is() {
    for damaged in [100, 20 << 10] {
        let directory = tempfile::tempdir().unwrap();
        let config = || LsmConfig { table_target_size: 1 << 20, ..LsmConfig::new(directory.path()) };
        let engine = open(config());
        for no in 1..=600 {
            put(&engine, no, key(1, no), 100);
        }
        engine.checkpoint().unwrap();
        drop(engine);
        let files: Vec<_> = std::fs::read_dir(directory.path().join("tree/tables")).unwrap().collect();
        assert_eq!(files.len(), 1);
        let path = files[0].as_ref().unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[damaged] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let engine = open(config());
        let snapshot = engine.snapshot(CommitNo(600));
        for _ in 0..3 {
            let answers: Vec<_> = (1..=600).map(|no| snapshot.get(&key(1, no))).collect();
            let errors = answers.iter().filter(|answer| answer.is_err()).count();
            assert!((1..300).contains(&errors), "{errors}");
            for (no, answer) in (1..).zip(answers) {
                match answer {
                    Ok(value) => assert_eq!(value.unwrap(), noise(no, 100)),
                    Err(error) => assert!(error.to_string().contains("tree/tables/"), "{error}"),
                }
            }
            let (from, to) = (Bound::Unbounded, Bound::Unbounded);
            assert!(snapshot.visit(from, to, &mut |_, _| true).is_err());
        }
        let (indexes, _) = engine.shared().views.current().tables.indexes();
        assert_eq!(indexes > 0, damaged > 16 << 10, "the first block is looked at for its form");
    }
}
