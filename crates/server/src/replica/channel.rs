//! One channel: its settings and filters, and its threads while they run.

use super::applying::ApplierThreads;
use super::filters::{Rule, Rules};
use super::jobs::Plan;
use super::threads::{Lanes, receiver_entry};
use super::{Env, gtid_rules, not_configured, store};
use omnibus_replication::changes::Position;
use omnibus_replication::client::{CompressionChoice, Introduction};
use omnibus_replication::replica::{
    AssignGtids, ChannelConfig, ChannelPosition, ChannelStatus, ErrorAt, Filters, GtidUse, IoRunning, Queue,
    Receiver, ReceiverSettings, Refuses, Resume, ResumeFrom, SourcePosition, StatusData, Until,
};
use omnibus_sql::apply::{ApplySettings, Conversions, forget_position, store_position, stored_position};
use omnibus_sql::{SqlError, SqlResult};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes of a transaction from which on it is applied while it comes.
const PIECE: usize = 16 << 20;

/// See the module's text. Whoever changes it holds `Replicas::control`.
pub(super) struct Channel {
    env: Env,
    name: String,
    config: Mutex<ChannelConfig>,
    filters: Mutex<Rules>,
    status: Arc<ChannelStatus>,
    queue: Arc<Queue>,
    receiver: Arc<Mutex<Option<Receiver>>>,
    applier: Mutex<Option<ApplierThreads>>,
    lanes: Mutex<Arc<Lanes>>,
    /// The receiver's number in SHOW PROCESSLIST, while it runs.
    receiver_id: Arc<AtomicU32>,
}

/// USER and PASSWORD of START REPLICA: for this time only.
pub(super) type Login = (Option<String>, Option<String>);

impl Channel {
    /// Whether its source waits for what it acknowledges.
    pub(super) fn is_semi_sync(&self) -> bool {
        self.status.update(|status| status.semi_sync && status.io == IoRunning::Yes)
    }

    pub(super) fn open(
        env: Env,
        name: String,
        config: ChannelConfig,
        filters: Rules,
    ) -> SqlResult<Arc<Channel>> {
        let limit = env.server.globals.named("replica_pending_jobs_size_max").as_u64() as usize;
        let status = Arc::new(ChannelStatus::default());
        let stored = stored_position(&env.database, &name)?;
        let stored = stored.as_deref().and_then(ChannelPosition::decode);
        let applied = stored.unwrap_or_else(|| ChannelPosition {
            source: config.start.clone(),
            ..ChannelPosition::default()
        });
        status.update(|s| {
            s.read = applied.source.clone();
            s.applied = applied;
        });
        Ok(Arc::new(Channel {
            env,
            name,
            config: Mutex::new(config),
            filters: Mutex::new(filters),
            status,
            queue: Arc::new(Queue::new(limit)),
            receiver: Arc::default(),
            applier: Mutex::default(),
            lanes: Mutex::default(),
            receiver_id: Arc::default(),
        }))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn config(&self) -> ChannelConfig {
        self.config.lock().clone()
    }

    pub(super) fn filters(&self) -> Filters {
        self.filters.lock().filters.clone()
    }

    pub(super) fn rules(&self) -> Vec<Rule> {
        self.filters.lock().all()
    }

    pub(super) fn change_filters(&self, text: &str, by: &'static str) -> Result<(), String> {
        self.filters.lock().change(text, by).map(drop)
    }

    pub(super) fn io_runs(&self) -> bool {
        self.receiver.lock().as_ref().is_some_and(Receiver::is_running)
    }

    pub(super) fn sql_runs(&self) -> bool {
        self.applier.lock().as_ref().is_some_and(ApplierThreads::is_running)
    }

    /// Status, UNTIL, number of workers, bytes and emptiness of the queue.
    pub(super) fn look(&self) -> (StatusData, Option<Until>, usize) {
        let applier = self.applier.lock();
        let mut status = self.status.snapshot();
        let oldest = applier.as_ref().map_or(0, ApplierThreads::oldest);
        status.pending_timestamp = if oldest != 0 { oldest } else { self.queue.front_timestamp() };
        let until = applier.as_ref().and_then(|applier| applier.until().cloned());
        (status, until, applier.as_ref().map_or(0, ApplierThreads::workers))
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Stores new settings, and the place to go on from if that changes.
    pub(super) fn reconfigure(&self, config: ChannelConfig, place: Option<ChannelPosition>) -> SqlResult<()> {
        if let Some(place) = place {
            let position = Position { channel: self.name.clone(), state: place.encode() };
            store_position(&self.env.database, &position)?;
            self.status.update(|s| {
                s.read = place.source.clone();
                s.applied = place;
            });
        }
        store::put(&self.env, &self.name, &config)?;
        *self.config.lock() = config;
        Ok(())
    }

    /// RESET REPLICA: begins at the source's first file again. With `all` its settings go, too.
    pub(super) fn reset(&self, all: bool) -> SqlResult<()> {
        forget_position(&self.env.database, &self.name)?;
        self.status.update(|s| *s = StatusData::default());
        self.queue.clear();
        if all {
            return store::delete(&self.env, &self.name);
        }
        let mut config = self.config();
        config.start = SourcePosition::default();
        (config.io_wanted, config.sql_wanted) = (false, false);
        store::put(&self.env, &self.name, &config)?;
        *self.config.lock() = config;
        Ok(())
    }

    /// MariaDB: SET GLOBAL gtid_slave_pos.
    pub(super) fn set_gtids(&self, gtids: omnibus_format::GtidPosition) -> SqlResult<()> {
        let mut place = self.status.snapshot().applied;
        place.gtids = gtids;
        self.reconfigure(self.config(), Some(place))
    }

    /// Remembers which threads are to run after a restart of the server.
    fn want(&self, change: impl FnOnce(&mut ChannelConfig)) -> SqlResult<()> {
        let mut config = self.config();
        let before = (config.io_wanted, config.sql_wanted);
        change(&mut config);
        if before != (config.io_wanted, config.sql_wanted) {
            store::put(&self.env, &self.name, &config)?;
            *self.config.lock() = config;
        }
        Ok(())
    }

    /// Starts threads that do not run yet.
    pub(super) fn start(
        &self,
        io: bool,
        sql: bool,
        until: Option<Until>,
        login: Option<Login>,
    ) -> SqlResult<()> {
        let config = self.config();
        if config.host.is_empty() {
            return Err(not_configured());
        }
        if io && self.env.server.globals.named("server_id").as_u64() == 0 {
            return Err(not_configured());
        }
        let start_io = io && !self.io_runs();
        let mut start_sql = sql && !self.sql_runs();
        let mut until = until;
        if start_io && !start_sql && self.sql_runs() {
            // What is received comes from the applied position, which must stand still for that.
            until = self.look().1;
            self.stop_sql(false);
            start_sql = true;
        }
        if start_sql {
            // One that failed may still be about to end.
            self.stop_sql(false);
            // It begins at the applied position, whatever was received.
            self.queue.clear();
            if let Some(receiver) = &*self.receiver.lock() {
                receiver.restart();
            }
            self.start_sql(config.clone(), until)?;
        }
        if start_io {
            if !start_sql {
                self.queue.clear();
            }
            self.start_io(config, login)?;
        }
        self.want(|config| {
            config.io_wanted |= io;
            config.sql_wanted |= sql;
        })
    }

    fn start_io(&self, config: ChannelConfig, login: Option<Login>) -> SqlResult<()> {
        self.stop(true, false, false);
        let globals = &self.env.server.globals;
        let net_timeout = Duration::from_secs(globals.named("replica_net_timeout").as_u64());
        let mut endpoint = config.endpoint(net_timeout);
        if endpoint.compression.is_plain() && globals.named("replica_compressed_protocol").as_bool() {
            endpoint.compression = CompressionChoice::if_offered();
        }
        if let Some((user, password)) = login {
            endpoint.user = user.unwrap_or(endpoint.user);
            endpoint.password = password.unwrap_or(endpoint.password);
        }
        gtid_rules::check_start(&config, &self.name, gtid_rules::mode_of(&self.env.coordinator))?;
        let report_port = globals.named("report_port").as_u64();
        let port = if report_port == 0 { globals.named("port").as_u64() } else { report_port };
        let settings = ReceiverSettings {
            endpoint,
            me: Introduction {
                server_id: globals.named("server_id").as_u64() as u32,
                uuid: globals.named("server_uuid").as_str().to_owned(),
                report_host: globals.named("report_host").as_str().to_owned(),
                report_user: globals.named("report_user").as_str().to_owned(),
                report_port: port as u16,
                heartbeat: config.heartbeat(net_timeout),
                semi_sync: globals.named("rpl_semi_sync_replica_enabled").as_bool(),
                same_server_id: globals.named("replicate_same_server_id").as_bool(),
                skip_marked: globals.named("replicate_events_marked_for_skip").as_str() == "FILTER_ON_MASTER",
                gtid_strict_mode: false,
                gtid_mode: gtid_rules::mode_of(&self.env.coordinator),
                assigns_gtids: config.assign_gtids != AssignGtids::Off,
            },
            connect_retry: Duration::from_secs(u64::from(config.connect_retry)),
            retry_count: config.retry_count,
            piece: PIECE,
            event_limit: self.env.server.event_limit.clone(),
            channel: self.name.clone(),
        };
        let resume = self.listed(self.resume(&config));
        let coordinator = self.env.coordinator.clone();
        let refuses: Refuses =
            Box::new(move |gtid| gtid_rules::refusal(gtid_rules::mode_of(&coordinator), &config, gtid));
        let receiver = Receiver::start(settings, self.queue.clone(), self.status.clone(), resume, refuses)
            .map_err(|error| SqlError::new(1135, b"HY000", format!("Can't create a new thread: {error}")))?;
        *self.receiver.lock() = Some(receiver);
        Ok(())
    }

    /// The receiver is in SHOW PROCESSLIST as long as its thread owns what it asks for a position.
    fn listed(&self, resume: ResumeFrom) -> ResumeFrom {
        let entry = receiver_entry(&self.env.server, self.status.clone());
        let receiver = Arc::downgrade(&self.receiver);
        let name = self.name.clone();
        entry.on_kill(move || {
            if let Some(receiver) = receiver.upgrade()
                && let Some(receiver) = &*receiver.lock()
            {
                tracing::info!(channel = %name, "replication receiver: ended by KILL");
                receiver.end();
            }
        });
        self.receiver_id.store(entry.id(), Ordering::Relaxed);
        Box::new(move || {
            let _ = &entry;
            resume()
        })
    }

    /// The receiver's number in SHOW PROCESSLIST, if it runs.
    pub(super) fn receiver_id(&self) -> Option<u32> {
        self.io_runs().then(|| self.receiver_id.load(Ordering::Relaxed))
    }

    /// The activities of the applier's threads, or the last ones.
    pub(super) fn lanes(&self) -> Arc<Lanes> {
        self.lanes.lock().clone()
    }

    /// The position or the set of ids from which the source is asked for events.
    fn resume(&self, config: &ChannelConfig) -> ResumeFrom {
        let (env, status) = (self.env.clone(), self.status.clone());
        let (auto, gtid_use) = (config.auto_position, config.gtid_use);
        Box::new(move || {
            let applied = status.snapshot().applied;
            if auto {
                let mut here = env.coordinator.gtids().executed();
                here.union(&applied.unlogged);
                return Ok(Resume::Gtids(here));
            }
            if gtid_use == GtidUse::No {
                return Ok(Resume::File(applied.source));
            }
            let mut position = applied.gtids;
            if gtid_use == GtidUse::CurrentPos {
                for gtid in env.coordinator.gtids().binlog_state().position().0.values() {
                    if position.get(gtid.domain).is_none_or(|at| at.sequence < gtid.sequence) {
                        position.set(*gtid);
                    }
                }
            }
            Ok::<Resume, ErrorAt>(Resume::Mariadb(position))
        })
    }

    fn start_sql(&self, config: ChannelConfig, until: Option<Until>) -> SqlResult<()> {
        let globals = &self.env.server.globals;
        let workers = globals.named("replica_parallel_workers").as_u64() as usize;
        let errors = globals.named("replica_skip_errors");
        let skip_errors = errors.as_str().split(',').filter_map(|code| code.trim().parse().ok()).collect();
        let unnamed = config.assign_gtids.unnamed();
        let plan = Plan {
            channel: self.name.clone(),
            config,
            filters: Arc::new(self.filters()),
            until,
            retries: globals.named("replica_transaction_retries").as_u64(),
            same_server_id: globals.named("replicate_same_server_id").as_bool(),
            server_id: globals.named("server_id").as_u64() as u32,
            skip_marked: globals.named("replicate_events_marked_for_skip").as_str() != "REPLICATE",
            keeps_gtids: self.env.coordinator.log().dialect() != omnibus_format::Dialect::Mysql,
            apply: ApplySettings {
                idempotent: globals.named("replica_exec_mode").as_str() == "IDEMPOTENT",
                conversions: Conversions::parse(globals.named("replica_type_conversions").as_str()),
                log_updates: globals.named("log_replica_updates").as_bool(),
                unnamed,
                skip_errors,
                ..ApplySettings::default()
            },
        };
        let lanes = Arc::new(Lanes::new(workers.max(1)));
        *self.lanes.lock() = lanes.clone();
        let applier = ApplierThreads::start(
            self.env.clone(),
            plan,
            &lanes,
            self.status.clone(),
            self.queue.clone(),
            self.receiver.clone(),
        );
        let applier = applier
            .map_err(|error| SqlError::new(1135, b"HY000", format!("Can't create a new thread: {error}")))?;
        *self.applier.lock() = Some(applier);
        Ok(())
    }

    fn stop_sql(&self, hurry: bool) {
        // Not under the lock: SHOW REPLICA STATUS looks at it.
        let applier = self.applier.lock().take();
        if let Some(mut applier) = applier {
            applier.stop(hurry);
        }
    }

    /// Ends threads. With `hurry` what is being applied is rolled back.
    pub(super) fn stop(&self, io: bool, sql: bool, hurry: bool) {
        if io {
            let receiver = self.receiver.lock().take();
            if let Some(mut receiver) = receiver {
                receiver.stop();
            }
        }
        if sql {
            self.stop_sql(hurry);
        }
    }

    /// STOP REPLICA: not after a restart of the server either.
    pub(super) fn stop_for_good(&self, io: bool, sql: bool) -> SqlResult<()> {
        self.stop(io, sql, false);
        self.want(|config| {
            config.io_wanted &= !io;
            config.sql_wanted &= !sql;
        })
    }
}
