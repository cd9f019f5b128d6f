//! Running a definition statement: one transaction of its own, one at a time in the whole server.
//!
//! Order: exclusive table locks, the global DDL lock, the new catalog built beside the current one,
//! private events (what recovery needs) and the QUERY event in the trx cache, commit. The new
//! catalog is published when the commit has its place in the order, before the locks go, so nobody
//! can use a table by a definition that is not current. Runs in blocking mode only.

use super::build::{BuildContext, Ids};
use super::expressions::Writer;
use super::loaded::Loaded;
use crate::api::{AccessCheck, Outcome, Priv, SessionSettings};
use crate::catalog::{Catalog, Schema, Table, View, charset, persist};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::memory::{self, MemoryLimits};
use crate::state::SessionState;
use crate::store::{
    Names, OpenDefinition, StatementInfo, Trx, private_event, set_cache_context, write_set_event,
};
use omnibus_commit::CommitRequest;
use omnibus_engine::{CommitNo, SpaceId};
use omnibus_format::private;
use omnibus_parser::ast::ObjectName;
use omnibus_value::temporal::DateMode;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of pairs that one private write-set event may hold.
const WRITE_SET_EVENT: usize = 1 << 20;

/// Something to run when the commit has its place.
pub(crate) type Hook = Box<dyn FnOnce(CommitNo) + Send>;

/// A running definition statement.
pub(crate) struct Ddl<'a> {
    pub trx: &'a mut Trx,
    pub state: &'a mut SessionState,
    pub access: &'a dyn AccessCheck,
    pub sql: &'a [u8],
}

/// The change that a statement makes of the catalog.
#[derive(Default)]
pub(crate) struct Change {
    /// The catalog to be.
    pub next: Catalog,
    /// Definitions that end.
    pub stale: Vec<Arc<Table>>,
    /// Definitions whose contents no older snapshot can read.
    pub fresh: Vec<Arc<Table>>,
    /// Views that end.
    pub stale_views: Vec<Arc<View>>,
    /// Spaces that end.
    pub dropped: Vec<SpaceId>,
    /// Indexes that recovery builds from the table: table id, space.
    pub built: Vec<(u64, SpaceId)>,
    /// The files that were filled for it already.
    pub loaded: Vec<Loaded>,
    /// Anything else.
    pub hooks: Vec<Hook>,
    /// Rows affected, for the reply.
    pub affected: u64,
}

/// The dates that DEFAULT may give.
fn default_dates(settings: &SessionSettings) -> DateMode {
    let mode = DateMode { truncate: false, ..settings.date_mode() };
    match settings.strict() {
        true => mode,
        false => DateMode { no_zero_date: false, no_zero_in_date: false, ..mode },
    }
}

impl Ddl<'_> {
    /// Locks what the statement names, waits for other definition statements, and gives the catalog to change.
    pub(crate) fn begin(&mut self, names: Names<'_>) -> ExecResult<Change> {
        self.trx.locks.lock_for_definition(self.trx.statement.waits(), names)?;
        let mut next = Catalog::clone(&self.trx.catalog());
        next.version += 1;
        Ok(Change { next, ..Change::default() })
    }

    /// The same statement, which the log has in other words.
    pub(super) fn told_as<'b>(&'b mut self, sql: &'b [u8]) -> Ddl<'b> {
        Ddl { trx: &mut *self.trx, state: &mut *self.state, access: self.access, sql }
    }

    /// The schema that a name means.
    pub(crate) fn schema_of(&self, name: &ObjectName) -> SqlResult<String> {
        crate::state::schema_of(self.state, name)
    }

    pub(super) fn check(&self, db: &str, table: Option<&str>, privilege: Priv) -> SqlResult<()> {
        self.access.check(db, table, privilege)
    }

    /// The context in which table definitions are built.
    pub(super) fn build_context<'c>(&'c mut self, db: &'c str, schema: &Schema) -> BuildContext<'c> {
        BuildContext {
            db,
            default_collation: schema.collation,
            utf8mb4: self.state.settings.default_collation_for_utf8mb4,
            dates: default_dates(&self.state.settings),
            zone: self.state.zone(),
            explicit_timestamps: self.state.settings.definitions.explicit_defaults_for_timestamp,
            sql_mode: self.state.settings.sql_mode,
            mariadb: self.state.settings.mariadb,
            uuids: self.state.settings.mariadb,
            engines: self.trx.shared.port.engine().members(),
            ignore_unsupported_constraints: self.state.settings.ignore_unsupported_constraints,
            writer: Writer {
                client: self.state.settings.collation_client,
                told: !self.state.settings.mariadb,
            },
            default_engine: self.state.settings.default_storage_engine,
            created: (self.state.statement.now_us / 1_000_000) as u64,
            diagnostics: &mut self.state.diagnostics,
        }
    }

    /// The default collation where nothing else says.
    pub(super) fn server_collation(&self) -> u16 {
        match self.state.settings.collation_server {
            id if charset::collation_name(id) != "binary" || id == 63 => id,
            _ => charset::server_default(),
        }
    }

    /// Makes the ids handed out so far durable, so that a crash while an index is being loaded into a space cannot lead to the space
    /// being used again. `spaces` may be filled then, and belong into `Change::loaded` when they are.
    pub(super) fn reserve_ids(
        &mut self,
        change: &mut Change,
        spaces: impl Iterator<Item = SpaceId>,
    ) -> ExecResult<Loaded> {
        let mut current = Catalog::clone(&self.trx.catalog());
        current.next_table_id = change.next.next_table_id;
        current.next_space_id = change.next.next_space_id;
        let current = Arc::new(current);
        reserve_ids(self.trx, &current)?;
        Ok(Loaded::new(&self.trx.shared, spaces))
    }

    /// Fails if all definitions would take more of the memory than statements leave them.
    fn refuse_to_outgrow(&self, next: &Catalog) -> SqlResult<()> {
        let limit = MemoryLimits::of(&self.state.settings).server;
        let now = self.trx.shared.memory.definitions();
        if next.memory > now && next.memory > memory::most_of_definitions(limit) {
            return Err(SqlError::memory_exceeded(limit, "global_connection_memory_limit"));
        }
        Ok(())
    }

    /// Commits. The reply must wait for the ticket in the outcome.
    pub(crate) fn commit(&mut self, mut change: Change) -> ExecResult<Outcome> {
        self.refuse_to_outgrow(&change.next)?;
        persist::put_ids(&mut self.trx.transaction.writes, &change.next);
        self.trx.log.take_along_applied(&self.trx.statement, &mut self.trx.transaction)?;
        self.log(&change)?;
        let logged = self.state.settings.sql_log_bin;
        let next = Arc::new(std::mem::take(&mut change.next));
        let affected = change.affected;
        let now_us = omnibus_commit::now_us();
        let mut gone: HashSet<u64> = change.stale.iter().map(|stale| stale.def.id).collect();
        if !gone.is_empty() {
            next.tables().for_each(|table| _ = gone.remove(&table.def.id));
        }
        let gone = gone.into_iter().collect();
        let effect = effect(self.trx, change, next);
        let ticket = self.trx.commit_ddl(logged, now_us, gone, effect);
        Ok(Outcome { affected, wait: Some(ticket), ..Outcome::ok() })
    }

    /// Leaves the definition in the transaction, for rows that belong to it. `self.sql` is logged with it.
    pub(super) fn leave_open(&mut self, mut change: Change) -> ExecResult<()> {
        self.refuse_to_outgrow(&change.next)?;
        persist::put_ids(&mut self.trx.transaction.writes, &change.next);
        if self.state.settings.sql_log_bin {
            self.log_with(&change, |trx, info, bodies| {
                let xid = trx.shared.xid.fetch_add(1, Ordering::Relaxed);
                trx.log.open_definition(info, &trx.transaction.writes, bodies, xid)
            })?;
        }
        let next = Arc::new(std::mem::take(&mut change.next));
        let tables = change.fresh.clone();
        let effect = Box::new(effect(self.trx, change, next.clone()));
        self.trx.transaction.open_definition(OpenDefinition::new(next, tables, effect));
        Ok(())
    }

    /// Private events first: a DDL's QUERY event is the end of its transaction.
    fn log(&mut self, change: &Change) -> SqlResult<()> {
        self.log_with(change, log_ddl)
    }

    fn log_with(
        &mut self,
        change: &Change,
        log: fn(&mut Trx, &StatementInfo<'_>, &[Vec<u8>]) -> SqlResult<()>,
    ) -> SqlResult<()> {
        let mut bodies = Vec::new();
        for (table, space) in &change.built {
            let mut body = Vec::new();
            private::encode_build_index(&mut body, *table, u64::from(space.0));
            bodies.push(body);
        }
        if !change.dropped.is_empty() {
            let mut body = Vec::new();
            let spaces: Vec<u32> = change.dropped.iter().map(|space| space.0).collect();
            private::encode_drop_spaces(&mut body, &spaces);
            bodies.push(body);
        }
        log(self.trx, &self.state.info(self.sql), &bodies)
    }
}

/// The effect of a change, from when its commit has its place.
fn effect(trx: &Trx, change: Change, next: Arc<Catalog>) -> impl FnOnce(CommitNo) + Send + 'static + use<> {
    let shared = trx.shared.clone();
    move |no| {
        for table in &change.fresh {
            table.valid_from.store(no.0, Ordering::Release);
        }
        change.loaded.into_iter().for_each(Loaded::keep);
        for hook in change.hooks {
            hook(no);
        }
        shared.store_catalog(next, no);
        for table in &change.stale {
            table.stale.store(true, Ordering::Release);
        }
        change.stale_views.iter().for_each(|view| view.set_stale());
        for space in change.dropped {
            shared.port.engine().drop_space(space, no);
        }
    }
}

/// Writes the events of a definition statement.
pub(crate) fn log_ddl(trx: &mut Trx, info: &StatementInfo<'_>, bodies: &[Vec<u8>]) -> SqlResult<()> {
    let xid = trx.shared.xid.fetch_add(1, Ordering::Relaxed);
    let (writes, (cache, events)) = (&trx.transaction.writes, trx.log.parts());
    // Another cache than the statement began with, if something was open.
    set_cache_context(cache, info);
    if writes.memory() < WRITE_SET_EVENT {
        write_set_event(cache, writes)?;
    } else {
        write_sets_in_pieces(cache, writes)?;
    }
    for body in bodies {
        private_event(cache, body)?;
    }
    if info.settings.sql_log_bin {
        events.ddl(cache, info, xid)?;
    }
    Ok(())
}

/// Commits the id counters by themselves and waits until that is durable.
fn reserve_ids(trx: &mut Trx, current: &Arc<Catalog>) -> SqlResult<()> {
    let mut writes = omnibus_engine::WriteSet::default();
    persist::put_ids(&mut writes, current);
    let mut cache = trx.shared.port.new_cache();
    write_set_event(&mut cache, &writes)?;
    let shared = trx.shared.clone();
    let current = current.clone();
    let kill = trx.budget.kill().clone();
    let request = CommitRequest {
        on_ordered: Some(Box::new(move |no| shared.store_catalog(current, no))),
        ..CommitRequest::new(cache, writes, false, omnibus_commit::now_us())
    };
    let ticket = trx.shared.port.commit_seen(&kill, request);
    kill.settle(ticket).map(|_| ())
}

/// A big write set as several events.
fn write_sets_in_pieces(
    cache: &mut omnibus_commit::TrxCache,
    writes: &omnibus_engine::WriteSet,
) -> SqlResult<()> {
    let mut body = Vec::new();
    private::begin_write_set(&mut body);
    for pending in writes.iter() {
        let pending = pending?;
        private::put_write(&mut body, pending.key(), pending.write().as_deref());
        if body.len() >= WRITE_SET_EVENT {
            private_event(cache, &body)?;
            body.clear();
            private::begin_write_set(&mut body);
        }
    }
    private_event(cache, &body)
}

/// The ids of a catalog being built.
pub(super) fn ids(catalog: &mut Catalog) -> Ids<'_> {
    Ids { table: &mut catalog.next_table_id, space: &mut catalog.next_space_id }
}

/// All spaces of a table.
pub(super) fn spaces(table: &Table) -> impl Iterator<Item = SpaceId> + '_ {
    table.def.indexes.iter().map(|index| index.space)
}
