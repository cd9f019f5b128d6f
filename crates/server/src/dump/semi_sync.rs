//! Semi-synchronous replication, the source's side: commits wait until replicas have acknowledged them, or not any more after a
//! timeout, and again once a replica has caught up.
//!
//! The waiting itself is the commit pipeline's gate; here is who has what, when to stop waiting, and the figures of SHOW
//! STATUS. Dump sessions report acknowledgements; a task looks at the clock while it is enabled.

use omnibus_commit::{Coordinator, Gate, Released};
use omnibus_log::LogPosition;
use omnibus_replication::source::acks::Acks;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The variables `rpl_semi_sync_source_…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemiSyncSettings {
    /// `enabled`.
    pub enabled: bool,
    /// `wait_point=AFTER_SYNC`.
    pub after_sync: bool,
    /// `timeout`.
    pub timeout: Duration,
    /// `wait_for_replica_count`.
    pub replicas: usize,
    /// `wait_no_replica`.
    pub wait_without: bool,
}

impl Default for SemiSyncSettings {
    fn default() -> SemiSyncSettings {
        let timeout = Duration::from_secs(10);
        SemiSyncSettings { enabled: false, after_sync: true, timeout, replicas: 1, wait_without: true }
    }
}

#[derive(Debug, Default)]
struct SemiSyncState {
    settings: SemiSyncSettings,
    acks: Acks,
    /// Commits wait.
    on: bool,
    /// Commits that were counted before it was switched off.
    off_since: Option<u64>,
    figures: Figures,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    yes: u64,
    no: u64,
    no_times: u64,
    waited: Duration,
    acks: u64,
    ack_time: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub struct SemiSync {
    state: Mutex<SemiSyncState>,
    changed: Notify,
}

impl SemiSyncState {
    fn switch(&mut self, coordinator: &Coordinator, on: bool) {
        let gate = match (on, self.settings.after_sync) {
            (false, _) => Gate::Open,
            (true, true) => Gate::AfterSync,
            (true, false) => Gate::AfterCommit,
        };
        let released = coordinator.set_gate(gate);
        self.figures.no += released.transactions;
        let commits = coordinator.stats().commits.load(std::sync::atomic::Ordering::Relaxed);
        if let Some(since) = self.off_since.take() {
            self.figures.no += commits.saturating_sub(since);
        }
        if !on && self.settings.enabled {
            self.off_since = Some(commits);
        }
        if self.on && !on {
            self.figures.no_times += 1;
        }
        if self.on != on {
            tracing::info!(on, replicas = self.acks.count(), "semi-synchronous replication");
        }
        self.on = on;
    }

    fn enough(&self) -> bool {
        self.acks.count() >= self.settings.replicas
    }

    fn count(&mut self, released: Released) {
        self.figures.yes += released.transactions;
        self.figures.waited += released.waited;
    }

    /// Lets go of what enough replicas have, and waits again if they have all.
    fn proceed(&mut self, coordinator: &Coordinator) {
        let Some(reached) = self.acks.reached(self.settings.replicas) else { return };
        if self.on {
            let released = coordinator.release(reached);
            self.count(released);
        } else if self.settings.enabled && reached >= coordinator.log().files().durable_end().get() {
            self.switch(coordinator, true);
        }
    }
}

impl SemiSync {
    /// Variables were set.
    pub fn configure(&self, coordinator: &Coordinator, settings: SemiSyncSettings) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.settings, settings);
        if before == settings {
            return;
        }
        if before.enabled != settings.enabled {
            let on = settings.enabled && (settings.wait_without || state.enough());
            state.on = on && state.on;
            state.switch(coordinator, on);
        } else if state.on {
            let on = settings.wait_without || state.enough();
            state.switch(coordinator, on);
            state.proceed(coordinator);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Whether acknowledgements are wanted.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.state.lock().settings.enabled
    }

    /// A replica that acknowledges begins its dump.
    #[must_use]
    pub fn connect(self: &Arc<Self>, coordinator: &Arc<Coordinator>, connection: u32) -> SemiSyncGuard {
        self.state.lock().acks.connect(connection);
        SemiSyncGuard { semi_sync: self.clone(), coordinator: coordinator.clone(), connection }
    }

    /// The server stops: nobody waits any more.
    pub fn shut_down(&self, coordinator: &Coordinator) {
        let mut state = self.state.lock();
        state.settings.enabled = false;
        state.switch(coordinator, false);
    }

    /// Stops waiting where it takes too long. Runs as long as the server does.
    pub async fn clock(&self, coordinator: &Coordinator) {
        loop {
            let pause = {
                let state = self.state.lock();
                state.on.then_some(state.settings.timeout / 8)
            };
            match pause {
                None => self.changed.notified().await,
                Some(pause) => {
                    let pause = pause.clamp(Duration::from_millis(1), Duration::from_millis(100));
                    tokio::time::sleep(pause).await;
                }
            }
            self.look(coordinator);
        }
    }

    fn look(&self, coordinator: &Coordinator) {
        let mut state = self.state.lock();
        let Some((since, waiting)) = coordinator.held().filter(|_| state.on) else { return };
        if since.elapsed() >= state.settings.timeout {
            tracing::warn!(
                waiting,
                milliseconds = state.settings.timeout.as_millis() as u64,
                "no acknowledgement from enough replicas in time: commits wait for them no longer"
            );
            state.switch(coordinator, false);
        }
    }

    /// Lines for SHOW STATUS, under the names of these sides (`source`, `master`).
    #[must_use]
    pub fn status(&self, coordinator: Option<&Coordinator>, sides: &[&str]) -> Vec<(String, String)> {
        let state = self.state.lock();
        let commits = coordinator.map_or(0, |c| c.stats().commits.load(std::sync::atomic::Ordering::Relaxed));
        let waiting = coordinator.and_then(Coordinator::held).map_or(0, |(_, count)| count);
        let f = state.figures;
        let no = f.no + state.off_since.map_or(0, |since| commits.saturating_sub(since));
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let average = |total: Duration, count: u64| micros(total).checked_div(count).unwrap_or(0);
        let lines = [
            ("clients", state.acks.count() as u64),
            ("net_avg_wait_time", average(f.ack_time, f.acks)),
            ("net_wait_time", micros(f.ack_time)),
            ("net_waits", f.acks),
            ("no_times", f.no_times),
            ("no_tx", no),
            ("timefunc_failures", 0),
            ("tx_avg_wait_time", average(f.waited, f.yes)),
            ("tx_wait_time", micros(f.waited)),
            ("tx_waits", f.yes),
            ("wait_pos_backtraverse", 0),
            ("wait_sessions", waiting),
            ("yes_tx", f.yes),
        ];
        let mut all = Vec::with_capacity(sides.len() * (lines.len() + 1));
        for side in sides {
            let name = |name: &str| format!("Rpl_semi_sync_{side}_{name}");
            all.extend(lines.iter().map(|(n, value)| (name(n), value.to_string())));
            all.push((name("status"), if state.on { "ON" } else { "OFF" }.to_owned()));
        }
        all
    }
}

/// A replica that acknowledges, until it is dropped.
pub struct SemiSyncGuard {
    semi_sync: Arc<SemiSync>,
    coordinator: Arc<Coordinator>,
    connection: u32,
}

impl SemiSyncGuard {
    /// Whether acknowledgements are wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.semi_sync.is_enabled()
    }

    /// The replica has everything before `position`; `took` since it was asked, if it was.
    pub(crate) fn acknowledged(&self, position: LogPosition, took: Option<Duration>) {
        let mut state = self.semi_sync.state.lock();
        if let Some(took) = took {
            state.figures.acks += 1;
            state.figures.ack_time += took;
        }
        state.acks.acknowledge(self.connection, position);
        let was_on = state.on;
        state.proceed(&self.coordinator);
        if state.on && !was_on {
            drop(state);
            self.semi_sync.changed.notify_one();
        }
    }
}

impl Drop for SemiSyncGuard {
    fn drop(&mut self) {
        let mut state = self.semi_sync.state.lock();
        state.acks.disconnect(self.connection);
        if state.on && !state.settings.wait_without && !state.enough() {
            state.switch(&self.coordinator, false);
        }
    }
}
