//! GROUP BY and aggregates: groups by hash key.
//!
//! Groups are in memory up to `tmp_table_size`. Then the rows of all further groups go to disk in parts by their keys, as
//! they are in the frame, and each part is grouped when the groups before it have been given.

use super::{Joined, dispatch};
use crate::error::ExecResult;
use crate::expr::functions::aggregate::{Accumulator, GroupCount};
use crate::expr::{Context, Row, eval, in_place};
use crate::memory::Account;
use crate::plan::physical::{GroupBy, GroupMethod, GroupPlan};
use crate::rows::Flow;
use crate::rows::codec;
use crate::rows::collected::temporary_table_max;
use crate::rows::partition::{Partition, Partitions};
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of a group beside its rows, its key and what it has gathered.
const GROUP_COST: usize = 160;

/// One group: the rows that stand for it, and what it has gathered.
pub(super) struct Group {
    rows: Vec<Row>,
    accumulators: Vec<Accumulator>,
}

impl Group {
    pub(super) fn start(grouping: &GroupPlan, cx: &Context<'_>) -> Group {
        let row = |slot: &u16| codec::own_row(&cx.frame[usize::from(*slot)].row);
        Group::of(grouping.row_slots.iter().map(row).collect(), grouping, cx)
    }

    /// The group of all rows where there is none.
    pub(super) fn of_nothing(grouping: &GroupPlan, cx: &Context<'_>) -> Group {
        Group::of(grouping.row_slots.iter().map(|_| Row::Nulls).collect(), grouping, cx)
    }

    fn of(rows: Vec<Row>, grouping: &GroupPlan, cx: &Context<'_>) -> Group {
        let count = if grouping.keys.is_empty() { GroupCount::One } else { GroupCount::Many };
        let accumulators = grouping.aggregates.iter().map(|spec| spec.start(count, cx)).collect();
        Group { rows, accumulators }
    }

    pub(super) fn add(
        &mut self,
        grouping: &GroupPlan,
        account: &mut Account,
        cx: &mut Context<'_>,
    ) -> ExecResult<()> {
        cx.grouped_rows += 1;
        for (accumulator, spec) in self.accumulators.iter_mut().zip(&grouping.aggregates) {
            accumulator.add(spec, account, cx)?;
        }
        Ok(())
    }

    fn memory(&self, key: &[u8]) -> usize {
        GROUP_COST
            + key.len()
            + size_of_val(&self.accumulators[..])
            + self.rows.iter().map(codec::memory_of_row).sum::<usize>()
    }

    /// Puts the group into the frame: its rows, and its results in the aggregates' slot.
    pub(super) fn enter(self, grouping: &GroupPlan, cx: &mut Context<'_>) -> ExecResult<()> {
        for (slot, row) in grouping.row_slots.iter().zip(self.rows) {
            cx.frame[usize::from(*slot)].row = row;
        }
        let Some(slot) = grouping.slot else { return Ok(()) };
        let mut results: Vec<Value> = Vec::with_capacity(grouping.aggregates.len());
        for (accumulator, spec) in self.accumulators.into_iter().zip(&grouping.aggregates) {
            results.push(eval::own(accumulator.finish(spec, cx)?));
        }
        cx.frame[usize::from(slot)].row = Row::Values(Rc::from(results));
        Ok(())
    }
}

/// Puts each group into the frame.
pub(super) fn run(group: &GroupBy, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    match group.grouping.method {
        GroupMethod::All | GroupMethod::First => {
            let mut account = Account::new(&cx.session.connection.memory);
            single(group, &mut account, cx)?.enter(&group.grouping, cx)?;
            each(cx)
        }
        GroupMethod::Hash => hashed(group, cx, each),
        GroupMethod::Stream => super::stream_group::run(group, cx, each),
        GroupMethod::Rollup(slot) => super::rollup::run(group, slot, cx, each),
    }
}

fn hashed(group: &GroupBy, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let (grouping, slots) = (&group.grouping, &group.slots[..]);
    let mut groups = Groups::new(0, cx);
    let mut key = Vec::new();
    dispatch::frame(&group.input, None, cx, &mut |cx| {
        key.clear();
        for e in &grouping.keys {
            in_place::write_key(e, e.ty.column.collation, cx, &mut key)?;
        }
        groups.add(&key, grouping, slots, cx)?;
        Ok(Flow::Continue)
    })?;
    groups.give(grouping, slots, cx, each)
}

/// Everything is one group, even if there are no rows.
fn single(of: &GroupBy, account: &mut Account, cx: &mut Context<'_>) -> ExecResult<Group> {
    let grouping = &of.grouping;
    let first_only = grouping.method == GroupMethod::First;
    let mut group: Option<Group> = None;
    dispatch::frame(&of.input, None, cx, &mut |cx| {
        let group = group.get_or_insert_with(|| Group::start(grouping, cx));
        group.add(grouping, account, cx)?;
        if first_only && group.accumulators[0].has_value() {
            return Ok(Flow::Stop);
        }
        Ok(Flow::Continue)
    })?;
    Ok(group.unwrap_or_else(|| Group::of_nothing(grouping, cx)))
}

/// Groups in memory, and the rows of those behind.
struct Groups {
    places: HashMap<Box<[u8]>, usize, RandomState>,
    groups: Vec<Group>,
    account: Account,
    later: Option<Partitions>,
    /// How often the rows were parted.
    level: u64,
    record: Vec<u8>,
}

impl Groups {
    fn new(level: u64, cx: &Context<'_>) -> Groups {
        Groups {
            places: HashMap::default(),
            groups: Vec::new(),
            account: Account::new(&cx.session.connection.memory),
            later: None,
            level,
            record: Vec::new(),
        }
    }

    /// Takes up the row in the frame.
    fn add(
        &mut self,
        key: &[u8],
        grouping: &GroupPlan,
        slots: &[u16],
        cx: &mut Context<'_>,
    ) -> ExecResult<()> {
        if let Some(at) = self.places.get(key) {
            return self.groups[*at].add(grouping, &mut self.account, cx);
        }
        if self.later.is_none() {
            let mut group = Group::start(grouping, cx);
            if self.has_room(group.memory(key), cx) {
                group.add(grouping, &mut self.account, cx)?;
                self.places.insert(key.into(), self.groups.len());
                self.groups.push(group);
                return Ok(());
            }
            self.later = Some(Partitions::create(self.level, cx)?);
        }
        self.record.clear();
        slots.iter().for_each(|slot| codec::write_row(&cx.frame[usize::from(*slot)].row, &mut self.record));
        if let Some(later) = &mut self.later {
            later.push(key, &self.record)?;
        }
        Ok(())
    }

    /// Whether one more group may be kept; the first may always.
    fn has_room(&mut self, more: usize, cx: &Context<'_>) -> bool {
        self.account.has_room(more, temporary_table_max(cx), &cx.session.settings) || self.groups.is_empty()
    }

    /// Puts each group into the frame.
    fn give(
        self,
        grouping: &GroupPlan,
        slots: &[u16],
        cx: &mut Context<'_>,
        each: &mut Joined<'_>,
    ) -> ExecResult<Flow> {
        drop(self.places);
        for group in self.groups {
            cx.tick()?;
            group.enter(grouping, cx)?;
            if each(cx)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        drop(self.account);
        let Some(later) = self.later else { return Ok(Flow::Continue) };
        for part in later.finish()? {
            let groups = of_part(&part, grouping, slots, cx)?;
            if groups.give(grouping, slots, cx, each)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

fn of_part(
    part: &Partition,
    grouping: &GroupPlan,
    slots: &[u16],
    cx: &mut Context<'_>,
) -> ExecResult<Groups> {
    let mut groups = Groups::new(part.level + 1, cx);
    let mut reader = part.read();
    while let Some((key, mut record)) = reader.next_record()? {
        cx.tick()?;
        for slot in slots {
            cx.frame[usize::from(*slot)].row = codec::read_row(&mut record)?;
        }
        groups.add(&key, grouping, slots, cx)?;
    }
    Ok(groups)
}
