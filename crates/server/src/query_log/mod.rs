//! The general query log and the slow query log, to files and to `mysql.general_log` and `mysql.slow_log`, in MySQL's formats; the audit
//! log (`audit`).
//!
//! Sessions put entries into a bounded queue (`queue`); a thread of its own (`writer`) makes text or rows of them (`entry`) and writes to `files`. So a
//! full or slow disk holds up no statement: what does not fit into the queue, or can't be written, is counted
//! (`Omnibus_query_log_lost`) and gone. While a log is off, a statement costs it one relaxed load.
//!
//! The files are opened where somebody can be told that it does not work: at the start, in SET GLOBAL, in FLUSH. Passwords are
//! taken out of statements before they are written (ACCOUNT-1), but for `log_raw`.

mod audit;
mod entry;
mod files;
mod queue;
mod writer;

pub(crate) use audit::{Audit, Class, Operation, ROTATE_NOW, Record};
pub(crate) use entry::{Entry, Slow};
pub(crate) use files::default_name;
pub(crate) use writer::Writer;

use crate::sysvars::{AUDIT_PREFIX, GlobalVars, VarValue};
use entry::Style;
use files::{LogFile, LogKind};
use omnibus_sql::SqlResult;
use parking_lot::Mutex;
use queue::Queue;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The variables that say what is logged, and where to.
const VARIABLES: [&str; 9] = [
    "general_log",
    "general_log_file",
    "log_output",
    "log_queries_not_using_indexes",
    "log_raw",
    "log_slow_admin_statements",
    "log_timestamps",
    "slow_query_log",
    "slow_query_log_file",
];

/// Both logs, as sessions and the writer share them.
#[derive(Debug, Default)]
pub struct QueryLog {
    general: AtomicBool,
    slow: AtomicBool,
    to_files: AtomicBool,
    to_tables: AtomicBool,
    unindexed: AtomicBool,
    admin: AtomicBool,
    style: Mutex<Style>,
    lost: AtomicU64,
    /// The audit log.
    pub(crate) audit: Audit,
    queue: Queue,
    files: Mutex<[Option<Arc<LogFile>>; 2]>,
}

/// The values of the variables.
struct Wanted {
    on: [bool; 2],
    paths: [PathBuf; 2],
    to_files: bool,
    to_tables: bool,
}

fn get(globals: &GlobalVars, change: Option<(&str, &VarValue)>, name: &str) -> VarValue {
    match change {
        Some((changed, value)) if changed == name => value.clone(),
        _ => globals.named(name),
    }
}

impl Wanted {
    fn of(globals: &GlobalVars, change: Option<(&str, &VarValue)>) -> SqlResult<Wanted> {
        let outputs = get(globals, change, "log_output");
        let has = |name: &str| outputs.as_str().split(',').any(|output| output == name);
        let datadir = globals.named("datadir");
        let on = LogKind::ALL.map(|kind| get(globals, change, kind.switch()).as_bool());
        let mut paths = [PathBuf::new(), PathBuf::new()];
        for kind in LogKind::ALL {
            let named = change.is_some_and(|(name, _)| name == kind.file_variable());
            if on[kind as usize] || named {
                let file = get(globals, change, kind.file_variable());
                paths[kind as usize] =
                    files::checked_path(kind.file_variable(), datadir.as_str(), file.as_str())?;
            }
        }
        Ok(Wanted {
            on,
            paths,
            // NONE beside others wins, as in MySQL.
            to_files: has("FILE") && !has("NONE"),
            to_tables: has("TABLE") && !has("NONE"),
        })
    }
}

impl QueryLog {
    /// Whether a variable is one of these logs'.
    pub(crate) fn has_variable(name: &str) -> bool {
        VARIABLES.contains(&name) || name.starts_with(AUDIT_PREFIX)
    }

    /// Acts upon a variable that is about to change. Blocks: it may open a file.
    ///
    /// # Errors
    /// 1231: a path that is no log's; 1: the file can't be opened.
    pub(crate) fn change(&self, globals: &GlobalVars, name: &str, value: &VarValue) -> SqlResult<()> {
        // What is queued was logged under the old rules, and belongs into the old file.
        self.queue.settle();
        if name.starts_with(AUDIT_PREFIX) {
            return self.audit.configure(globals, Some((name, value)));
        }
        self.configure(globals, Some((name, value)))
    }

    /// Acts upon all variables, at the start. What can't be opened is switched off and said.
    pub(crate) fn start(&self, globals: &GlobalVars) {
        self.audit.start(globals);
        let wanted = LogKind::ALL.map(|kind| globals.named(kind.switch()));
        LogKind::ALL.iter().for_each(|kind| globals.set_named(kind.switch(), VarValue::Bool(false)));
        for (kind, on) in LogKind::ALL.into_iter().zip(wanted) {
            match self.configure(globals, Some((kind.switch(), &on))) {
                Ok(()) => globals.set_named(kind.switch(), on),
                Err(error) => tracing::error!("{} is switched off: {}", kind.switch(), error.message),
            }
        }
    }

    fn configure(&self, globals: &GlobalVars, change: Option<(&str, &VarValue)>) -> SqlResult<()> {
        let wanted = Wanted::of(globals, change)?;
        let mut files = self.files.lock();
        let mut new = [None, None];
        for kind in LogKind::ALL {
            let (at, path) = (kind as usize, &wanted.paths[kind as usize]);
            if !wanted.on[at] || !wanted.to_files {
                continue;
            }
            new[at] = match &files[at] {
                Some(open) if open.path == *path => Some(open.clone()),
                _ => Some(Arc::new(LogFile::open(path, globals)?)),
            };
        }
        *files = new;
        drop(files);
        let flag = |name: &str| get(globals, change, name).as_bool();
        let set = |cell: &AtomicBool, on: bool| cell.store(on, Ordering::Relaxed);
        set(&self.to_files, wanted.to_files);
        set(&self.to_tables, wanted.to_tables);
        set(&self.unindexed, flag("log_queries_not_using_indexes"));
        set(&self.admin, flag("log_slow_admin_statements"));
        *self.style.lock() = Style {
            raw: flag("log_raw"),
            local_time: get(globals, change, "log_timestamps").as_str() == "SYSTEM",
            mariadb: globals.named("dialect").as_str() == "mariadb",
            server_id: globals.named("server_id").as_u64(),
        };
        let somewhere = wanted.to_files || wanted.to_tables;
        set(&self.general, wanted.on[LogKind::General as usize] && somewhere);
        set(&self.slow, wanted.on[LogKind::Slow as usize] && somewhere);
        Ok(())
    }

    /// FLUSH LOGS and its kin: what was logged before is in the file that has the name now, what follows in a new one if somebody
    /// has renamed it. Blocks, for a while at most.
    pub(crate) fn reopen(&self, globals: &GlobalVars, general: bool, slow: bool) {
        self.queue.settle();
        let mut files = self.files.lock();
        for (file, chosen) in files.iter_mut().zip([general, slow]) {
            let Some(open) = file.as_ref().filter(|_| chosen) else { continue };
            match LogFile::open(&open.path, globals) {
                Ok(new) => *file = Some(Arc::new(new)),
                Err(error) => tracing::error!("{}; entries go where they went", error.message),
            }
        }
    }

    /// The audit log was switched off, and who did that is the last entry.
    pub(crate) fn end_audit(&self) {
        self.queue.settle();
        self.audit.close();
    }

    /// FLUSH LOGS and SIGHUP.
    pub(crate) fn reopen_all(&self, globals: &GlobalVars) {
        self.reopen(globals, true, true);
        self.audit.reopen();
    }

    /// Whether the general log is on.
    pub(crate) fn logs_all(&self) -> bool {
        self.general.load(Ordering::Relaxed)
    }

    /// Whether the slow query log is on.
    pub(crate) fn logs_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed)
    }

    /// Whether queries without an index are logged as slow.
    pub(crate) fn logs_unindexed(&self) -> bool {
        self.unindexed.load(Ordering::Relaxed)
    }

    /// Whether ALTER TABLE and its kin are logged as slow.
    pub(crate) fn logs_admin(&self) -> bool {
        self.admin.load(Ordering::Relaxed)
    }

    /// Takes an entry. Does not block.
    pub(crate) fn put(&self, entry: Entry) {
        let audited = matches!(entry, Entry::Audit(_));
        match (self.queue.push(entry), audited) {
            (true, _) => {}
            (false, true) => self.audit.lose(),
            (false, false) => self.lose(1),
        }
    }

    fn lose(&self, entries: u64) {
        self.lost.fetch_add(entries, Ordering::Relaxed);
    }

    fn file(&self, kind: LogKind) -> Option<Arc<LogFile>> {
        self.files.lock()[kind as usize].clone()
    }

    /// For SHOW STATUS.
    pub(crate) fn status(&self) -> Vec<(String, String)> {
        let mut lines =
            vec![("Omnibus_query_log_lost".into(), self.lost.load(Ordering::Relaxed).to_string())];
        lines.extend(self.audit.status());
        lines
    }
}
