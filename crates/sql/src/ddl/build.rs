//! From a CREATE TABLE tree to a table definition. Pure but for the id source.
//!
//! ALTER TABLE uses it too: it edits the tree of the stored definition and builds it again. The
//! catalog does so at start for every stored table.

use super::defaults;
use super::expressions::{self, Writer};
use super::keys;
use super::not_built::{self, without_unsupported};
use crate::api::sql_mode;
use crate::bind::types::{column_type, pick_collation, written_type};
use crate::catalog::{Column, ColumnDefault, Generated, Index, TableDef, first_double};
use crate::catalog::{charset, sequence};
use crate::error::{Diagnostics, SqlError, SqlResult};
use omnibus_engine::{EngineInfo, SpaceId};
use omnibus_parser::ast::{
    ColumnDef, CreateTable, DataType, DefaultValue, Expr, Ident, KeyTarget, Literal, TableOption, TypeName,
};
use omnibus_value::temporal::{DateMode, Zone};
use omnibus_value::{ColumnKind, ColumnType, FixedKind, Value};
use std::sync::Arc;

const MAX_COLUMNS: usize = 1017;
const MAX_IDENT: usize = 64;
/// Characters of a column's or an index's comment.
const MAX_COMMENT: usize = 1024;

/// Hands out ids that are never reused.
pub(crate) struct Ids<'a> {
    /// The next table id.
    pub table: &'a mut u64,
    /// The next space id.
    pub space: &'a mut u32,
}

impl Ids<'_> {
    pub(crate) fn table(&mut self) -> u64 {
        *self.table += 1;
        *self.table - 1
    }

    /// A space in an engine's slot. Numbers are not used again in another slot either.
    pub(crate) fn space(&mut self, slot: u8) -> SpaceId {
        *self.space += 1;
        SpaceId::in_slot(slot, *self.space - 1)
    }
}

/// The surroundings that a definition is built in, besides the statement's tree.
pub(crate) struct BuildContext<'a> {
    pub db: &'a str,
    pub default_collation: u16,
    /// `default_collation_for_utf8mb4`.
    pub utf8mb4: u16,
    pub dates: DateMode,
    /// Of the TIMESTAMPs in its defaults.
    pub zone: Zone,
    pub sql_mode: u64,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_timestamps: bool,
    /// The dialect: JSON is another name for LONGTEXT on MariaDB, and constraints have other names.
    pub mariadb: bool,
    /// Whether columns may be UUIDs and addresses.
    pub uuids: bool,
    /// Engines there are; none if a stored definition says whatever it says.
    pub engines: Vec<EngineInfo>,
    /// How its expressions are written.
    pub writer: Writer,
    /// Constraints that are not supported are warnings, no errors.
    pub ignore_unsupported_constraints: bool,
    /// `default_storage_engine`.
    pub default_engine: &'static str,
    pub created: u64,
    pub diagnostics: &'a mut Diagnostics,
}

/// A built table and the AUTO_INCREMENT option, if there was one.
pub(crate) struct Built {
    pub def: TableDef,
    pub auto_increment: Option<u64>,
}

/// Builds a definition; every index gets a new space.
pub(crate) fn build_table(
    tree: &CreateTable,
    context: &mut BuildContext<'_>,
    ids: &mut Ids<'_>,
) -> SqlResult<Built> {
    let tree = &*without_unsupported(tree, context)?;
    let CreateTable {
        name,
        columns: column_trees,
        // Read by the functions below that build them.
        indexes: _,
        foreign_keys: _,
        checks: _,
        options: _,
        // Refused or left out by the function above.
        partition: _,
        // Of a table that is there, of another that is copied, and of rows: the callers' business.
        or_replace: _,
        temporary: _,
        if_not_exists: _,
        like: _,
        query: _,
        on_duplicate: _,
    } = tree;
    check_name(&name.name)?;
    let options = table_options(tree, context)?;
    let mut columns = Vec::with_capacity(column_trees.len());
    let double = first_double(column_trees.iter().map(|column| &*column.name));
    for (at, column) in column_trees.iter().enumerate() {
        if double == Some(at) {
            return Err(SqlError::dup_fieldname(&column.name));
        }
        columns.push(build_column(column, &name.name, options.collation, context)?);
    }
    if columns.is_empty() {
        refuse_keys(tree, context.mariadb)?;
    }
    if columns.iter().all(|column| column.invisible) {
        return Err(SqlError::table_must_have_a_visible_column());
    }
    if columns.len() > MAX_COLUMNS {
        return Err(SqlError::too_many_fields());
    }
    let mut indexes = keys::build_indexes(tree, &mut columns, ids, options.engine.1)?;
    fit_comments(&mut columns, &mut indexes, context)?;
    keys::check_visible(&columns, &indexes, context.mariadb)?;
    for (column, tree) in columns.iter_mut().zip(column_trees) {
        finish_default(column, tree, context.engines.is_empty())?;
    }
    check_auto_column(&columns, &indexes)?;
    check_row_size(&columns)?;
    let hidden_key = indexes[0].parts.is_empty();
    let def = TableDef {
        id: ids.table(),
        db: Arc::from(context.db),
        name: Arc::from(name.name.as_str()),
        indexes,
        foreign_keys: super::foreign_keys::build_foreign_keys(tree, &columns, context)?,
        checks: expressions::build_checks(tree, context.writer, context.mariadb)?,
        columns,
        hidden_key,
        collation: options.collation,
        comment: options.comment,
        engine: options.engine.0,
        options: options.rest,
        created: context.created,
        versions: Default::default(),
    };
    Ok(Built { def, auto_increment: options.auto_increment })
}

/// Identifiers have at most 64 characters; those of tables and their like do not end in a space.
pub(crate) fn check_name(name: &str) -> SqlResult<()> {
    check_constraint_name(name)?;
    if name.ends_with(' ') { Err(SqlError::wrong_table_name(name)) } else { Ok(()) }
}

/// Refuses widths that MariaDB reads over.
fn refuse_widths(tree: &ColumnDef) -> SqlResult<()> {
    match (tree.ty.name, tree.ty.length) {
        (TypeName::Bit, Some(0)) => {
            let message = format!("Invalid size for column '{}'.", tree.name);
            Err(SqlError::new(3013, b"HY000", message))
        }
        (TypeName::Year, Some(length)) if length != 4 => {
            Err(SqlError::new(1818, b"HY000", "Invalid display width. Use YEAR instead."))
        }
        _ => Ok(()),
    }
}

/// Refuses a key where there are no columns, and in MariaDB that there are none.
fn refuse_keys(tree: &CreateTable, mariadb: bool) -> SqlResult<()> {
    if mariadb {
        return Err(SqlError::table_must_have_columns());
    }
    match tree.indexes.iter().flat_map(|key| &key.parts).map(|part| &part.target).next() {
        Some(KeyTarget::Column { name, .. }) => Err(SqlError::key_column_does_not_exist(name)),
        _ => Ok(()),
    }
}

/// Names of constraints may end in a space.
pub(super) fn check_constraint_name(name: &str) -> SqlResult<()> {
    if name.chars().count() > MAX_IDENT {
        return Err(SqlError::too_long_ident(name));
    }
    if name.is_empty() || name.contains('\0') {
        return Err(SqlError::wrong_table_name(name));
    }
    Ok(())
}

struct Options {
    /// Name and slot.
    engine: (Arc<str>, u8),
    collation: u16,
    comment: Arc<str>,
    auto_increment: Option<u64>,
    rest: Vec<Arc<str>>,
}

fn table_options(tree: &CreateTable, context: &mut BuildContext<'_>) -> SqlResult<Options> {
    let mut options = Options {
        engine: named(context.default()),
        collation: context.default_collation,
        comment: Arc::from(""),
        auto_increment: None,
        rest: Vec::new(),
    };
    for option in &tree.options {
        match option {
            TableOption::Charset(_) | TableOption::Collate(_) => {}
            TableOption::Engine(name) => options.engine = pick_engine(name, &tree.name.name, context)?,
            TableOption::Comment(text) => options.comment = Arc::from(&*String::from_utf8_lossy(text)),
            TableOption::AutoIncrement(value) => options.auto_increment = Some(*value),
            TableOption::RowFormat(name) if name.is("default") => {}
            TableOption::RowFormat(name) => {
                options.rest.push(format!("ROW_FORMAT={}", name.to_uppercase()).into())
            }
            TableOption::KeyBlockSize(size) => options.rest.push(format!("KEY_BLOCK_SIZE={size}").into()),
            TableOption::Sequence => options.rest.push(sequence::OPTION.into()),
            TableOption::Other { name, value } if name.is("SEQUENCE") && value[..] == *b"1" => {
                // A table of any columns is none; only what we stored ourselves says so.
                if !context.engines.is_empty() {
                    return Err(SqlError::not_supported_yet("CREATE TABLE .. SEQUENCE=1"));
                }
                options.rest.push(sequence::OPTION.into());
            }
            TableOption::Other { name, value } if name.is("NOT_BUILT") => {
                options.rest.push(not_built::option(&String::from_utf8_lossy(value)));
            }
            TableOption::Other { name, value } => {
                if let Some(warning) = not_built::passed_over(name, value) {
                    context.diagnostics.warn(warning);
                }
            }
        }
    }
    if let Some(id) = stated_collation(&tree.options, context.utf8mb4)? {
        options.collation = id;
    }
    let table = &tree.name.name;
    fit_comment(&mut options.comment, 2048, context, || {
        SqlError::new(1628, b"HY000", format!("Comment for table '{table}' is too long (max = 2048)"))
    })?;
    Ok(options)
}

/// A comment that is too long is refused, or where `sql_mode` is not strict cut, with a warning. A stored one is as it is.
fn fit_comment(
    comment: &mut Arc<str>,
    max: usize,
    context: &mut BuildContext<'_>,
    error: impl FnOnce() -> SqlError,
) -> SqlResult<()> {
    let end = comment.char_indices().nth(max).map(|(at, _)| at);
    let Some(end) = end.filter(|_| !context.engines.is_empty()) else { return Ok(()) };
    if defaults::is_strict(context) {
        return Err(error());
    }
    context.diagnostics.warn(error());
    *comment = Arc::from(&comment[..end]);
    Ok(())
}

/// Of all columns and indexes.
fn fit_comments(
    columns: &mut [Column],
    indexes: &mut [Index],
    context: &mut BuildContext<'_>,
) -> SqlResult<()> {
    for column in columns {
        fit_comment(&mut column.comment, MAX_COMMENT, context, || {
            let message = format!(
                "The maximum supported character limit for the field, '{}', has been exceeded (max = {MAX_COMMENT})",
                column.name
            );
            SqlError::new(1629, b"HY000", message)
        })?;
    }
    for index in indexes {
        fit_comment(&mut index.comment, MAX_COMMENT, context, || {
            let message = format!("Comment for index '{}' is too long (max = {MAX_COMMENT})", index.name);
            SqlError::new(1688, b"HY000", message)
        })?;
    }
    Ok(())
}

/// The collation that options of a table name.
pub(crate) fn stated_collation(options: &[TableOption], utf8mb4: u16) -> SqlResult<Option<u16>> {
    refuse_conflicts(options)?;
    let (mut charset, mut collation): (Option<&Ident>, Option<&Ident>) = (None, None);
    for option in options {
        match option {
            TableOption::Charset(name) => charset = Some(name).filter(|name| !name.is("default")),
            TableOption::Collate(name) => collation = Some(name).filter(|name| !name.is("default")),
            _ => {}
        }
    }
    pick_collation(charset, collation, utf8mb4)
}

/// Refuses a character set, or a collation of one, beside another one that was named before it.
pub(super) fn refuse_conflicts<'a>(options: impl IntoIterator<Item = &'a TableOption>) -> SqlResult<()> {
    let mut stated = None;
    for option in options {
        let id = match option {
            TableOption::Charset(name) => charset::default_collation(name),
            TableOption::Collate(name) => charset::collation_id(name),
            _ => continue,
        };
        let Some(name) = id.map(charset::charset_name) else { continue };
        match (stated.filter(|other| *other != name), option) {
            (Some(other), TableOption::Collate(collation)) => {
                return Err(SqlError::collation_charset_mismatch(collation, other));
            }
            (Some(other), _) => return Err(SqlError::conflicting_declarations(other, name)),
            (None, _) => {}
        }
        stated = Some(name);
    }
    Ok(())
}

fn named(engine: EngineInfo) -> (Arc<str>, u8) {
    (Arc::from(engine.name), engine.slot)
}

impl BuildContext<'_> {
    fn default(&self) -> EngineInfo {
        let default =
            self.engines.iter().find(|engine| engine.name.eq_ignore_ascii_case(self.default_engine));
        let any = EngineInfo { name: crate::api::DEFAULT_ENGINE, comment: "", slot: 0 };
        default.or(self.engines.first()).copied().unwrap_or(any)
    }
}

/// ENGINE= : one of ours, or that of `default_storage_engine` in place of one that another server has, with a note.
pub(crate) fn pick_engine(
    name: &Ident,
    table: &str,
    context: &mut BuildContext<'_>,
) -> SqlResult<(Arc<str>, u8)> {
    if context.engines.is_empty() {
        // Its spaces are stored beside it.
        let default = crate::api::is_default_engine(name).then_some(crate::api::DEFAULT_ENGINE);
        return Ok((default.map_or_else(|| name.to_uppercase().into(), Arc::from), 0));
    }
    if let Some(engine) = context.engines.iter().find(|engine| name.is(engine.name)) {
        return Ok(named(*engine));
    }
    if crate::api::is_default_engine(name) {
        return Ok(named(context.engines[0]));
    }
    if !crate::api::is_foreign_engine(name) {
        if context.sql_mode & sql_mode::NO_ENGINE_SUBSTITUTION != 0 {
            return Err(SqlError::unknown_storage_engine(name));
        }
        context.diagnostics.warn(SqlError::unknown_storage_engine(name));
    }
    let default = context.default();
    context.diagnostics.note(SqlError::warn_using_other_handler(default.name, table));
    Ok(named(default))
}

fn build_column(
    tree: &ColumnDef,
    table: &str,
    collation: u16,
    context: &mut BuildContext<'_>,
) -> SqlResult<Column> {
    if tree.name.chars().count() > MAX_IDENT {
        return Err(SqlError::too_long_ident(&tree.name));
    }
    if tree.name.is_empty() || tree.name.ends_with(' ') {
        return Err(SqlError::wrong_column_name(&tree.name));
    }
    let (mut ty, explicit_collation) = stated_type(tree, collation, context)?;
    if !context.mariadb {
        refuse_widths(tree)?;
    }
    if ty.kind == ColumnKind::Json && context.mariadb {
        ty.kind = ColumnKind::LongText;
    }
    // Other servers that speak the other dialect could not follow the statement.
    if let (Some(kind), false) = (FixedKind::of(ty.kind), context.uuids) {
        return Err(SqlError::not_supported_yet(format!("{} columns", kind.name().to_uppercase())));
    }
    if ty.kind == ColumnKind::Timestamp && !context.explicit_timestamps {
        refuse_implicit_timestamp(tree)?;
    }
    let serial = tree.ty.name == TypeName::Serial;
    let mut column = Column {
        name: Arc::from(tree.name.as_str()),
        ty,
        // A column that gets numbers never has none, whatever it says.
        nullable: tree.nullable.unwrap_or(true) && !serial && !tree.primary_key && !tree.auto_increment,
        default: ColumnDefault::None,
        generated: None,
        on_update_now: tree.on_update.is_some(),
        auto_increment: tree.auto_increment || serial,
        invisible: tree.invisible.unwrap_or(false),
        comment: Arc::from(&*String::from_utf8_lossy(tree.comment.as_deref().unwrap_or_default())),
        explicit_collation,
    };
    if tree.primary_key && tree.nullable == Some(true) {
        return Err(SqlError::primary_cant_have_null());
    }
    if let Some(digits) = tree.on_update
        && (!matches!(column.ty.kind, ColumnKind::DateTime | ColumnKind::Timestamp)
            || digits != column.ty.decimals)
    {
        return Err(SqlError::new(
            1294,
            b"HY000",
            format!("Invalid ON UPDATE clause for '{}' column", column.name),
        ));
    }
    expressions::refuse_beside_generated(tree)?;
    if let Some(generated) = &tree.generated {
        let owner = || format!("Expression of generated column '{}'", tree.name);
        let expr = expressions::stored(&generated.expr, table, context.writer, (3102, &owner))?;
        column.generated = Some(Generated { expr, stored: generated.stored });
    }
    if let Some(default) = &tree.default {
        if column.auto_increment && !matches!(default, DefaultValue::Value(Expr::Literal(Literal::Null))) {
            return Err(SqlError::invalid_default(&column.name));
        }
        if !column.auto_increment {
            column.default = defaults::build(&column, default, table, context)?;
        }
    }
    Ok(column)
}

/// A column's type, and whether it states its collation. Where `sql_mode` is not strict a VARCHAR that is too long is a TEXT, and
/// members of an ENUM may be equal.
fn stated_type(
    tree: &ColumnDef,
    collation: u16,
    context: &mut BuildContext<'_>,
) -> SqlResult<(ColumnType, bool)> {
    let error = match column_type(&tree.name, &tree.ty, collation, context.utf8mb4) {
        Err(error) if error.code == 1291 && !context.mariadb && !defaults::is_strict(context) => {
            context.diagnostics.note(error);
            return written_type(&tree.name, &tree.ty, collation, context.utf8mb4);
        }
        Err(error) if error.code == 1074 => error,
        found => return found,
    };
    let (from, to, name) = match tree.ty.name {
        TypeName::VarChar => ("VARCHAR", "TEXT", TypeName::Text),
        TypeName::VarBinary => ("VARBINARY", "BLOB", TypeName::Blob),
        _ => return Err(error),
    };
    if defaults::is_strict(context) {
        return Err(error);
    }
    let message = format!("Converting column '{}' from {from} to {to}", tree.name);
    context.diagnostics.note(SqlError::new(1246, b"HY000", message));
    let ty = DataType { name, ..tree.ty.clone() };
    column_type(&tree.name, &ty, collation, context.utf8mb4)
}

/// With `explicit_defaults_for_timestamp=OFF` other servers give a TIMESTAMP column attributes that it was not declared with. Nobody
/// does that here, so that it must have been declared with all of them.
fn refuse_implicit_timestamp(tree: &ColumnDef) -> SqlResult<()> {
    let complete = match tree.nullable {
        Some(true) => true,
        Some(false) => tree.default.is_some() || tree.on_update.is_some(),
        None => tree.generated.is_some(),
    };
    if complete {
        return Ok(());
    }
    let column = &tree.name;
    Err(SqlError::not_supported_yet(format!(
        "explicit_defaults_for_timestamp=OFF for '{column}', which says neither NULL nor NOT NULL with a default"
    )))
}

/// Nullable columns without a clause default to NULL; NOT NULL ones must not have DEFAULT NULL. A `stored` definition
/// says NULL of those that have it, except of blobs.
/// Runs after the keys, because PRIMARY KEY makes its columns NOT NULL.
fn finish_default(column: &mut Column, tree: &ColumnDef, stored: bool) -> SqlResult<()> {
    let dropped = tree.default == Some(DefaultValue::Dropped)
        || stored && (!column.is_blob() || column.ty.kind == ColumnKind::Json);
    match (&column.default, column.nullable) {
        _ if column.generated.is_some() => {}
        (ColumnDefault::None, true) if dropped => {}
        (ColumnDefault::None, true) => column.default = ColumnDefault::Value(Value::Null),
        (ColumnDefault::Value(Value::Null), false) if tree.default.is_some() => {
            return Err(SqlError::invalid_default(&column.name));
        }
        _ => {}
    }
    Ok(())
}

fn check_auto_column(columns: &[Column], indexes: &[Index]) -> SqlResult<()> {
    use ColumnKind as K;
    let mut autos = columns.iter().enumerate().filter(|(_, column)| column.auto_increment);
    let Some((at, column)) = autos.next() else { return Ok(()) };
    let keyed = indexes.iter().any(|index| index.parts.first().is_some_and(|part| part.column == at));
    if autos.next().is_some() || !keyed {
        return Err(SqlError::wrong_auto_key());
    }
    let numeric = matches!(
        column.ty.kind,
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Float | K::Double
    );
    if numeric { Ok(()) } else { Err(SqlError::wrong_field_spec(&column.name)) }
}

/// MySQL's limit on what a row may take outside of blobs.
fn check_row_size(columns: &[Column]) -> SqlResult<()> {
    let size: u64 = columns.iter().map(|column| u64::from(keys::stored_len(&column.ty))).sum();
    if size > 65_535 { Err(SqlError::too_big_rowsize(65_535)) } else { Ok(()) }
}
