//! The tables that a statement changes, for table filters.

use omnibus_parser::ParseOptions;
use omnibus_parser::ast::{ObjectName, Statement, TableRef};
use omnibus_replication::model::StatementView;
use omnibus_sql::api::sql_mode;

type Named = (Vec<u8>, Vec<u8>);

/// `(database, table)` of each; `database` is the default one. None for statements that change no table.
pub(super) fn changed_tables(statement: &dyn StatementView, database: &[u8]) -> Vec<Named> {
    let options = {
        let mode = statement.sql_mode().unwrap_or(0);
        ParseOptions {
            ansi_quotes: mode & sql_mode::ANSI_QUOTES != 0,
            no_backslash_escapes: mode & sql_mode::NO_BACKSLASH_ESCAPES != 0,
            ..ParseOptions::default()
        }
    };
    let Ok(parsed) = omnibus_parser::parse(statement.sql(), &options) else { return Vec::new() };
    let mut names = Vec::new();
    for statement in &parsed {
        collect(&statement.node, &mut names);
    }
    names.into_iter().map(|name| qualified(name, database)).collect()
}

fn qualified(name: &ObjectName, database: &[u8]) -> Named {
    let schema = name.schema.as_ref().map_or(database, |schema| schema.as_bytes());
    (schema.to_vec(), name.name.as_bytes().to_vec())
}

fn collect<'a>(statement: &'a Statement, names: &mut Vec<&'a ObjectName>) {
    match statement {
        Statement::Insert(insert) => names.push(&insert.table),
        Statement::Update(update) => update.tables.iter().for_each(|table| tables(table, names)),
        Statement::Delete(delete) if delete.targets.is_empty() => {
            delete.from.iter().for_each(|table| tables(table, names));
        }
        Statement::Delete(delete) => names.extend(&delete.targets),
        Statement::LoadData(load) => names.push(&load.table),
        Statement::CreateTable(create) => names.push(&create.name),
        Statement::AlterTable(alter) => names.push(&alter.table),
        Statement::DropTable(drop) | Statement::DropView(drop) => names.extend(&drop.tables),
        Statement::CreateIndex(create) => names.push(&create.table),
        Statement::DropIndex(drop) => names.push(&drop.table),
        Statement::Truncate(table) => names.push(table),
        Statement::RenameTable(pairs) => {
            names.extend(pairs.iter().flat_map(|(from, to)| [from, to]));
        }
        _ => {}
    }
}

fn tables<'a>(table: &'a TableRef, names: &mut Vec<&'a ObjectName>) {
    match table {
        TableRef::Table(factor) => names.push(&factor.name),
        TableRef::Join(join) => {
            tables(&join.left, names);
            tables(&join.right, names);
        }
        TableRef::Group(members) => members.iter().for_each(|member| tables(member, names)),
        TableRef::Derived(_) => {}
    }
}
