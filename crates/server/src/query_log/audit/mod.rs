//! The audit log: who logged in and who was not let in, who defined what, or all statements, as MariaDB's audit plugin has it: its
//! variables, its lines, its rotation; or a JSON object a line.
//!
//! Its entries go the way of the other logs'. Statements that define something or are about accounts are told where they are carried out, so
//! that one in a procedure, an event or a prepared statement is there with its own text; all others when the client's
//! statement ends. What can't be written is counted in `Server_audit_writes_failed`. While it is off, a statement costs one relaxed load.

mod class;
mod file;
mod line;

pub(crate) use class::Class;
pub(crate) use line::{Operation, Record};

use super::entry::Style;
use super::files::checked_path;
use super::get;
use crate::errors;
use crate::sysvars::{AUDIT_PREFIX as PREFIX, GlobalVars, VarValue};
use file::{AuditFile, Rotation};
use line::Form;
use omnibus_sql::SqlResult;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PATH: &str = "server_audit_file_path";
const LOGGING: &str = "server_audit_logging";
/// Set to ON, it rotates the file, and is OFF again.
pub(crate) const ROTATE_NOW: &str = "server_audit_file_rotate_now";
/// The file's name where none, or a folder, is given.
pub(super) const FILE_NAME: &str = "server_audit.log";

/// The rules of logging: accounts, and kinds of statements.
#[derive(Debug, Default)]
struct Rules {
    connects: bool,
    all: bool,
    definitions: bool,
    rights: bool,
    reads: bool,
    changes: bool,
    included: Vec<String>,
    excluded: Vec<String>,
}

impl Rules {
    fn of(events: &str, included: &str, excluded: &str) -> Rules {
        let has = |name: &str| events.split(',').any(|event| event == name);
        let names = |list: &str| {
            list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
        };
        Rules {
            connects: events.is_empty() || has("CONNECT"),
            all: events.is_empty() || has("QUERY"),
            definitions: has("QUERY_DDL"),
            rights: has("QUERY_DCL"),
            reads: has("QUERY_DML"),
            changes: has("QUERY_DML") || has("QUERY_DML_NO_SELECT"),
            included: names(included),
            excluded: names(excluded),
        }
    }

    fn has(&self, class: Class) -> bool {
        self.all
            || match class {
                Class::Definition => self.definitions,
                Class::Rights => self.rights,
                Class::AlterUser => self.rights || self.definitions,
                Class::Read => self.reads,
                Class::Change => self.changes,
                Class::Audit => true,
                Class::Other => false,
            }
    }

    /// Whether a user's statements are logged: the included are not excluded.
    fn is_about(&self, user: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == user);
        if self.included.is_empty() { !named(&self.excluded) } else { named(&self.included) }
    }
}

#[derive(Debug, Default)]
struct Output {
    file: Option<AuditFile>,
    form: Form,
    rotation: Rotation,
    last_error: String,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    on: AtomicBool,
    rules: Mutex<Arc<Rules>>,
    output: Mutex<Output>,
    statements: AtomicU64,
    failed: AtomicU64,
}

/// Where the file is; a folder has it under its usual name.
fn path(datadir: &str, given: &str) -> SqlResult<PathBuf> {
    let whole = Path::new(datadir).join(given);
    if whole.is_dir() {
        let inside = Path::new(given).join(FILE_NAME);
        return checked_path(PATH, datadir, &inside.to_string_lossy());
    }
    checked_path(PATH, datadir, given)
}

impl Audit {
    /// Whether anything is logged.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Whether logins are.
    pub(crate) fn has_connects(&self) -> bool {
        self.is_on() && self.rules.lock().connects
    }

    /// Whether such a statement of this user is, while it is on.
    pub(crate) fn has(&self, class: Class, user: &str) -> bool {
        if class == Class::Audit {
            return true;
        }
        let rules = self.rules.lock().clone();
        rules.has(class) && rules.is_about(user)
    }

    /// The next statement's number.
    pub(crate) fn next_statement(&self) -> u64 {
        self.statements.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Acts upon the variables, one of which may be about to change. Blocks: it may open a file.
    ///
    /// # Errors
    /// 1231: a path that is no log's; 1: the file can't be opened.
    pub(super) fn configure(&self, globals: &GlobalVars, change: Option<(&str, &VarValue)>) -> SqlResult<()> {
        let own = |name: &str| get(globals, change, &format!("{PREFIX}{name}"));
        let on = own("logging").as_bool();
        let changed = change.map(|(name, _)| name);
        let datadir = globals.named("datadir");
        let mut output = self.output.lock();
        if on || changed == Some(PATH) {
            let path = path(datadir.as_str(), own("file_path").as_str())?;
            let same = output.file.as_ref().is_some_and(|open| open.path == path);
            if on && !same {
                let opened = AuditFile::open(&path).map_err(|e| errors::cannot_create(path.display(), &e))?;
                output.file = Some(opened);
            }
        }
        output.rotation =
            Rotation { size: own("file_rotate_size").as_u64(), keep: own("file_rotations").as_u64() };
        output.form = Form {
            json: own("output_type").as_str() == "json",
            host: globals.named("hostname").as_str().into(),
            text_limit: usize::try_from(own("query_log_limit").as_u64()).unwrap_or(usize::MAX),
        };
        if changed == Some(ROTATE_NOW) && own("file_rotate_now").as_bool() {
            self.rotate(&mut output);
        }
        drop(output);
        let (events, included, excluded) = (own("events"), own("incl_users"), own("excl_users"));
        let rules = Rules::of(events.as_str(), included.as_str(), excluded.as_str());
        *self.rules.lock() = Arc::new(rules);
        self.on.store(on, Ordering::Relaxed);
        Ok(())
    }

    /// It was switched off, and what did that is written: the file is closed, unless it is on again.
    pub(super) fn close(&self) {
        let mut output = self.output.lock();
        if !self.is_on() {
            output.file = None;
        }
    }

    fn rotate(&self, output: &mut Output) {
        let keep = output.rotation.keep.max(1);
        if let Some(Err(error)) = output.file.as_mut().map(|file| file.rotate(keep)) {
            self.fails(output, 0, &error);
        }
    }

    fn fails(&self, output: &mut Output, entries: u64, error: &io::Error) {
        self.failed.fetch_add(entries, Ordering::Relaxed);
        output.last_error = error.to_string();
    }

    /// At the start: what can't be opened is switched off and said.
    pub(super) fn start(&self, globals: &GlobalVars) {
        if let Err(error) = self.configure(globals, None) {
            globals.set_named(LOGGING, VarValue::Bool(false));
            tracing::error!("{LOGGING} is switched off: {}", error.message);
        }
    }

    /// Goes on in a new file if somebody has renamed it.
    pub(super) fn reopen(&self) {
        let mut output = self.output.lock();
        let Some(path) = output.file.as_ref().map(|file| file.path.clone()) else { return };
        match AuditFile::open(&path) {
            Ok(file) => output.file = Some(file),
            Err(error) => {
                tracing::error!("{}: {error}; entries go where they went", path.display());
                self.fails(&mut output, 0, &error);
            }
        }
    }

    /// Writes entries. Says of how many why they are lost.
    pub(super) fn write<'a>(
        &self,
        records: impl Iterator<Item = &'a Record>,
        style: Style,
    ) -> Option<(u64, String)> {
        let (mut lost, mut line) = (None, Vec::new());
        let mut output = self.output.lock();
        for record in records {
            line.clear();
            line::put(record, &output.form, style, &mut line);
            let rotation = output.rotation;
            // Switched off since.
            let Some(file) = &mut output.file else { break };
            if let Err(error) = file.write(&line, rotation) {
                let why = format!("{}: {error}", file.path.display());
                self.fails(&mut output, 1, &error);
                lost = Some((lost.map_or(1, |(count, _)| count + 1), why));
            }
        }
        lost
    }

    /// An entry did not fit into the queue.
    pub(super) fn lose(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// For SHOW STATUS.
    pub(super) fn status(&self) -> Vec<(String, String)> {
        let output = self.output.lock();
        let current = output.file.as_ref().map(|file| file.path.display().to_string()).unwrap_or_default();
        vec![
            ("Server_audit_active".into(), if self.is_on() { "ON" } else { "OFF" }.into()),
            ("Server_audit_current_log".into(), current),
            ("Server_audit_last_error".into(), output.last_error.clone()),
            ("Server_audit_writes_failed".into(), self.failed.load(Ordering::Relaxed).to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_users_say_what_is_logged() {
        let all = Rules::of("", "", "");
        assert!(all.connects && all.has(Class::Other) && all.is_about("anybody"));
        let some = Rules::of("QUERY_DDL,QUERY_DML_NO_SELECT", "a, b", "b,c");
        assert!(!some.connects && some.has(Class::Definition) && some.has(Class::AlterUser));
        assert!(some.has(Class::Change) && !some.has(Class::Read) && !some.has(Class::Rights));
        assert!(
            some.is_about("b") && !some.is_about("c") && !some.is_about("d"),
            "who is included is not excluded"
        );
        let others = Rules::of("QUERY_DCL", "", "c");
        assert!(others.is_about("d") && !others.is_about("c") && others.has(Class::AlterUser));
    }
}
