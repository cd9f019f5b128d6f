//! The statement enum: one variant per statement kind.

use bytes::Bytes;

use super::*;

/// A statement. Big ones are boxed, so that the enum stays small.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Select(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    LoadData(Box<LoadData>),
    /// CALL name(args).
    Call {
        name: ObjectName,
        args: Vec<Expr>,
    },
    Do(Vec<Expr>),

    CreateDatabase(Box<CreateDatabase>),
    AlterDatabase(Box<AlterDatabase>),
    DropDatabase {
        if_exists: bool,
        name: Ident,
    },
    CreateTable(Box<CreateTable>),
    AlterTable(Box<AlterTable>),
    DropTable(DropTable),
    /// CREATE VIEW and ALTER VIEW.
    CreateView(Box<CreateView>),
    DropView(DropTable),
    CreateIndex(Box<CreateIndex>),
    DropIndex(Box<DropIndex>),
    Truncate(ObjectName),
    /// (from, to) pairs.
    RenameTable(Vec<(ObjectName, ObjectName)>),
    /// MariaDB's.
    CreateSequence(Box<CreateSequence>),
    AlterSequence(Box<AlterSequence>),
    DropSequence(DropTable),

    Begin(StartTransaction),
    Commit(Completion),
    Rollback(Completion),
    Savepoint(Ident),
    RollbackTo(Ident),
    ReleaseSavepoint(Ident),
    Xa(Box<Xa>),
    LockTables(Vec<TableLock>),
    UnlockTables,
    /// LOCK INSTANCE FOR BACKUP (MariaDB: BACKUP LOCK and BACKUP STAGE are `Backup`).
    LockInstance,
    UnlockInstance,
    /// FLUSH TABLES .. is `Flush`.
    Set(Vec<SetItem>),
    /// MariaDB's SET STATEMENT .. FOR.
    SetStatement(Box<SetStatement>),

    Prepare {
        name: Ident,
        source: PrepareSource,
    },
    Execute {
        name: Ident,
        using: Vec<Expr>,
    },
    Deallocate(Ident),
    /// MariaDB EXECUTE IMMEDIATE.
    ExecuteImmediate {
        source: Expr,
        using: Vec<Expr>,
    },

    Use(Ident),
    Show(Box<Show>),
    /// DESCRIBE t [column or 'pattern'].
    Describe {
        table: ObjectName,
        column: Option<Bytes>,
    },
    Explain(Box<Explain>),
    Help(Bytes),

    Kill(Kill),
    Flush(Box<Flush>),
    Reset(Vec<Reset>),
    Purge(Purge),
    ChangeSource(Box<ChangeSource>),
    ChangeReplicationFilter(Bytes),
    StartReplica(Box<StartReplica>),
    StopReplica(StopReplica),
    Binlog(Bytes),
    Shutdown,
    Restart,
    /// BACKUP TO 'path' and MariaDB's BACKUP STAGE / LOCK / UNLOCK.
    Backup(Backup),
    /// ALTER INSTANCE ROTATE BINLOG MASTER KEY.
    RotateBinlogMasterKey,
    /// ALTER INSTANCE ROTATE INNODB MASTER KEY.
    RotateTableMasterKey,
    Maintenance(Maintenance),

    CreateUser(Box<CreateUser>),
    AlterUser(Box<CreateUser>),
    DropUser {
        if_exists: bool,
        users: Vec<UserName>,
    },
    RenameUser(Vec<(UserName, UserName)>),
    Grant(Box<Grant>),
    Revoke(Box<Revoke>),
    CreateRole(Box<CreateRole>),
    DropRole {
        if_exists: bool,
        roles: Vec<UserName>,
    },
    SetRole(RoleSet),
    SetDefaultRole(Box<SetDefaultRole>),

    CreateRoutine(Box<CreateRoutine>),
    AlterRoutine(Box<AlterRoutine>),
    CreateTrigger(Box<CreateTrigger>),
    CreateEvent(Box<CreateEvent>),
    AlterEvent(Box<AlterEvent>),
    /// An event's body: the scheduler's, no text says it.
    RunEvent(ObjectName),
    DropProgram(DropProgram),
    Handler(Box<HandlerStatement>),
    /// SIGNAL and RESIGNAL.
    Signal(Box<Signal>),
    GetDiagnostics(Box<GetDiagnostics>),

    /// Recognised by its leading words and nothing more; the server answers 1235 naming it.
    Unsupported(Unsupported),
}

/// A statement we know of and do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The statement's name in the error: `CREATE TRIGGER`.
    pub what: &'static str,
    /// Name as in Com_ status variables: `create_trigger`.
    pub kind: &'static str,
}

/// Where PREPARE takes its text from.
#[derive(Clone, Debug, PartialEq)]
pub enum PrepareSource {
    Text(Bytes),
    Variable(Ident),
}

/// EXPLAIN of a statement, or of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// EXPLAIN ANALYZE (MariaDB: ANALYZE).
    pub analyze: bool,
    /// FORMAT = x.
    pub format: Option<Ident>,
    /// INTO @x.
    pub into: Option<Ident>,
    /// FOR SCHEMA x.
    pub schema: Option<Ident>,
    pub target: ExplainTarget,
}

/// The target of EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub enum ExplainTarget {
    Statement(Box<Statement>),
    Connection(u64),
}
