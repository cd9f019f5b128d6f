//! The tables that a statement changes, for table filters.

use omnibus_parser::ParseOptions;
use omnibus_parser::ast::{ObjectName, SetItem, Statement, TableFactor, TableRef, Update};
use omnibus_replication::model::StatementView;
use omnibus_replication::replica::Changed;
use omnibus_sql::api::sql_mode;

/// In the order in which the statement names them; `database` is the default one.
pub(super) fn changed_tables(statement: &dyn StatementView, database: &[u8]) -> Changed {
    let options = {
        let mode = statement.sql_mode().unwrap_or(0);
        ParseOptions {
            ansi_quotes: mode & sql_mode::ANSI_QUOTES != 0,
            no_backslash_escapes: mode & sql_mode::NO_BACKSLASH_ESCAPES != 0,
            ..ParseOptions::default()
        }
    };
    let client = statement.collations().map_or(0, |[client, ..]| client);
    let text = omnibus_sql::api::client_text::to_parser(statement.sql(), client);
    let mut parsed = omnibus_parser::parse(&text, &options).unwrap_or_default();
    while let [only] = &*parsed
        && let Statement::SetStatement(tree) = &only.node
    {
        parsed = omnibus_parser::parse(&tree.text, &options).unwrap_or_default();
    }
    let mut names = Vec::new();
    for statement in &parsed {
        match &statement.node {
            Statement::CreateDatabase(create) => return Changed::Database(create.name.as_bytes().to_vec()),
            Statement::DropDatabase { name, .. } => return Changed::Database(name.as_bytes().to_vec()),
            Statement::AlterDatabase(alter) => {
                let name = alter.name.as_ref().map_or(database, |name| name.as_bytes());
                return Changed::Database(name.to_vec());
            }
            statement if changes_accounts(statement) => {
                return Changed::Tables(vec![(b"mysql".to_vec(), b"user".to_vec())]);
            }
            statement => collect(statement, &mut names),
        }
    }
    let qualified = |name: &ObjectName| {
        let schema = name.schema.as_ref().map_or(database, |schema| schema.as_bytes());
        (schema.to_vec(), name.name.as_bytes().to_vec())
    };
    Changed::Tables(names.into_iter().map(qualified).collect())
}

fn changes_accounts(statement: &Statement) -> bool {
    match statement {
        Statement::Set(items) => items.iter().any(|item| matches!(item, SetItem::Password { .. })),
        other => other.is_about_accounts(),
    }
}

fn collect<'a>(statement: &'a Statement, names: &mut Vec<&'a ObjectName>) {
    match statement {
        Statement::Insert(insert) => names.push(&insert.table),
        Statement::Update(update) => updated(update, names),
        Statement::Delete(delete) => {
            let from = factors(&delete.from);
            if delete.targets.is_empty() {
                return names.extend(from.iter().map(|factor| &factor.name));
            }
            for target in &delete.targets {
                let meant = from.iter().find(|factor| {
                    factor
                        .alias
                        .as_ref()
                        .is_some_and(|alias| target.schema.is_none() && *alias == target.name)
                });
                names.push(meant.map_or(target, |factor| &factor.name));
            }
        }
        Statement::LoadData(load) => names.push(&load.table),
        Statement::CreateTable(create) => names.push(&create.name),
        Statement::CreateView(view) => names.push(&view.name),
        Statement::AlterTable(alter) => names.push(&alter.table),
        Statement::DropTable(drop) | Statement::DropView(drop) => names.extend(&drop.tables),
        Statement::CreateSequence(create) => names.push(&create.name),
        Statement::AlterSequence(alter) => names.push(&alter.name),
        Statement::DropSequence(drop) => names.extend(&drop.tables),
        Statement::CreateIndex(create) => names.push(&create.table),
        Statement::DropIndex(drop) => names.push(&drop.table),
        Statement::Truncate(table) => names.push(table),
        Statement::RenameTable(pairs) => {
            names.extend(pairs.iter().flat_map(|(from, to)| [from, to]));
        }
        _ => {}
    }
}

/// Of several tables those that get new values; all, where a column does not say whose it is.
fn updated<'a>(update: &'a Update, names: &mut Vec<&'a ObjectName>) {
    let all = factors(&update.tables);
    let is_set = |factor: &TableFactor| {
        let known_as = factor.alias.as_ref().unwrap_or(&factor.name.name);
        update.assignments.iter().any(|set| set.column.table().is_none_or(|table| table == known_as))
    };
    names.extend(all.iter().filter(|factor| is_set(factor)).map(|factor| &factor.name));
}

fn factors(tables: &[TableRef]) -> Vec<&TableFactor> {
    fn walk<'a>(table: &'a TableRef, found: &mut Vec<&'a TableFactor>) {
        match table {
            TableRef::Table(factor) => found.push(factor),
            TableRef::Join(join) => {
                walk(&join.left, found);
                walk(&join.right, found);
            }
            TableRef::Group(members) => members.iter().for_each(|member| walk(member, found)),
            TableRef::Derived(_) | TableRef::JsonTable(_) => {}
        }
    }
    let mut found = Vec::new();
    tables.iter().for_each(|table| walk(table, &mut found));
    found
}
