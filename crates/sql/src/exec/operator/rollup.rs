//! WITH ROLLUP: the groups in order, and behind those that share their first keys one that sums them up.
//!
//! Rows are sorted by the keys. One group is open for each number of first keys, from none to all; a row goes into every one of
//! them, and those end whose keys it does not share.

use super::group::Group;
use super::{Joined, dispatch};
use crate::error::ExecResult;
use crate::expr::{Context, Row, eval, hash_key};
use crate::memory::Account;
use crate::plan::physical::{GroupBy, GroupPlan};
use crate::rows::Flow;
use crate::rows::codec;
use crate::sort::{ExternalSort, KeyForm, Part};
use bytes::Bytes;
use omnibus_value::Value;

/// The open groups: the one by the first `n` keys is at `n`.
struct Open {
    groups: Vec<(Group, Account)>,
    keys: Vec<Value>,
    /// Each key as bytes that are equal where it is.
    parts: Vec<Vec<u8>>,
}

/// Puts each group into the frame; `slot` gets its keys.
pub(super) fn run(of: &GroupBy, slot: u16, cx: &mut Context<'_>, each: &mut Joined<'_>) -> ExecResult<Flow> {
    let (grouping, slots) = (&of.grouping, &of.slots[..]);
    let parts = grouping.keys.iter().map(|e| Part::new(&e.ty, e.ty.column.collation, false));
    let mut sort = ExternalSort::new(KeyForm::new(parts.collect()), cx);
    let (mut key, mut record) = (Vec::new(), Vec::new());
    dispatch::frame(&of.input, None, cx, &mut |cx| {
        let keys = values(grouping, cx)?;
        key.clear();
        sort.form().write(keys.iter(), &mut key);
        record.clear();
        slots.iter().for_each(|slot| codec::write_row(&cx.frame[usize::from(*slot)].row, &mut record));
        sort.add(&key, &record, cx)?;
        Ok(Flow::Continue)
    })?;
    let mut sorted = sort.finish(cx)?;
    let mut open = Open { groups: Vec::new(), keys: Vec::new(), parts: Vec::new() };
    while let Some((_, record)) = sorted.next_record()? {
        cx.tick()?;
        enter(record.clone(), slots, cx)?;
        let keys = values(grouping, cx)?;
        let parts: Vec<Vec<u8>> = keys
            .iter()
            .zip(&grouping.keys)
            .map(|(key, e)| {
                let mut part = Vec::new();
                hash_key::write(key, e.ty.column.collation, &mut part);
                part
            })
            .collect();
        let shared = open.parts.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        if !open.groups.is_empty() && shared < parts.len() {
            if open.end(shared + 1, grouping, slot, cx, each)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            enter(record, slots, cx)?;
        }
        (open.keys, open.parts) = (keys, parts);
        while open.groups.len() <= grouping.keys.len() {
            open.groups.push((Group::start(grouping, cx), Account::new(&cx.session.connection.memory)));
        }
        for (group, account) in &mut open.groups {
            group.add(grouping, account, cx)?;
        }
    }
    if open.groups.is_empty() && !cx.session.settings.mariadb {
        // MySQL sums up nothing, too; MariaDB does not.
        open.keys = grouping.keys.iter().map(|_| Value::Null).collect();
        open.groups.push((Group::of_nothing(grouping, cx), Account::new(&cx.session.connection.memory)));
    }
    open.end(0, grouping, slot, cx, each)
}

/// Puts a row into the frame.
fn enter(mut record: Bytes, slots: &[u16], cx: &mut Context<'_>) -> ExecResult<()> {
    for slot in slots {
        cx.frame[usize::from(*slot)].row = codec::read_row(&mut record)?;
    }
    Ok(())
}

fn values(grouping: &GroupPlan, cx: &mut Context<'_>) -> ExecResult<Vec<Value>> {
    let mut keys = Vec::with_capacity(grouping.keys.len());
    for e in &grouping.keys {
        keys.push(eval::own(e.eval(cx)?));
    }
    Ok(keys)
}

impl Open {
    /// Gives the groups by `from` keys and more, those by most keys first.
    fn end(
        &mut self,
        from: usize,
        grouping: &GroupPlan,
        slot: u16,
        cx: &mut Context<'_>,
        each: &mut Joined<'_>,
    ) -> ExecResult<Flow> {
        while self.groups.len() > from {
            let Some((group, _)) = self.groups.pop() else { break };
            let by = self.groups.len();
            group.enter(grouping, cx)?;
            let keys = self.keys.iter().enumerate();
            let keys = keys.map(|(at, key)| if at < by { key.clone() } else { Value::Null });
            let summed = (0..self.keys.len()).map(|at| Value::Int(i64::from(at >= by)));
            cx.frame[usize::from(slot)].row = Row::Values(keys.chain(summed).collect());
            if each(cx)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}
