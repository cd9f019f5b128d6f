//! This server as a replica: its channels, each with a thread that receives and threads that apply.
//!
//! `channel` is one channel and its life; `applying` feeds transactions to `worker`s in an order that `turns` keep;
//! `change`, `control` and `show` are the statements; `store` keeps settings in `mysql.replica_channel`. Threads are
//! plain ones that block. What receiving, filtering and ordering mean is `omnibus_replication::replica`'s.

mod accounts;
mod applying;
mod change;
mod channel;
mod control;
mod filters;
mod gtid_rules;
mod host;
mod jobs;
mod keys;
mod show;
mod statements;
mod store;
mod tables;
mod threads;
mod worker;
mod worker_target;

pub(crate) use store::check_passwords;

use crate::account::Accounts;
use crate::log_admin::LogAdmin;
use crate::process::Processes;
use crate::sysvars::GlobalVars;
use channel::Channel;
use filters::Rules;
use omnibus_commit::Coordinator;
use omnibus_encryption::TableEncryption;
use omnibus_replication::limit::EventLimit;
use omnibus_replication::replica::ChannelConfig;
use omnibus_sql::{Database, SqlError, SqlResult};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The parts of the server that replication shares.
#[derive(Clone)]
pub(crate) struct Parts {
    /// Global variables.
    pub globals: Arc<GlobalVars>,
    /// Where its threads are listed.
    pub processes: Arc<Processes>,
    /// Accounts that a source's statements change.
    pub accounts: Arc<Accounts>,
    /// The log's administration.
    pub log: Arc<dyn LogAdmin>,
    /// `replica_max_allowed_packet`.
    pub event_limit: EventLimit,
}

/// The environment of every channel.
#[derive(Clone)]
pub(crate) struct Env {
    /// Where to apply.
    pub database: Arc<Database>,
    /// GTIDs.
    pub coordinator: Arc<Coordinator>,
    /// The data directory.
    pub folder: Arc<Path>,
    /// The encryption of its files.
    pub tables: Arc<TableEncryption>,
    /// The rest of the server.
    pub server: Parts,
}

/// All channels.
pub struct Replicas {
    env: Env,
    channels: Mutex<BTreeMap<String, Arc<Channel>>>,
    /// Rules of channels that have none of their own.
    filters: Mutex<Rules>,
    /// One statement about channels at a time.
    control: Mutex<()>,
}

impl Replicas {
    /// Reads the channels of the data directory; nothing runs yet.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn open(
        database: Arc<Database>,
        coordinator: Arc<Coordinator>,
        tables: Arc<TableEncryption>,
        server: Parts,
    ) -> SqlResult<Arc<Replicas>> {
        let folder = Path::new(server.globals.named("datadir").as_str()).into();
        let filters = Rules::from_options(&server.globals);
        let env = Env { database, coordinator, folder, tables, server };
        let mut channels = BTreeMap::new();
        for (name, config) in store::load(&env)? {
            channels.insert(name.clone(), Channel::open(env.clone(), name, config, filters.for_channel())?);
        }
        Ok(Arc::new(Replicas {
            env,
            channels: Mutex::new(channels),
            filters: Mutex::new(filters),
            control: Mutex::default(),
        }))
    }

    /// Starts what was running when the server ended, unless `skip_replica_start` is set. Errors are in the channels' status.
    pub fn start_at_startup(&self, skip: bool) {
        for channel in self.all() {
            let ChannelConfig { io_wanted, sql_wanted, .. } = channel.config();
            if skip || (!io_wanted && !sql_wanted) {
                continue;
            }
            tracing::info!(channel = %channel.name(), "starting replication");
            if let Err(error) = channel.start(io_wanted, sql_wanted, None, None) {
                tracing::error!(channel = %channel.name(), "replication does not start: {error}");
            }
        }
    }

    /// Ends all threads; the settings stay, so that they start again with the server.
    pub fn shut_down(&self) {
        let _control = self.control.lock();
        for channel in self.all() {
            channel.stop(true, true, true);
        }
    }

    /// Whether a source waits for what one of the channels acknowledges.
    #[must_use]
    pub fn is_semi_sync(&self) -> bool {
        self.all().iter().any(|channel| channel.is_semi_sync())
    }

    fn all(&self) -> Vec<Arc<Channel>> {
        self.channels.lock().values().cloned().collect()
    }

    fn find(&self, name: &str) -> SqlResult<Arc<Channel>> {
        let found = self.channels.lock().get(name).cloned();
        found.ok_or_else(|| {
            if name.is_empty() {
                not_configured()
            } else {
                SqlError::new(3074, b"HY000", format!("Replica channel '{name}' does not exist."))
            }
        })
    }
}

fn not_configured() -> SqlError {
    SqlError::new(
        1200,
        b"HY000",
        "The server is not configured as replica; fix in config file or with CHANGE REPLICATION SOURCE TO",
    )
}
