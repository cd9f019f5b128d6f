//! The privileges that each statement and command asks of an account before it runs.
//!
//! A statement's rule is asked where the session takes it and where the SQL layer dispatches it, so that it is the same for
//! text, prepared statements, EXECUTE IMMEDIATE and what comes after. Which kind of statement asks what stands in the parser's table of statements,
//! which has no wildcard: a new kind does not compile before it has a rule (ACCESS-1). What statements do with databases and tables is asked by name, in `AccessCheck::check`.

use crate::account::Privileges;
use omnibus_parser::ast::{Backup, Flush, FlushTarget, GlobalRight, Reset, Right, Show, Statement, Xa};
use omnibus_wire::Command;

/// A demand on an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing: it does nothing to anybody else, or nothing at all.
    Free,
    /// Its databases, tables and files, each where its name is resolved.
    Names,
    /// Its parts: variables, accounts, connections. Asked where they are evaluated.
    Parts,
    /// One global privilege out of each of these sets.
    Each(Vec<Privileges>),
}

fn any(privileges: Privileges) -> Rule {
    Rule::Each(vec![privileges])
}

const REPLICATION_ADMIN: Privileges = Privileges::REPLICATION_SLAVE_ADMIN.with(Privileges::SUPER);
const REPLICATION_READER: Privileges = Privileges::REPLICATION_CLIENT.with(Privileges::SUPER);
const LOG_ADMIN: Privileges = Privileges::BINLOG_ADMIN.with(Privileges::SUPER);

/// The rule of a statement: its row in the parser's table of statements says which, and its form where that decides.
#[must_use]
pub fn of_statement(statement: &Statement) -> Rule {
    match statement.traits().right {
        Right::Free => Rule::Free,
        Right::Names => Rule::Names,
        Right::Parts => Rule::Parts,
        Right::Global(right) => any(privileges(right)),
        Right::Form => of_form(statement),
    }
}

/// The privileges that each give a right.
fn privileges(right: GlobalRight) -> Privileges {
    match right {
        GlobalRight::Backups => Privileges::BACKUP_ADMIN,
        GlobalRight::LogKeys => Privileges::BINLOG_ENCRYPTION_ADMIN,
        GlobalRight::TableKeys => Privileges::ENCRYPTION_KEY_ADMIN,
        GlobalRight::Log => LOG_ADMIN,
        GlobalRight::Events => LOG_ADMIN.with(Privileges::REPLICATION_APPLIER),
        GlobalRight::Replication => REPLICATION_ADMIN,
        GlobalRight::Shutdown => Privileges::SHUTDOWN,
        GlobalRight::Users => Privileges::CREATE_USER,
        GlobalRight::MakeRoles => Privileges::CREATE_ROLE.with(Privileges::CREATE_USER),
        GlobalRight::DropRoles => Privileges::DROP_ROLE.with(Privileges::CREATE_USER),
    }
}

fn of_form(statement: &Statement) -> Rule {
    match statement {
        Statement::Xa(xa) => of_xa(xa),
        Statement::Show(show) => of_show(show),
        Statement::Flush(flush) => of_flush(flush),
        Statement::Reset(list) => Rule::Each(list.iter().map(of_reset).collect()),
        Statement::Backup(backup) => of_backup(backup),
        // Nobody has it: a statement that has forms is one of these.
        _ => any(Privileges::NONE),
    }
}

fn of_xa(xa: &Xa) -> Rule {
    match xa {
        Xa::Recover { .. } => any(Privileges::XA_RECOVER_ADMIN),
        Xa::Start { .. } | Xa::End { .. } | Xa::Prepare(_) => Rule::Free,
        // A branch belongs to whoever prepared it.
        Xa::Commit { .. } | Xa::Rollback(_) => Rule::Parts,
    }
}

fn of_show(show: &Show) -> Rule {
    match show {
        Show::Databases(_)
        | Show::Tables { .. }
        | Show::TableStatus { .. }
        | Show::OpenTables { .. }
        | Show::Columns { .. }
        | Show::Index { .. }
        | Show::Triggers { .. }
        | Show::Events { .. }
        | Show::CreateTable(_)
        | Show::CreateView(_)
        | Show::CreateSequence(_)
        | Show::CreateDatabase { .. }
        | Show::CreateProcedure(_)
        | Show::CreateFunction(_)
        | Show::CreateTrigger(_)
        | Show::CreateEvent(_)
        | Show::ProcedureStatus(_)
        | Show::FunctionStatus(_)
        | Show::ProcedureCode(_)
        | Show::FunctionCode(_)
        | Show::PackageStatus(_) => Rule::Names,
        Show::Variables { .. }
        | Show::Status { .. }
        | Show::Engines
        | Show::CharacterSet(_)
        | Show::Collation(_)
        | Show::Warnings { .. }
        | Show::Errors { .. }
        | Show::Privileges
        | Show::Plugins
        | Show::PluginsSoname(_)
        | Show::Profile
        | Show::Profiles
        | Show::Authors
        | Show::Contributors
        | Show::Locales => Rule::Free,
        // Own connections and one's own account are always shown.
        Show::ProcessList { .. } | Show::Explain { .. } | Show::CreateUser(_) | Show::Grants { .. } => {
            Rule::Parts
        }
        Show::EngineStatus { .. } | Show::UserStatistics(_) => {
            any(Privileges::PROCESS.with(Privileges::SUPER))
        }
        Show::BinaryLogs | Show::BinaryLogStatus | Show::ReplicaStatus { .. } => any(REPLICATION_READER),
        Show::BinlogEvents(_) | Show::RelayLogEvents(_) => {
            any(Privileges::REPLICATION_SLAVE.with(Privileges::SUPER))
        }
        Show::Replicas { .. } => any(Privileges::REPLICATION_SLAVE),
    }
}

/// Each thing that is flushed asks for itself.
fn of_flush(flush: &Flush) -> Rule {
    let own = |target: &FlushTarget| match target {
        FlushTarget::Privileges => Privileges::FLUSH_PRIVILEGES,
        FlushTarget::Status => Privileges::FLUSH_STATUS,
        FlushTarget::UserResources => Privileges::FLUSH_USER_RESOURCES,
        FlushTarget::OptimizerCosts => Privileges::FLUSH_OPTIMIZER_COSTS,
        FlushTarget::Tables { .. } => Privileges::FLUSH_TABLES,
        FlushTarget::BinaryLogs
        | FlushTarget::EngineLogs
        | FlushTarget::ErrorLogs
        | FlushTarget::GeneralLogs
        | FlushTarget::SlowLogs
        | FlushTarget::RelayLogs { .. }
        | FlushTarget::Logs
        | FlushTarget::Hosts
        | FlushTarget::QueryCache
        | FlushTarget::DesKeyFile
        | FlushTarget::Master
        | FlushTarget::Replica
        | FlushTarget::Ssl
        | FlushTarget::Statistics
        | FlushTarget::Other(_) => Privileges::NONE,
    };
    Rule::Each(flush.targets.iter().map(|target| Privileges::RELOAD.with(own(target))).collect())
}

fn of_reset(reset: &Reset) -> Privileges {
    match reset {
        Reset::BinaryLogs { .. } | Reset::Replica { .. } | Reset::QueryCache => Privileges::RELOAD,
        Reset::Persist { .. } => Privileges::SYSTEM_VARIABLES_ADMIN.with(Privileges::SUPER),
    }
}

fn of_backup(backup: &Backup) -> Rule {
    match backup {
        Backup::To(_) => any(Privileges::BACKUP_ADMIN),
        // MariaDB's, which has no such privilege.
        Backup::Stage(_) | Backup::Lock(_) | Backup::Unlock => {
            any(Privileges::BACKUP_ADMIN.with(Privileges::RELOAD))
        }
    }
}

/// The rule of a command that is no statement. Those that hold one ask for its rule.
#[must_use]
pub fn of_command(command: &Command<'_>) -> Rule {
    match command {
        Command::Shutdown => any(Privileges::SHUTDOWN),
        Command::Refresh(_) => any(Privileges::RELOAD),
        Command::Debug => any(Privileges::SUPER),
        Command::BinlogDump(_) | Command::BinlogDumpGtid(_) | Command::RegisterSlave(_) => {
            any(Privileges::REPLICATION_SLAVE)
        }
        Command::InitDb(_) | Command::FieldList { .. } => Rule::Names,
        Command::Query(_)
        | Command::StmtPrepare(_)
        | Command::StmtExecute(_)
        | Command::ProcessInfo
        | Command::ProcessKill(_) => Rule::Parts,
        Command::Quit
        | Command::Statistics
        | Command::Ping
        | Command::ChangeUser(_)
        | Command::StmtSendLongData { .. }
        | Command::StmtClose(_)
        | Command::StmtReset(_)
        | Command::SetOption(_)
        | Command::StmtFetch { .. }
        | Command::ResetConnection
        | Command::Unknown(_) => Rule::Free,
    }
}
