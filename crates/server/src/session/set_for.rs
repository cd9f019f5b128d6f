//! SET STATEMENT .. FOR: variables of the session that are so for one statement.
//!
//! The statement behind FOR runs as if it stood alone, and is logged alone: its context carries what the log carries of the
//! variables, and other servers need not know the form.

use super::Session;
use crate::admin::set_statement;
use crate::connection::{Replied, SessionShared};
use crate::parsed::parse;
use crate::server::Server;
use crate::sysvars::{Registry, VarId, VarValue};
use omnibus_parser::ast::{SetItem, SetStatement};
use omnibus_sql::{SqlError, SqlResult};

/// Variables of a transaction or of the connection, and those that another one goes with.
const NOT_FOR_ONE: &[&str] = &[
    "autocommit",
    "completion_type",
    "gtid_next",
    "insert_id",
    "last_insert_id",
    "pseudo_replica_mode",
    "pseudo_slave_mode",
    "rand_seed1",
    "rand_seed2",
    "rbr_exec_mode",
    "skip_replication",
    "transaction_isolation",
    "transaction_read_only",
];

impl Session {
    /// Runs the statement and adds its reply. The variables are as before then, whatever became of it.
    pub(crate) async fn set_for(&mut self, tree: &SetStatement, more: bool) -> Replied {
        let (parsed, _) = match parse(&mut self.sql, &tree.text) {
            Ok(parsed) => parsed,
            Err(error) => return self.failed(error),
        };
        let before = match kept(&self.server, &self.settings.shared, &tree.items) {
            Ok(before) => before,
            Err(error) => return self.failed(error),
        };
        let replied = match set_statement(&mut self.admin(), &tree.items).await {
            Ok(()) => self.run_statement(&parsed, more).await,
            Err(error) => self.failed(error),
        };
        for (id, value) in before {
            self.settings.shared.set_with_companions(id, Registry::get().def(id), value);
        }
        self.admin().apply_settings();
        replied
    }
}

/// The variables as they are now.
fn kept(server: &Server, shared: &SessionShared, items: &[SetItem]) -> SqlResult<Vec<(VarId, VarValue)>> {
    let registry = Registry::get();
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        let SetItem::System { name, .. } = item else { continue };
        let id = registry.find_in(name, server.log.dialect());
        let id = id.ok_or_else(|| SqlError::unknown_system_variable(name))?;
        let def = registry.def(id);
        if NOT_FOR_ONE.contains(&def.name)
            || def.name.starts_with("character_set_")
            || def.name.starts_with("collation_")
        {
            let message = format!("The system variable {name} cannot be set in SET STATEMENT.");
            return Err(SqlError::new(1971, b"42000", message));
        }
        kept.push((id, shared.vars.lock().get(id).clone()));
    }
    Ok(kept)
}
