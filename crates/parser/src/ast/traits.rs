//! The table of statement kinds: for each its class, its effect on the open transaction, the layer that runs it, the right that it needs, whether
//! stored programs may contain it, and its trace in the log.
//!
//! The match has no wildcard: a new kind of statement does not compile before it has a row. Parser, server and SQL layer ask the table and keep no lists
//! of kinds of their own.

use super::{MaintenanceKind, ProgramKind, Statement};

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

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementTraits {
    pub class: StatementClass,
    pub commits: Commits,
    pub runs_in: RunsIn,
    pub right: Right,
    pub programs: InPrograms,
    pub logged: Logged,
}

use Commits::{AsItGoes, First, Itself, No};
use InPrograms::{Allowed, Never, NoCreate, NoDrop, OutsideStatements};
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
    StatementTraits { class, commits, runs_in, right, programs, logged }
}

/// The traits of a statement that changes rows or definitions under rights on their names.
const fn definition(runs_in: RunsIn, programs: InPrograms) -> StatementTraits {
    row(Class::Definition, First, runs_in, Names, programs, Logged::Changes)
}

const fn account(right: Right) -> StatementTraits {
    row(Class::Account, First, Session, right, Allowed, Logged::Changes)
}

/// The traits of a statement about the server or the session.
const fn other(right: Right, programs: InPrograms, logged: Logged) -> StatementTraits {
    row(Class::Other, No, Session, right, programs, logged)
}

/// Whether programs may drop programs of a kind.
fn in_dropping(kind: ProgramKind) -> InPrograms {
    match kind {
        ProgramKind::Event | ProgramKind::Trigger => Allowed,
        kind => NoDrop(kind.name()),
    }
}

const fn in_maintenance(kind: MaintenanceKind) -> InPrograms {
    match kind {
        MaintenanceKind::Check => Never("CHECK"),
        _ => Allowed,
    }
}

const DYNAMIC: InPrograms = OutsideStatements("Dynamic SQL");

impl Statement {
    /// Its row of the table.
    pub fn traits(&self) -> StatementTraits {
        use GlobalRight::*;
        use Logged::{Changes, Nothing, Transaction};
        match self {
            Self::Select(_) => row(Class::Read, No, Sql, Names, Allowed, Nothing),
            Self::Do(_) => row(Class::Runner, No, Sql, Names, Allowed, Nothing),
            Self::Call { .. } => row(Class::Runner, No, Session, Names, Allowed, Changes),
            Self::Insert(_) | Self::Update(_) | Self::Delete(_) => {
                row(Class::Change, No, Sql, Names, Allowed, Changes)
            }
            Self::LoadData(_) => row(Class::Change, No, Session, Names, Never("LOAD DATA"), Changes),

            // Temporary tables are the session's.
            Self::CreateTable(tree) if tree.temporary => {
                row(Class::Definition, No, Sql, Names, Allowed, Changes)
            }
            Self::DropTable(tree) if tree.temporary => {
                row(Class::Definition, No, Sql, Names, Allowed, Changes)
            }
            Self::CreateTable(_)
            | Self::AlterTable(_)
            | Self::DropTable(_)
            | Self::CreateDatabase(_)
            | Self::AlterDatabase(_)
            | Self::DropDatabase { .. }
            | Self::CreateIndex(_)
            | Self::DropIndex(_)
            | Self::Truncate(_)
            | Self::RenameTable(_) => definition(Sql, Allowed),
            Self::CreateView(view) if view.alter => definition(Session, Never("ALTER VIEW")),
            Self::CreateView(_)
            | Self::DropView(_)
            | Self::CreateSequence(_)
            | Self::AlterSequence(_)
            | Self::DropSequence(_)
            | Self::CreateEvent(_)
            | Self::AlterEvent(_) => definition(Session, Allowed),
            Self::CreateRoutine(tree) => definition(Session, NoCreate(tree.kind.name())),
            Self::CreateTrigger(_) => definition(Session, NoCreate(ProgramKind::Trigger.name())),
            Self::AlterRoutine(alter) => definition(Session, NoDrop(alter.kind.name())),
            Self::DropProgram(drop) => definition(Session, in_dropping(drop.kind)),

            Self::CreateUser(_) | Self::DropUser { .. } | Self::RenameUser(_) => account(Global(Users)),
            Self::CreateRole(_) => account(Global(MakeRoles)),
            Self::DropRole { .. } => account(Global(DropRoles)),
            Self::AlterUser(_) | Self::Grant(_) | Self::Revoke(_) | Self::SetDefaultRole(_) => account(Parts),

            Self::Begin(_) => row(Class::Transaction, First, Sql, Free, Allowed, Transaction),
            Self::Commit(_) | Self::Rollback(_) => {
                row(Class::Transaction, Itself, Sql, Free, Allowed, Transaction)
            }
            Self::Xa(_) => row(Class::Transaction, Itself, Session, Form, Allowed, Nothing),
            Self::Savepoint(_) | Self::RollbackTo(_) | Self::ReleaseSavepoint(_) => {
                row(Class::Other, No, Sql, Free, Allowed, Nothing)
            }

            Self::Prepare { .. } | Self::Deallocate(_) => other(Free, DYNAMIC, Nothing),
            Self::Execute { .. } | Self::ExecuteImmediate { .. } => {
                row(Class::Runner, No, Session, Free, DYNAMIC, Changes)
            }
            Self::SetStatement(_) => row(Class::Runner, No, Session, Free, Allowed, Changes),
            Self::Signal(_) | Self::GetDiagnostics(_) => row(Class::Other, No, Sql, Free, Allowed, Changes),

            Self::Handler(_) => row(Class::Read, No, Sql, Names, Never("HANDLER"), Nothing),
            Self::Use(_) => other(Names, Never("USE"), Nothing),
            Self::LockTables(_) => other(Names, Never("LOCK"), Nothing),
            Self::UnlockTables => other(Free, Never("UNLOCK"), Nothing),
            Self::Binlog(_) => other(Global(Events), Never("BINLOG"), Changes),
            Self::Show(_) => other(Form, Allowed, Nothing),
            Self::Describe { .. } | Self::Explain(_) => other(Names, Allowed, Nothing),
            Self::Maintenance(tables) => {
                row(Class::Other, AsItGoes, Session, Names, in_maintenance(tables.kind), Changes)
            }
            Self::RunEvent(_) => other(Names, Allowed, Changes),
            Self::Set(_) | Self::Kill(_) => other(Parts, Allowed, Changes),
            Self::Help(_) => other(Free, Never("HELP"), Changes),
            // Those that are not supported are answered with 1235.
            Self::SetRole(_) | Self::Unsupported(_) => other(Free, Allowed, Changes),
            Self::Flush(_) => other(Form, OutsideStatements("FLUSH"), Changes),
            Self::Reset(_) => other(Form, OutsideStatements("RESET"), Changes),
            Self::Backup(_) => other(Form, Allowed, Changes),
            Self::LockInstance | Self::UnlockInstance => other(Global(Backups), Allowed, Changes),
            Self::Purge(_) => other(Global(Log), Allowed, Changes),
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
