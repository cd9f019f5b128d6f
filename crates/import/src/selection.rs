//! The choice of databases and tables.

use crate::error::ImportError;
use crate::quote;

/// The databases that every server has for itself.
pub(crate) const SYSTEM: [&str; 5] =
    ["information_schema", "mysql", "performance_schema", "sys", "omnibus_import"];

/// A table by its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableName {
    pub database: String,
    pub table: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

impl TableName {
    /// As it stands in statements.
    pub(crate) fn quoted(&self) -> String {
        quote::table(&self.database, &self.table)
    }
}

/// The databases, tables and exceptions that the user named; without names, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    databases: Vec<String>,
    tables: Vec<TableName>,
    exclude: Vec<TableName>,
    exclude_databases: Vec<String>,
}

impl Selection {
    /// Reads the options: databases, tables as `database.table`, and exceptions of either form.
    ///
    /// # Errors
    /// A table without a database, or both databases and tables.
    pub fn new(
        databases: &[String],
        tables: &[String],
        exclude: &[String],
    ) -> Result<Selection, ImportError> {
        if !databases.is_empty() && !tables.is_empty() {
            return Err(ImportError::Usage("--databases and --tables exclude each other".into()));
        }
        let split = |text: &String| {
            text.split_once('.').map(|(d, t)| TableName { database: d.into(), table: t.into() })
        };
        let tables = tables.iter().map(|text| {
            split(text).ok_or_else(|| ImportError::Usage(format!("--tables {text}: it is database.table")))
        });
        Ok(Selection {
            databases: databases.to_vec(),
            tables: tables.collect::<Result<_, _>>()?,
            exclude: exclude.iter().filter_map(split).collect(),
            exclude_databases: exclude.iter().filter(|text| !text.contains('.')).cloned().collect(),
        })
    }

    /// Returns whether anything of the database may be meant.
    pub(crate) fn has_database(&self, name: &str) -> bool {
        !SYSTEM.iter().any(|system| system.eq_ignore_ascii_case(name))
            && !self.exclude_databases.iter().any(|excluded| excluded == name)
            && (self.databases.is_empty() || self.databases.iter().any(|chosen| chosen == name))
            && (self.tables.is_empty() || self.tables.iter().any(|chosen| chosen.database == name))
    }

    /// Returns whether a table or view is meant.
    pub(crate) fn has(&self, name: &TableName) -> bool {
        self.has_database(&name.database)
            && (self.tables.is_empty() || self.tables.contains(name))
            && !self.exclude.contains(name)
    }

    /// Returns whether whole databases are meant, so that their routines and events are.
    pub(crate) fn whole_databases(&self) -> bool {
        self.tables.is_empty()
    }

    /// Leaves tables out, beside those that the user named.
    pub(crate) fn leave_out(&mut self, tables: &[TableName]) {
        self.exclude
            .extend(tables.iter().filter(|table| !self.exclude.contains(table)).cloned().collect::<Vec<_>>());
    }

    /// The choice as a text, to compare it with another run's.
    pub(crate) fn shown(&self) -> String {
        let names =
            |tables: &[TableName]| tables.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        format!(
            "databases={} tables={} exclude={},{}",
            self.databases.join(","),
            names(&self.tables),
            names(&self.exclude),
            self.exclude_databases.join(",")
        )
    }

    /// Returns the names that were chosen and are not among the tables.
    pub(crate) fn missing(&self, databases: &[String], tables: &[TableName]) -> Vec<String> {
        let mut missing: Vec<String> =
            self.databases.iter().filter(|d| !databases.contains(d)).cloned().collect();
        missing.extend(self.tables.iter().filter(|t| !tables.contains(t)).map(ToString::to_string));
        missing
    }

    /// Returns the rules of a replica that follows the same things, as in CHANGE REPLICATION FILTER.
    pub(crate) fn filters(&self, accounts: bool) -> Vec<String> {
        let mut rules = Vec::new();
        let wild = |names: Vec<String>| names.iter().map(|n| quote::text(n)).collect::<Vec<_>>().join(", ");
        let pattern = |database: &str| {
            format!("{}.%", database.replace('\\', "\\\\").replace('_', "\\_").replace('%', "\\%"))
        };
        if !self.databases.is_empty() {
            let all = self.databases.iter().map(|d| pattern(d)).collect();
            rules.push(format!("REPLICATE_WILD_DO_TABLE = ({})", wild(all)));
        }
        if !self.tables.is_empty() {
            rules.push(format!("REPLICATE_DO_TABLE = ({})", list(&self.tables)));
        }
        if !self.exclude.is_empty() {
            rules.push(format!("REPLICATE_IGNORE_TABLE = ({})", list(&self.exclude)));
        }
        let mut ignored: Vec<String> = self.exclude_databases.iter().map(|d| pattern(d)).collect();
        if !accounts {
            ignored.push("mysql.%".into());
        }
        if !ignored.is_empty() {
            rules.push(format!("REPLICATE_WILD_IGNORE_TABLE = ({})", wild(ignored)));
        }
        rules
    }
}

/// Tables as a list in a filter.
pub(crate) fn list(tables: &[TableName]) -> String {
    tables.iter().map(TableName::quoted).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn table(database: &str, table: &str) -> TableName {
        TableName { database: database.into(), table: table.into() }
    }

    #[test]
    fn what_is_chosen_is_meant_and_nothing_else() {
        let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let all = Selection::new(&[], &[], &[]).unwrap();
        assert!(all.has(&table("a", "b")) && !all.has_database("mysql") && all.filters(true).is_empty());
        let some = Selection::new(&strings(&["a_b"]), &[], &strings(&["a_b.log", "x"])).unwrap();
        assert!(
            some.has(&table("a_b", "t")) && !some.has(&table("a_b", "log")) && !some.has(&table("x", "t"))
        );
        assert_eq!(
            some.filters(false),
            [
                "REPLICATE_WILD_DO_TABLE = ('a\\\\_b.%')",
                "REPLICATE_IGNORE_TABLE = (`a_b`.`log`)",
                "REPLICATE_WILD_IGNORE_TABLE = ('x.%', 'mysql.%')"
            ]
        );
        let few = Selection::new(&[], &strings(&["a.t"]), &[]).unwrap();
        assert!(few.has(&table("a", "t")) && !few.has(&table("a", "u")) && !few.whole_databases());
        assert_eq!(few.missing(&[], &[]), ["a.t"]);
        assert!(Selection::new(&strings(&["a"]), &strings(&["a.t"]), &[]).is_err());
        assert!(Selection::new(&[], &strings(&["t"]), &[]).is_err());
    }
}
