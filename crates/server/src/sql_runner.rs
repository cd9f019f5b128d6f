//! Sessions of the SQL layer behind the `Runner` trait. Adapts names and nothing more.

use crate::runner::{
    KillHook, LockedOut, Parsed, PreparedHandle, PreparedInfo, RunContext, Runner, RunnerFactory,
    RunnerIdentity, SnapshotPlace, TableLocked, TrxState, WaitProbe,
};
use bytes::Bytes;
use omnibus_locks::{LockTarget, TableLockInfo, WaitInfo, WaitOutcome};
use omnibus_log::FileNames;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_sql::catalog::Table;
use omnibus_sql::{
    Database, ExecResult, Floor, GivenGtid, Interrupt, Isolation, Outcome, Prepared, ProgramDef, RowSink,
    SessionState, SqlError, SqlResult, SqlSession, locked_table,
};
use omnibus_value::Value;
use std::sync::Arc;

/// Opens sessions on one database.
pub struct SqlRunners {
    /// The database.
    pub database: Arc<Database>,
    /// How log files are called.
    pub names: FileNames,
}

impl RunnerFactory for SqlRunners {
    fn open(&self, identity: RunnerIdentity) -> SqlResult<Box<dyn Runner>> {
        let mut session = SqlSession::new(self.database.clone(), identity.connection_id, identity.kill);
        let state = &mut session.state;
        state.settings = identity.settings;
        state.user = identity.user;
        state.host_name = identity.host_name;
        state.account = identity.account;
        state.host = identity.host;
        let mut seed = [0; 16];
        crate::random::random_bytes(&mut seed);
        let n = u128::from_le_bytes(seed);
        state.rand = ((n as u32).into(), ((n >> 64) as u32).into());
        Ok(Box::new(SqlRunner { session, names: self.names.clone() }))
    }

    fn database_exists(&self, name: &str) -> bool {
        self.database.catalog().schema(name).is_ok()
    }

    fn events(&self) -> Vec<Arc<ProgramDef>> {
        let catalog = self.database.catalog();
        catalog.programs().filter(|def| def.event.is_some()).cloned().collect()
    }

    fn lock_waits(&self) -> Vec<LockedOut> {
        let catalog = self.database.catalog();
        let of_space = |space: u32| {
            let found = |table: &Arc<Table>| {
                let index = table.indexes().iter().find(|index| index.space.0 == space)?;
                Some((table.clone(), Some(index.name.to_string())))
            };
            catalog.tables().find_map(found)
        };
        let named = |wait: WaitInfo| {
            let found = match wait.target {
                LockTarget::Record { space, .. } | LockTarget::Range { space } => of_space(space),
                LockTarget::Gate => None,
                LockTarget::Table { table } => {
                    let table = locked_table(table);
                    catalog.tables().find(|found| found.def.id == table).map(|table| (table.clone(), None))
                }
            };
            let (db, table, index) = match found {
                Some((table, index)) => (table.def.db.to_string(), table.def.name.to_string(), index),
                None => Default::default(),
            };
            let WaitInfo { waiter, blockers, mode, waited, .. } = wait;
            LockedOut { waiter, blockers, mode, db, table, index, waited }
        };
        self.database.locks().waits().into_iter().map(named).collect()
    }

    fn table_locks(&self) -> Vec<TableLocked> {
        let catalog = self.database.catalog();
        let name = |id: u64| {
            let table = catalog.tables().find(|table| table.def.id == locked_table(id));
            table.map(|table| (table.def.db.to_string(), table.def.name.to_string()))
        };
        let named = |lock: TableLockInfo| {
            let TableLockInfo { table, owner, mode, granted } = lock;
            // The lock that keeps other definitions away from a build, and that they wait for.
            let mode = if table.is_some_and(|id| id != locked_table(id)) { "SU" } else { mode };
            // What is no table is the order of definitions among themselves.
            let table = table.map(name).map_or(Some(None), |found| found.map(Some))?;
            Some(TableLocked { table, owner, mode, granted })
        };
        self.database.locks().table_locks().into_iter().filter_map(named).collect()
    }

    fn memory(&self) -> u64 {
        self.database.memory().used()
    }

    /// Row locks, by the names that monitoring knows.
    fn counters(&self) -> Vec<(String, String)> {
        let locks = self.database.locks().stats();
        let locks = [
            ("Innodb_row_lock_current_waits", locks.current_waits),
            ("Innodb_row_lock_waits", locks.waits),
            ("Innodb_row_lock_time", locks.wait_us_total / 1000),
            ("Innodb_row_lock_time_avg", locks.wait_us_total / 1000 / locks.waits.max(1)),
            ("Innodb_row_lock_time_max", locks.wait_us_max / 1000),
            ("Innodb_row_lock_timeouts", locks.timeouts),
            ("Innodb_deadlocks", locks.deadlocks),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_string()));
        [&locks[..], &self.database.memory().counters()].concat()
    }
}

struct SqlRunner {
    session: SqlSession,
    names: FileNames,
}

impl Runner for SqlRunner {
    fn state(&self) -> &SessionState {
        &self.session.state
    }

    fn sql_session(&mut self) -> Option<&mut SqlSession> {
        Some(&mut self.session)
    }

    fn floor(&self) -> Option<Arc<Floor>> {
        Some(self.session.floor().clone())
    }

    fn state_mut(&mut self) -> &mut SessionState {
        &mut self.session.state
    }

    fn parse(
        &mut self,
        text: &Bytes,
        to_prepare: bool,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        self.session.parse(text, to_prepare)
    }

    fn set_next_transaction(
        &mut self,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    ) -> SqlResult<()> {
        self.session.set_next_transaction(isolation, read_only)
    }

    fn trx(&self) -> TrxState {
        TrxState { open: self.session.in_transaction(), read_only: false }
    }

    fn others_back_up(&self) -> bool {
        self.session.others_back_up()
    }

    fn execute(
        &mut self,
        parsed: &Arc<Parsed>,
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        self.session.execute(&parsed.statement, &parsed.text, context.mode, context.access, sink)
    }

    fn prepare(&mut self, parsed: &Arc<Parsed>, context: &RunContext<'_>) -> SqlResult<PreparedInfo> {
        let prepared = self.session.prepare_alone(&parsed.text, context.mode, context.access)?;
        let columns = prepared.columns.to_vec();
        Ok(PreparedInfo { handle: Box::new(prepared), columns })
    }

    fn with_params(&self, text: &Bytes, params: &[Value]) -> Bytes {
        self.session.with_params(text, params).into_owned().into()
    }

    fn prepared_text(&self, name: &str) -> Option<Bytes> {
        self.session.prepared_text(name).cloned()
    }

    fn execute_prepared(
        &mut self,
        _: &Arc<Parsed>,
        handle: &mut PreparedHandle,
        params: &[Value],
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        let Some(prepared) = handle.downcast_mut::<Prepared>() else {
            return Err(Interrupt::Error(SqlError::internal("a prepared statement of another kind")));
        };
        self.session.execute_prepared(prepared, params, context.mode, context.access, sink)
    }

    fn write_stall(&self) -> std::time::Duration {
        self.session.database().port().engine().write_stall()
    }

    fn wait_failed(&mut self, outcome: WaitOutcome) -> SqlError {
        self.session.wait_failed(outcome)
    }

    fn supply_file(&mut self, file: omnibus_sql::load::LoadInput) {
        self.session.supply_file(file);
    }

    fn answer(&mut self, answer: SqlResult<()>) {
        self.session.answer(answer);
    }

    fn give_up(&mut self, error: &SqlError) {
        self.session.give_up(error);
    }

    fn kill_hook(&self) -> Option<KillHook> {
        let waiter = self.session.lock_waiter();
        Some(Box::new(move || waiter.kill()))
    }

    fn wait_probe(&self) -> Option<WaitProbe> {
        let waiter = self.session.lock_waiter();
        Some(Box::new(move || waiter.waits_for()))
    }

    fn give_gtid(&mut self, given: GivenGtid) -> SqlResult<()> {
        self.session.give_gtid(given)
    }

    fn gtid_waits(&self) -> bool {
        self.session.gtid_waits()
    }

    fn commit_failed(&mut self) {
        self.session.commit_failed();
    }

    fn has_committed(&mut self) -> bool {
        self.session.trx().has_committed()
    }

    fn clear_kill(&mut self) {
        self.session.lock_waiter().clear_kill();
    }

    fn snapshot_place(&mut self) -> Option<SnapshotPlace> {
        let (number, position) = self.session.trx().snapshot_place()?;
        Some(SnapshotPlace {
            file: self.names.log(position.file),
            position: position.offset.0,
            number: number.0,
        })
    }

    fn reset(&mut self) {
        self.session.reset();
    }
}
