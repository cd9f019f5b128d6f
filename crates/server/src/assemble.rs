//! Puts a server together: data directory, engine, log, recovery, database, accounts, TLS.
//!
//! On the main thread, before anything listens. Whatever goes wrong is one error with a text for the
//! user; nothing is half open afterwards.

use crate::account::{Accounts, SystemStore};
use crate::auth::RsaKey;
use crate::coordination::{CoordinatorAdmin, FailureWatch, Housekeeping, HousekeepingSettings, LogLimits};
use crate::datadir::DataDir;
use crate::engines::{self, EngineDisks, EngineSettings};
use crate::net::{Driver, TlsFiles, acceptor};
use crate::options::ServerOptions;
use crate::replica::Replicas;
use crate::server::Server;
use crate::starting::{Starting, Watched};
use crate::supervisor::Supervisor;
use crate::sysvars::{GlobalVars, Registry, VarValue};
use omnibus_commit::{
    CacheSettings, CommitProtocol, CommitSettings, Coordinator, LogEnv, LogIdentity, recover,
};
use omnibus_disk::{Disk, FullDisk};
use omnibus_encryption::{Encryption, Keyring, TableEncryption};
use omnibus_engine::Engine;
use omnibus_format::{Checksum, Dialect};
use omnibus_log::{FlushMethod, LogConfig, LogDir, Room};
use omnibus_sql::Database;
use omnibus_sql::recover::Replayer;
use omnibus_temporary::TempFolder;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

/// The reserve's bytes besides two memtables: for the B-tree, and for starts.
const RESERVE_BESIDE: u64 = 16 << 20;

/// Why a server could not be put together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

/// A start-up step's error with what was being done.
fn step<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> StartError {
    move |error| StartError(format!("{what}: {error}"))
}

/// A server that is ready to listen, and what must be closed behind it.
pub struct Assembled {
    /// The server.
    pub server: Arc<Server>,
    /// The coordinator, to be closed last.
    pub coordinator: Arc<Coordinator>,
    /// Knows whether a failure ended the server.
    pub failures: Arc<FailureWatch>,
    /// Expires log files; to be stopped before the coordinator is closed.
    pub housekeeping: Housekeeping,
    /// Writes the query logs; to be stopped before the coordinator is closed.
    pub query_log: crate::query_log::Writer,
    /// Held until everything in it is closed.
    pub datadir: DataDir,
}

/// Checks the options by themselves, before anything is made or changed.
pub fn check(options: &ServerOptions) -> Result<(), StartError> {
    check_file_rule(&options.globals)?;
    check_tmpdir(&options.globals)?;
    if options.embedded && options.log_error().is_some() {
        let why = "log_error: an embedded server has no log of its own; its messages go where the program's tracing subscriber puts them";
        return Err(StartError(why.into()));
    }
    let datadir = options.datadir();
    let files = [("socket", options.socket()), ("log_error", options.log_error())];
    for (name, path) in files {
        let folder = path.as_deref().and_then(Path::parent);
        if let Some(folder) = folder.filter(|folder| !folder.is_dir() && !folder.starts_with(&datadir)) {
            let folder = folder.display();
            return Err(StartError(format!(
                "{name}: there is no directory '{folder}'; make it, or give another one"
            )));
        }
    }
    if options.globals.named("ssl_cert").as_str().is_empty()
        != options.globals.named("ssl_key").as_str().is_empty()
    {
        return Err(StartError("--ssl-cert and --ssl-key must be given together".into()));
    }
    Ok(())
}

/// Opens everything. Blocks; must run inside the runtime's context.
pub(crate) fn assemble(
    options: ServerOptions,
    starting: &Starting,
    network: Arc<Driver>,
) -> Result<Assembled, StartError> {
    let wanted = Dialect::from_name(options.globals.named("dialect").as_str());
    let datadir = DataDir::open(&options.datadir(), wanted).map_err(|e| StartError(e.to_string()))?;
    if let Some(path) = options.log_error() {
        let failed = |error| StartError(format!("log_error: can't open {}: {error}", path.display()));
        crate::error_log::use_file(&path).map_err(failed)?;
        options.globals.set_named("log_error", VarValue::Str(path.display().to_string().into()));
    }
    if datadir.created {
        tracing::info!(path = %datadir.path.display(), "created the data directory; account root@localhost has no password and is reachable from this machine only");
    }
    let (globals, persisted) = (options.globals.clone(), options.persisted.clone());
    fill_in(&globals, &options, &datadir);
    let counted = globals.named("performance_schema").as_bool();
    let (disk, file_uses) =
        if counted { Disk::default().counted() } else { (Disk::default(), Arc::default()) };
    omnibus_log::room_to_start(&disk, &datadir.path).map_err(step("looking for room"))?;
    let whom: Arc<OnceLock<Weak<Server>>> = Arc::new(OnceLock::new());
    let failures = watch_failures(whom.clone());
    let Storage { tables, encryption, coordinator } =
        open_storage(&globals, &options, &datadir, &disk, &failures, starting)?;
    show_log_names(&globals, &coordinator);
    let database = Database::open(coordinator.clone()).map_err(step("opening the database"))?;
    let limits = Arc::new(LogLimits::default());
    let keys = tables.clone();
    let log = CoordinatorAdmin::new(coordinator.clone(), limits.clone(), failures.clone(), encryption, keys);
    let log = Arc::new(log);
    log.apply_all(|name| Registry::get().find(name).map(|id| globals.get(id)));
    if coordinator.settings().protocol == CommitProtocol::None {
        coordinator.settings().sync_binlog.store(0, Ordering::Relaxed);
    }
    let shared = database.clone();
    let logged_to = database.clone();
    let store = SystemStore(database.clone());
    if datadir.is_first_start() {
        finish_first_start(&store, &globals, &coordinator, &datadir)?;
    }
    let accounts = Accounts::open(Box::new(store)).map_err(step("reading accounts"))?;
    if accounts.table().has_restrictions() {
        // They hold whatever the variable says, so it says so.
        globals.set_named("partial_revokes", VarValue::Bool(true));
    }
    let tls = open_tls(&globals, &datadir.path)?;
    let rsa = RsaKey::new(datadir.path.clone());
    let mut server = Server::new(globals, accounts, rsa, tls, log, database, network);
    server.file_uses = file_uses;
    if options.embedded {
        server.supervisor = Supervisor::None;
    }
    let server = Arc::new(server);
    let _ = whom.set(Arc::downgrade(&server));
    let replicas = Replicas::open(shared, coordinator.clone(), tables, server.parts())
        .map_err(step("reading the replication channels"))?;
    let _ = server.replicas.set(replicas);
    coordinator.engine().recovered().map_err(step("giving files the form of new ones"))?;
    let settings = HousekeepingSettings::default();
    let housekeeping = Housekeeping::start(coordinator.clone(), limits, failures.clone(), settings)
        .map_err(step("starting the housekeeping"))?;
    crate::monitoring::transactions::watch(&server);
    server.query_log.start(&server.globals);
    server.persisted.start(persisted);
    let query_log = crate::query_log::Writer::start(server.query_log.clone(), logged_to)
        .map_err(step("starting a thread"))?;
    Ok(Assembled { server, coordinator, failures, housekeeping, query_log, datadir })
}

/// Makes the account root@localhost durable, whatever sync_binlog says, and then says that the directory is whole.
fn finish_first_start(
    store: &SystemStore,
    globals: &GlobalVars,
    coordinator: &Coordinator,
    datadir: &DataDir,
) -> Result<(), StartError> {
    const ROOT: &str = "creating the root account";
    if store.is_empty().map_err(step("reading accounts"))? {
        let plugin = globals.named("default_authentication_plugin");
        store.create_root(plugin.as_str()).map_err(step(ROOT))?;
    }
    coordinator.with_quiet_log(|_, _| ()).map_err(step(ROOT))?;
    datadir.end_first_start().map_err(step(ROOT))
}

/// A failed log or engine stops the server, once there is one.
fn watch_failures(whom: Arc<OnceLock<Weak<Server>>>) -> Arc<FailureWatch> {
    FailureWatch::new(Box::new(move |why| {
        if let Some(server) = whom.get().and_then(Weak::upgrade) {
            server.stop(why);
        }
    }))
}

/// `secure_file_priv` is the word NULL, nothing, or a directory that is there.
fn check_file_rule(globals: &GlobalVars) -> Result<(), StartError> {
    let dir = globals.named("secure_file_priv");
    if dir.as_str().eq_ignore_ascii_case("null") {
        globals.set_named("secure_file_priv", VarValue::Null);
    } else if !dir.as_str().is_empty() && !std::path::Path::new(dir.as_str()).is_dir() {
        return Err(StartError(format!(
            "secure_file_priv is '{}', which is not a directory; make it, or set the option to NULL",
            dir.as_str()
        )));
    }
    Ok(())
}

/// Large transactions and files of LOAD DATA LOCAL go there: better said now than then.
fn check_tmpdir(globals: &GlobalVars) -> Result<(), StartError> {
    let dir = globals.named("tmpdir");
    if dir.as_str().is_empty() || std::path::Path::new(dir.as_str()).is_dir() {
        return Ok(());
    }
    Err(StartError(format!(
        "tmpdir is '{}', which is not a directory; make it, or give another one",
        dir.as_str()
    )))
}

/// Variables that follow from where and what we are.
fn fill_in(globals: &GlobalVars, options: &ServerOptions, datadir: &DataDir) {
    let text = |s: &str| VarValue::Str(s.into());
    let mut folder = datadir.path.display().to_string();
    if !folder.ends_with('/') {
        folder.push('/');
    }
    globals.set_named("datadir", text(&folder));
    globals.set_named("server_uuid", text(&datadir.uuid.to_string()));
    globals.set_named("dialect", text(datadir.dialect.name()));
    if datadir.dialect == Dialect::Mariadb {
        globals.set_named("version", text(crate::MARIADB_VERSION));
        // MariaDB's clients and replicas have no other that this server has, unless told otherwise.
        if !options.given("default_authentication_plugin") {
            globals.set_named("default_authentication_plugin", text("mysql_native_password"));
        }
    }
    if datadir.dialect == Dialect::Mariadb && !options.given("event_scheduler") {
        globals.set_named("event_scheduler", text("OFF"));
    }
    if let Some(socket) = options.socket() {
        globals.set_named("socket", text(&socket.display().to_string()));
    }
    let default = |name: &str, value: String| {
        if globals.named(name).as_str().is_empty() {
            globals.set_named(name, text(&value));
        }
    };
    default("hostname", host_name());
    let hostname = globals.named("hostname");
    for name in ["general_log_file", "slow_query_log_file", "server_audit_file_path"] {
        default(name, crate::query_log::default_name(name, hostname.as_str()).unwrap_or_default());
    }
    default("tmpdir", std::env::temp_dir().display().to_string());
    let program = std::env::current_exe().ok();
    let base = program.and_then(|p| p.parent().map(|d| format!("{}/", d.display())));
    default("basedir", base.unwrap_or_else(|| "/".into()));
    if globals.named("global_connection_memory_limit").as_u64() == 0 {
        // The other half is the engines', the log's, and what nobody counts.
        let half = crate::machine_memory::memory().map_or(u64::MAX, |bytes| bytes / 2);
        globals.set_named("global_connection_memory_limit", VarValue::UInt(half));
    }
    let limit = globals.named("global_connection_memory_limit").as_u64();
    tracing::info!(
        mebibytes = limit >> 20,
        "what connections may keep in memory at most (global_connection_memory_limit)"
    );
    let server = globals.named("collation_server");
    let charset = globals.named("character_set_server");
    globals.set_named("collation_database", server.clone());
    globals.set_named("character_set_database", charset);
    globals.set_named("collation_connection", server);
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".into(), |name| name.trim().to_owned())
}

/// Bytes of the reserve: what the engines have in memory at most goes to their files in it.
fn reserve(globals: &GlobalVars) -> u64 {
    let value = |name: &str| globals.named(name).as_u64();
    let wanted = value("lsm_memtable_size").saturating_mul(2).saturating_add(RESERVE_BESIDE);
    wanted.min(value("binlog_reserve_size"))
}

fn log_config(globals: &GlobalVars) -> Result<LogConfig, StartError> {
    let method = globals.named("binlog_flush_method");
    let flush_method = match method.as_str() {
        "auto" => FlushMethod::default(),
        name => name.parse().map_err(StartError)?,
    };
    let name = globals.named("binlog_name");
    let basename =
        Path::new(name.as_str()).file_name().map_or("binlog".into(), |n| n.to_string_lossy().into_owned());
    Ok(LogConfig {
        basename,
        max_size: globals.named("max_binlog_size").as_u64(),
        flush_method,
        preallocate: globals.named("binlog_preallocate").as_u64() != 0,
        extend_chunk: globals.named("binlog_extend_size").as_u64(),
        truncate_damaged: globals.named("binlog_truncate_damaged_tail").as_bool(),
        ..LogConfig::default()
    })
}

/// The engines and the log, and what encrypts their files.
struct Storage {
    tables: Arc<TableEncryption>,
    encryption: Arc<Encryption>,
    coordinator: Arc<Coordinator>,
}

fn open_storage(
    globals: &GlobalVars,
    options: &ServerOptions,
    datadir: &DataDir,
    disk: &Disk,
    failures: &Arc<FailureWatch>,
    starting: &Starting,
) -> Result<Storage, StartError> {
    let config = log_config(globals)?;
    if globals.named("binlog_encryption").as_bool() && keyring_path(globals, datadir).is_none() {
        let why = "binlog_encryption=ON needs keyring_file_data, the file that the keys are kept in";
        return Err(StartError(why.into()));
    }
    let encryption = log_encryption(globals, datadir, disk)?;
    check_log_keys(globals, &encryption, datadir, &config)?;
    let tables = table_encryption(globals, options, datadir, disk)?;
    let full_disk = Arc::new(FullDisk::patient());
    let disks = EngineDisks::new(disk, &tables, &full_disk);
    let engine = engines::open(&engine_settings(globals), &datadir.path, &disks)
        .map_err(step("opening the storage engines"))?;
    if globals.named("binlog_encryption").as_bool() {
        turn_on(globals, &encryption)?;
    }
    let config = LogConfig {
        disk: Disk::new(encryption.clone()),
        room: Room { full_disk, reserve: reserve(globals) },
        ..config
    };
    let coordinator = open_log(globals, datadir, engine, config, failures, starting)?;
    crate::coordination::end_key_rotation(&encryption, coordinator.log().files());
    Ok(Storage { tables, encryption, coordinator })
}

/// The keyring's file, if there is to be one.
fn keyring_path(globals: &GlobalVars, datadir: &DataDir) -> Option<PathBuf> {
    let value = globals.named("keyring_file_data");
    (!value.as_str().is_empty()).then(|| datadir.path.join(value.as_str()))
}

/// The encryption between the engines' rows and the disk. Tables that are encrypted ask for an encrypted log, too, unless its own option
/// says otherwise. Those of an encrypted data directory stay encrypted until the option says OFF: one that was forgotten decrypts nothing.
fn table_encryption(
    globals: &GlobalVars,
    options: &ServerOptions,
    datadir: &DataDir,
    disk: &Disk,
) -> Result<Arc<TableEncryption>, StartError> {
    const OPTION: &str = "default_table_encryption";
    if !options.given(OPTION) && TableEncryption::is_used(disk, &datadir.path).map_err(step(OPTION))? {
        tracing::info!(
            "the data directory is encrypted: default_table_encryption stays ON, and is OFF if that is given"
        );
        globals.set_named(OPTION, VarValue::Bool(true));
    }
    let on = globals.named(OPTION).as_bool();
    let keyring = keyring_path(globals, datadir);
    let keyring = keyring.map(|path| Keyring::open_for_tables(&path, &datadir.uuid.to_string())).transpose();
    let keyring = keyring.map_err(step("keyring_file_data"))?;
    let tables = TableEncryption::open(disk.clone(), &datadir.path, keyring, on);
    let tables = tables.map_err(|error| StartError(error.to_string()))?;
    if on && !options.given("binlog_encryption") {
        globals.set_named("binlog_encryption", VarValue::Bool(true));
    }
    if on {
        // Names by which other servers say the same; nobody acts upon these.
        for name in [
            "innodb_redo_log_encrypt",
            "innodb_undo_log_encrypt",
            "innodb_encrypt_log",
            "encrypt_tmp_files",
            "encrypt_tmp_disk_tables",
            "innodb_encrypt_temporary_tables",
        ] {
            globals.set_named(name, VarValue::Bool(true));
        }
        globals.set_named("innodb_encrypt_tables", VarValue::Str("ON".into()));
    }
    if on && !globals.named("binlog_encryption").as_bool() {
        tracing::warn!(
            "default_table_encryption=ON encrypts tables, and with binlog_encryption=OFF their rows are in the binary log in clear text"
        );
    }
    Ok(tables)
}

/// The encryption between the log and the disk; not turned on.
fn log_encryption(
    globals: &GlobalVars,
    datadir: &DataDir,
    disk: &Disk,
) -> Result<Arc<Encryption>, StartError> {
    let keyring = keyring_path(globals, datadir);
    let keyring = keyring.map(|path| Keyring::open(&path, &datadir.uuid.to_string())).transpose();
    Ok(Encryption::over(disk.clone(), keyring.map_err(step("keyring_file_data"))?))
}

/// Looks for the keys of all log files. Called before anything is made or written anew: a start that is refused for want of a key leaves
/// the data directory as it is.
fn check_log_keys(
    globals: &GlobalVars,
    encryption: &Encryption,
    datadir: &DataDir,
    config: &LogConfig,
) -> Result<(), StartError> {
    let keyring = keyring_path(globals, datadir);
    let keyring = keyring.map_or_else(String::new, |path| format!(" ({})", path.display()));
    for path in omnibus_log::listed_files(&datadir.path, config).map_err(step("opening the binary log"))? {
        let lacking =
            |error| StartError(format!("{}: {error}{keyring}. Nothing was changed", path.display()));
        encryption.check_key(&path).map_err(lacking)?;
    }
    Ok(())
}

/// Has new log files encrypted. The master key is there, and the new one if one was asked for, before the log's next file is.
fn turn_on(globals: &GlobalVars, encryption: &Encryption) -> Result<(), StartError> {
    let had_key = encryption.has_master_key();
    encryption.turn_on().map_err(step("binlog_encryption"))?;
    if had_key && globals.named("binlog_rotate_encryption_master_key_at_startup").as_bool() {
        encryption.new_master_key().map_err(step("binlog_rotate_encryption_master_key_at_startup"))?;
    }
    Ok(())
}

/// Opens the log, brings the engine to its end, and starts committing behind it.
fn open_log(
    globals: &GlobalVars,
    datadir: &DataDir,
    engine: Arc<dyn Engine>,
    config: LogConfig,
    failures: &Arc<FailureWatch>,
    starting: &Starting,
) -> Result<Arc<Coordinator>, StartError> {
    let dir = LogDir::open(&datadir.path, config).map_err(step("opening the binary log"))?;
    // A folder that is there whatever options say, on a disk that has room for the log.
    let folder = TempFolder::new(&datadir.path, globals.named("default_table_encryption").as_bool());
    let replay = Replayer::new(engine.clone(), &folder).map_err(step("recovery"))?;
    let mut replayer = Watched { replay, starting };
    let recovered = recover(&dir, engine.as_ref(), &mut replayer).map_err(step("recovery"))?;
    tracing::info!(
        last = %recovered.last,
        replayed = recovered.replayed,
        bytes = recovered.bytes,
        truncated = recovered.truncated,
        milliseconds = recovered.took.as_millis() as u64,
        "recovered from the binary log"
    );
    let identity = LogIdentity {
        server_id: globals.named("server_id").as_u64() as u32,
        uuid: datadir.uuid,
        version: globals.named("version").as_str().to_owned(),
        dialect: datadir.dialect,
    };
    let checksum =
        if globals.named("binlog_checksum").as_str() == "NONE" { Checksum::None } else { Checksum::Crc32 };
    let (env, appender) =
        LogEnv::start(dir, &recovered, identity, checksum, engine.clone(), failures.on_log_failure())
            .map_err(step("starting the binary log"))?;
    let mut caches = CacheSettings::new(PathBuf::from(globals.named("tmpdir").as_str()));
    caches.dialect = datadir.dialect;
    let name = globals.named("commit_protocol");
    let protocol = CommitProtocol::from_name(name.as_str()).unwrap_or_default();
    let settings = Arc::new(CommitSettings { protocol, ..CommitSettings::default() });
    let coordinator = Coordinator::start(engine, env, appender, &recovered, settings, Arc::new(caches))
        .map(|coordinator| coordinator.with_blocking(|work| crate::net::blocking(work)))
        .map_err(step("starting the commit pipeline"))?;
    Ok(Arc::new(coordinator))
}

fn show_log_names(globals: &GlobalVars, coordinator: &Coordinator) {
    let files = coordinator.log().files();
    let text = |path: PathBuf| VarValue::Str(path.display().to_string().into());
    let index = files.names().index();
    let base = index.strip_suffix(".index").unwrap_or(&index);
    globals.set_named("log_bin_basename", text(files.path().join(base)));
    globals.set_named("log_bin_index", text(files.path().join(&index)));
    globals.set_named("binlog_flush_method", VarValue::Str(files.flush_method().name().into()));
}

/// The certificate given by options, or the directory's own. Without either there is no TLS.
fn open_tls(
    globals: &GlobalVars,
    datadir: &Path,
) -> Result<Option<Arc<tokio_rustls::TlsAcceptor>>, StartError> {
    let path = |name: &str| {
        let value = globals.named(name);
        (!value.as_str().is_empty()).then(|| datadir.join(value.as_str()))
    };
    let files = match (path("ssl_cert"), path("ssl_key")) {
        (Some(cert), Some(key)) => TlsFiles { cert, key, ca: path("ssl_ca") },
        (None, None) if globals.named("auto_generate_certs").as_bool() => {
            TlsFiles::generated(datadir).map_err(step("making a TLS certificate"))?
        }
        // One without the other: `check` has said so.
        _ => return Ok(None),
    };
    let name = |p: &Path| VarValue::Str(p.display().to_string().into());
    globals.set_named("ssl_cert", name(&files.cert));
    globals.set_named("ssl_key", name(&files.key));
    if let Some(ca) = &files.ca {
        globals.set_named("ssl_ca", name(ca));
    }
    acceptor(&files).map(Some).map_err(step("TLS"))
}

fn engine_settings(globals: &GlobalVars) -> EngineSettings {
    let value = |name: &str| globals.named(name).as_u64();
    EngineSettings {
        lsm_memtable_size: value("lsm_memtable_size"),
        lsm_block_cache_size: value("lsm_block_cache_size"),
        btree_cache_size: value("btree_cache_size"),
    }
}
