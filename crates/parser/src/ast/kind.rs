//! The names of statements in `Com_` status variables.

use super::{
    Delete, InsertSource, MaintenanceKind, ProgramKind, Reset, Show, Statement, TableRef, Update, Xa,
};

impl Update {
    /// Whether this is the one-table form.
    pub fn is_single(&self) -> bool {
        matches!(self.tables.as_slice(), [TableRef::Table(_)])
    }
}

impl Delete {
    /// Whether this is the one-table form.
    pub fn is_single(&self) -> bool {
        self.targets.is_empty()
    }
}

impl Statement {
    /// The name behind `Com_` that counts this statement: `select`, `insert`, `set_option`, ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Select(_) => "select",
            Self::Insert(insert) => match (insert.replace, &insert.source) {
                (false, InsertSource::Values(_)) => "insert",
                (false, InsertSource::Query(_)) => "insert_select",
                (true, InsertSource::Values(_)) => "replace",
                (true, InsertSource::Query(_)) => "replace_select",
            },
            Self::Update(update) if update.is_single() => "update",
            Self::Update(_) => "update_multi",
            Self::Delete(delete) if delete.is_single() => "delete",
            Self::Delete(_) => "delete_multi",
            Self::LoadData(_) => "load",
            Self::Call { .. } => "call_procedure",
            Self::Do(_) => "do",
            Self::CreateDatabase(_) => "create_db",
            Self::AlterDatabase(_) => "alter_db",
            Self::DropDatabase { .. } => "drop_db",
            Self::CreateTable(_) => "create_table",
            Self::AlterTable(_) => "alter_table",
            Self::DropTable(_) => "drop_table",
            Self::CreateView(_) => "create_view",
            Self::DropView(_) => "drop_view",
            Self::CreateIndex(_) => "create_index",
            Self::DropIndex(_) => "drop_index",
            Self::Truncate(_) => "truncate",
            Self::RenameTable(_) => "rename_table",
            Self::CreateSequence(_) => "create_sequence",
            Self::AlterSequence(_) => "alter_sequence",
            Self::DropSequence(_) => "drop_sequence",
            Self::Begin(_) => "begin",
            Self::Commit(_) => "commit",
            Self::Rollback(_) => "rollback",
            Self::Savepoint(_) => "savepoint",
            Self::RollbackTo(_) => "rollback_to_savepoint",
            Self::ReleaseSavepoint(_) => "release_savepoint",
            Self::Xa(xa) => xa_kind(xa),
            Self::LockTables(_) => "lock_tables",
            Self::UnlockTables => "unlock_tables",
            Self::LockInstance => "lock_instance",
            Self::UnlockInstance => "unlock_instance",
            Self::Set(_) | Self::SetStatement(_) => "set_option",
            Self::Prepare { .. } => "prepare_sql",
            Self::Execute { .. } | Self::ExecuteImmediate { .. } => "execute_sql",
            Self::Deallocate(_) => "dealloc_sql",
            Self::Use(_) => "change_db",
            Self::Show(show) => show.kind(),
            Self::Describe { .. } => "show_fields",
            Self::Explain(_) => "explain_other",
            Self::Help(_) => "help",
            Self::Kill(_) => "kill",
            Self::Flush(_) => "flush",
            Self::Reset(list) => reset_kind(list),
            Self::Handler(handler) => handler.kind(),
            Self::Purge(_) => "purge",
            Self::ChangeSource(_) => "change_replication_source",
            Self::ChangeReplicationFilter(_) => "change_repl_filter",
            Self::StartReplica(_) => "replica_start",
            Self::StopReplica(_) => "replica_stop",
            Self::Binlog(_) => "binlog",
            Self::Shutdown => "shutdown",
            Self::Restart => "restart",
            Self::Backup(_) => "backup",
            Self::RotateBinlogMasterKey | Self::RotateTableMasterKey => "alter_instance",
            Self::Maintenance(m) => match m.kind {
                MaintenanceKind::Analyze => "analyze",
                MaintenanceKind::Check => "check",
                MaintenanceKind::Checksum => "checksum",
                MaintenanceKind::Optimize => "optimize",
                MaintenanceKind::Repair => "repair",
            },
            Self::CreateUser(_) => "create_user",
            Self::AlterUser(_) => "alter_user",
            Self::DropUser { .. } => "drop_user",
            Self::RenameUser(_) => "rename_user",
            Self::Grant(_) => "grant",
            Self::Revoke(_) => "revoke",
            Self::CreateRole(_) => "create_role",
            Self::DropRole { .. } => "drop_role",
            Self::SetRole(_) => "set_role",
            Self::SetDefaultRole(_) => "alter_user_default_role",
            Self::CreateRoutine(routine) => match routine.kind {
                ProgramKind::Function => "create_function",
                _ => "create_procedure",
            },
            Self::AlterRoutine(routine) => match routine.kind {
                ProgramKind::Function => "alter_function",
                _ => "alter_procedure",
            },
            Self::CreateTrigger(_) => "create_trigger",
            Self::CreateEvent(_) => "create_event",
            Self::AlterEvent(_) => "alter_event",
            Self::RunEvent(_) => "call_procedure",
            Self::DropProgram(drop) => match drop.kind {
                ProgramKind::Procedure => "drop_procedure",
                ProgramKind::Function => "drop_function",
                ProgramKind::Trigger => "drop_trigger",
                ProgramKind::Event => "drop_event",
            },
            Self::Signal(signal) if signal.resignal => "resignal",
            Self::Signal(_) => "signal",
            Self::GetDiagnostics(_) => "get_diagnostics",
            Self::Unsupported(u) => u.kind,
        }
    }
}

fn xa_kind(xa: &Xa) -> &'static str {
    match xa {
        Xa::Start { .. } => "xa_start",
        Xa::End { .. } => "xa_end",
        Xa::Prepare(_) => "xa_prepare",
        Xa::Commit { .. } => "xa_commit",
        Xa::Rollback(_) => "xa_rollback",
        Xa::Recover { .. } => "xa_recover",
    }
}

impl Show {
    /// The name behind `Com_`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Databases(_) => "show_databases",
            Self::Tables { .. } => "show_tables",
            Self::TableStatus { .. } => "show_table_status",
            Self::OpenTables { .. } => "show_open_tables",
            Self::Columns { .. } => "show_fields",
            Self::Index { .. } => "show_keys",
            Self::Triggers { .. } => "show_triggers",
            Self::Events { .. } => "show_events",
            Self::CreateTable(_) | Self::CreateView(_) => "show_create_table",
            Self::CreateDatabase { .. } => "show_create_db",
            Self::CreateUser(_) => "show_create_user",
            Self::CreateProcedure(_) => "show_create_proc",
            Self::CreateFunction(_) => "show_create_func",
            Self::CreateTrigger(_) => "show_create_trigger",
            Self::CreateEvent(_) => "show_create_event",
            Self::CreateSequence(_) => "show_create_sequence",
            Self::ProcedureStatus(_) => "show_procedure_status",
            Self::FunctionStatus(_) => "show_function_status",
            Self::ProcedureCode(_) => "show_procedure_code",
            Self::FunctionCode(_) => "show_function_code",
            Self::PackageStatus(_) => "show_package_status",
            Self::Variables { .. } => "show_variables",
            Self::Status { .. } => "show_status",
            Self::ProcessList { .. } => "show_processlist",
            Self::Engines => "show_storage_engines",
            Self::EngineStatus { .. } => "show_engine_status",
            Self::CharacterSet(_) => "show_charsets",
            Self::Collation(_) => "show_collations",
            Self::Warnings { .. } => "show_warnings",
            Self::Errors { .. } => "show_errors",
            Self::Privileges => "show_privileges",
            Self::Plugins | Self::PluginsSoname(_) => "show_plugins",
            Self::Grants { .. } => "show_grants",
            Self::BinaryLogs => "show_binlogs",
            Self::BinaryLogStatus => "show_binary_log_status",
            Self::BinlogEvents(_) => "show_binlog_events",
            Self::RelayLogEvents(_) => "show_relaylog_events",
            Self::ReplicaStatus { .. } => "show_replica_status",
            Self::Replicas { .. } => "show_replicas",
            Self::Profile => "show_profile",
            Self::Profiles => "show_profiles",
            Self::Authors => "show_authors",
            Self::Contributors => "show_contributors",
            Self::Explain { .. } => "show_explain",
            Self::Locales => "show_generic",
            Self::UserStatistics(_) => "show_generic",
        }
    }
}

fn reset_kind(list: &[Reset]) -> &'static str {
    match list.first() {
        Some(Reset::Replica { .. }) => "replica_reset",
        _ => "reset",
    }
}
