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

/// Names in backticks, some of families: `innodb_*`.
fn named_on(page: &str) -> Vec<&str> {
    page.split('`').skip(1).step_by(2).collect()
}

fn is_named(name: &str, names: &[&str]) -> bool {
    names.iter().any(|said| match said.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end) && !start.is_empty(),
        None => *said == name,
    })
}

/// Those that act, as `docs/use/sql.md` and the options' lines have them.
fn acting() -> Vec<&'static VarDef> {
    let page = include_str!("../../../../docs/use/sql.md");
    let (_, list) = page.split_once("Those that act:").unwrap();
    let (list, _) = list.split_once("Refused with 1235").unwrap();
    let names = named_on(list);
    let acts = |def: &&VarDef| is_named(def.name, &names) || super::about(def.name).is_some();
    Registry::get().iter().map(|(_, def)| def).filter(acts).collect()
}

/// `docs/use/variables.md` says of each variable without effect, by its name or its family's, what a user should know.
#[test]
fn variables_without_effect_are_documented() {
    let inert = named_on(include_str!("../../../../docs/use/variables.md"));
    let acting: Vec<&str> = acting().into_iter().map(|def| def.name).collect();
    let all = Registry::get().iter().map(|(_, def)| def.name);
    let missing: Vec<_> = all.filter(|name| !acting.contains(name) && !is_named(name, &inert)).collect();
    assert!(missing.is_empty(), "neither inert nor acting: {missing:?}");
}

/// A variable that acts is on no row of that page, or its family's row says that it acts.
#[test]
fn variables_that_act_are_not_said_to_have_no_effect() {
    let page = include_str!("../../../../docs/use/sql.md");
    let named = named_on(page);
    let by_name = |def: &&VarDef| named.contains(&def.name) || super::about(def.name).is_some();
    let acting: Vec<&str> = acting().into_iter().filter(by_name).map(|def| def.name).collect();
    let rows = include_str!("../../../../docs/use/variables.md").lines();
    for (names, what) in rows.filter_map(|row| row.strip_prefix("| `")?.split_once(" | ")) {
        let (names, what) = (format!("`{names}"), named_on(what));
        let names = named_on(&names);
        let wrong: Vec<_> = acting
            .iter()
            .filter(|name| is_named(name, &names) && (names.contains(*name) || !what.contains(*name)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?} act, and are said to have no effect");
    }
}

/// Sources that list names of variables and do not read their values.
const LISTS: &[&str] = &[
    "bind/uses.rs",
    "connection/hints.rs",
    "session/set_for.rs",
    "sysvars/mod.rs",
    "sysvars/persisted.rs",
    "sysvars/recorded.rs",
    "sysvars/renamed.rs",
    "sysvars/rights.rs",
];
/// Those that are read by names which are put together.
const READ_BY_PARTS: &[&str] =
    &["character_set_", "collation_", "rpl_semi_sync_source_", super::AUDIT_PREFIX];
/// Those whose value is what another one makes of it.
const READ_AS_OTHERS: &[(&str, &str)] =
    &[("expire_logs_days", "binlog_expire_logs_seconds"), ("log_bin_basename", "binlog_name")];

fn sources(folder: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            sources(&path, text);
        } else if name.ends_with(".rs")
            && !name.contains("/sysvars/list_")
            && !LISTS.iter().any(|list| name.ends_with(list))
        {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// A variable that is said to act is read somewhere.
#[test]
fn variables_that_act_have_a_reader() {
    let server = std::path::PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap());
    let mut text = String::new();
    sources(&server.join("src"), &mut text);
    sources(&server.join("../sql/src"), &mut text);
    let is_read = |name: &str| {
        READ_BY_PARTS.iter().any(|part| name.starts_with(part)) || text.contains(&format!("\"{name}\""))
    };
    let read_as =
        |name: &str| READ_AS_OTHERS.iter().find(|(as_is, _)| *as_is == name).map_or("", |found| found.1);
    let unread: Vec<_> = acting()
        .into_iter()
        .map(|def| def.name)
        .filter(|name| !is_read(name) && !is_read(read_as(name)))
        .collect();
    assert!(unread.is_empty(), "{unread:?}");
}
