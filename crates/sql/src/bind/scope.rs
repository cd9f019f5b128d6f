//! Name resolution: which slot and column a name means, in the block it is written in or in the
//! blocks around it. Binding only; nothing of this is left at execution.

use super::dependencies::DerivedFacts;
use crate::api::{Columns, ResultColumn, flag};
use crate::catalog::rowid::rowid;
use crate::catalog::{Column, IndexKind, Table, View};
use crate::error::{SqlError, SqlResult};
use crate::expr::node::{Expr, Kind};
use crate::expr::types::{Coercibility, ExprType, Family, family};
use omnibus_parser::ast::{ColumnRef, Qualifier};
use omnibus_value::ColumnKind;
use std::sync::Arc;

/// The origin of a table instance's columns.
#[derive(Clone, Debug)]
pub enum Source {
    /// A stored table.
    Table(Arc<Table>),
    /// Computed: a derived table, a common table expression, a virtual table.
    Columns(Arc<[ResultColumn]>),
    /// A view whose tables stand in its place.
    View(Arc<MergedView>),
}

/// A view whose tables stand in its place: they are in the same scope, where no name finds them.
#[derive(Debug)]
pub struct MergedView {
    /// The view.
    pub view: Arc<View>,
    /// Its columns.
    pub columns: Vec<ResultColumn>,
    /// The expressions of its columns.
    pub exprs: Vec<Expr>,
    /// A table of it that has a row whenever the view has one.
    pub witness: u16,
    /// The conditions of rows that are written through it.
    pub check: Vec<Expr>,
}

/// Columns of a table, and the names that a view has for them.
pub type Shown = Arc<[(u16, Arc<str>)]>;

/// A table instance that names may refer to.
#[derive(Clone, Debug)]
pub struct ScopeTable {
    /// Its slot.
    pub slot: u16,
    /// Schema, empty for computed ones.
    pub schema: Arc<str>,
    /// Alias, or name.
    pub alias: Arc<str>,
    /// Columns.
    pub source: Source,
    /// On the inner side of an outer join: every column may be NULL.
    pub nullable: bool,
    /// Columns of USING or NATURAL that another table stands for.
    pub hidden: Vec<usize>,
    /// Of a table of a view that stands in this scope, too: its columns that the view has, and their names there.
    pub inner: Option<Shown>,
    /// The columns that may be read.
    pub readable: Columns,
    /// Other names of the columns; none has an empty one.
    pub names: Option<Arc<[Arc<str>]>>,
    /// The dependencies among the columns of a derived table.
    pub facts: Option<Arc<DerivedFacts>>,
}

/// No identifier can be this.
pub const VALUES_ALIAS: &str = "\u{0}values";

/// The names of one query block.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Tables, in the order written.
    pub tables: Vec<ScopeTable>,
    /// Select-list aliases and their expressions: for GROUP BY, HAVING and ORDER BY.
    pub aliases: Vec<(Arc<str>, Expr)>,
    /// Constants that WITH ROLLUP groups by, by the names that stand for NULL where they are summed up: aggregates read them.
    pub constants: Vec<(Arc<str>, Expr)>,
    /// Columns of USING of a RIGHT or FULL join that are a COALESCE; name and expression.
    pub merged: Vec<(Arc<str>, Expr)>,
    /// Slots and columns that an ambiguous name means, if one of them has it.
    pub chosen: Vec<(u16, u16)>,
}

/// Column names and aliases are compared without case.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// The type of a stored column as an expression.
#[must_use]
pub fn column_expr_type(column: &Column, nullable: bool) -> ExprType {
    let coercibility = match family(column.ty.kind) {
        Family::String | Family::Json => Coercibility::Implicit,
        _ if column.ty.kind == ColumnKind::Bit => Coercibility::Implicit,
        _ => Coercibility::Numeric,
    };
    ExprType { column: column.ty.clone(), nullable: nullable || column.nullable, coercibility }
}

impl ScopeTable {
    /// A stored table.
    #[must_use]
    pub fn stored(slot: u16, table: Arc<Table>, alias: Option<&str>) -> ScopeTable {
        ScopeTable {
            slot,
            schema: table.def.db.clone(),
            alias: alias.map_or_else(|| table.def.name.clone(), Arc::from),
            source: Source::Table(table),
            nullable: false,
            hidden: Vec::new(),
            inner: None,
            readable: Columns::All,
            names: None,
            facts: None,
        }
    }

    /// Fails unless the column may be read.
    ///
    /// # Errors
    /// 1143.
    pub fn may_read(&self, at: usize) -> SqlResult<()> {
        self.readable.check(self.column_name(at))
    }

    /// Fails unless `*` may be read.
    ///
    /// # Errors
    /// 1142.
    pub fn may_read_all(&self) -> SqlResult<()> {
        let visible = (0..self.width()).filter(|at| !self.is_invisible(*at));
        self.readable.check_all(visible.map(|at| &**self.column_name(at)))
    }

    /// Whether it is a table of a view that stands in this scope, too: no name finds it.
    #[must_use]
    pub fn is_inner(&self) -> bool {
        self.inner.is_some()
    }

    /// A column as clients see it: one of a view's is the view's.
    #[must_use]
    pub fn result_column(&self, at: usize, name: Arc<str>, ty: &ExprType) -> ResultColumn {
        let mut column = self.own_result_column(at, name, ty);
        let shown = |shown: &Shown| {
            shown.iter().find(|(column, _)| usize::from(*column) == at).map(|(_, name)| name.clone())
        };
        if let Some(name) = self.inner.as_ref().and_then(shown) {
            (column.org_name, column.org_table) = (name, self.alias.clone());
        }
        column
    }

    /// Whether its slot gets rows: that of a merged view has none.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        !matches!(self.source, Source::View(_))
    }

    /// A column under its full name: with the database, unless the table goes by an alias.
    #[must_use]
    pub fn full_name(&self, at: usize) -> ColumnRef {
        let own = match &self.source {
            Source::Table(table) => Some(&table.def.name),
            Source::View(merged) => Some(&merged.view.def.name),
            Source::Columns(columns) => columns.first().map(|column| &column.org_table),
        };
        let schema = Some(&self.schema).filter(|schema| !schema.is_empty() && own == Some(&self.alias));
        ColumnRef {
            qualifier: Some(Box::new(Qualifier {
                schema: schema.map(|schema| (&**schema).into()),
                table: (&*self.alias).into(),
            })),
            name: (&**self.column_name(at)).into(),
        }
    }

    /// Whether it is the row that INSERT wanted to insert, as VALUES(col) in ON DUPLICATE KEY UPDATE sees it: its names are
    /// not found otherwise.
    #[must_use]
    pub fn is_values_row(&self) -> bool {
        &*self.alias == VALUES_ALIAS
    }

    /// How many columns it has.
    #[must_use]
    pub fn width(&self) -> usize {
        match &self.source {
            Source::Table(table) => table.columns().len(),
            Source::Columns(columns) => columns.len(),
            Source::View(merged) => merged.columns.len(),
        }
    }

    /// A column's name.
    #[must_use]
    pub fn column_name(&self, at: usize) -> &Arc<str> {
        if let Some(names) = &self.names {
            return &names[at];
        }
        match &self.source {
            Source::Table(table) => &table.columns()[at].name,
            Source::Columns(columns) => &columns[at].name,
            Source::View(merged) => &merged.columns[at].name,
        }
    }

    /// Whether `find` finds a column.
    #[must_use]
    pub fn is_named(&self, at: usize) -> bool {
        match (&self.names, &self.source) {
            (Some(names), _) => !names[at].is_empty(),
            (None, Source::Table(table)) => !table.columns()[at].is_hidden(),
            _ => true,
        }
    }

    /// Whether `*` leaves a column out.
    #[must_use]
    pub fn is_invisible(&self, at: usize) -> bool {
        match &self.source {
            Source::Table(table) => table.columns()[at].invisible,
            Source::Columns(_) | Source::View(_) => false,
        }
    }

    /// The position of a column by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        if let Some(names) = &self.names {
            return names.iter().position(|known| !known.is_empty() && same(known, name));
        }
        match &self.source {
            Source::Table(table) => table.column_index(name),
            Source::Columns(columns) => columns.iter().position(|c| same(&c.name, name)),
            Source::View(merged) => merged.columns.iter().position(|c| same(&c.name, name)),
        }
    }

    /// A column as an expression.
    #[must_use]
    pub fn expr(&self, at: usize) -> Expr {
        let (ty, utc) = match &self.source {
            Source::Table(table) => {
                let column = &table.columns()[at];
                (column_expr_type(column, self.nullable), column.ty.kind == ColumnKind::Timestamp)
            }
            Source::Columns(columns) => {
                let column = &columns[at];
                let coercibility = match family(column.ty.kind) {
                    Family::String | Family::Json => Coercibility::Implicit,
                    _ => Coercibility::Numeric,
                };
                let nullable = self.nullable || column.flags & flag::NOT_NULL == 0;
                (ExprType { column: column.ty.clone(), nullable, coercibility }, false)
            }
            Source::View(merged) => {
                let e = merged.exprs[at].clone();
                return if self.nullable { of_optional(e, merged.witness) } else { e };
            }
        };
        Expr { kind: Kind::Column { slot: self.slot, column: at as u16, utc }, ty }
    }

    /// A column as a result column under `name`.
    fn own_result_column(&self, at: usize, name: Arc<str>, ty: &ExprType) -> ResultColumn {
        match &self.source {
            Source::Table(table) => ResultColumn {
                schema: table.def.db.clone(),
                table: self.alias.clone(),
                org_table: table.def.name.clone(),
                name,
                org_name: table.columns()[at].name.clone(),
                ty: table.columns()[at].ty.clone(),
                flags: stored_flags(table, at, ty.nullable),
            },
            Source::View(merged) => {
                ResultColumn { name, flags: type_flags(ty), ..merged.columns[at].clone() }
            }
            Source::Columns(columns) => ResultColumn {
                schema: columns[at].schema.clone(),
                table: self.alias.clone(),
                org_table: columns[at].org_table.clone(),
                name,
                org_name: columns[at].org_name.clone(),
                ty: columns[at].ty.clone(),
                flags: type_flags(ty),
            },
        }
    }
}

/// An expression over a row that an outer join may not find: NULL then.
fn of_optional(e: Expr, witness: u16) -> Expr {
    let ty = e.ty.clone().nullable(true);
    match e.kind {
        Kind::Column { .. } => Expr { kind: e.kind, ty },
        kind => {
            let present = Expr::boolean(Kind::Present(witness), false);
            let e = Expr { kind, ty: ty.clone() };
            Expr { kind: Kind::Case { whens: Box::new([(present, e)]), otherwise: None }, ty }
        }
    }
}

/// Flags that follow from a type alone.
#[must_use]
pub fn type_flags(ty: &ExprType) -> u16 {
    use ColumnKind as K;
    let column = &ty.column;
    let mut flags = 0;
    if !ty.nullable {
        flags |= flag::NOT_NULL;
    }
    if column.unsigned {
        flags |= flag::UNSIGNED;
    }
    if column.zerofill {
        flags |= flag::ZEROFILL;
    }
    match column.kind {
        K::TinyText | K::Text | K::MediumText | K::LongText | K::Json | K::Geometry => flags |= flag::BLOB,
        K::TinyBlob | K::Blob | K::MediumBlob | K::LongBlob => flags |= flag::BLOB,
        K::Enum => flags |= flag::ENUM,
        K::Set => flags |= flag::SET,
        _ => {}
    }
    match ty.family() {
        // Clients give numbers their own flag themselves.
        _ if column.kind == K::Bit => flags |= flag::UNSIGNED,
        Family::Integer | Family::Decimal | Family::Real => flags |= flag::BINARY,
        Family::Date | Family::DateTime | Family::Time | Family::Json => flags |= flag::BINARY,
        Family::String if column.collation == crate::expr::types::BINARY => flags |= flag::BINARY,
        // As MariaDB marks these.
        Family::Fixed => flags |= flag::UNSIGNED,
        Family::String => {}
    }
    flags
}

fn stored_flags(table: &Table, at: usize, nullable: bool) -> u16 {
    let column = &table.columns()[at];
    let mut flags = type_flags(&column_expr_type(column, nullable));
    // Numbers of tables have no character set; those that are computed are marked as bytes.
    match family(column.ty.kind) {
        Family::Fixed => flags |= flag::BINARY,
        Family::Integer | Family::Decimal | Family::Real => flags &= !flag::BINARY,
        _ => {}
    }
    if column.ty.kind == ColumnKind::Year {
        flags |= flag::ZEROFILL;
    }
    if column.on_update_now || matches!(column.default, crate::catalog::ColumnDefault::CurrentTimestamp) {
        flags |= flag::TIMESTAMP;
    }
    if column.auto_increment {
        flags |= flag::AUTO_INCREMENT;
    }
    if column.on_update_now {
        flags |= flag::ON_UPDATE_NOW;
    }
    if matches!(column.default, crate::catalog::ColumnDefault::None)
        && !column.auto_increment
        && !column.nullable
    {
        flags |= flag::NO_DEFAULT_VALUE;
    }
    for index in table.indexes() {
        let Some(place) = index.parts.iter().position(|p| p.column == at) else { continue };
        match index.kind {
            IndexKind::Primary => flags |= flag::PRI_KEY,
            IndexKind::Unique if place == 0 && index.parts.len() == 1 => flags |= flag::UNIQUE_KEY,
            _ if place == 0 => flags |= flag::MULTIPLE_KEY,
            _ => {}
        }
    }
    flags
}

impl Scope {
    /// A scope of one table.
    #[must_use]
    pub fn of(table: ScopeTable) -> Scope {
        Scope { tables: vec![table], ..Scope::default() }
    }

    /// Finds a column among this block's tables; `None` if no table has it.
    ///
    /// # Errors
    /// 1052 if more than one has.
    pub fn find(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        name: &str,
        clause: &str,
    ) -> SqlResult<Option<Expr>> {
        if table.is_none()
            && let Some((_, merged)) = self.merged.iter().find(|(n, _)| same(n, name))
        {
            return Ok(Some(merged.clone()));
        }
        let Some((table, at)) = self.place(schema, table, name, clause)? else { return Ok(None) };
        table.may_read(at)?;
        Ok(Some(table.expr(at)))
    }

    /// The table, and the place in it, of a column.
    ///
    /// # Errors
    /// As `find`.
    pub fn place(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        name: &str,
        clause: &str,
    ) -> SqlResult<Option<(&ScopeTable, usize)>> {
        let named = self.place_by(schema, table, name, clause, &|table| table.find(name))?;
        if named.is_some() || !name.eq_ignore_ascii_case("_rowid") {
            return Ok(named);
        }
        self.place_by(schema, table, name, clause, &|table| match &table.source {
            Source::Table(stored) => rowid(stored, name),
            Source::Columns(_) | Source::View(_) => None,
        })
    }

    fn place_by(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        name: &str,
        clause: &str,
        find: &dyn Fn(&ScopeTable) -> Option<usize>,
    ) -> SqlResult<Option<(&ScopeTable, usize)>> {
        let mut found = None;
        for candidate in &self.tables {
            if candidate.is_inner()
                || candidate.is_values_row()
                || table.is_some_and(|t| t != &*candidate.alias)
            {
                continue;
            }
            // A derived table is in no database.
            if schema.is_some_and(|s| s != &*candidate.schema) {
                continue;
            }
            let Some(at) = find(candidate) else { continue };
            if table.is_none() && candidate.hidden.contains(&at) {
                continue;
            }
            if found.is_some() {
                if let (None, Some(chosen)) = (table, self.chosen_of(name)) {
                    return Ok(Some(chosen));
                }
                let full = table.map_or_else(|| name.to_owned(), |t| format!("{t}.{name}"));
                return Err(SqlError::non_uniq(full, clause));
            }
            found = Some((candidate, at));
        }
        Ok(found)
    }

    /// The column of this name among the chosen ones.
    fn chosen_of(&self, name: &str) -> Option<(&ScopeTable, usize)> {
        let mut places = self.tables.iter().filter_map(|table| table.find(name).map(|at| (table, at)));
        let chosen = |(table, at): &(&ScopeTable, usize)| self.chosen.contains(&(table.slot, *at as u16));
        places.find(chosen)
    }

    /// The columns of all tables that have this name, those too that a join has merged.
    pub fn all(&self, name: &str) -> impl Iterator<Item = Expr> {
        let tables = self.tables.iter().filter(|table| !table.is_inner() && !table.is_values_row());
        tables.filter_map(move |table| table.find(name).map(|at| table.expr(at)))
    }

    /// Finds a select-list alias: the first computed column that has it, else the column of a table.
    ///
    /// # Errors
    /// 1052 if two different columns of tables have it.
    pub fn find_alias(&self, name: &str, clause: &str) -> SqlResult<Option<&Expr>> {
        let mut found: Option<&Expr> = None;
        for (_, expr) in self.aliases.iter().filter(|(alias, _)| same(alias, name)) {
            if !matches!(expr.kind, Kind::Column { .. }) {
                return Ok(Some(expr));
            }
            if found.is_some_and(|before| !before.same(expr)) {
                return Err(SqlError::non_uniq(name, clause));
            }
            found = Some(expr);
        }
        Ok(found)
    }
}
