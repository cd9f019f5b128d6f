//! What each kind of statement and command asks of an account before it runs: one rule for each, in one table.
//!
//! A statement's rule is asked where the session takes it and where the SQL layer dispatches it, so that it is the same for
//! text, prepared statements, EXECUTE IMMEDIATE and what comes after. The matches have no wildcard: a new kind of statement does not
//! compile before it has a rule (ACCESS-1). What statements do with databases and tables is asked by name, in `AccessCheck::check`.

use crate::account::Privileges;
use omnibus_parser::ast::{Backup, Flush, FlushTarget, Reset, Show, Statement, Xa};
use omnibus_wire::Command;

/// What is asked.
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
const ROLE_MAKER: Privileges = Privileges::CREATE_ROLE.with(Privileges::CREATE_USER);
const ROLE_DROPPER: Privileges = Privileges::DROP_ROLE.with(Privileges::CREATE_USER);

/// The rule of a statement.
#[must_use]
pub fn of_statement(statement: &Statement) -> Rule {
    match statement {
        Statement::Select(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::LoadData(_)
        | Statement::Do(_)
        | Statement::CreateDatabase(_)
        | Statement::AlterDatabase(_)
        | Statement::DropDatabase { .. }
        | Statement::CreateTable(_)
        | Statement::AlterTable(_)
        | Statement::DropTable(_)
        | Statement::CreateView(_)
        | Statement::DropView(_)
        | Statement::CreateIndex(_)
        | Statement::DropIndex(_)
        | Statement::Truncate(_)
        | Statement::RenameTable(_)
        | Statement::CreateSequence(_)
        | Statement::AlterSequence(_)
        | Statement::DropSequence(_)
        | Statement::LockTables(_)
        | Statement::Use(_)
        | Statement::Describe { .. }
        | Statement::Explain(_)
        | Statement::Maintenance(_)
        | Statement::Call { .. }
        | Statement::CreateRoutine(_)
        | Statement::AlterRoutine(_)
        | Statement::CreateTrigger(_)
        | Statement::CreateEvent(_)
        | Statement::AlterEvent(_)
        | Statement::RunEvent(_)
        | Statement::DropProgram(_) => Rule::Names,

        Statement::Begin(_)
        | Statement::Commit(_)
        | Statement::Rollback(_)
        | Statement::Savepoint(_)
        | Statement::RollbackTo(_)
        | Statement::ReleaseSavepoint(_)
        | Statement::UnlockTables
        | Statement::Deallocate(_)
        | Statement::Help(_)
        | Statement::SetRole(_)
        | Statement::Signal(_)
        | Statement::GetDiagnostics(_) => Rule::Free,

        // What they run is a statement with a rule of its own.
        Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::ExecuteImmediate { .. }
        | Statement::SetStatement(_) => Rule::Free,
        // Answered with 1235.
        Statement::Unsupported(_) => Rule::Free,

        Statement::Xa(xa) => of_xa(xa),
        Statement::Show(show) => of_show(show),
        Statement::Flush(flush) => of_flush(flush),
        Statement::Reset(list) => Rule::Each(list.iter().map(of_reset).collect()),
        Statement::Backup(backup) => of_backup(backup),
        Statement::RotateBinlogMasterKey => any(Privileges::BINLOG_ENCRYPTION_ADMIN),
        Statement::LockInstance | Statement::UnlockInstance => any(Privileges::BACKUP_ADMIN),
        Statement::Purge(_) => any(LOG_ADMIN),
        Statement::ChangeSource(_)
        | Statement::ChangeReplicationFilter(_)
        | Statement::StartReplica(_)
        | Statement::StopReplica(_) => any(REPLICATION_ADMIN),
        Statement::Binlog(_) => any(LOG_ADMIN.with(Privileges::REPLICATION_APPLIER)),
        Statement::Shutdown | Statement::Restart => any(Privileges::SHUTDOWN),
        Statement::CreateUser(_) | Statement::DropUser { .. } | Statement::RenameUser(_) => {
            any(Privileges::CREATE_USER)
        }
        Statement::CreateRole(_) => any(ROLE_MAKER),
        Statement::DropRole { .. } => any(ROLE_DROPPER),
        Statement::AlterUser(_)
        | Statement::Grant(_)
        | Statement::Revoke(_)
        | Statement::SetDefaultRole(_)
        | Statement::Set(_)
        | Statement::Kill(_) => Rule::Parts,
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
