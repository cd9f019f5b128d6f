//! Comparison of the registry with what real servers list: `testdata/variables`.

#![allow(clippy::unwrap_used)]

use super::{Change, Kind, Registry, Scope, VarDef};
use omnibus_format::Dialect;
use std::collections::BTreeMap;

/// Those that another scope, or another time to be set, than MySQL's fits: they act here, or are read at the start only.
const OTHERWISE_IN_MYSQL: &[&str] = &[
    "authentication_policy",
    "caching_sha2_password_digest_rounds",
    "log_error_services",
    "rbr_exec_mode",
    "replica_pending_jobs_size_max",
    "require_secure_transport",
    "server_id",
    "server_id_bits",
    "ssl_ca",
    "ssl_capath",
    "ssl_cert",
    "ssl_cipher",
    "ssl_crl",
    "ssl_crlpath",
    "ssl_key",
    "tls_ciphersuites",
    "tls_version",
];
/// As above; also those of both dialects that are as MySQL has them.
const OTHERWISE_IN_MARIADB: &[&str] = &[
    "disconnect_on_expired_password",
    "innodb_buffer_pool_filename",
    "innodb_ft_cache_size",
    "innodb_ft_total_cache_size",
    "innodb_log_buffer_size",
    "innodb_log_file_size",
    "innodb_log_write_ahead_size",
    "innodb_purge_threads",
    "innodb_read_io_threads",
    "innodb_write_io_threads",
    "log_queries_not_using_indexes",
    "log_slow_admin_statements",
    "max_relay_log_size",
    "relay_log_recovery",
    "replicate_do_db",
    "replicate_do_table",
    "replicate_ignore_db",
    "replicate_ignore_table",
    "replicate_rewrite_db",
    "replicate_wild_do_table",
    "replicate_wild_ignore_table",
    "require_secure_transport",
    "slow_query_log",
    "sql_log_bin",
];
/// Those whose bounds are this server's own.
const OWN_BOUNDS: &[&str] = &[
    "back_log",
    "explain_json_format_version",
    "global_connection_memory_limit",
    "innodb_buffer_pool_chunk_size",
    "large_page_size",
    "lower_case_table_names",
    "max_execution_time",
    "open_files_limit",
    "performance_schema_digests_size",
    "performance_schema_session_connect_attrs_size",
    "protocol_version",
    "rand_seed1",
    "rand_seed2",
    "replica_parallel_workers",
    "replica_pending_jobs_size_max",
    "rpl_read_size",
    "server_id_bits",
    "thread_stack",
];

/// One line of a recording.
struct Recorded {
    scope: String,
    change: String,
    least: String,
    greatest: String,
}

fn recorded(text: &str) -> BTreeMap<String, Recorded> {
    let lines = text.lines().skip(1).map(|line| {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut next = || fields.next().unwrap();
        let (name, scope, change) = (next(), next(), next());
        let _ = next();
        (name, Recorded { scope, change, least: next(), greatest: next() })
    });
    lines.collect()
}

fn mysql() -> BTreeMap<String, Recorded> {
    recorded(include_str!("../../../../testdata/variables/mysql-9.7.tsv"))
}

fn mariadb() -> BTreeMap<String, Recorded> {
    recorded(include_str!("../../../../testdata/variables/mariadb-11.8.tsv"))
}

fn of(name: &str, dialect: Dialect) -> Option<&'static VarDef> {
    Registry::get().find_in(name, dialect).map(|id| Registry::get().def(id))
}

fn is_as(def: &VarDef, said: &Recorded) -> bool {
    let scope = match def.scope {
        Scope::Global => "GLOBAL",
        Scope::Both => "SESSION",
        Scope::Session => "SESSION_ONLY",
    };
    let change = if def.change == Change::Dynamic { "dynamic" } else { "fixed" };
    (scope, change) == (&*said.scope, &*said.change)
}

#[test]
fn every_variable_of_real_servers_is_known() {
    for (dialect, list) in [(Dialect::Mysql, mysql()), (Dialect::Mariadb, mariadb())] {
        assert!(list.len() > 600, "the recording was read");
        let unknown: Vec<_> = list.keys().filter(|name| of(name, dialect).is_none()).collect();
        assert!(unknown.is_empty(), "{dialect:?}: {unknown:?}");
    }
}

#[test]
fn scopes_and_when_they_may_be_set_are_those_of_real_servers() {
    let mut differ = Vec::new();
    for (dialect, list, otherwise) in
        [(Dialect::Mysql, mysql(), OTHERWISE_IN_MYSQL), (Dialect::Mariadb, mariadb(), OTHERWISE_IN_MARIADB)]
    {
        for (name, said) in &list {
            let def = of(name, dialect).unwrap();
            // Old names mean what the new ones do.
            let same = def.name != name || is_as(def, said);
            if same == otherwise.contains(&name.as_str()) {
                differ.push(format!("{dialect:?} {name}: {} {}", said.scope, said.change));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn bounds_of_integers_are_those_of_mysql() {
    let mut differ = Vec::new();
    for (name, said) in &mysql() {
        let def = of(name, Dialect::Mysql).unwrap();
        let bounds = match def.kind {
            Kind::UInt(least, greatest, _) => (least.to_string(), greatest.to_string()),
            Kind::Int(least, greatest) => (least.to_string(), greatest.to_string()),
            _ => continue,
        };
        let same = def.name != name || bounds == (said.least.clone(), said.greatest.clone());
        if same == OWN_BOUNDS.contains(&name.as_str()) {
            differ.push(format!("{name}: {bounds:?}, {} to {}", said.least, said.greatest));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

/// `docs/use/variables.md` says of each variable without effect, by its name or its family's, what a user should know.
#[test]
fn variables_without_effect_are_documented() {
    let page = include_str!("../../../../docs/use/variables.md");
    let names: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let documented = |name: &str| {
        names.iter().any(|said| match said.split_once('*') {
            Some((start, end)) => name.starts_with(start) && name.ends_with(end) && !start.is_empty(),
            None => *said == name,
        })
    };
    let families = [
        super::list_mysql::VARS,
        super::list_mariadb::VARS,
        super::list_performance::VARS,
        super::list_wsrep::VARS,
        super::list_innodb::VARS,
        super::list_compat::VARS,
    ];
    let missing: Vec<_> =
        families.into_iter().flatten().map(|def| def.name).filter(|name| !documented(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
