//! The table of statement kinds: for each its class, its effect on the open transaction, the layer that runs it, the right that it needs, whether
//! stored programs may contain it, its trace in the log, whether and how it is prepared, and what of its results and diagnostics clients see.
//!
//! The match has no wildcard: a new kind of statement does not compile before it has a row. Parser, server and SQL layer ask the table and keep no lists
//! of kinds of their own.

use super::{Expr, MaintenanceKind, ProgramKind, Query, QueryBody, SelectItem, Show, Statement};

/// The class of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// Reads rows.
    Read,
    /// Changes rows, as a part of the transaction.
    Change,
    /// Runs other statements or functions, which may change rows.
    Runner,
    /// Defines something other than an account.
    Definition,
    /// Is about accounts and what they may do.
    Account,
    /// Begins or ends a transaction.
    Transaction,
    /// Anything else.
    Other,
}

/// The effect of a statement on the open transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commits {
    /// Nothing: it is a part of it, or does not touch it.
    No,
    /// Commits it before it does anything else.
    First,
    /// Ends it: that is what it is for.
    Itself,
    /// Commits as it goes, a table at a time.
    AsItGoes,
}

/// The layer that runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsIn {
    /// The SQL layer, for a client and for a program alike.
    Sql,
    /// The client's session: a program that has it waits for that. Some forms are the server's, the others go on to the SQL layer.
    Session,
}

/// The right that a statement needs before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// No right: it affects nobody else, or it runs a statement that has a right of its own.
    Free,
    /// The rights of its databases, tables and files, each asked where its name is resolved.
    Names,
    /// The rights of its parts (variables, accounts, connections), asked where they are evaluated.
    Parts,
    /// The right of its form: it depends on what is shown, flushed, reset or backed up.
    Form,
    /// One for the whole server.
    Global(GlobalRight),
}

/// A right that concerns the whole server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalRight {
    /// Hold definitions back while a backup runs.
    Backups,
    /// Make new master keys of encrypted logs.
    LogKeys,
    /// Make a new master key of encrypted tables.
    TableKeys,
    /// Remove log files.
    Log,
    /// Apply another server's events.
    Events,
    /// Make and steer replication channels.
    Replication,
    /// End the server.
    Shutdown,
    /// Make and drop accounts.
    Users,
    /// Make roles.
    MakeRoles,
    /// Drop roles.
    DropRoles,
}

/// Whether the bodies of stored programs may contain a statement. What commits is in no function and no trigger (1422) beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPrograms {
    /// They may.
    Allowed,
    /// Procedures and events may: functions and triggers are parts of a statement (1336).
    OutsideStatements(&'static str),
    /// None may (1314).
    Never(&'static str),
    /// None may, as it makes a program (1303).
    NoCreate(&'static str),
    /// None may, as it changes or drops a program (1357).
    NoDrop(&'static str),
}

/// The trace of a statement in the binary log; one with a trace uses up an id that `gtid_next` has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged {
    /// No trace by itself.
    Nothing,
    /// A transaction's beginning or end.
    Transaction,
    /// Changes, or itself.
    Changes,
}

/// Where a statement may be prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparing {
    /// In both dialects.
    Always,
    /// In MariaDB's: MySQL runs it as a text only.
    InMariadb,
    /// In neither (1295).
    Never,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementTraits {
    pub class: StatementClass,
    pub commits: Commits,
    pub runs_in: RunsIn,
    pub right: Right,
    pub programs: InPrograms,
    pub logged: Logged,
    pub prepared: Preparing,
    /// MySQL takes no parameters in it (6413).
    pub without_params: bool,
    /// The server runs it: with parameters, as the text that they make of it. Statements about accounts keep to their text, which is logged.
    pub filled: bool,
    /// It has a result set for the client.
    pub gives_rows: bool,
    /// It shows what the statement before has left, and so keeps it.
    pub keeps_diagnostics: bool,
}

impl StatementTraits {
    const fn prepared(self, prepared: Preparing) -> StatementTraits {
        StatementTraits { prepared, ..self }
    }

    const fn unprepared(self) -> StatementTraits {
        StatementTraits { prepared: Preparing::Never, ..self }
    }

    const fn without_params(self) -> StatementTraits {
        StatementTraits { without_params: true, ..self }
    }

    const fn filled(self) -> StatementTraits {
        StatementTraits { filled: true, ..self }
    }

    const fn gives_rows(self, gives_rows: bool) -> StatementTraits {
        StatementTraits { gives_rows, ..self }
    }

    const fn keeps_diagnostics(self, keeps_diagnostics: bool) -> StatementTraits {
        StatementTraits { keeps_diagnostics, ..self }
    }
}

use Commits::{AsItGoes, First, Itself, No};
use InPrograms::{Allowed, Never, NoCreate, NoDrop, OutsideStatements};
use Preparing::InMariadb;
use Right::{Form, Free, Global, Names, Parts};
use RunsIn::{Session, Sql};
use StatementClass as Class;

const fn row(
    class: Class,
    commits: Commits,
    runs_in: RunsIn,
    right: Right,
    programs: InPrograms,
    logged: Logged,
) -> StatementTraits {
    StatementTraits {
        class,
        commits,
        runs_in,
        right,
        programs,
        logged,
        prepared: Preparing::Always,
        without_params: false,
        filled: false,
        gives_rows: false,
        keeps_diagnostics: false,
    }
}

fn select(query: &Query) -> StatementTraits {
    let row = row(Class::Read, No, Sql, Names, Allowed, Logged::Nothing);
    row.gives_rows(query.into.is_none()).keeps_diagnostics(counts_conditions(query))
}

const fn change(gives_rows: bool) -> StatementTraits {
    row(Class::Change, No, Sql, Names, Allowed, Logged::Changes).gives_rows(gives_rows)
}

/// The traits of a definition of a temporary table, which is the session's.
const TEMPORARY: StatementTraits = row(Class::Definition, No, Sql, Names, Allowed, Logged::Changes);

/// The traits of a statement that changes rows or definitions under rights on their names.
const fn definition(runs_in: RunsIn, programs: InPrograms) -> StatementTraits {
    row(Class::Definition, First, runs_in, Names, programs, Logged::Changes)
}

/// The traits of a definition of a stored program.
const fn program(programs: InPrograms) -> StatementTraits {
    definition(Session, programs).prepared(InMariadb)
}

const fn account(right: Right) -> StatementTraits {
    row(Class::Account, First, Session, right, Allowed, Logged::Changes)
}

/// The traits of a statement about the server or the session.
const fn other(right: Right, programs: InPrograms, logged: Logged) -> StatementTraits {
    row(Class::Other, No, Session, right, programs, logged)
}

/// The traits of DROP of a stored program.
fn dropping(kind: ProgramKind) -> StatementTraits {
    match kind {
        ProgramKind::Event => definition(Session, Allowed),
        ProgramKind::Trigger => program(Allowed),
        kind => program(NoDrop(kind.name())),
    }
}

const fn maintenance(programs: InPrograms) -> StatementTraits {
    row(Class::Other, AsItGoes, Session, Names, programs, Logged::Changes).gives_rows(true)
}

/// The traits of a statement that has conditions.
const fn conditions(keeps_diagnostics: bool) -> StatementTraits {
    let row = row(Class::Other, No, Sql, Free, Allowed, Logged::Changes);
    row.prepared(InMariadb).keeps_diagnostics(keeps_diagnostics)
}

/// Whether a query shows how many conditions there are (`@@warning_count`, `@@error_count`).
fn counts_conditions(query: &Query) -> bool {
    let counts = |item: &SelectItem| match item {
        SelectItem::Expr { expr: Expr::SysVar { name, .. }, .. } => {
            name.is("warning_count") || name.is("error_count")
        }
        _ => false,
    };
    match &query.body {
        QueryBody::Select(select) => select.from.is_empty() && select.items.iter().any(counts),
        _ => false,
    }
}

const fn transaction(commits: Commits, runs_in: RunsIn, right: Right, logged: Logged) -> StatementTraits {
    row(Class::Transaction, commits, runs_in, right, Allowed, logged)
}

const SHOW: StatementTraits = other(Form, Allowed, Logged::Nothing).gives_rows(true);
const SHOW_CONDITIONS: StatementTraits = SHOW.prepared(InMariadb).keeps_diagnostics(true);
const CHECK: StatementTraits = maintenance(Never("CHECK")).prepared(InMariadb);
const SAVEPOINT: StatementTraits =
    row(Class::Other, No, Sql, Free, Allowed, Logged::Nothing).prepared(InMariadb);
const DYNAMIC_RUN: StatementTraits = row(Class::Runner, No, Session, Free, DYNAMIC, Logged::Changes);
const DYNAMIC: InPrograms = OutsideStatements("Dynamic SQL");

impl Statement {
    /// Its row of the table.
    pub fn traits(&self) -> StatementTraits {
        use {GlobalRight::*, Logged::*};
        match self {
            Self::Select(tree) => select(tree),
            Self::Do(_) => row(Class::Runner, No, Sql, Names, Allowed, Nothing),
            Self::Call { .. } => row(Class::Runner, No, Session, Names, Allowed, Changes),
            Self::Insert(insert) => change(!insert.returning.is_empty()),
            Self::Update(_) => change(false),
            Self::Delete(delete) => change(!delete.returning.is_empty()),
            Self::LoadData(_) => {
                row(Class::Change, No, Session, Names, Never("LOAD DATA"), Changes).unprepared()
            }

            Self::CreateTable(tree) if tree.temporary => TEMPORARY,
            Self::DropTable(tree) if tree.temporary => TEMPORARY,
            Self::AlterTable(_) | Self::CreateIndex(_) => definition(Sql, Allowed).without_params(),
            Self::AlterDatabase(_) => definition(Sql, Allowed).prepared(InMariadb),
            Self::CreateTable(_)
            | Self::DropTable(_)
            | Self::CreateDatabase(_)
            | Self::DropDatabase { .. }
            | Self::DropIndex(_)
            | Self::Truncate(_)
            | Self::RenameTable(_) => definition(Sql, Allowed),
            Self::CreateView(view) if view.alter => program(Never("ALTER VIEW")),
            Self::CreateView(_)
            | Self::DropView(_)
            | Self::CreateSequence(_)
            | Self::AlterSequence(_)
            | Self::DropSequence(_)
            | Self::CreateEvent(_)
            | Self::AlterEvent(_) => definition(Session, Allowed),
            Self::CreateRoutine(tree) => program(NoCreate(tree.kind.name())),
            Self::CreateTrigger(_) => program(NoCreate(ProgramKind::Trigger.name())),
            Self::AlterRoutine(alter) => program(NoDrop(alter.kind.name())),
            Self::DropProgram(drop) => dropping(drop.kind),

            Self::CreateUser(_) | Self::DropUser { .. } | Self::RenameUser(_) => account(Global(Users)),
            Self::CreateRole(_) => account(Global(MakeRoles)).prepared(InMariadb),
            Self::DropRole { .. } => account(Global(DropRoles)).prepared(InMariadb),
            Self::AlterUser(_) | Self::Grant(_) | Self::Revoke(_) | Self::SetDefaultRole(_) => account(Parts),

            Self::Begin(_) => transaction(First, Sql, Free, Transaction).prepared(InMariadb),
            Self::Commit(_) | Self::Rollback(_) => transaction(Itself, Sql, Free, Transaction),
            Self::Xa(_) => transaction(Itself, Session, Form, Nothing).unprepared(),
            Self::Savepoint(_) | Self::RollbackTo(_) | Self::ReleaseSavepoint(_) => SAVEPOINT,

            Self::Prepare { .. } | Self::Deallocate(_) => other(Free, DYNAMIC, Nothing).unprepared(),
            Self::Execute { .. } => DYNAMIC_RUN.unprepared(),
            Self::ExecuteImmediate { .. } => DYNAMIC_RUN,
            Self::SetStatement(_) => row(Class::Runner, No, Session, Free, Allowed, Changes).unprepared(),
            Self::Signal(signal) => conditions(signal.resignal),
            Self::GetDiagnostics(_) => conditions(true),

            Self::Handler(_) => row(Class::Read, No, Sql, Names, Never("HANDLER"), Nothing).unprepared(),
            Self::Use(_) => other(Names, Never("USE"), Nothing).unprepared(),
            Self::LockTables(_) => other(Names, Never("LOCK"), Nothing).prepared(InMariadb),
            Self::UnlockTables => other(Free, Never("UNLOCK"), Nothing).prepared(InMariadb),
            Self::Binlog(_) => other(Global(Events), Never("BINLOG"), Changes).unprepared(),
            Self::Show(show) if matches!(**show, Show::Warnings { .. } | Show::Errors { .. }) => {
                SHOW_CONDITIONS
            }
            Self::Show(_) => SHOW,
            Self::Describe { .. } | Self::Explain(_) => other(Names, Allowed, Nothing).gives_rows(true),
            Self::Maintenance(tables) if tables.kind == MaintenanceKind::Check => CHECK,
            Self::Maintenance(_) => maintenance(Allowed),
            Self::RunEvent(_) => other(Names, Allowed, Changes),
            Self::Set(_) => other(Parts, Allowed, Changes).filled(),
            Self::Kill(_) => other(Parts, Allowed, Changes).filled().without_params(),
            Self::Help(_) => other(Free, Never("HELP"), Changes).gives_rows(true),
            // Those that are not supported are answered with 1235.
            Self::SetRole(_) => other(Free, Allowed, Changes).filled(),
            Self::Unsupported(_) => other(Free, Allowed, Changes),
            Self::Flush(flush) if flush.takes_locks() => other(Form, OutsideStatements("FLUSH"), Changes),
            Self::Flush(_) => other(Form, OutsideStatements("FLUSH"), Changes).filled(),
            Self::Reset(_) => other(Form, OutsideStatements("RESET"), Changes).filled(),
            Self::Backup(_) => other(Form, Allowed, Changes),
            Self::LockInstance | Self::UnlockInstance => {
                other(Global(Backups), Allowed, Changes).prepared(InMariadb)
            }
            Self::Purge(_) => {
                other(Global(Log), Allowed, Changes).prepared(InMariadb).filled().without_params()
            }
            Self::RotateBinlogMasterKey => other(Global(LogKeys), Allowed, Changes),
            Self::RotateTableMasterKey => other(Global(TableKeys), Allowed, Changes),
            Self::ChangeSource(_)
            | Self::ChangeReplicationFilter(_)
            | Self::StartReplica(_)
            | Self::StopReplica(_) => other(Global(Replication), Allowed, Changes),
            Self::Shutdown | Self::Restart => other(Global(Shutdown), Allowed, Changes),
        }
    }

    /// The class of this statement.
    pub fn class(&self) -> StatementClass {
        self.traits().class
    }

    /// Whether this is about accounts and what they may do. `SET PASSWORD` is a `Set`.
    pub fn is_about_accounts(&self) -> bool {
        self.class() == Class::Account
    }

    /// Whether this defines something other than an account.
    pub fn is_definition(&self) -> bool {
        self.class() == Class::Definition
    }

    /// Whether this changes data, definitions or accounts: what MAX_UPDATES_PER_HOUR counts.
    pub fn changes(&self) -> bool {
        matches!(self.class(), Class::Change | Class::Definition | Class::Account)
    }
}
