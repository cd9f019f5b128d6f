//! The gate between the sync stage and the commit stage, for semi-synchronous replication. With the gate closed, a
//! group whose bytes are durable, and which replicas can read, waits until it is released from outside. An open gate
//! costs one load per group.
//!
//! Everything happens under the order lock, so groups leave in the order in which they came (COMMIT-1, SEMI-1).

use super::Shared;
use super::abort::AbortOnPanic;
use super::flush::WrittenGroup;
use super::in_flight::Order;
use super::sync::MutexGuard;
use super::sync::atomic::Ordering;
use super::sync::now;
use crate::env::Env;
use omnibus_log::LogPosition;
use omnibus_log::mutant::{self, Mutant};
use std::time::{Duration, Instant};

/// The stage in which groups wait for replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Gate {
    /// Groups do not wait.
    #[default]
    Open = 0,
    /// Groups wait when they are durable, and are not visible to anyone here.
    AfterSync = 1,
    /// Groups wait when they are visible to all, and are not acknowledged to their own sessions.
    AfterCommit = 2,
}

/// A waiting group.
pub(super) struct Held {
    group: WrittenGroup,
    published: bool,
    since: Instant,
}

/// The transactions that a release let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Number of transactions.
    pub transactions: u64,
    /// The sum of their waiting times.
    pub waited: Duration,
}

impl WrittenGroup {
    /// Returns whether a group has to wait for replicas. A group that is not durable cannot be sent (COMMIT-2), so with
    /// `sync_binlog` other than 1 there may be nothing to wait for. A group that only recovery reads is never sent, so
    /// no replica would acknowledge it.
    fn is_for_replicas(&self) -> bool {
        self.synced && self.members.iter().any(|member| member.logged)
    }
}

impl<E: Env> Shared<E> {
    fn gate(&self) -> Gate {
        match self.gate.load(Ordering::Relaxed) {
            1 => Gate::AfterSync,
            2 => Gate::AfterCommit,
            _ => Gate::Open,
        }
    }

    /// Holds a group that must wait; returns one that need not.
    pub(super) fn pass_gate(
        &self,
        order: &mut Order,
        mut group: WrittenGroup,
        now: Instant,
    ) -> Option<WrittenGroup> {
        let gate = self.gate();
        // Behind one that is held nothing may pass. Else what waits is what a replica will get.
        let first = order.held.is_empty() || mutant::is(Mutant::PublishBackwards);
        if first && (gate == Gate::Open || !group.is_for_replicas()) {
            return Some(group);
        }
        let published = gate == Gate::AfterCommit && order.held.iter().all(|held| held.published);
        if published {
            self.commit_stage(order, &mut group);
        }
        let last = order.held.back().map(|held| held.group.end);
        assert!(last.is_none_or(|end| end <= group.end), "SEMI-1: groups wait in the order of the log");
        order.held.push_back(Held { group, published, since: now });
        None
    }

    /// Opens or closes the gate. Opening releases all groups. Once the pipeline closes, the gate stays open: nobody
    /// would open it any more, and closing waits for the groups behind it.
    pub(super) fn set_gate(&self, gate: Gate) -> Released {
        let order = self.order.lock();
        let gate = if self.idle.is_shut_down() { Gate::Open } else { gate };
        self.gate.store(gate as u8, Ordering::Relaxed);
        // Under the same lock: what is acknowledged next must not be published before what was held.
        if gate == Gate::Open { self.let_go(order, None) } else { Released::default() }
    }

    /// Releases the groups that end at or before `up_to`.
    pub(super) fn release(&self, up_to: LogPosition) -> Released {
        self.let_go(self.order.lock(), Some(up_to))
    }

    /// Releases groups, all of them without `up_to`. Groups that no replica receives go with those before them.
    fn let_go(&self, mut order: MutexGuard<'_, Order>, up_to: Option<LogPosition>) -> Released {
        let _whole = AbortOnPanic::new("commit stage");
        let now = now();
        let (mut ready, mut released) = (Vec::new(), Released::default());
        while let Some(front) = order.held.front()
            && (up_to.is_none_or(|position| front.group.end <= position) || !front.group.is_for_replicas())
            && let Some(mut held) = order.held.pop_front()
        {
            let members = held.group.members.len() as u64;
            released.transactions += members;
            let waited = now.saturating_duration_since(held.since);
            released.waited += waited * u32::try_from(members).unwrap_or(u32::MAX);
            if !held.published {
                self.commit_stage(&mut order, &mut held.group);
            }
            ready.push(held.group);
        }
        if ready.is_empty() {
            return released;
        }
        let published = self.published.number();
        let waiters = order.take_waiters(published);
        drop(order);
        self.acknowledged.notify_all();
        for (no, completer) in waiters {
            completer.complete(Ok(no));
        }
        for group in ready {
            self.wake(group, published, None);
        }
        released
    }

    /// The time since which the oldest group waits, and the number of waiting transactions.
    pub(super) fn held(&self) -> Option<(Instant, u64)> {
        let order = self.order.lock();
        let count = order.held.iter().map(|held| held.group.members.len() as u64).sum();
        order.held.front().map(|held| (held.since, count))
    }
}
