//! Names of the outputs of a select list that has no alias for them.

use super::binder::Binder;
use super::scope::{ScopeTable, Source, same};
use omnibus_parser::ast::{ColumnRef, Expr, Literal, UnaryOp};
use std::sync::Arc;

/// The name of an output: of literals what they say, else the text of the expression.
pub(super) fn of(expr: &Expr, text: &[u8], mariadb: bool) -> Arc<str> {
    if let Expr::Function(call) = expr
        && call.schema.is_none()
        && call.name.is("name_const")
        && let Some(Expr::Literal(Literal::Str(name))) = call.args.first()
    {
        return Arc::from(&*String::from_utf8_lossy(name));
    }
    if let Expr::Literal(Literal::Str(value)) = expr
        && mariadb
    {
        return Arc::from(&*String::from_utf8_lossy(value));
    }
    if mariadb {
        return Arc::from(&*String::from_utf8_lossy(text));
    }
    let text = String::from_utf8_lossy(text);
    let name = of_literal(expr, &text).unwrap_or_else(|| text.into_owned());
    Arc::from(shown(&name))
}

/// The name of a column: as it is written, but of what is no stored table as that has it.
pub(super) fn of_column(binder: &Binder<'_>, column: &ColumnRef) -> Arc<str> {
    let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
    let mut others = tables.iter().filter(|table| {
        !has_names_as_written(table) && column.table().is_none_or(|name| *table.alias == **name)
    });
    let own = others.find_map(|table| {
        (0..table.width()).map(|at| table.column_name(at)).find(|name| same(name, &column.name)).cloned()
    });
    own.filter(|_| !binder.session.settings.mariadb).unwrap_or_else(|| Arc::from(&*column.name))
}

/// Tables of `information_schema` that are no views in MySQL.
const BASE_TABLES: &[&str] = &[
    "COLUMN_PRIVILEGES",
    "ENGINES",
    "OPTIMIZER_TRACE",
    "PLUGINS",
    "PROCESSLIST",
    "PROFILING",
    "SCHEMA_PRIVILEGES",
    "TABLESPACES",
    "TABLE_PRIVILEGES",
    "USER_PRIVILEGES",
];

/// Views of `information_schema` among those whose names begin with INNODB_.
const INNODB_VIEWS: &[&str] = &[
    "INNODB_DATAFILES",
    "INNODB_FIELDS",
    "INNODB_FOREIGN",
    "INNODB_FOREIGN_COLS",
    "INNODB_TABLESPACES_BRIEF",
];

/// Whether a table's columns are called as the query calls them: those of stored tables, and of what is no view in MySQL.
fn has_names_as_written(table: &ScopeTable) -> bool {
    let Source::Columns(columns) = &table.source else { return matches!(table.source, Source::Table(_)) };
    let Some(of) = columns.first().map(|column| &*column.org_table) else { return false };
    match &*table.schema {
        "performance_schema" | "mysql" => true,
        "information_schema" if of.starts_with("INNODB_") => !INNODB_VIEWS.contains(&of),
        "information_schema" => BASE_TABLES.contains(&of),
        _ => false,
    }
}

/// Bytes of a name at most.
const LONGEST: usize = 255;

/// MySQL keeps names in utf8mb3, and of long ones what they begin with.
fn shown(name: &str) -> String {
    let mut shown: String = name.chars().map(|c| if c.len_utf8() > 3 { '?' } else { c }).collect();
    shown.truncate(shown.floor_char_boundary(LONGEST));
    shown
}

/// The name of a literal, by itself or behind a plus.
fn of_literal(expr: &Expr, text: &str) -> Option<String> {
    Some(match expr {
        Expr::Unary { op: UnaryOp::Plus, expr } => of_literal(expr, text)?,
        Expr::Literal(Literal::Null) => "NULL".to_owned(),
        Expr::Literal(Literal::Str(value) | Literal::National(value)) => of_text(value, text),
        Expr::Introduced(introduced) => match &introduced.1 {
            Literal::Str(value) => of_text(value, text),
            _ => return None,
        },
        Expr::Literal(Literal::Int(_) | Literal::Decimal(_) | Literal::Float(_)) => {
            text.trim_matches([' ', '+', '(', ')']).to_owned()
        }
        _ => return None,
    })
}

/// A text's name is what its first part says, without the spaces that it begins with.
fn of_text(value: &[u8], text: &str) -> String {
    let name = match first_part(text) {
        Some(part) => part,
        None => String::from_utf8_lossy(value).into_owned(),
    };
    name.trim_start_matches(' ').to_owned()
}

/// The first of several quoted texts that stand one behind the other, if there are several and it has no escapes.
fn first_part(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut part = String::new();
    let mut rest = text[1..].char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '\\' => return None,
            c if c != quote => part.push(c),
            _ if rest.peek().is_some_and(|(_, next)| *next == quote) => {
                rest.next();
                part.push(quote);
            }
            _ => return (at + 2 < text.len()).then_some(part),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &'static str, text: &str) -> String {
        of(&Expr::Literal(Literal::Str(value.as_bytes().into())), text.as_bytes(), false).to_string()
    }

    #[test]
    fn literals_are_named_by_what_they_say() {
        assert_eq!(text("ab", "'a' 'b'"), "a");
        assert_eq!(text("it's x", "'it''s' ' x'"), "it's");
        assert_eq!(text(" a ", "' a '"), "a ");
        assert_eq!(text("\u{1f363}", "'\u{1f363}'"), "?");
        assert_eq!(&*of(&Expr::Literal(Literal::Null), b"null", false), "NULL");
        assert_eq!(&*of(&Expr::Literal(Literal::Int(5)), b"(5)", false), "5");
        assert_eq!(&*of(&Expr::Literal(Literal::True), b"(true)", false), "(true)");
    }
}
