//! A database over the real log, coordinator and LSM engine in a directory.

use omnibus_commit::{CacheSettings, CommitSettings, Coordinator, LogEnv, LogIdentity, recover};
use omnibus_engine::Engine;
use omnibus_engine_lsm::{LsmConfig, LsmEngine};
use omnibus_format::{Checksum, ServerUuid};
use omnibus_log::{LogConfig, LogDir};
use omnibus_sql::Database;
use omnibus_sql::recover::Replayer;
use std::path::Path;
use std::sync::Arc;

pub struct Server {
    pub database: Arc<Database>,
    pub coordinator: Arc<Coordinator>,
    pub replayed: u64,
}

pub fn start(path: &Path) -> Server {
    let engine: Arc<dyn Engine> = Arc::new(LsmEngine::open(LsmConfig::new(&path.join("lsm"))).unwrap());
    let dir = LogDir::open(path, LogConfig::default()).unwrap();
    let mut replayer = Replayer::new(engine.clone(), &omnibus_temporary::TempFolder::default()).unwrap();
    let recovered = recover(&dir, engine.as_ref(), &mut replayer).unwrap();
    let identity = LogIdentity {
        server_id: 7,
        uuid: ServerUuid([9; 16]),
        version: "8.4.0-omnibus".to_owned(),
        dialect: omnibus_format::Dialect::Mysql,
    };
    let (env, appender) =
        LogEnv::start(dir, &recovered, identity, Checksum::Crc32, engine.clone(), Box::new(|_| {})).unwrap();
    let caches = Arc::new(CacheSettings::new(path.to_path_buf()));
    let settings = Arc::new(CommitSettings::default());
    let coordinator =
        Arc::new(Coordinator::start(engine, env, appender, &recovered, settings, caches).unwrap());
    let database = Database::open(coordinator.clone()).unwrap();
    Server { database, coordinator, replayed: recovered.replayed }
}
