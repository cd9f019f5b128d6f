//! Decides the transactions that engines found prepared (RECOVER-1). Pure: no log, no engine.
//!
//! A transaction that is prepared and in the log is committed, with the number that the log gave it. One that is
//! prepared and not in the log is rolled back. There is no third case: a participant is told to commit only after the
//! log is durable, so one that remembers a commit finds it in the log, and one that remembers nothing may go either
//! way.

use omnibus_engine::{CommitNo, TrxId};
use std::collections::{BTreeSet, HashMap};

/// The instruction for the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// `commit_prepared` with this number.
    Commit(CommitNo),
    /// `rollback`.
    Rollback,
}

/// A decision for each prepared transaction: the commits first, in commit order (COMMIT-1), then the rollbacks.
///
/// `logged` are transactions of the valid part of the log, and their numbers: at least those since the server started
/// that prepared them, which is enough, because each recovery decides everything; and no older ones if ids began anew
/// with that start. `prepared` may name an id more than once, as several engines do.
pub fn decide(
    logged: impl IntoIterator<Item = (TrxId, CommitNo)>,
    prepared: impl IntoIterator<Item = TrxId>,
) -> Vec<(TrxId, Decision)> {
    let prepared: BTreeSet<TrxId> = prepared.into_iter().collect();
    let mut found: HashMap<TrxId, CommitNo> = HashMap::new();
    for (trx, no) in logged.into_iter().filter(|(trx, _)| prepared.contains(trx)) {
        let last = found.entry(trx).or_insert(no);
        *last = no.max(*last);
    }
    let decision = |trx: TrxId| found.get(&trx).map_or(Decision::Rollback, |no| Decision::Commit(*no));
    let mut table: Vec<_> = prepared.into_iter().map(|trx| (trx, decision(trx))).collect();
    table.sort_by_key(|(_, decision)| match decision {
        Decision::Commit(no) => *no,
        Decision::Rollback => CommitNo::MAX,
    });
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(logged: &[(u64, u64)], prepared: &[u64]) -> Vec<(u64, Option<u64>)> {
        let logged = logged.iter().map(|(trx, no)| (TrxId(*trx), CommitNo(*no)));
        let table = decide(logged, prepared.iter().copied().map(TrxId));
        let plain = |(trx, decision): (TrxId, Decision)| match decision {
            Decision::Commit(no) => (trx.0, Some(no.0)),
            Decision::Rollback => (trx.0, None),
        };
        table.into_iter().map(plain).collect()
    }

    /// RECOVER-1.
    #[test]
    fn what_the_log_has_is_committed_and_the_rest_rolled_back() {
        assert_eq!(run(&[(1, 10), (2, 11), (3, 12)], &[2, 4]), [(2, Some(11)), (4, None)]);
        assert_eq!(run(&[], &[1, 2]), [(1, None), (2, None)]);
        assert_eq!(run(&[(1, 10)], &[]), []);
    }

    #[test]
    fn commits_come_in_commit_order_whatever_the_ids() {
        assert_eq!(
            run(&[(9, 10), (1, 11), (5, 12)], &[1, 5, 7, 9, 2]),
            [(9, Some(10)), (1, Some(11)), (5, Some(12)), (2, None), (7, None)]
        );
    }

    #[test]
    fn an_id_that_several_engines_name_is_decided_once_and_its_last_number_counts() {
        assert_eq!(run(&[(1, 10), (1, 30), (2, 20)], &[1, 1, 2, 1]), [(2, Some(20)), (1, Some(30))]);
    }
}
