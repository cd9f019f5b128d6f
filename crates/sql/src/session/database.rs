//! The database behind all sessions: catalog, locks, commits.

use crate::catalog::{Catalog, CatalogCell, Table, charset, persist};
use crate::ddl::load_catalog;
use crate::error::SqlResult;
use crate::information_schema::InformationSchema;
use crate::logical::{NoVirtualTables, VirtualTables};
use crate::memory::ServerMemory;
use crate::store::{CommitPort, TrxContext};
use omnibus_engine::{CommitNo, SpaceId};
use omnibus_locks::LockManager;
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Shared by all sessions.
pub struct Database {
    pub(crate) shared: Arc<TrxContext>,
    virtuals: OnceLock<Arc<dyn VirtualTables>>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("catalog_version", &self.catalog().version).finish_non_exhaustive()
    }
}

/// Damage in an engine is told with the table that it is in.
fn name_spaces(shared: &Arc<TrxContext>) {
    let whom = Arc::downgrade(shared);
    shared.port.engine().name_spaces(Box::new(move |space| {
        let catalog = whom.upgrade()?.catalog.load();
        let of = |table: &&Arc<Table>| table.def.indexes.iter().any(|index| index.space == space);
        catalog.tables().find(of).map(|table| table.qualified())
    }));
}

impl Database {
    /// Opens what the recovered engine holds, and creates the system schema if there is none.
    /// Called once, before the server listens; blocks.
    ///
    /// # Errors
    /// The engine failed, or the stored catalog is damaged.
    pub fn open(port: Arc<dyn CommitPort>) -> SqlResult<Arc<Database>> {
        let catalog = load_catalog(&*port.latest())?;
        drop_dead_spaces(&*port, &catalog);
        crate::store::kept_statistics::load(&*port, &catalog)?;
        let memory = Arc::<ServerMemory>::default();
        memory.definitions_hold(catalog.memory);
        let shared = TrxContext {
            locks: LockManager::new(),
            catalog: CatalogCell::new(catalog),
            statistics: AtomicU64::new(0),
            xid: AtomicU64::new(port.first_xid()),
            branches: crate::xa::Registry::new(&memory),
            backups: AtomicU32::new(0),
            builds: Default::default(),
            turns: Arc::default(),
            memory,
            port,
        };
        let shared = Arc::new(shared);
        name_spaces(&shared);
        // Before anybody can take a lock that a prepared branch had.
        crate::store::restore(&shared)?;
        let database = Arc::new(Database { shared, virtuals: OnceLock::new() });
        database.set_virtual_tables(Arc::new(InformationSchema::new(&database.shared)));
        super::bootstrap::run(&database)?;
        Ok(database)
    }

    /// The catalog now.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.catalog.load()
    }

    /// Gives information_schema and its kind to all sessions; once, at start.
    pub fn set_virtual_tables(&self, tables: Arc<dyn VirtualTables>) {
        let _ = self.virtuals.set(tables);
    }

    pub(crate) fn virtual_tables(&self) -> &dyn VirtualTables {
        match self.virtuals.get() {
            Some(tables) => &**tables,
            None => &NoVirtualTables,
        }
    }

    /// The lock manager, for introspection.
    #[must_use]
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.shared.locks
    }

    /// Prepared XA branches that nobody is at, each with so many of its locks.
    #[must_use]
    pub fn prepared(&self, most: usize) -> Vec<crate::xa::PreparedSeen> {
        self.shared.branches.seen(most)
    }

    /// The memory of the statements of all sessions.
    #[must_use]
    pub fn memory(&self) -> &ServerMemory {
        &self.shared.memory
    }

    /// Commits and snapshots.
    #[must_use]
    pub fn port(&self) -> &Arc<dyn CommitPort> {
        &self.shared.port
    }

    /// `collation_server` as compiled in.
    #[must_use]
    pub fn default_collation() -> u16 {
        charset::server_default()
    }
}

/// Engines forget dropped spaces at restart; a crash may also leave half-built indexes. Looks which spaces there are, one
/// search for each, so the work is bounded by what an engine holds and not by how many tables there ever were.
fn drop_dead_spaces(port: &dyn CommitPort, catalog: &Catalog) {
    let alive: HashSet<u32> =
        catalog.tables().flat_map(|table| table.def.indexes.iter().map(|index| index.space.0)).collect();
    let at = CommitNo(port.numbered().0);
    let latest = port.latest();
    for engine in port.engine().members() {
        let (mut from, end) = (persist::FIRST_SPACE, catalog.next_space_id);
        while from < end {
            let bounds = [from, end].map(|number| SpaceId::in_slot(engine.slot, number).prefix());
            let (first, last) = (Bound::Included(&bounds[0][..]), Bound::Excluded(&bounds[1][..]));
            let found = match latest.scan(first, last, false).next() {
                None => break,
                Some(Ok((key, _))) => key.first_chunk().map(|prefix| SpaceId(u32::from_be_bytes(*prefix))),
                Some(Err(error)) => {
                    tracing::warn!(%error, engine = engine.name, "what dropped tables left can not be looked for");
                    break;
                }
            };
            let Some(space) = found else { break };
            if !alive.contains(&space.0) {
                port.engine().drop_space(space, at);
            }
            from = space.number() + 1;
        }
    }
}
