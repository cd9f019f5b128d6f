//! The oracle: derives from requests and replies what must be there. It sees requests, replies, and the contents after
//! a recovery; it knows nothing of files, groups or threads.

use crate::branch_oracle::{Before, BranchOracle};
use crate::branches::{Answer, Ask, Branch, ShownBranches};
use crate::names::id_of;
use crate::random::Random;
use crate::request::Wanted;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The contents of a recovered server.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Numbers and transactions, in order, from 1 on.
    pub(crate) order: Vec<(u64, u64)>,
    pub(crate) rows: BTreeMap<Bytes, Bytes>,
    /// The newest number that the log has.
    pub(crate) last: u64,
    /// The number of executed GTIDs, and whether they have no gap. `None` where that is unknown.
    pub(crate) gtids: Option<(u64, bool)>,
    /// The branches, in histories with tables.
    pub(crate) branches: Option<ShownBranches>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// None yet, or one that tells nothing.
    None,
    Committed(u64),
    /// The request was refused and left no trace.
    Refused,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    requests: BTreeMap<u64, (Wanted, Reply)>,
    /// The promises that existed when each was requested.
    asked_after: BTreeMap<u64, u64>,
    /// Transactions that a replica has got.
    sent: BTreeSet<u64>,
    /// The transactions that an earlier recovery showed, which must stay.
    settled: Vec<(u64, u64)>,
    /// The newest number acknowledged where that promises to survive a power cut, including everything that replies
    /// revealed.
    promised: u64,
    /// Numbers acknowledged in this life, whatever that promises.
    acknowledged: u64,
    /// Pairs: the first was acknowledged before the second was asked for.
    follows: Vec<(u64, u64)>,
    newest_reply: Option<u64>,
    /// The number of GTIDs that a reset has removed, and whether the outcome of a reset is unknown.
    forgotten: u64,
    resets: bool,
    branches: BranchOracle,
}

impl Oracle {
    pub(crate) fn asked(&mut self, wanted: Wanted) {
        if let Some(before) = self.newest_reply {
            self.follows.push((before, wanted.id));
        }
        self.asked_after.insert(wanted.id, self.promised);
        self.requests.insert(wanted.id, (wanted, Reply::None));
    }

    /// Records the contents before the first life: transactions that made the tables, of which those with a GTID came
    /// last.
    pub(crate) fn founded(&mut self, shown: &Shown) {
        let gtids = shown.gtids.map_or(0, |(count, _)| count);
        for (no, id) in &shown.order {
            let logged = no + gtids > shown.last;
            self.requests.insert(*id, (Wanted::nothing(*id, logged), Reply::Committed(*no)));
        }
        self.forget_lost(shown);
    }

    /// A session asks for something about XA branches.
    pub(crate) fn asks(&mut self, ask: &Ask) -> Before {
        let wanted = match ask {
            Ask::Prepare(Branch { id, rows, .. }) => Some((*id, *rows > 0)),
            // It is one transaction, whoever asks for it.
            Ask::Finish { id, .. } if !self.requests.contains_key(&(id + 1)) => {
                Some((id + 1, self.requests.get(id).is_some_and(|(prepare, _)| prepare.logged)))
            }
            _ => None,
        };
        if let Some((id, logged)) = wanted {
            self.asked(Wanted::nothing(id, logged));
        }
        self.branches.asked(ask)
    }

    /// A session is answered.
    pub(crate) fn answered(
        &mut self,
        ask: &Ask,
        before: &Before,
        answer: &Answer,
        promises: bool,
    ) -> Result<(), String> {
        match (ask, answer) {
            (Ask::Prepare(branch), Answer::Done { .. }) => self.newest_reply = Some(branch.id),
            (Ask::Finish { id, .. }, Answer::Done { .. }) => self.newest_reply = Some(id + 1),
            _ => {}
        }
        self.branches.answered(ask, before, answer, promises)
    }

    /// A branch that may be ended.
    pub(crate) fn pick_branch(&self, random: &mut Random) -> Option<u64> {
        self.branches.pick(random)
    }

    /// Up to which number everything is to survive a power cut.
    pub(crate) fn promised(&self) -> u64 {
        self.promised
    }

    /// A replica got some of it.
    pub(crate) fn sent(&mut self, id: u64) {
        self.sent.insert(id);
    }

    /// A session that had seen everything up to `no` was answered.
    pub(crate) fn replied(&mut self, no: u64, promises: bool) {
        self.acknowledged = self.acknowledged.max(no);
        if promises {
            self.told(no);
        }
    }

    /// Returns one of the newest transactions that must survive a power cut, for a test that damages it.
    pub(crate) fn pick_promised(&self, random: &mut Random) -> Option<u64> {
        let promised = |reply: &Reply| matches!(reply, Reply::Committed(no) if *no <= self.promised);
        let ids: Vec<u64> = self
            .requests
            .iter()
            .rev()
            .filter(|(_, (wanted, reply))| promised(reply) && !wanted.pairs.is_empty())
            .map(|(id, _)| *id)
            .take(30)
            .collect();
        if ids.is_empty() { None } else { Some(random.pick(&ids)) }
    }

    /// Checks a server that has started although something durable is damaged. The transactions that it gives up cannot
    /// have been known to be durable when the events behind them were written, because those would then claim it.
    pub(crate) fn judge_damaged(&self, shown: &Shown) -> Result<(), String> {
        for (id, (_, reply)) in &self.requests {
            let Reply::Committed(no) = reply else { continue };
            let known = self.asked_after.get(id).copied().unwrap_or(0);
            if *no <= self.promised && *no > shown.last && known > shown.last {
                return Err(format!(
                    "damage: it starts with {}, and gives up {no}, which was asked for when {known} was durable",
                    shown.last
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn committed(&mut self, id: u64, no: u64, promises: bool) {
        if let Some((_, reply)) = self.requests.get_mut(&id) {
            *reply = Reply::Committed(no);
        }
        self.newest_reply = Some(id);
        self.acknowledged = self.acknowledged.max(no);
        if promises {
            self.promised = self.promised.max(no);
        }
    }

    pub(crate) fn refused(&mut self, id: u64) {
        if let Some((_, reply)) = self.requests.get_mut(&id) {
            *reply = Reply::Refused;
        }
    }

    /// Records that a reply promised everything up to `no` to be durable.
    pub(crate) fn told(&mut self, no: u64) {
        self.promised = self.promised.max(no);
    }

    /// RESET BINARY LOGS AND GTIDS was asked for: GTIDs may count from 1 anew.
    pub(crate) fn resets(&mut self) {
        self.resets = true;
    }

    /// Returns the number of transactions up to `no` that have a GTID.
    fn with_gtid(&self, order: &[(u64, u64)]) -> u64 {
        order.iter().filter(|(_, id)| self.requests.get(id).is_some_and(|found| found.0.logged)).count()
            as u64
    }

    /// Compares what is there after a power cut, or a kill, with what must be; the next life begins with it.
    pub(crate) fn judge(&mut self, shown: &Shown, power_cut: bool) -> Result<(), String> {
        self.forgotten = self.look(shown, power_cut)?;
        self.resets = false;
        self.forget_lost(shown);
        Ok(())
    }

    /// Compares what is there with what must be; gives how many GTIDs are forgotten.
    pub(crate) fn look(&self, shown: &Shown, power_cut: bool) -> Result<u64, String> {
        self.judge_order(shown)?;
        self.judge_replies(shown, power_cut)?;
        self.judge_rows(shown)?;
        if let Some(branches) = &shown.branches {
            self.branches.judge(branches, &shown.order, power_cut)?;
        }
        if let Some((count, whole)) = shown.gtids {
            let all = self.with_gtid(&shown.order);
            let reset = self.resets && count <= all - self.forgotten;
            let forgotten = if reset { all - count } else { self.forgotten };
            let wanted = all - forgotten;
            if count != wanted || !whole {
                return Err(format!("GTID-2: {count} GTIDs for {wanted} transactions, without gap: {whole}"));
            }
            return Ok(forgotten);
        }
        Ok(self.forgotten)
    }

    fn judge_order(&self, shown: &Shown) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for (at, (no, id)) in shown.order.iter().enumerate() {
            if *no != at as u64 + 1 {
                return Err(format!("COMMIT-1: place {} has number {no}", at + 1));
            }
            if !self.requests.contains_key(id) {
                return Err(format!("transaction {id} was never asked for"));
            }
            if !seen.insert(*id) {
                return Err(format!("transaction {id} is there twice"));
            }
        }
        if shown.last != shown.order.len() as u64 {
            return Err(format!("the log says {} and {} are there", shown.last, shown.order.len()));
        }
        for (before, now) in self.settled.iter().zip(&shown.order) {
            if before != now {
                return Err(format!("after an earlier recovery {before:?} was there, now it is {now:?}"));
            }
        }
        let numbers: BTreeMap<u64, u64> = shown.order.iter().map(|(no, id)| (*id, *no)).collect();
        for (before, after) in &self.follows {
            if let (Some(first), Some(second)) = (numbers.get(before), numbers.get(after))
                && first >= second
            {
                return Err(format!("COMMIT-1: {after} was asked for after {before}, and is before it"));
            }
        }
        Ok(())
    }

    fn judge_replies(&self, shown: &Shown, power_cut: bool) -> Result<(), String> {
        let settled = self.settled.len() as u64;
        let promised = if power_cut { self.promised } else { self.promised.max(self.acknowledged) };
        if shown.last < promised.max(settled) {
            return Err(format!(
                "COMMIT-3: {} was promised, {settled} recovered before, and {} is there",
                promised, shown.last
            ));
        }
        let numbers: BTreeMap<u64, u64> = shown.order.iter().map(|(no, id)| (*id, *no)).collect();
        if let Some(lost) = self.sent.iter().find(|id| !numbers.contains_key(id)) {
            return Err(format!("COMMIT-2: transaction {lost} was sent to a replica, and is lost"));
        }
        for (id, (_, reply)) in &self.requests {
            match (reply, numbers.get(id)) {
                (Reply::Committed(told), Some(no)) if told != no => {
                    return Err(format!("transaction {id} was told {told} and has number {no}"));
                }
                (Reply::Committed(told), None) if *told <= promised => {
                    return Err(format!("COMMIT-3: transaction {id}, acknowledged as {told}, is lost"));
                }
                (Reply::Refused, Some(no)) => {
                    return Err(format!("transaction {id} was refused and is there as {no}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// RECOVER-2, and whole or absent.
    fn judge_rows(&self, shown: &Shown) -> Result<(), String> {
        let mut rows = HashMap::new();
        let mut dropped = BTreeSet::new();
        for (_, id) in &shown.order {
            let wanted = &self.requests[id].0;
            rows.extend(wanted.pairs.iter().map(|(key, value)| (key, value)));
            dropped.extend(wanted.drops);
        }
        // Rows of a space that is gone are there until the engine gets to them.
        let alive = |key: &Bytes| id_of(key).is_none_or(|id| !dropped.contains(&id));
        let differs = rows.iter().find(|(key, value)| alive(key) && shown.rows.get(**key) != Some(value));
        let more = shown.rows.keys().find(|key| alive(key) && !rows.contains_key(key));
        if differs.is_none() && more.is_none() {
            return Ok(());
        }
        Err(format!("RECOVER-2: rows differ: wanted {differs:?}, or not wanted {more:?}"))
    }

    /// The next life begins with what is there.
    fn forget_lost(&mut self, shown: &Shown) {
        let there: BTreeMap<u64, u64> = shown.order.iter().map(|(no, id)| (*id, *no)).collect();
        self.requests.retain(|id, _| there.contains_key(id));
        for (id, (_, reply)) in &mut self.requests {
            *reply = Reply::Committed(there[id]);
        }
        if let Some(branches) = &shown.branches {
            self.branches.settle(branches, &shown.order);
        }
        self.settled.clone_from(&shown.order);
        self.asked_after.clear();
        self.follows.clear();
        self.newest_reply = None;
        (self.promised, self.acknowledged) = (shown.last, shown.last);
    }
}
