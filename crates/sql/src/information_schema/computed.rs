//! Computed tables: their definitions, and how a query finds them.

use super::dialects;
use super::names::Names;
use crate::api::{AccessCheck, AllowAll, Priv, ResultColumn, Routine, flag};
use crate::bind::{Outline, outline};
use crate::catalog::{Catalog, ForeignKey, ProgramDef, Schema, StoredExpr, Table, View};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Context;
use crate::logical::{Asked, VirtualTable, VirtualTables};
use crate::memory::{Account, MemoryLimits, memory_of};
use crate::rows::collected::Rows;
use crate::store::TrxContext;
use bytes::Bytes;
use omnibus_engine::EngineInfo;
use omnibus_format::Dialect;
use omnibus_parser::ast::ProgramKind;
use omnibus_value::temporal::DateTime;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Collation of schema and table names: they are case-sensitive.
const NAME_COLLATION: u16 = 83;
/// Collation of every other text.
pub(super) const TEXT_COLLATION: u16 = 33;

/// The type of a computed column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ty {
    /// A schema's or table's name: VARCHAR(64), case-sensitive.
    Name,
    /// VARCHAR(n).
    Text(u32),
    /// LONGTEXT.
    Long,
    /// BIGINT UNSIGNED.
    UInt,
    /// BIGINT.
    Int,
    /// DATETIME.
    Time,
    /// TIMESTAMP(2); rows have the session's time.
    Hundredths,
    /// CHAR(n).
    Char(u32),
    /// INT.
    Int4,
    /// INT UNSIGNED.
    UInt4,
    /// TIMESTAMP(6); rows have UTC.
    Stamp,
    /// DOUBLE(10,3) UNSIGNED.
    Seconds,
    /// ENUM; rows may have a member's text.
    Enum(&'static [&'static str]),
    /// JSON.
    Json,
}

/// A computed table.
#[derive(Debug)]
pub(super) struct Def {
    /// Lower case.
    pub schema: &'static str,
    /// Upper case in information_schema, lower case in performance_schema.
    pub name: &'static str,
    pub columns: &'static [(&'static str, Ty)],
    pub rows: fn(&mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>>,
}

/// The sources that a table's rows are computed from.
pub(super) struct Reader<'a, 'b> {
    /// Of the table that is read.
    pub name: &'static str,
    catalog: &'a Catalog,
    shared: &'a Arc<TrxContext>,
    pub engines: Vec<EngineInfo>,
    names: Names<'a>,
    /// The memory of the rows that were made.
    account: Account,
    pub cx: &'a mut Context<'b>,
}

/// About how many bytes a column of a view takes that is looked at.
const OUTLINED: usize = 192;

impl Reader<'_, '_> {
    /// Counts rows that were made of a table that grows with what accounts define, and looks whether the statement is to end.
    ///
    /// # Errors
    /// 3170; as `Context::tick`.
    pub fn made(&mut self, rows: &[Vec<Value>]) -> ExecResult<()> {
        self.account.grow(rows.iter().map(|row| memory_of(row)).sum(), &self.cx.session.settings)?;
        self.cx.session.budget.spend(u32::try_from(rows.len() + 1).unwrap_or(u32::MAX))
    }

    /// The rows that `each` makes of the stored tables that are asked for and that the account may know of, counted a table at a time.
    ///
    /// # Errors
    /// As `made`.
    pub fn of_tables(
        &mut self,
        mut each: impl FnMut(&Self, &Table, &mut Vec<Vec<Value>>),
    ) -> ExecResult<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        for table in self.tables() {
            let from = rows.len();
            each(self, &table, &mut rows);
            self.made(&rows[from..])?;
        }
        Ok(rows)
    }

    /// Whether the account may know of a table (or, without one, of a schema).
    pub fn sees(&self, db: &str, table: Option<&str>) -> bool {
        self.cx.session.connection.host.may_see(db, table)
    }

    /// Every stored schema, in order.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.cx.storage.see_definitions();
        self.catalog.schemas.values()
    }

    /// Whether the query asks for a table and the account may know of it.
    fn shows(&mut self, db: &str, table: &str) -> bool {
        self.names.asked(db, table, self.cx) && self.sees(db, Some(table))
    }

    /// Every stored table that is asked for and that the account may know of, in order.
    pub fn tables(&mut self) -> Vec<Arc<Table>> {
        self.cx.storage.see_definitions();
        let catalog = self.catalog;
        catalog.tables().filter(|table| self.shows(&table.def.db, &table.def.name)).cloned().collect()
    }

    /// Every computed table that is asked for and that the account may know of.
    pub fn computed(&mut self) -> Vec<&'static Def> {
        let dialect = dialect_of(self.shared);
        let mut shown = |def: &Def| {
            dialects::has_table(dialect, def)
                && self.names.asked(def.schema, def.name, self.cx)
                && (def.schema != "mysql" || self.sees(def.schema, Some(def.name)))
        };
        all().filter(|def| shown(def)).collect()
    }

    /// Every view that is asked for and that the account may know of, in order, as it looks now.
    ///
    /// # Errors
    /// The statement is to be run elsewhere, or to end: what a view's own definition has wrong comes with the view.
    pub fn views(&mut self) -> ExecResult<Vec<(Arc<View>, SqlResult<Outline>)>> {
        self.cx.storage.see_definitions();
        let catalog = self.catalog;
        let views = catalog.views().filter(|view| self.shows(&view.def.db, &view.def.name));
        let views: Vec<_> = views.cloned().collect();
        if views.is_empty() {
            return Ok(Vec::new());
        }
        let virtuals = InformationSchema::new(self.shared);
        let mut looked = Vec::with_capacity(views.len());
        for view in views {
            let found = match outline(&view, self.cx.session, self.catalog, &virtuals) {
                Err(error) if error.is_of_the_statement() => return Err(error.into()),
                found => found,
            };
            let columns = found.as_ref().map_or(0, |outline| outline.columns.len());
            self.account.grow(columns * OUTLINED, &self.cx.session.settings)?;
            self.cx.tick()?;
            looked.push((view, found));
        }
        Ok(looked)
    }

    /// Every stored program that the account may know of, in order.
    pub fn programs(&self) -> Vec<Arc<ProgramDef>> {
        self.cx.storage.see_definitions();
        let access = self.access();
        let seen = |def: &&Arc<ProgramDef>| match def.kind() {
            ProgramKind::Procedure | ProgramKind::Function => {
                let routine = Routine { kind: def.kind(), db: &def.db, name: &def.name };
                access.check_routine(routine, Some(&def.definer()), Priv::Any).is_ok()
            }
            ProgramKind::Event => access.check(&def.db, None, Priv::Event).is_ok(),
            ProgramKind::Trigger => def
                .trigger()
                .is_ok_and(|tree| access.check(&def.db, Some(&tree.table.name), Priv::Trigger).is_ok()),
        };
        self.catalog.programs().filter(seen).cloned().collect()
    }

    /// The rights in force: those of the program that runs, or of the session.
    pub fn access(&self) -> Arc<dyn AccessCheck> {
        let session = &self.cx.session;
        let access = session.programs.access.clone().or_else(|| session.connection.host.own_access());
        access.unwrap_or_else(|| Arc::new(AllowAll))
    }

    /// A table that another refers to, whoever may see it.
    pub fn parent(&self, key: &ForeignKey) -> Option<&Arc<Table>> {
        self.catalog.find_table(&key.parent_db, &key.parent)
    }

    /// Seconds since 1970 in the session's zone.
    pub fn time(&self, seconds: u64) -> Value {
        if seconds == 0 {
            return Value::Null;
        }
        let utc = DateTime::from_unix(i64::try_from(seconds).unwrap_or(i64::MAX), 0);
        utc.map_or(Value::Null, |at| Value::DateTime(self.cx.to_local(at)))
    }
}

/// An expression's text; MySQL shows it as a literal has it.
pub(super) fn expression_text(expr: &StoredExpr, mariadb: bool) -> Cow<'_, str> {
    if mariadb || !expr.text.contains(['\'', '\\']) {
        return Cow::Borrowed(&expr.text);
    }
    Cow::Owned(expr.text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Text as a value.
pub(super) fn text(value: impl AsRef<str>) -> Value {
    Value::Bytes(Bytes::copy_from_slice(value.as_ref().as_bytes()))
}

/// YES or NO.
pub(super) fn yes_no(value: bool) -> Value {
    Value::Bytes(Bytes::from_static(if value { b"YES" } else { b"NO" }))
}

/// The computed tables that code answers for, information_schema's in the order of their names.
pub(super) fn answering() -> impl Iterator<Item = &'static Def> {
    let groups: [&'static [Def]; 15] = [
        super::charsets::DEFS,
        super::columns::DEFS,
        super::constraints::DEFS,
        super::grammar::DEFS,
        super::privileges::DEFS,
        super::privileges::ROLES,
        super::programs::DEFS,
        super::replication::DEFS,
        super::schemata::DEFS,
        super::server::DEFS,
        super::sizes::DEFS,
        super::statistics::DEFS,
        super::tables::DEFS,
        super::views::DEFS,
        super::zones::DEFS,
    ];
    groups.into_iter().flatten()
}

/// All computed tables.
pub(super) fn all() -> impl Iterator<Item = &'static Def> {
    answering().chain(super::empty::tables())
}

/// The columns of a computed table, in order; none if there is no such table.
#[must_use]
pub fn computed_columns(schema: &str, table: &str) -> Vec<&'static str> {
    let named = |def: &&Def| def.schema.eq_ignore_ascii_case(schema) && def.name.eq_ignore_ascii_case(table);
    let columns = all().find(named).map_or(&[][..], |def| def.columns);
    columns.iter().map(|(name, _)| *name).collect()
}

/// Names of the schemas that have only computed tables.
pub(crate) const SCHEMAS: [&str; 2] = ["information_schema", "performance_schema"];

/// Finds computed tables; one for all sessions.
pub struct InformationSchema {
    tables: Vec<Arc<Computed>>,
}

impl InformationSchema {
    /// Over a database's catalog.
    #[must_use]
    pub fn new(shared: &Arc<TrxContext>) -> InformationSchema {
        let dialect = dialect_of(shared);
        let defs = all().chain(super::replication::GTIDS).chain(super::privileges::SYSTEM);
        let defs = defs.filter(|def| dialects::has_table(dialect, def));
        let tables = defs.map(|def| Arc::new(Computed::new(def, dialect, shared.clone()))).collect();
        InformationSchema { tables }
    }
}

impl std::fmt::Debug for InformationSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InformationSchema").field("tables", &self.tables.len()).finish()
    }
}

impl VirtualTables for InformationSchema {
    fn view(&self, schema: &str, name: &str) -> Option<Arc<View>> {
        super::sys::find(schema, name)
    }

    fn find(&self, schema: &str, name: &str) -> Option<Arc<dyn VirtualTable>> {
        let known = SCHEMAS.iter().chain(&["mysql"]).find(|known| schema.eq_ignore_ascii_case(known))?;
        let same =
            |table: &&Arc<Computed>| table.def.schema == *known && name.eq_ignore_ascii_case(table.def.name);
        self.tables.iter().find(same).map(|table| table.clone() as Arc<dyn VirtualTable>)
    }
}

struct Computed {
    def: &'static Def,
    columns: Arc<[ResultColumn]>,
    /// Places of columns of the definition that the dialect does not have, last first.
    left_out: Vec<usize>,
    shared: Arc<TrxContext>,
}

impl Computed {
    fn new(def: &'static Def, dialect: Dialect, shared: Arc<TrxContext>) -> Computed {
        let (schema, table): (Arc<str>, Arc<str>) = (Arc::from(def.schema), Arc::from(def.name));
        let column = |(name, ty): &(&'static str, Ty)| {
            let name: Arc<str> = Arc::from(*name);
            ResultColumn {
                schema: schema.clone(),
                table: table.clone(),
                org_table: table.clone(),
                org_name: name.clone(),
                name,
                flags: if is_unsigned(*ty) { flag::UNSIGNED } else { 0 },
                ty: column_type(*ty),
            }
        };
        let has = |(name, _): &(&str, Ty)| dialects::has_column(dialect, def, name);
        let columns = def.columns.iter().filter(|column| has(column)).map(column).collect();
        let left_out = def.columns.iter().enumerate().rev().filter(|(_, column)| !has(column));
        let left_out = left_out.map(|(at, _)| at).collect();
        Computed { def, columns, left_out, shared }
    }
}

impl VirtualTable for Computed {
    fn columns(&self) -> Arc<[ResultColumn]> {
        self.columns.clone()
    }

    fn rows(&self, asked: Asked<'_>, cx: &mut Context<'_>) -> ExecResult<Rows> {
        let Some(access) = cx.session.programs.access.clone() else { return self.compute(asked, cx) };
        // Asserts ACCESS-1: a program is told what its definer may know, whoever runs it.
        let mut rows = None;
        access.asks_during(&mut || rows = Some(self.compute(asked, cx)));
        rows.unwrap_or_else(|| Err(SqlError::internal("rows that were not computed").into()))
    }
}

impl Computed {
    fn compute(&self, asked: Asked<'_>, cx: &mut Context<'_>) -> ExecResult<Rows> {
        let catalog = cx.session.statement.described.clone().unwrap_or_else(|| self.shared.catalog.load());
        let engines = self.shared.port.engine().members();
        let name = self.def.name;
        let names = Names::of(self.def, asked);
        let account = Account::new(&cx.session.connection.memory);
        let mut reader =
            Reader { names, name, catalog: &catalog, shared: &self.shared, engines, account, cx };
        let mut rows = (self.def.rows)(&mut reader)?;
        let Reader { mut account, cx, .. } = reader;
        for (at, (_, ty)) in self.def.columns.iter().enumerate() {
            let column = rows.iter_mut().filter_map(|row| row.get_mut(at));
            match ty {
                Ty::Enum(members) => column.for_each(|value| to_member(value, members)),
                Ty::Stamp => column.for_each(|value| to_local(value, cx)),
                _ => {}
            }
        }
        for row in rows.iter_mut().filter(|_| !self.left_out.is_empty()) {
            for at in &self.left_out {
                row.remove(*at);
            }
        }
        let bytes = rows.iter().map(|row| memory_of(row)).sum();
        account.resize(bytes, MemoryLimits::of(&cx.session.settings))?;
        Ok(Rows::of(rows, account))
    }
}

/// The dialect that the server speaks.
fn dialect_of(shared: &TrxContext) -> Dialect {
    shared.port.new_cache().dialect()
}

/// A TIMESTAMP's UTC as the session sees it.
fn to_local(value: &mut Value, cx: &Context<'_>) {
    if let Value::DateTime(at) = value {
        *at = cx.to_local(*at);
    }
}

/// Text as the member of an ENUM.
fn to_member(value: &mut Value, members: &[&str]) {
    if let Value::Bytes(text) = value {
        let at = members.iter().position(|member| member.as_bytes() == &text[..]);
        *value = Value::Enum(at.map_or(0, |at| at as u16 + 1));
    }
}

fn is_unsigned(ty: Ty) -> bool {
    matches!(ty, Ty::UInt | Ty::UInt4 | Ty::Seconds)
}

/// The catalog's form of a computed column's type.
pub(super) fn column_type(ty: Ty) -> ColumnType {
    let (kind, length, collation) = match ty {
        Ty::Name => (ColumnKind::VarChar, 64, NAME_COLLATION),
        Ty::Text(length) => (ColumnKind::VarChar, length, TEXT_COLLATION),
        Ty::Long => (ColumnKind::LongText, 0, TEXT_COLLATION),
        Ty::UInt | Ty::Int => (ColumnKind::BigInt, 20, 63),
        Ty::Time | Ty::Hundredths => (ColumnKind::DateTime, 0, 63),
        Ty::Char(length) => (ColumnKind::Char, length, TEXT_COLLATION),
        Ty::Int4 | Ty::UInt4 => (ColumnKind::Int, 11, 63),
        Ty::Stamp => (ColumnKind::Timestamp, 0, 63),
        Ty::Seconds => (ColumnKind::Double, 10, 63),
        Ty::Enum(_) => (ColumnKind::Enum, 0, TEXT_COLLATION),
        Ty::Json => (ColumnKind::Json, 0, 63),
    };
    let labels = match ty {
        Ty::Enum(members) => members.iter().map(|member| Bytes::from_static(member.as_bytes())).collect(),
        _ => Vec::new(),
    };
    ColumnType {
        kind,
        unsigned: is_unsigned(ty),
        zerofill: false,
        length,
        decimals: match ty {
            Ty::Stamp => 6,
            Ty::Hundredths => 2,
            Ty::Seconds => 3,
            _ => 0,
        },
        collation,
        labels: Arc::from(labels),
    }
}
