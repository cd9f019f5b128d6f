//! An external merge sort: records in memory up to `sort_buffer_size`, then in sorted runs on disk, which are merged.
//!
//! Records with equal keys come out as they went in. In memory a record is its bytes in one buffer and an entry of three
//! words, the first eight bytes of its key among them: sorting moves entries, and mostly compares numbers.

use super::key::KeyForm;
use crate::error::{ExecResult, SqlResult};
use crate::memory::Account;
use crate::rows::Running;
use crate::rows::spill::{Run, RunReader, RunWriter, SpillFile};
use bytes::Bytes;
use std::cmp::Ordering;
use std::sync::atomic;

/// Runs that are merged at once: each holds a block of its file.
const FAN_IN: usize = 64;
/// Bytes of lengths in front of a record in memory; one on disk has the key's only.
const HEAD: usize = 8;

/// A record in memory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The key's first bytes, as a number that sorts like them.
    prefix: u64,
    at: usize,
}

/// Gathers records.
#[derive(Debug)]
pub struct ExternalSort {
    form: KeyForm,
    records: Vec<u8>,
    entries: Vec<Entry>,
    runs: Vec<Run>,
    file: Option<SpillFile>,
    account: Account,
    /// Bytes that stay in memory.
    budget: u64,
}

/// Gives them back in order.
pub enum Sorted {
    /// All were in memory.
    Memory {
        /// Keys and records.
        records: Bytes,
        /// In order.
        entries: std::vec::IntoIter<usize>,
        /// Their memory.
        _account: Account,
    },
    /// Most were on disk.
    Merge(Merge),
}

impl ExternalSort {
    /// An empty sort in `sort_buffer_size`.
    #[must_use]
    pub fn new(form: KeyForm, cx: &impl Running) -> ExternalSort {
        ExternalSort::with_budget(form, cx.session().settings.sort_buffer_size, cx)
    }

    /// An empty sort in so many bytes.
    #[must_use]
    pub fn with_budget(form: KeyForm, budget: u64, cx: &impl Running) -> ExternalSort {
        let account = Account::new(&cx.session().connection.memory);
        let (records, entries, runs) = (Vec::new(), Vec::new(), Vec::new());
        ExternalSort { form, records, entries, runs, file: None, account, budget }
    }

    /// How keys are written.
    #[must_use]
    pub fn form(&self) -> &KeyForm {
        &self.form
    }

    /// Takes up a record.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn add(&mut self, key: &[u8], record: &[u8], cx: &mut impl Running) -> ExecResult<()> {
        let more = HEAD + key.len() + record.len() + size_of::<Entry>();
        let budget = self.budget;
        if !self.account.has_room(more, budget, &cx.session().settings) {
            self.spill(cx)?;
            if !self.account.has_room(more, budget, &cx.session().settings) {
                self.account.take_anyway(more);
            }
        }
        self.entries.push(Entry { prefix: prefix(key, &self.form), at: self.records.len() });
        self.records.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.records.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.records.extend_from_slice(key);
        self.records.extend_from_slice(record);
        Ok(())
    }

    fn sort(&mut self) {
        let (records, form) = (&self.records, &self.form);
        self.entries.sort_unstable_by(|a, b| {
            let keys = || form.order(parts(records, a.at).0, parts(records, b.at).0);
            a.prefix.cmp(&b.prefix).then_with(keys).then(a.at.cmp(&b.at))
        });
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self, cx: &mut impl Running) -> ExecResult<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(SpillFile::create(cx)?);
        }
        self.sort();
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut writer = RunWriter::default();
        for entry in &self.entries {
            let (key, record) = parts(&self.records, entry.at);
            writer.push(file, &[&(key.len() as u32).to_le_bytes(), key, record])?;
        }
        self.runs.push(writer.finish(file)?);
        self.entries.clear();
        self.records.clear();
        // What a long record needed is not kept.
        if self.records.capacity() as u64 > 2 * self.budget {
            self.records = Vec::new();
        }
        self.account.clear();
        Ok(())
    }

    /// All records in order.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn finish(mut self, cx: &mut impl Running) -> ExecResult<Sorted> {
        if self.runs.is_empty() {
            self.sort();
            let entries: Vec<usize> = self.entries.iter().map(|entry| entry.at).collect();
            let (records, entries) = (self.records.into(), entries.into_iter());
            return Ok(Sorted::Memory { records, entries, _account: self.account });
        }
        self.spill(cx)?;
        let (mut runs, form) = (self.runs, self.form);
        let Some(mut file) = self.file else {
            return Err(crate::error::SqlError::internal("no file of runs").into());
        };
        while runs.len() > FAN_IN {
            let mut longer = Vec::new();
            let mut rest = runs.into_iter().peekable();
            while rest.peek().is_some() {
                let some: Vec<Run> = rest.by_ref().take(FAN_IN).collect();
                longer.push(merge_into_one(&some, &form, &mut file, cx)?);
            }
            runs = longer;
        }
        cx.session().connection.memory.server().sort_merge_passes.fetch_add(1, atomic::Ordering::Relaxed);
        Ok(Sorted::Merge(Merge::new(&runs, form, &file)?))
    }
}

/// One run of several.
fn merge_into_one(
    runs: &[Run],
    form: &KeyForm,
    file: &mut SpillFile,
    cx: &mut impl Running,
) -> ExecResult<Run> {
    cx.session().connection.memory.server().sort_merge_passes.fetch_add(1, atomic::Ordering::Relaxed);
    let mut heap = Heap::new(runs, form, file)?;
    let mut writer = RunWriter::default();
    while let Some(record) = heap.next(form)? {
        cx.tick()?;
        writer.push(file, &[&record])?;
    }
    Ok(writer.finish(file)?)
}

impl Sorted {
    /// The next record, with its key in front.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn next_record(&mut self) -> SqlResult<Option<(Bytes, Bytes)>> {
        match self {
            Sorted::Memory { records, entries, .. } => Ok(entries.next().map(|at| {
                let (key, record) = parts(records, at);
                (records.slice_ref(key), records.slice_ref(record))
            })),
            Sorted::Merge(merge) => merge.next(),
        }
    }
}

/// Key and record of what stands at `at` in memory.
fn parts(records: &[u8], at: usize) -> (&[u8], &[u8]) {
    let number = |at: usize| {
        let bytes = records.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default()) as usize
    };
    let (key, record) = (number(at), number(at + 4));
    records[at + HEAD..at + HEAD + key + record].split_at(key)
}

fn prefix(key: &[u8], form: &KeyForm) -> u64 {
    if !form.is_bytes() {
        return 0;
    }
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}

/// Runs that are merged.
pub struct Merge {
    heap: Heap,
    form: KeyForm,
}

impl Merge {
    fn new(runs: &[Run], form: KeyForm, file: &SpillFile) -> SqlResult<Merge> {
        Ok(Merge { heap: Heap::new(runs, &form, file)?, form })
    }

    fn next(&mut self) -> SqlResult<Option<(Bytes, Bytes)>> {
        let Some(mut record) = self.heap.next(&self.form)? else { return Ok(None) };
        let len = key_len(&record);
        let rest = record.split_off((4 + len).min(record.len()));
        Ok(Some((record.slice(4..), rest)))
    }
}

fn key_len(record: &[u8]) -> usize {
    record.first_chunk().map_or(0, |head| u32::from_le_bytes(*head) as usize)
}

/// Readers of runs, the one with the least record first.
struct Heap {
    heads: Vec<Head>,
}

struct Head {
    record: Bytes,
    prefix: u64,
    /// The number of the run: an earlier one's records come first.
    run: usize,
    reader: RunReader,
}

impl Head {
    fn key(&self) -> &[u8] {
        let len = key_len(&self.record);
        self.record.get(4..4 + len).unwrap_or_default()
    }

    fn order(&self, other: &Head, form: &KeyForm) -> Ordering {
        let keys = || form.order(self.key(), other.key());
        self.prefix.cmp(&other.prefix).then_with(keys).then(self.run.cmp(&other.run))
    }

    fn set(&mut self, record: Bytes, form: &KeyForm) {
        self.record = record;
        self.prefix = prefix(self.key(), form);
    }
}

impl Heap {
    fn new(runs: &[Run], form: &KeyForm, file: &SpillFile) -> SqlResult<Heap> {
        let mut heads = Vec::with_capacity(runs.len());
        for (run, records) in runs.iter().enumerate() {
            let mut reader = file.read(records);
            if let Some(record) = reader.next_record()? {
                let mut head = Head { record: Bytes::new(), prefix: 0, run, reader };
                head.set(record, form);
                heads.push(head);
            }
        }
        heads.sort_by(|a, b| a.order(b, form));
        Ok(Heap { heads })
    }

    fn next(&mut self, form: &KeyForm) -> SqlResult<Option<Bytes>> {
        let Some(first) = self.heads.first_mut() else { return Ok(None) };
        let found = match first.reader.next_record()? {
            Some(next) => {
                let found = std::mem::take(&mut first.record);
                first.set(next, form);
                found
            }
            None => self.heads.swap_remove(0).record,
        };
        self.sink(form);
        Ok(Some(found))
    }

    /// Brings the first reader to its place.
    fn sink(&mut self, form: &KeyForm) {
        let mut at = 0;
        loop {
            let children = [2 * at + 1, 2 * at + 2];
            let less = |a: usize, b: usize| self.heads[a].order(&self.heads[b], form).is_lt();
            let least = children
                .into_iter()
                .filter(|child| *child < self.heads.len())
                .fold(at, |least, child| if less(child, least) { child } else { least });
            if least == at {
                return;
            }
            self.heads.swap(at, least);
            at = least;
        }
    }
}
