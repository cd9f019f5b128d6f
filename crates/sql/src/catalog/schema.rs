//! Schemas and the catalog as a whole.

use super::memory;
use super::sys_routines;
use super::{Child, ProgramDef, ProgramKey, Table, View, program_key};
use crate::error::{SqlError, SqlResult};
use omnibus_engine::CommitNo;
use omnibus_parser::ast::ProgramKind;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Database and name of a table.
type TableName = (Arc<str>, Arc<str>);

/// A database: a name, a default collation, its tables by name.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Its name.
    pub name: Arc<str>,
    /// Default collation id of new tables.
    pub collation: u16,
    /// Tables by name; names are case-sensitive.
    pub tables: BTreeMap<Arc<str>, Arc<Table>>,
    /// Views by name, which no table has.
    pub views: BTreeMap<Arc<str>, Arc<View>>,
    /// Stored programs by kind and name.
    pub programs: BTreeMap<ProgramKey, Arc<ProgramDef>>,
}

impl Schema {
    /// Without tables.
    #[must_use]
    pub fn new(name: Arc<str>, collation: u16) -> Schema {
        Schema { name, collation, tables: BTreeMap::new(), views: BTreeMap::new(), programs: BTreeMap::new() }
    }

    /// Bytes of its definitions.
    fn memory(&self) -> u64 {
        let tables = self.tables.values().map(|table| memory::of_table(&table.def)).sum::<u64>();
        let views = self.views.values().map(|view| view.memory).sum::<u64>();
        tables + views + self.programs.values().map(|program| memory::of_program(program)).sum::<u64>()
    }

    /// Whether a table or a view has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.tables.contains_key(name) || self.views.contains_key(name)
    }
}

/// Everything that exists, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Grows with every change; plans are keyed by it.
    pub version: u64,
    /// Schemas by name.
    pub schemas: BTreeMap<Arc<str>, Arc<Schema>>,
    /// Tables with a foreign key to a table, by that one's database and name.
    pub(crate) references: BTreeMap<TableName, Vec<TableName>>,
    /// Bytes of all definitions.
    pub memory: u64,
    /// The next table id.
    pub next_table_id: u64,
    /// The next space id.
    pub next_space_id: u32,
    /// The server's catalog, where a session's temporary tables are laid over it: they hide nothing from views.
    pub(crate) under: Option<Arc<Catalog>>,
}

impl Catalog {
    /// A schema.
    ///
    /// # Errors
    /// 1049.
    pub fn schema(&self, db: &str) -> SqlResult<&Arc<Schema>> {
        self.schemas.get(db).ok_or_else(|| SqlError::bad_db(db))
    }

    /// A table, if there is one.
    #[must_use]
    pub fn find_table(&self, db: &str, name: &str) -> Option<&Arc<Table>> {
        self.schemas.get(db)?.tables.get(name)
    }

    /// A table.
    ///
    /// # Errors
    /// 1049 or 1146; 1347 for a view.
    pub fn table(&self, db: &str, name: &str) -> SqlResult<&Arc<Table>> {
        let schema = self.schema(db)?;
        schema.tables.get(name).ok_or_else(|| match schema.views.get(name) {
            Some(view) => SqlError::wrong_object(&view.def.db, &view.def.name, "BASE TABLE"),
            None => SqlError::no_such_table(db, name),
        })
    }

    /// A view, if there is one that no table of the session hides.
    #[must_use]
    pub fn find_view(&self, db: &str, name: &str) -> Option<&Arc<View>> {
        let schema = self.schemas.get(db)?;
        schema.views.get(name).filter(|_| !schema.tables.contains_key(name))
    }

    /// A view.
    ///
    /// # Errors
    /// 1049 or 1146; 1347 for a table.
    pub fn view(&self, db: &str, name: &str) -> SqlResult<&Arc<View>> {
        let schema = self.schema(db)?;
        schema.views.get(name).ok_or_else(|| match schema.tables.get(name) {
            Some(_) => SqlError::wrong_object(db, name, "VIEW"),
            None => SqlError::no_such_table(db, name),
        })
    }

    /// Adds or replaces a view. The schema must exist.
    pub fn put_view(&mut self, view: Arc<View>) {
        if let Some(schema) = self.schemas.get_mut(&view.def.db) {
            self.memory += view.memory;
            let old = Arc::make_mut(schema).views.insert(view.def.name.clone(), view);
            self.memory -= old.map_or(0, |old| old.memory);
        }
    }

    /// Removes a view.
    pub fn remove_view(&mut self, db: &str, name: &str) -> Option<Arc<View>> {
        let view = Arc::make_mut(self.schemas.get_mut(db)?).views.remove(name)?;
        self.memory -= view.memory;
        Some(view)
    }

    /// All views of all schemas.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.schemas.values().flat_map(|schema| schema.views.values())
    }

    /// A stored program, or one of the server's own, if there is one.
    #[must_use]
    pub fn program(&self, kind: ProgramKind, db: &str, name: &str) -> Option<&Arc<ProgramDef>> {
        match self.schemas.get(db) {
            Some(schema) => schema.programs.get(&program_key(kind, name)),
            None => sys_routines::find(kind, db, name),
        }
    }

    /// All stored programs.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<ProgramDef>> {
        self.schemas.values().flat_map(|schema| schema.programs.values())
    }

    /// The stored programs of a kind in a schema.
    pub fn programs_of(&self, db: &str, kind: ProgramKind) -> impl Iterator<Item = &Arc<ProgramDef>> {
        let schema = self.schemas.get(db);
        let all = schema.into_iter().flat_map(|schema| schema.programs.iter());
        all.filter(move |((of, _), _)| *of == kind).map(|(_, def)| def)
    }

    /// Adds or replaces a stored program. The schema must exist.
    pub fn put_program(&mut self, program: Arc<ProgramDef>) {
        if let Some(schema) = self.schemas.get_mut(&program.db) {
            self.memory += memory::of_program(&program);
            let old = Arc::make_mut(schema).programs.insert(program.key(), program);
            self.memory -= old.map_or(0, |old| memory::of_program(&old));
        }
    }

    /// Removes a stored program.
    pub fn remove_program(&mut self, db: &str, key: &ProgramKey) -> Option<Arc<ProgramDef>> {
        let program = Arc::make_mut(self.schemas.get_mut(db)?).programs.remove(key)?;
        self.memory -= memory::of_program(&program);
        Some(program)
    }

    /// Adds or replaces a table. The schema must exist.
    pub fn put_table(&mut self, table: Arc<Table>) {
        self.remove_table(&table.def.db, &table.def.name);
        if let Some(schema) = self.schemas.get_mut(&table.def.db) {
            Arc::make_mut(schema).tables.insert(table.def.name.clone(), table.clone());
            self.memory += memory::of_table(&table.def);
            self.link(&table);
        }
    }

    /// Removes a table.
    pub fn remove_table(&mut self, db: &str, name: &str) -> Option<Arc<Table>> {
        let table = Arc::make_mut(self.schemas.get_mut(db)?).tables.remove(name)?;
        self.memory -= memory::of_table(&table.def);
        self.unlink(&table);
        Some(table)
    }

    /// Removes a schema with its tables.
    pub fn remove_schema(&mut self, name: &str) -> Option<Arc<Schema>> {
        let schema = self.schemas.remove(name)?;
        self.memory -= schema.memory();
        for table in schema.tables.values() {
            self.unlink(table);
        }
        Some(schema)
    }

    /// Notes what a new table refers to, and tells the tables that they are referred to.
    fn link(&mut self, table: &Table) {
        for key in &table.def.foreign_keys {
            let child = (table.def.db.clone(), table.def.name.clone());
            let children = self.references.entry((key.parent_db.clone(), key.parent.clone())).or_default();
            if !children.contains(&child) {
                children.push(child);
            }
            if let Some(parent) = self.find_table(&key.parent_db, &key.parent) {
                parent.state.referenced.store(true, Ordering::Release);
            }
        }
        if self.references.contains_key(&(table.def.db.clone(), table.def.name.clone())) {
            table.state.referenced.store(true, Ordering::Release);
        }
    }

    fn unlink(&mut self, table: &Table) {
        for key in &table.def.foreign_keys {
            let parent = (key.parent_db.clone(), key.parent.clone());
            if let Some(children) = self.references.get_mut(&parent) {
                children.retain(|(db, name)| *db != table.def.db || *name != table.def.name);
                if children.is_empty() {
                    self.references.remove(&parent);
                }
            }
        }
    }

    /// The foreign keys that refer to a name, whether or not there is such a table.
    #[must_use]
    pub fn children(&self, db: &str, name: &str) -> Vec<Child> {
        let Some(children) = self.references.get(&(Arc::from(db), Arc::from(name))) else {
            return Vec::new();
        };
        let tables = children.iter().filter_map(|(db, name)| self.find_table(db, name));
        tables
            .flat_map(|table| {
                (0..table.def.foreign_keys.len()).map(|key| Child { table: table.clone(), key })
            })
            .filter(|child| child.foreign_key().refers_to(db, name))
            .collect()
    }

    /// All tables of all schemas.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.schemas.values().flat_map(|schema| schema.tables.values())
    }
}

/// The current catalog. Readers clone an `Arc`; DDL, one at a time, stores a new one.
#[derive(Debug, Default)]
pub struct CatalogCell {
    current: RwLock<Arc<Catalog>>,
    version: AtomicU64,
    /// The commit that made it.
    changed: AtomicU64,
}

impl CatalogCell {
    /// Starts with `catalog`.
    #[must_use]
    pub fn new(catalog: Catalog) -> CatalogCell {
        CatalogCell {
            version: AtomicU64::new(catalog.version),
            changed: AtomicU64::default(),
            current: RwLock::new(Arc::new(catalog)),
        }
    }

    /// The catalog now.
    #[must_use]
    pub fn load(&self) -> Arc<Catalog> {
        self.current.read().clone()
    }

    /// The version of the catalog now; cheaper than `load`.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The commit that made what `load` gave before, or a later one.
    #[must_use]
    pub fn changed(&self) -> CommitNo {
        CommitNo(self.changed.load(Ordering::Acquire))
    }

    /// Makes `catalog` the current one, as commit `no` has it.
    pub fn store(&self, catalog: Arc<Catalog>, no: CommitNo) {
        let mut current = self.current.write();
        self.changed.store(no.0, Ordering::Release);
        self.version.store(catalog.version, Ordering::Release);
        *current = catalog;
    }
}
