//! The global transaction ids in the log: all that were appended, and those that had been appended at a given commit
//! number.
//!
//! A commit adds its id under the flush lock. The set executed "up to N" (`gtid_executed`, a snapshot's, a backup's) is
//! computed on request. The ids ahead of the oldest snapshot are kept as *runs*, in which number and id grow by one
//! together: a server that commits alone, or applies one source, has one run however fast it is. The watermark folds
//! older runs, which nobody can ask for any more, into one set. A plain commit adds one to a run, without allocation.
//!
//! `identity` chooses the id of a transaction, and `owned` grants the right to commit a given one.

use omnibus_engine::CommitNo;
use omnibus_format::{AnyGtid, Dialect, GtidSet, GtidState};
use std::collections::VecDeque;

/// The maximum number of runs kept for old snapshots; beyond it only runs that are not durable are kept.
const RUNS: usize = 1 << 16;

/// The number of folded runs that are remembered, for sessions that ask for the id of their own commit.
const REMEMBERED: usize = 1024;

/// `count` transactions with consecutive commit numbers and consecutive ids of one server.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: CommitNo,
    count: u64,
    gtid: AnyGtid,
}

impl Run {
    fn is_followed_by(&self, no: CommitNo, gtid: AnyGtid) -> bool {
        self.first.0 + self.count == no.0 && self.gtid.later(self.count) == gtid
    }

    fn at(&self, no: CommitNo) -> Option<AnyGtid> {
        let by = no.0.checked_sub(self.first.0)?;
        (by < self.count).then(|| self.gtid.later(by))
    }
}

/// The ids in the log.
#[derive(Clone, Debug)]
pub(crate) struct Executed {
    /// The ids of all appended transactions.
    all: GtidState,
    /// The ids up to the newest folded commit number.
    settled: GtidState,
    /// The runs behind it, in order.
    ahead: VecDeque<Run>,
    /// The newest folded runs.
    folded: VecDeque<Run>,
    /// Ids in `all` that are in no event that others read: declared as executed elsewhere (`gtid_purged`), or not
    /// logged (`sql_log_bin=0`).
    elsewhere: GtidSet,
    /// Incremented when ids are added or removed otherwise than by a commit.
    generation: u64,
}

impl Executed {
    pub(crate) fn new(state: GtidState, elsewhere: GtidSet) -> Executed {
        Executed {
            settled: state.clone(),
            all: state,
            ahead: VecDeque::new(),
            folded: VecDeque::new(),
            elsewhere,
            generation: 0,
        }
    }

    /// The ids of all appended transactions.
    pub(crate) fn all(&self) -> &GtidState {
        &self.all
    }

    /// The newest transaction with an id, if there is one that may not be durable.
    pub(crate) fn newest(&self) -> Option<CommitNo> {
        self.ahead.back().map(|run| CommitNo(run.first.0 + run.count - 1))
    }

    pub(crate) fn elsewhere(&self) -> &GtidSet {
        &self.elsewhere
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Records that transaction `no` was appended.
    #[inline]
    pub(crate) fn append(&mut self, no: CommitNo, gtid: AnyGtid) {
        self.all.add(gtid);
        if let Some(run) = self.ahead.back_mut()
            && run.is_followed_by(no, gtid)
        {
            run.count += 1;
            return;
        }
        self.ahead.push_back(Run { first: no, count: 1, gtid });
    }

    /// Folds the runs below `oldest`, which will not be asked for. If there are too many runs, those up to `durable`
    /// are folded, too.
    pub(crate) fn settle(&mut self, oldest: CommitNo, durable: CommitNo) {
        self.settle_up_to(oldest.0.min(durable.0));
        if self.ahead.len() > RUNS {
            self.settle_up_to(durable.0);
        }
    }

    fn settle_up_to(&mut self, no: u64) {
        while let Some(run) = self.ahead.front_mut()
            && run.first.0 <= no
        {
            let count = run.count.min(no - run.first.0 + 1);
            self.settled.add_run(run.gtid, count);
            let part = Run { count, ..*run };
            match self.folded.back_mut() {
                Some(last) if last.is_followed_by(part.first, part.gtid) => last.count += count,
                _ => self.folded.push_back(part),
            }
            if self.folded.len() > REMEMBERED {
                self.folded.pop_front();
            }
            if count == run.count {
                self.ahead.pop_front();
            } else {
                (run.first.0, run.gtid) = (run.first.0 + count, run.gtid.later(count));
                run.count -= count;
            }
        }
    }

    /// Returns the ids executed when `no` was the newest transaction.
    pub(crate) fn at(&self, no: CommitNo) -> GtidState {
        let mut state = self.settled.clone();
        for run in self.ahead.iter().take_while(|run| run.first <= no) {
            state.add_run(run.gtid, run.count.min(no.0 - run.first.0 + 1));
        }
        state
    }

    /// Returns the id of a transaction, unless that is long ago.
    pub(crate) fn of(&self, no: CommitNo) -> Option<AnyGtid> {
        self.ahead.iter().rev().chain(self.folded.iter().rev()).find_map(|run| run.at(no))
    }

    /// Removes all ids, for a reset of the log.
    pub(crate) fn clear(&mut self) {
        let generation = self.generation + 1;
        let empty = GtidState::new(self.all.dialect());
        *self = Executed { generation, ..Executed::new(empty, GtidSet::new()) };
    }

    /// Counts these ids as executed from now on, though no file has them.
    pub(crate) fn add_elsewhere(&mut self, set: &GtidSet) {
        self.generation += 1;
        for state in [&mut self.all, &mut self.settled] {
            if let GtidState::Mysql(executed) = state {
                executed.union(set);
            }
        }
        self.elsewhere.union(set);
    }

    /// Records that no file tells others of an appended transaction.
    pub(crate) fn note_elsewhere(&mut self, gtid: AnyGtid) {
        if let AnyGtid::Mysql { source, gno } = gtid {
            self.elsewhere.add(source, gno);
            self.generation += 1;
        }
    }

    /// Replaces all ids (`gtid_binlog_state`, on an empty log).
    pub(crate) fn replace(&mut self, state: GtidState) {
        let generation = self.generation + 1;
        *self = Executed { generation, ..Executed::new(state, GtidSet::new()) };
    }

    /// The dialect of the ids.
    pub(crate) fn dialect(&self) -> Dialect {
        self.all.dialect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omnibus_format::ServerUuid;

    fn gtid(uuid: u8, gno: u64) -> AnyGtid {
        AnyGtid::mysql(ServerUuid([uuid; 16]), gno)
    }

    /// Numbers 1 to 6: own 1, own 2, foreign 9, (private), own 3, foreign 10.
    fn mixed() -> Executed {
        let mut executed = Executed::new(GtidState::default(), GtidSet::new());
        let ids = [(1, gtid(1, 1)), (2, gtid(1, 2)), (3, gtid(2, 9)), (5, gtid(1, 3)), (6, gtid(2, 10))];
        ids.into_iter().for_each(|(no, gtid)| executed.append(CommitNo(no), gtid));
        executed
    }

    fn counts(executed: &Executed) -> Vec<u64> {
        let count = |no| executed.at(CommitNo(no)).set().map_or(0, GtidSet::count);
        (0..=7).map(count).collect()
    }

    #[test]
    fn what_was_executed_at_a_number_is_the_same_before_and_after_folding() {
        let mut executed = mixed();
        assert_eq!(counts(&executed), [0, 1, 2, 3, 3, 4, 5, 5]);
        executed.settle(CommitNo(1), CommitNo(6));
        assert_eq!(counts(&executed), [1, 1, 2, 3, 3, 4, 5, 5], "of 1 there is a snapshot");
        executed.settle(CommitNo(6), CommitNo(3));
        assert_eq!(counts(&executed), [3, 3, 3, 3, 3, 4, 5, 5], "what is not durable is not folded");
        executed.settle(CommitNo(6), CommitNo(6));
        assert!(executed.ahead.is_empty());
        assert_eq!(executed.at(CommitNo(6)), *executed.all());
    }

    #[test]
    fn one_sources_transactions_are_one_run_however_many() {
        let mut executed = Executed::new(GtidState::default(), GtidSet::new());
        (1..=1000).for_each(|n| executed.append(CommitNo(n + 4), gtid(3, n)));
        assert_eq!(executed.ahead.len(), 1);
        executed.settle(CommitNo(504), CommitNo(2000));
        assert_eq!(executed.at(CommitNo(504)).set().map(GtidSet::count), Some(500));
        executed.settle(CommitNo(700), CommitNo(2000));
        assert_eq!((executed.folded.len(), executed.ahead.len()), (1, 1));
        for (no, expected) in [(4, None), (5, Some(1)), (704, Some(700)), (1004, Some(1000)), (1005, None)] {
            assert_eq!(executed.of(CommitNo(no)), expected.map(|gno| gtid(3, gno)));
        }
        assert_eq!(executed.at(CommitNo(1004)).set().map(GtidSet::count), Some(1000));
    }
}
