//! System variables: one table-driven registry, the server's values, and each session's.
//!
//! - `def` and `value` are a row of the table and a value; `list_*` are the table, by family. - `store` holds values. - `coerce` turns what SET or an
//!   option gives into a value, with MySQL's errors. - `settings` turns a session's values into
//!   the typed struct that the SQL layer reads. - `persisted`: SET PERSIST. - `computed` makes those that are made when read. - `renamed` has the names
//!   of other versions, `rights` the variables that ask for one, `about` a line of help on each, `recorded` compares the table with real servers'.
//!
//! A variable that is listed and that nothing acts upon is one that clients read (or set) by habit.

mod about;
mod coerce;
mod computed;
mod def;
mod list_binlog;
mod list_charset;
mod list_compat;
mod list_gtid;
mod list_innodb;
mod list_mariadb;
mod list_mysql;
mod list_network;
mod list_performance;
mod list_replica;
mod list_server;
mod list_session;
mod list_storage;
mod list_wsrep;
pub(crate) mod persisted;
#[cfg(test)]
mod recorded;
pub(crate) mod renamed;
pub(crate) mod rights;
mod settings;
mod store;
mod value;

pub(crate) use about::about;
pub use coerce::{Given, coerce};
pub use computed::{ComputedContext, LastStatement, computed};
pub use def::{Change, Kind, Scope, VarDef};
pub(crate) use list_server::AUDIT_PREFIX;
pub(crate) use renamed::in_other_unit;
pub(crate) use settings::{collation_of_utf8mb4, temp_folder};
pub use settings::{isolation_name, session_settings, sql_mode_bits, sql_mode_text};
pub use store::{GlobalVars, SessionVars};
pub use value::{VarValue, double_type, integer_type, text_type};

use omnibus_format::Dialect;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A variable's place in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u16);

/// Every variable, by name.
#[derive(Debug)]
pub struct Registry {
    defs: Vec<&'static VarDef>,
    by_name: HashMap<&'static str, VarId>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let families = [
        list_binlog::VARS,
        list_charset::VARS,
        list_compat::VARS,
        list_gtid::VARS,
        list_innodb::VARS,
        list_mariadb::VARS,
        list_mysql::VARS,
        list_network::VARS,
        list_performance::VARS,
        list_replica::VARS,
        list_server::VARS,
        list_session::VARS,
        list_storage::VARS,
        list_wsrep::VARS,
    ];
    let mut defs: Vec<&'static VarDef> = families.into_iter().flatten().collect();
    defs.sort_by_key(|d| d.name);
    let by_name = defs.iter().enumerate().map(|(i, d)| (d.name, VarId(i as u16))).collect();
    Registry { defs, by_name }
});

impl Registry {
    /// The registry.
    #[must_use]
    pub fn get() -> &'static Registry {
        &REGISTRY
    }

    /// The variable of this name; case does not matter. Old names mean their new variables.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<VarId> {
        if let Some(id) = self.by_name.get(name) {
            return Some(*id);
        }
        let lower = name.to_ascii_lowercase();
        self.by_name.get(renamed::new_name(&lower)).copied()
    }

    /// As `find`, of the variables that a server of this dialect has.
    #[must_use]
    pub fn find_in(&self, name: &str, dialect: Dialect) -> Option<VarId> {
        self.find(name).filter(|id| self.def(*id).is_in(dialect))
    }

    /// The definition of a variable.
    #[must_use]
    pub fn def(&self, id: VarId) -> &'static VarDef {
        self.defs[usize::from(id.0)]
    }

    /// All, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (VarId, &'static VarDef)> + '_ {
        self.defs.iter().enumerate().map(|(i, d)| (VarId(i as u16), *d))
    }
}

/// Values that are known and not supported: refused by name rather than ignored.
pub fn refuse_unsupported(def: &VarDef, given: &VarValue) -> omnibus_sql::SqlResult<()> {
    let refuse = |what: String| Err(omnibus_sql::SqlError::not_supported_yet(what));
    match (def.name, given.as_str()) {
        ("binlog_row_value_options", options) if !options.is_empty() => {
            refuse(format!("{}={options}", def.name))
        }
        // No client has said that it can do without columns: this server does not offer it.
        ("resultset_metadata", "NONE") => Err(omnibus_sql::SqlError::new(
            3640,
            b"HY000",
            "The client doesn't support optional metadata transfer",
        )),
        // Nobody could log in.
        ("protocol_compression_algorithms", "") => {
            Err(omnibus_sql::SqlError::wrong_value_for_var(def.name, ""))
        }
        (name, _) if DEFAULT_ONLY.contains(&name) => {
            let same = given.text().eq_ignore_ascii_case(&def.default.value().text());
            if same { Ok(()) } else { refuse(format!("{name}={}", given.text())) }
        }
        _ => Ok(()),
    }
}

/// Variables that somebody sets to be safe, or to have other results, and that nothing here would act upon: any value but the default is
/// refused, at the start as well.
const DEFAULT_ONLY: &[&str] = &[
    "activate_mandatory_roles",
    "aria_encrypt_tables",
    "authentication_policy",
    "auto_generate_invisible_key",
    // Who makes a routine may always run and drop it.
    "automatic_sp_privileges",
    "binlog_do_db",
    "binlog_ignore_db",
    "caching_sha2_password_enforce_storage_format",
    "caching_sha2_password_storage_format",
    "default_regex_flags",
    "disabled_storage_engines",
    "enable_cascade_triggers",
    "encrypt_binlog",
    "encrypt_tmp_disk_tables",
    "encrypt_tmp_files",
    "enforce_storage_engine",
    "external_table_storage_engine",
    "extra_port",
    "group_replication_consistency",
    "idle_readonly_transaction_timeout",
    "idle_transaction_timeout",
    "idle_write_transaction_timeout",
    "init_connect",
    "init_file",
    "init_replica",
    "innodb_encrypt_log",
    "innodb_encrypt_tables",
    "innodb_encrypt_temporary_tables",
    "innodb_force_primary_key",
    "innodb_force_recovery",
    "innodb_native_foreign_keys",
    "innodb_read_only",
    "innodb_redo_log_encrypt",
    "innodb_rollback_on_timeout",
    "innodb_snapshot_isolation",
    "innodb_undo_log_encrypt",
    "keyring_operations",
    "log_slow_extra",
    "log_slow_replica_statements",
    "log_throttle_queries_not_using_indexes",
    "max_password_errors",
    "max_session_mem_used",
    "max_tmp_session_space_usage",
    "max_tmp_total_space_usage",
    "mysql56_temporal_format",
    "old",
    "old_mode",
    "old_passwords",
    "persist_only_admin_x509_subject",
    "persist_sensitive_variables_in_plaintext",
    "proxy_protocol_networks",
    "redirect_url",
    "replica_allow_higher_version_source",
    "secure_auth",
    "secure_timestamp",
    "skip_character_set_client_handshake",
    "skip_show_database",
    "slave_max_statement_time",
    "slave_run_triggers_for_rbr",
    "sql_if_exists",
    "ssl_capath",
    "ssl_cipher",
    "ssl_crl",
    "ssl_crlpath",
    "ssl_fips_mode",
    "standard_compliant_cte",
    "strict_password_validation",
    "system_versioning_asof",
    "table_encryption_privilege_check",
    "tls_certificates_enforced_validation",
    "tls_ciphersuites",
    "tls_version",
    "wsrep_cluster_address",
    "wsrep_on",
    "wsrep_provider",
    "wsrep_reject_queries",
    "wsrep_sync_wait",
    "xa_detach_on_prepare",
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use omnibus_sql::api::sql_mode;

    #[test]
    fn sql_modes_there_and_back() {
        let bits = settings::sql_mode_bits(list_session::SQL_MODE).unwrap();
        assert_eq!(bits, sql_mode::DEFAULT);
        assert_eq!(settings::sql_mode_text(bits), list_session::SQL_MODE);
        let ansi = settings::sql_mode_text(settings::sql_mode_bits("ansi").unwrap());
        assert_eq!(ansi, "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI");
        assert_eq!(
            settings::sql_mode_bits("NO_AUTO_CREATE_USER, "),
            Ok(0),
            "dump files of older servers set it"
        );
        assert_eq!(settings::sql_mode_bits("STRICT_TRANS_TABLES,WRONG"), Err("WRONG".into()));
    }

    /// Also a guard against names that no variable has any more.
    #[test]
    fn what_nobody_acts_upon_takes_its_default_only() {
        for name in DEFAULT_ONLY {
            let def = Registry::get().def(Registry::get().find(name).unwrap());
            assert_eq!(refuse_unsupported(def, &def.default.value()), Ok(()), "{name}");
            let other = match def.default.value() {
                VarValue::Bool(on) => VarValue::Bool(!on),
                VarValue::UInt(number) => VarValue::UInt(number + 1),
                _ => VarValue::Str("other".into()),
            };
            assert_eq!(refuse_unsupported(def, &other).unwrap_err().code, 1235, "{name}");
        }
    }

    #[test]
    fn each_name_is_there_once_and_takes_its_own_default() {
        let registry = Registry::get();
        for pair in registry.defs.windows(2) {
            assert_ne!(pair[0].name, pair[1].name);
        }
        for def in &registry.defs {
            // 0 bytes of memory for all connections: what the machine has decides.
            if def.name == "global_connection_memory_limit"
                || !matches!(def.kind, Kind::UInt(..) | Kind::Enum(_))
            {
                continue;
            }
            let default = def.default.value();
            let given = Given::Text(default.text());
            assert_eq!(coerce(def, &given), Ok((default, None)), "{}", def.name);
        }
    }

    #[test]
    fn defaults_are_what_execution_has_by_default() {
        let globals = GlobalVars::default();
        let vars = SessionVars::new(&globals);
        let ours = session_settings(&vars, &globals, false, false);
        let theirs = omnibus_sql::SessionSettings::default();
        assert_eq!(format!("{:?}", without_zone(ours)), format!("{:?}", without_zone(theirs)));
    }

    fn without_zone(mut settings: omnibus_sql::SessionSettings) -> omnibus_sql::SessionSettings {
        settings.zone = omnibus_value::temporal::UTC;
        settings
    }

    #[test]
    fn a_session_keeps_its_values_and_sees_new_global_ones_only_when_it_is_new() {
        let globals = GlobalVars::default();
        let id = Registry::get().find("Sql_Select_Limit").unwrap();
        let mut old = SessionVars::new(&globals);
        old.set(id, VarValue::UInt(7));
        globals.set(id, VarValue::UInt(9));
        assert_eq!(old.get(id), &VarValue::UInt(7));
        assert_eq!(SessionVars::new(&globals).get(id), &VarValue::UInt(9));
        assert_eq!(Registry::get().find("tx_isolation"), Registry::get().find("transaction_isolation"));
    }
}
