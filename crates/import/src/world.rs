//! The two servers of an import, and what was learnt of the source.

use crate::channel::Reach;
use crate::error::ImportError;
use crate::facts::{self, Facts};
use crate::options::{Follow, Options};
use crate::schema::TARGET_MODE;
use crate::selection::{Selection, TableName};
use crate::session::{Server, Session};
use crate::table::{self, Table};
use std::collections::BTreeSet;

/// Both sides, and the choices.
pub(crate) struct World {
    pub source: Server,
    pub target: Server,
    pub facts: Facts,
    pub selection: Selection,
    pub options: Options,
}

const SOURCE_SETTINGS: [&str; 9] = [
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = ''",
    "SET SESSION sql_quote_show_create = 1",
    // A target that is away for a while must not cost the snapshot.
    "SET SESSION net_write_timeout = 86400",
    "SET SESSION wait_timeout = 86400",
    "SET SESSION max_execution_time = 0",
    "SET SESSION max_statement_time = 0",
    // Sizes as they are now, not as they were a day ago.
    "SET SESSION information_schema_stats_expiry = 0",
];
const TARGET_SETTINGS: [&str; 9] = [
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = '+00:00'",
    TARGET_MODE,
    "SET SESSION foreign_key_checks = 0",
    "SET SESSION unique_checks = 0",
    "SET SESSION check_constraint_checks = 0",
    // A row of many megabytes is a transaction by itself, and unlogged ones stay in memory.
    "SET SESSION tmp_table_size = 4294967296",
    "SET SESSION max_heap_table_size = 4294967296",
    "SET SESSION wait_timeout = 86400",
];

impl World {
    /// Connects to both servers and looks at the source.
    pub(crate) fn find(options: Options) -> Result<World, ImportError> {
        let mut source = Server::find("the source", options.from.clone())?;
        source.set(&SOURCE_SETTINGS);
        let mut target = Server::find("the target", options.to.clone())?;
        target.set(&TARGET_SETTINGS);
        if !target.omnibus {
            return Err(ImportError::Refused(format!(
                "--to is a server {}: an import is into Omnibus (`omnibus serve`)",
                target.version
            )));
        }
        if !options.details.log {
            target.set(&["SET SESSION sql_log_bin = 0"]);
            if target.session()?.value("SELECT @@SESSION.sql_log_bin")? != "0" {
                return Err(ImportError::Refused(
                    "the target's account may not SET sql_log_bin = 0: use one that may (root), or --log"
                        .into(),
                ));
            }
        }
        let facts = facts::look(&source, &mut source.session()?)?;
        let selection = options.selection.clone();
        Ok(World { source, target, facts, selection, options })
    }

    /// Returns whether the target follows the source behind the copy.
    pub(crate) fn follows(&self) -> bool {
        self.options.follow != Follow::No
    }

    /// The source as the target reaches it.
    pub(crate) fn reach(&self) -> Result<Reach, ImportError> {
        let endpoint = &self.options.from.endpoint;
        let given = &self.options.source_for_target;
        let (host, port) = match (&given.address, &endpoint.socket) {
            (Some(address), _) => address.clone(),
            (None, None) => (endpoint.host.clone(), endpoint.port),
            (None, Some(_)) => {
                return Err(ImportError::Usage(
                    "--from is a socket, which the target cannot follow: say --source-address HOST:PORT, or --no-follow"
                        .into(),
                ));
            }
        };
        let (user, password) =
            given.account.clone().unwrap_or_else(|| (endpoint.user.clone(), endpoint.password.clone()));
        let ca = endpoint.tls.ca.as_ref().map(|path| path.display().to_string());
        // What the command found out by trying is what the target uses.
        let tls = endpoint.tls.required && self.source_has_tls()?;
        Ok(Reach { host, port, user, password, tls, ca })
    }

    fn source_has_tls(&self) -> Result<bool, ImportError> {
        if !self.options.from.may_be_plain {
            return Ok(true);
        }
        let cipher = self.source.session()?.first("SHOW SESSION STATUS LIKE 'Ssl_cipher'")?;
        Ok(cipher.is_some_and(|row| row.get(1).is_some_and(|name| !name.is_empty())))
    }

    /// Describes the chosen tables.
    pub(crate) fn tables(
        &self,
        session: &mut Session,
        databases: &[(String, String)],
    ) -> Result<Vec<Table>, ImportError> {
        let mut found = Vec::new();
        for (database, _) in databases {
            let all = table::describe(session, database)?;
            found.extend(all.into_iter().filter(|table| self.selection.has(&table.name)));
        }
        Ok(found)
    }

    /// Takes out of `keep` what depends by foreign keys on tables that are not in it: what a parent's change does to its
    /// children need not be in the log, so a child is right only beside its parent.
    pub(crate) fn close(
        &self,
        session: &mut Session,
        keep: &mut BTreeSet<String>,
    ) -> Result<(), ImportError> {
        let references: Vec<(String, String)> = session
            .texts(
                "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME \
                 FROM information_schema.REFERENTIAL_CONSTRAINTS",
            )?
            .into_iter()
            .map(table::take)
            .map(|[d, t, rd, rt]| {
                let name = |database, table| TableName { database, table }.to_string();
                (name(d, t), name(rd, rt))
            })
            .collect();
        without_orphans(&references, keep);
        Ok(())
    }
}

fn without_orphans(references: &[(String, String)], keep: &mut BTreeSet<String>) {
    loop {
        let orphan = references.iter().find(|(child, parent)| keep.contains(child) && !keep.contains(parent));
        let Some((child, _)) = orphan else { return };
        keep.remove(child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IMPORT-1: a child whose parent is copied anew is copied anew, too.
    #[test]
    fn children_are_kept_only_beside_their_parents() {
        let of = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        let references: Vec<(String, String)> =
            [("b", "a"), ("c", "b"), ("d", "d"), ("e", "x")].map(|(c, p)| (c.into(), p.into())).to_vec();
        let mut keep = of(&["b", "c", "d", "f"]);
        without_orphans(&references, &mut keep);
        assert_eq!(keep, of(&["d", "f"]));
        let mut keep = of(&["a", "b", "c"]);
        without_orphans(&references, &mut keep);
        assert_eq!(keep.len(), 3);
    }
}
