//! Expressions of a definition: the form in which they are kept, and what they may be made of.

use super::alter_edit::Edit;
use super::build::check_constraint_name;
use crate::api::client_text::of_client;
use crate::catalog::{
    Catalog, Check, Column, ColumnDefault, ReferenceAction, StoredExpr, Table, TableDef, same_name,
};
use crate::dml::{ExpressionOf, RowExpressions};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::{SESSION, VOLATILE};
use crate::expr::node::{Expr, Kind};
use crate::state::SessionState;
use omnibus_parser::ast::{self, ColumnDef, CreateTable, Ident};
use omnibus_parser::print;
use omnibus_parser::{ParseOptions, Stored, parse_expr};
use std::collections::HashSet;
use std::sync::Arc;

/// Origin of a definition's expression: the collation of the statement's text, and whether it is put in MySQL's words.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub client: u16,
    pub told: bool,
}

/// An expression as a definition keeps it. `owner` and `code` are for the error about what has no such form: a subquery, a window.
pub(super) fn stored(
    expr: &ast::Expr,
    table: &str,
    writer: Writer,
    (code, owner): (u16, &dyn Fn() -> String),
) -> SqlResult<StoredExpr> {
    if print::reads_values(expr) {
        return Err(values_refused(code, &owner()));
    }
    let written = |text: &[u8]| of_client(text, writer.client).into_owned();
    let print = |shown, bytes| print::stored_sql(expr, &Stored { table, written: &written, shown, bytes });
    let text = String::from_utf8_lossy(&print(writer.told, false)).into_owned();
    let tree = parse_expr(&print(false, true), &ParseOptions::default())
        .map_err(|_| SqlError::new(code, b"HY000", format!("{} contains a disallowed function.", owner())))?;
    Ok(StoredExpr { text: text.into(), tree: Arc::new(tree) })
}

/// VALUES(column), which stands for a value only where a row is in the way of another.
fn values_refused(code: u16, owner: &str) -> SqlError {
    let (code, text) = match code {
        3102 => (3763, "a disallowed function: values."),
        3769 => (3770, "a disallowed function: values."),
        3815 => (3814, "disallowed function: values."),
        code => (code, "a disallowed function."),
    };
    SqlError::new(code, b"HY000", format!("{owner} contains {text}"))
}

/// The checks of a tree, with names: those of columns stand among those of the table, as MySQL has them.
pub(super) fn build_checks(tree: &CreateTable, writer: Writer, mariadb: bool) -> SqlResult<Vec<Check>> {
    let table = &*tree.name.name;
    let prefix = if mariadb { "CONSTRAINT_".to_owned() } else { format!("{table}_chk_") };
    // MariaDB shows JSON columns as texts with such a check: it is another way to write the type.
    let of_type = |column: &ColumnDef, check: &ast::Check| {
        mariadb
            && check.name.is_none()
            && print::sql(&check.expr) == format!("json_valid(`{}`)", column.name).into_bytes()
    };
    let of_columns = tree
        .columns
        .iter()
        .flat_map(|column| column.checks.iter().filter(move |check| !of_type(column, check)));
    let mut all: Vec<&ast::Check> = of_columns.chain(&tree.checks).collect();
    all.sort_by_key(|check| (check.name.is_none(), check.at));
    let of_column = |check: &ast::Check| {
        let mut columns = tree.columns.iter();
        columns.find(|column| column.checks.iter().any(|own| std::ptr::eq(own, check)))
    };
    let number = |name: &str| name.strip_prefix(&prefix)?.parse::<u32>().ok();
    let mut last = all.iter().filter_map(|check| number(check.name.as_deref()?)).max().unwrap_or(0);
    let mut checks: Vec<Check> = Vec::new();
    for check in all {
        let name = match &check.name {
            Some(name) => name.to_string(),
            None => {
                last += 1;
                format!("{prefix}{last}")
            }
        };
        check_constraint_name(&name)?;
        if checks.iter().any(|other| same_name(&other.name, &name)) {
            let message = format!("Duplicate check constraint name '{name}'.");
            return Err(SqlError::new(3822, b"HY000", message));
        }
        if let (Some(column), false) = (of_column(check), mariadb)
            && !print::column_names(&check.expr).iter().all(|read| same_name(read, &column.name))
        {
            let message = format!("Column check constraint '{name}' references other column.");
            return Err(SqlError::new(3813, b"HY000", message));
        }
        let owner = || format!("An expression of a check constraint '{name}'");
        let expr = stored(&check.expr, table, writer, (3815, &owner))?;
        checks.push(Check { name: name.into(), expr, enforced: check.enforced });
    }
    checks.sort_by_key(|check| check.name.to_lowercase());
    Ok(checks)
}

/// The checks of a definition under the table's new name: those with generated names follow it.
///
/// # Errors
/// 1059: such a name is too long.
pub(super) fn rename_checks(old: &TableDef, new: &mut TableDef) -> SqlResult<()> {
    let (from, to) = (format!("{}_chk_", old.name), format!("{}_chk_", new.name));
    for check in &mut new.checks {
        if let Some(number) = check.name.strip_prefix(&*from)
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            check.name = format!("{to}{number}").into();
            check_constraint_name(&check.name)?;
        }
    }
    Ok(())
}

/// Fails if a generated column has what it cannot have beside its expression.
pub(super) fn refuse_beside_generated(tree: &ColumnDef) -> SqlResult<()> {
    let Some(generated) = &tree.generated else { return Ok(()) };
    let beside = if tree.default.is_some() {
        "DEFAULT"
    } else if tree.auto_increment {
        "AUTO_INCREMENT"
    } else if tree.on_update.is_some() {
        "ON UPDATE"
    } else if tree.primary_key && !generated.stored {
        return Err(virtual_primary_key());
    } else {
        return Ok(());
    };
    let message = format!("Incorrect usage of {beside} and generated column");
    Err(SqlError::new(1221, b"HY000", message))
}

fn virtual_primary_key() -> SqlError {
    let message =
        "'Defining a virtual generated column as primary key' is not supported for generated columns.";
    SqlError::new(3106, b"HY000", message)
}

/// Checks what the expressions of a new definition are made of, and what beside them stands in their way.
pub(super) fn check_expressions(
    table: &Arc<Table>,
    session: &SessionState,
    catalog: &Catalog,
) -> SqlResult<()> {
    check_keys(&table.def)?;
    let expressions =
        RowExpressions::bind(table, session, catalog, None).map_err(|error| unknown_column(error, table))?;
    let Some(expressions) = expressions else { return Ok(()) };
    expressions.each(|one, expr| check_expression(&table.def, one, expr))
}

/// A column that is not there has a code of its own in a check.
fn unknown_column(error: SqlError, table: &Table) -> SqlError {
    if error.code != 1054 || !error.message.ends_with("'check constraint expression'") {
        return error;
    }
    let column = error.message.split('\'').nth(1).unwrap_or_default();
    let reads = |check: &&Check| check.expr.text.contains(&format!("`{}`", column.replace('.', "`.`")));
    let name = table.def.checks.iter().find(reads).map_or("", |check| &check.name);
    let message = format!("Check constraint '{name}' refers to non-existing column '{column}'.");
    SqlError::new(3820, b"HY000", message)
}

fn check_expression(def: &TableDef, one: ExpressionOf<'_>, expr: &Expr) -> SqlResult<()> {
    let mut found = Ok(());
    expr.walk(&mut |e| {
        if found.is_ok() {
            found = check_node(def, one, e);
        }
    });
    found
}

fn check_node(def: &TableDef, one: ExpressionOf<'_>, e: &Expr) -> SqlResult<()> {
    let function = match &e.kind {
        Kind::Column { column, .. } => return check_read(def, one, usize::from(*column)),
        Kind::UserVariable(_) | Kind::SystemVariable(_) | Kind::Assign(_) => {
            return Err(refused(def, one, Refused::Variable));
        }
        Kind::Sequence(_) if matches!(one, ExpressionOf::Default(_)) => return Ok(()),
        Kind::Sequence(call) => call.what.name().to_owned(),
        Kind::Stored(call) => call.written.to_string(),
        Kind::Param(_) | Kind::Local(_) | Kind::Subquery(_) => {
            return Err(refused(def, one, Refused::Something));
        }
        Kind::ServerCall(name, _) => name.to_lowercase(),
        Kind::Call(called, args) => {
            let anew = called.traits & VOLATILE != 0;
            // CURRENT_DATE and its kind: what takes no arguments and knows the session.
            let told = called.traits & SESSION != 0 && called.min == 0;
            let told = told && (called.name != "UNIX_TIMESTAMP" || args.is_empty())
                || called.name.starts_with("STATEMENT_DIGEST");
            let refused = match one {
                ExpressionOf::Default(_) => {
                    anew && !matches!(
                        called.name,
                        "UUID" | "UUID_SHORT" | "RAND" | "RANDOM_BYTES" | "SYSDATE"
                    )
                }
                _ => anew || told,
            };
            if !refused {
                return Ok(());
            }
            called.name.to_lowercase()
        }
        _ => return Ok(()),
    };
    Err(refused(def, one, Refused::Function(&function)))
}

/// An expression may not read what is computed after it, nor a number that the row gets last of all.
fn check_read(def: &TableDef, one: ExpressionOf<'_>, read: usize) -> SqlResult<()> {
    let column = &def.columns[read];
    if column.auto_increment {
        return Err(refused(def, one, Refused::AutoIncrement));
    }
    match one {
        ExpressionOf::Generated(at) if column.generated.is_some() && read >= at => {
            let message = "Generated column can refer only to generated columns defined prior to it.";
            Err(SqlError::new(3107, b"HY000", message))
        }
        ExpressionOf::Default(at) if column.is_computed() && read >= at => {
            let message = format!(
                "Default value expression of column '{}' cannot refer to a column defined after it if that column is a generated column or has an expression as default value.",
                def.columns[at].name
            );
            Err(SqlError::new(3767, b"HY000", message))
        }
        _ => Ok(()),
    }
}

/// Why an expression is refused.
enum Refused<'a> {
    Function(&'a str),
    Variable,
    AutoIncrement,
    Something,
}

fn refused(def: &TableDef, one: ExpressionOf<'_>, why: Refused<'_>) -> SqlError {
    let codes: [u16; 4];
    let what = match one {
        ExpressionOf::Generated(at) if def.columns[at].is_hidden() => {
            let index = def.indexes.iter().find(|index| index.parts.iter().any(|part| part.column == at));
            let index = index.map_or("", |index| &index.name);
            return match why {
                Refused::AutoIncrement => SqlError::new(
                    3754,
                    b"HY000",
                    format!("Functional index '{index}' cannot refer to an auto-increment column."),
                ),
                _ => SqlError::new(
                    3758,
                    b"HY000",
                    format!("Expression of functional index '{index}' contains a disallowed function."),
                ),
            };
        }
        ExpressionOf::Generated(at) => {
            codes = [3763, 3765, 3109, 3102];
            match why {
                Refused::AutoIncrement => format!("Generated column '{}'", def.columns[at].name),
                _ => format!("Expression of generated column '{}'", def.columns[at].name),
            }
        }
        ExpressionOf::Default(at) => {
            codes = [3770, 3772, 3768, 3769];
            format!("Default value expression of column '{}'", def.columns[at].name)
        }
        ExpressionOf::Check(check) => {
            codes = [3814, 3816, 3818, 3815];
            match why {
                Refused::AutoIncrement => format!("Check constraint '{}'", check.name),
                _ => format!("An expression of a check constraint '{}'", check.name),
            }
        }
    };
    let check = matches!(one, ExpressionOf::Check(_));
    let (code, message) = match why {
        Refused::Function(name) if check => {
            (codes[0], format!("{what} contains disallowed function: {name}."))
        }
        Refused::Function(name) => (codes[0], format!("{what} contains a disallowed function: {name}.")),
        Refused::Variable if check => {
            (codes[1], format!("{what} cannot refer to a user or system variable."))
        }
        Refused::Variable => (codes[1], format!("{what} cannot refer user or system variables.")),
        Refused::AutoIncrement => (codes[2], format!("{what} cannot refer to an auto-increment column.")),
        Refused::Something if check => (codes[3], format!("{what} contains disallowed function.")),
        Refused::Something => (codes[3], format!("{what} contains a disallowed function.")),
    };
    SqlError::new(code, b"HY000", message)
}

/// Keys over generated columns, and foreign keys whose actions would change a row without its definition's expressions.
fn check_keys(def: &TableDef) -> SqlResult<()> {
    let generated = |at: &usize| def.columns[*at].generated.as_ref();
    if def.indexes[0].kind == crate::catalog::IndexKind::Primary
        && def.indexes[0].parts.iter().any(|part| generated(&part.column).is_some_and(|g| !g.stored))
    {
        return Err(virtual_primary_key());
    }
    for key in &def.foreign_keys {
        let changes = |action| matches!(action, ReferenceAction::SetNull | ReferenceAction::Cascade);
        let clause = if key.on_delete == ReferenceAction::SetNull {
            "ON DELETE SET NULL".to_owned()
        } else if changes(key.on_update) {
            format!("ON UPDATE {}", key.on_update.name())
        } else {
            String::new()
        };
        for at in &key.columns {
            let column = &def.columns[*at];
            if column.generated.as_ref().is_some_and(|generated| !generated.stored) {
                let message = format!(
                    "Foreign key '{}' uses virtual column '{}' which is not supported.",
                    key.name, column.name
                );
                return Err(SqlError::new(3733, b"HY000", message));
            }
            if column.generated.is_some() && !clause.is_empty() {
                let message =
                    format!("Cannot define foreign key with {clause} clause on a generated column.");
                return Err(SqlError::new(3104, b"HY000", message));
            }
            let cascades = key.on_delete == ReferenceAction::Cascade;
            let base_of_stored = def
                .columns
                .iter()
                .filter_map(|c| c.generated.as_ref())
                .any(|generated| generated.stored && reads(&generated.expr, &column.name));
            if base_of_stored && (cascades || !clause.is_empty()) {
                return Err(SqlError::new(1215, b"HY000", "Cannot add foreign key constraint"));
            }
            if clause.is_empty() {
                continue;
            }
            if def.columns.iter().filter_map(|c| c.generated.as_ref()).any(|g| reads(&g.expr, &column.name)) {
                let message = "Cannot add foreign key on the base column of a generated column: \
                               its action would change the column without computing the other";
                return Err(SqlError::new(3192, b"HY000", message));
            }
            if let Some(check) = def.checks.iter().find(|check| reads(&check.expr, &column.name)) {
                let message = format!(
                    "Column '{}' cannot be used in a check constraint '{}': needed in a foreign key constraint '{}' referential action.",
                    column.name, check.name, key.name
                );
                return Err(SqlError::new(3823, b"HY000", message));
            }
        }
    }
    Ok(())
}

/// Whether an expression reads a column.
pub(super) fn reads(expr: &StoredExpr, column: &str) -> bool {
    print::column_names(&expr.tree).iter().any(|read| same_name(read, column))
}

/// Fails if one of a table's own expressions is in the way of columns that go or get other names. A check of the dropped column alone goes
/// with it.
pub(super) fn check_dependents(old: &TableDef, edit: &mut Edit) -> SqlResult<()> {
    let dropped = edit.dropped_columns.clone();
    let renamed = edit.renamed.iter().filter(|(from, to)| !same_name(from, to)).map(|(from, _)| from.clone());
    // Hundreds of columns may go at once.
    let gone: HashSet<String> = dropped.iter().map(|name| name.to_lowercase()).collect();
    let goes = |name: &str| gone.contains(&name.to_lowercase());
    let computed: Vec<&Column> =
        old.columns.iter().filter(|other| other.is_computed() && !goes(&other.name)).collect();
    let checks: Vec<_> =
        old.checks.iter().map(|check| (check, print::column_names(&check.expr.tree))).collect();
    for column in dropped.iter().cloned().chain(renamed) {
        for other in computed.iter().filter(|other| !same_name(&other.name, &column)) {
            let stays = |expr: &StoredExpr| reads(expr, &column) && edit.keeps(&other.name, expr);
            if other.generated.as_ref().is_some_and(|generated| stays(&generated.expr)) {
                let message = format!("Column '{column}' has a generated column dependency.");
                return Err(SqlError::new(3108, b"HY000", message));
            }
            if matches!(&other.default, ColumnDefault::Expression(expr) if stays(expr)) {
                let message = format!(
                    "Column '{column}' of table '{}' has a default value expression dependency and cannot be dropped or renamed.",
                    old.name
                );
                return Err(SqlError::new(3766, b"HY000", message));
            }
        }
        let named = |names: &[Ident]| names.iter().any(|read| same_name(read, &column));
        for (check, names) in checks.iter().filter(|(_, names)| named(names)) {
            let Some(at) = edit.find_check(&check.name) else { continue };
            let alone = names.iter().all(|read| same_name(read, &column));
            if alone && goes(&column) {
                edit.tree.checks.remove(at);
                continue;
            }
            let message = format!(
                "Check constraint '{}' uses column '{column}', hence column cannot be dropped or renamed.",
                check.name
            );
            return Err(SqlError::new(3959, b"HY000", message));
        }
    }
    Ok(())
}
