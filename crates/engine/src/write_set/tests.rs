//! Write sets against maps: in memory, and partly in files.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use omnibus_temporary::{TempFile, TempFolder};
use std::collections::BTreeMap;

fn key(name: &'static str) -> Bytes {
    Bytes::from_static(name.as_bytes())
}

fn own(pending: Held<'_>) -> (Bytes, Write) {
    assert_eq!(pending.is_delete(), pending.write().is_none());
    (Bytes::copy_from_slice(pending.key()), pending.write())
}

fn held(set: &WriteSet) -> InMemory<'_> {
    set.in_memory(..)
}

fn shared((key, write): (&Bytes, &Write)) -> (Bytes, Write) {
    (key.clone(), write.clone())
}

#[test]
fn the_last_write_wins_and_keys_come_in_order() {
    let mut set = WriteSet::default();
    set.put(key("b"), key("1"));
    set.put(key("a"), key("2"));
    set.delete(key("b"));
    assert_eq!(set.get_held(b"b"), Some(None));
    assert_eq!(set.get_held(b"c"), None);
    let keys: Vec<_> = held(&set).map(own).collect();
    assert_eq!(keys, [(key("a"), Some(key("2"))), (key("b"), None)]);
}

#[test]
fn rolling_back_restores_writes_and_memory() {
    let mut set = WriteSet::default();
    set.put(key("a"), key("one"));
    let (outer, memory) = (set.mark(), set.memory());
    set.put(key("a"), key("two"));
    set.delete(key("b"));
    let inner = set.mark();
    set.put(key("b"), key("back"));
    set.delete(key("a"));
    set.rollback_to(inner);
    assert_eq!((set.get_held(b"a"), set.get_held(b"b")), (Some(Some(key("two"))), Some(None)));
    set.rollback_to(outer);
    assert_eq!((set.get_held(b"a"), set.get_held(b"b"), set.len()), (Some(Some(key("one"))), None, 1));
    assert_eq!(set.memory(), memory);
}

#[test]
fn a_large_set_behaves_as_a_small_one() {
    // Past the size at which the index becomes a tree, and back, against a map.
    let mut set = WriteSet::default();
    let name = |n: usize| Bytes::from(format!("rows{:05}", n * 7919 % 1000));
    let fill = |set: &mut WriteSet, to: usize| {
        let mut model = BTreeMap::new();
        for n in 0..to {
            let (key, value) = (name(n), Bytes::from(n.to_string()));
            model.insert(key.clone(), Some(value.clone()));
            set.put(key, value);
            if n % 3 == 0 {
                model.insert(name(n / 2), None);
                set.delete(name(n / 2));
            }
        }
        model
    };
    let model = fill(&mut set, 700);
    let live: Vec<_> = held(&set).map(own).collect();
    assert_eq!(live, model.clone().into_iter().collect::<Vec<_>>());
    let (low, high) = (name(3), name(3 + 500));
    let (low, high) = if low < high { (low, high) } else { (high, low) };
    let range = || (Bound::Excluded(&low[..]), Bound::Included(&high[..]));
    let (mine, theirs): (Vec<_>, Vec<_>) = (
        set.in_memory(range()).rev().map(own).collect(),
        model.range::<[u8], _>(range()).rev().map(shared).collect(),
    );
    assert_eq!(mine, theirs);
    let mut short = WriteSet::default();
    let small = fill(&mut short, 90);
    let (mine, theirs): (Vec<_>, Vec<_>) =
        (short.in_memory(range()).map(own).collect(), small.range::<[u8], _>(range()).map(shared).collect());
    assert_eq!(mine, theirs);
    let owned = |to| {
        let mut set = WriteSet::default();
        let model = fill(&mut set, to);
        (set.into_writes().unwrap().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>())
    };
    let ((mine, theirs), (more, many)) = (owned(90), owned(700));
    assert_eq!((mine, more), (theirs, many));
    let mark = short.mark();
    fill(&mut short, 700);
    assert!(short.index.has_spaces());
    short.rollback_to(mark);
    let live: Vec<_> = held(&short).map(own).collect();
    assert_eq!(live, small.into_iter().collect::<Vec<_>>());
    short.rollback_to(Mark(0));
    assert!(short.is_empty() && short.memory() == 0);
}

#[test]
fn loose_writes_are_as_others_once_they_are_settled() {
    let (mut loose, mut set) = (WriteSet::default(), WriteSet::default());
    let name = |space: u32, n: u32| Bytes::from([space.to_be_bytes(), n.to_be_bytes()].concat());
    let mut marks = Vec::new();
    for n in 0..3000u32 {
        let (row, entry) = (name(7, n), name(8, n * 7919 % 2000));
        let value = Bytes::from(n.to_string());
        for set in [&mut loose, &mut set] {
            set.put(row.clone(), value.clone());
            match n % 7 {
                0 => set.delete(entry.clone()),
                _ if n % 500 == 3 => set.put(entry.clone(), value.clone()),
                _ => set.put_loose(entry.clone(), value.clone()),
            }
        }
        assert_eq!(loose.get_held(&entry), set.get_held(&entry));
        if n % 300 == 299 {
            assert_eq!(held(&loose).map(own).collect::<Vec<_>>(), held(&set).map(own).collect::<Vec<_>>());
        }
        match n % 400 {
            100 => marks.push((loose.mark(), loose.memory())),
            200 => set.settle_all(),
            300 => loose.settle(&entry),
            _ => {}
        }
    }
    while let Some((mark, memory)) = marks.pop() {
        loose.settle_all();
        set.settle_all();
        assert_eq!(loose.len(), set.len());
        assert_eq!(held(&loose).map(own).collect::<Vec<_>>(), held(&set).map(own).collect::<Vec<_>>());
        loose.rollback_to(mark);
        set.rollback_to(mark);
        assert_eq!(loose.memory(), memory);
    }
    assert_eq!(
        loose.into_writes().unwrap().collect::<Vec<_>>(),
        set.into_writes().unwrap().collect::<Vec<_>>()
    );
}

/// Rows come in the order of their keys, entries of an index in none, in turns; then rows change, and all of it is undone.
#[test]
fn spaces_that_are_written_in_turns_are_one_order() {
    let mut set = WriteSet::default();
    let mut model = BTreeMap::new();
    let name = |space: u32, n: u32| Bytes::from([space.to_be_bytes(), n.to_be_bytes()].concat());
    let mut marks = Vec::new();
    for n in 0..1500u32 {
        let keys = [name(7, n), name(9, n * 7919 % 1500), name(8, n / 3), name(7, n * 31 % (n + 1))];
        for (at, key) in keys.into_iter().enumerate() {
            if n % 100 == 50 && at == 0 {
                marks.push((set.mark(), set.memory(), model.clone()));
            }
            let write = (n % 5 > 0).then(|| Bytes::from((n * 4 + at as u32).to_be_bytes().to_vec()));
            set.write(key.clone(), write.clone());
            model.insert(key, write);
        }
    }
    while let Some((mark, memory, before)) = marks.pop() {
        let pairs = |model: &BTreeMap<Bytes, Write>, from: &Bytes, to: &Bytes| -> Vec<_> {
            model.range::<Bytes, _>(from..to).map(|(key, write)| (key.clone(), write.clone())).collect()
        };
        assert_eq!(set.len(), model.len());
        for (from, to) in [(name(0, 0), name(99, 0)), (name(7, 40), name(8, 200)), (name(8, 3), name(8, 9))] {
            let bounds = || (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
            let wanted = pairs(&model, &from, &to);
            assert_eq!(set.in_memory(bounds()).map(own).collect::<Vec<_>>(), wanted);
            let reverse = set.in_memory(bounds()).rev().map(own).collect::<Vec<_>>();
            assert_eq!(reverse, wanted.iter().rev().cloned().collect::<Vec<_>>());
            let (mut both, mut met) = (set.in_memory(bounds()), Vec::new());
            while let Some(front) = both.next() {
                met.push(own(front));
                met.extend(both.next_back().map(own));
            }
            met.sort();
            assert_eq!(met, wanted, "from both ends");
        }
        assert_eq!(set.get_held(&name(9, 700)), model.get(&name(9, 700)).cloned());
        set.rollback_to(mark);
        model = before;
        assert_eq!(set.memory(), memory);
    }
    let found: Vec<_> = set.into_writes().unwrap().collect();
    assert_eq!(found, model.into_iter().collect::<Vec<_>>());
}

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

fn named(space: u32, n: usize) -> Bytes {
    Bytes::from([&space.to_be_bytes()[..], format!("{n:05}").as_bytes()].concat())
}

fn make() -> io::Result<TempFile> {
    TempFolder::default().file()
}

type Model = BTreeMap<Bytes, Write>;

fn agrees(set: &mut WriteSet, model: &Model, random: &mut Random) {
    set.settle_all();
    let pair = |pending: Result<Pending<'_>, EngineError>| {
        let pending = pending.unwrap();
        assert_eq!(pending.is_delete(), pending.write().is_none());
        (Bytes::copy_from_slice(pending.key()), pending.write())
    };
    assert_eq!(set.is_empty(), model.is_empty());
    assert_eq!(set.iter().map(pair).collect::<Model>(), *model);
    for _ in 0..30 {
        let keys = if random.below(4) == 0 { 4 } else { 700 };
        let key = named(7 + random.below(4) as u32, random.below(keys));
        assert_eq!(set.get(&key).unwrap(), model.get(&key).cloned(), "{key:?}");
        assert_eq!(set.has(&key).unwrap(), model.contains_key(&key));
        let other = named(7 + random.below(4) as u32, random.below(700));
        let (from, to) = if key < other { (key, other) } else { (other, key) };
        let from =
            [Bound::Included(&from[..]), Bound::Excluded(&from[..]), Bound::Unbounded][random.below(3)];
        let to = [Bound::Included(&to[..]), Bound::Excluded(&to[..]), Bound::Unbounded][random.below(3)];
        if let (Bound::Excluded(from), Bound::Excluded(to)) = (from, to)
            && from == to
        {
            continue;
        }
        let wanted: Vec<_> = model.range::<[u8], _>((from, to)).map(shared).collect();
        assert_eq!(set.range((from, to), false).map(pair).collect::<Vec<_>>(), wanted);
        let reverse: Vec<_> = wanted.iter().rev().cloned().collect();
        assert_eq!(set.range((from, to), true).map(pair).collect::<Vec<_>>(), reverse);
        assert!(set.may_have((from, to)) || wanted.is_empty());
    }
    assert!(set.may_delete() || model.values().all(Option::is_some));
}

/// However often it went to files, what was written last counts, and marks undo what came after them.
#[test]
fn writes_in_files_are_as_those_in_memory() {
    for seed in 0..4 {
        let (mut random, mut set, mut model) = (Random(seed), WriteSet::default(), Model::new());
        let mut marks: Vec<(Mark, Model)> = vec![(set.mark(), Model::new())];
        for step in 0..2500 {
            // Some keys are written so often that their writes fill blocks.
            let keys = if random.below(3) == 0 { 3 } else { 600 };
            let key = named(7 + random.below(3) as u32, random.below(keys));
            let size = if random.below(300) == 0 { 40_000 } else { random.below(60) };
            let write = (random.below(5) > 0).then(|| Bytes::from(vec![step as u8; size]));
            match &write {
                Some(value) if random.below(2) == 0 => set.put_loose(key.clone(), value.clone()),
                _ => set.write(key.clone(), write.clone()),
            }
            model.insert(key, write);
            match random.below(400) {
                0..8 => set.spill(&make).unwrap(),
                8..12 => marks.push((set.mark(), model.clone())),
                12 => {
                    marks.truncate(1 + random.below(marks.len()));
                    let (mark, before) = marks.last().unwrap();
                    set.rollback_to(*mark);
                    model = before.clone();
                    agrees(&mut set, &model, &mut random);
                }
                13 => agrees(&mut set, &model, &mut random),
                _ => {}
            }
        }
        agrees(&mut set, &model, &mut random);
        let ranges = || vec![named(7, 30)..named(7, 200), named(9, 0)..named(10, 0)];
        let mut part = set.part(ranges());
        let within = |key: &Bytes| ranges().iter().any(|range| range.contains(key));
        let of_part: Model = model.iter().filter(|(key, _)| within(key)).map(shared).collect();
        agrees(&mut part, &of_part, &mut random);
        assert_eq!(part.into_sorted().map(io::Result::unwrap).collect::<Model>(), of_part);
        assert_eq!(set.into_sorted().map(io::Result::unwrap).collect::<Model>(), model);
    }
}

#[test]
fn what_is_in_files_takes_little_memory_and_is_gone_after_a_rollback() {
    let mut set = WriteSet::default();
    let mark = set.mark();
    for n in 0..20_000 {
        set.put(named(7, n), Bytes::from(vec![0; 100]));
        if set.held() > 256 << 10 {
            set.spill(&make).unwrap();
        }
    }
    assert!(set.memory() < 512 << 10, "{} bytes", set.memory());
    assert_eq!((set.len(), set.entries()), (20_000, 20_000));
    assert!(set.part(Vec::new()).into_writes().is_err(), "it is partly in files");
    set.rollback_to(mark);
    assert!(set.is_empty() && !set.is_spilled() && set.memory() == 0);
}

#[test]
fn a_file_that_fails_is_an_error_and_nothing_is_lost() {
    let mut set = WriteSet::default();
    set.put(named(7, 1), key("one"));
    let full = set.spill(&|| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
    assert!(full.is_full() && !set.is_spilled());
    assert_eq!(set.get(&named(7, 1)).unwrap(), Some(Some(key("one"))));
    let file = tempfile::tempfile().unwrap();
    set.spill(&|| file.try_clone().map(TempFile::from)).unwrap();
    set.put(named(7, 2), key("two"));
    file.set_len(3).unwrap();
    assert_eq!(set.get(&named(7, 2)).unwrap(), Some(Some(key("two"))));
    assert!(set.get(&named(7, 1)).is_err() && set.iter().any(|read| read.is_err()));
    assert!(set.into_sorted().any(|read| read.is_err()));
}
