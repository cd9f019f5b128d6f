//! Accounts: matching, privileges, statements.
#![allow(clippy::unwrap_used)]

use super::grants::{self, DB_PRIVILEGES, DbGrant, Privileges, by_name};
use super::host::{HostPattern, covers, like};
use super::table::{AccessTable, Account};
use super::*;
use crate::net::ClientHost;
use std::net::IpAddr;

fn client(ip: &str) -> ClientHost {
    ClientHost::from_ip(ip.parse::<IpAddr>().unwrap())
}

#[test]
fn like_has_no_surprises() {
    for (text, pattern, expected) in [
        ("abc", "abc", true),
        ("abc", "a%", true),
        ("abc", "%c", true),
        ("abc", "a_c", true),
        ("abc", "a_d", false),
        ("a%c", "a\\%c", true),
        ("abc", "a\\%c", false),
        ("", "%", true),
        ("", "_", false),
        ("aaaaaaaaab", "%a%a%a%a%b", true),
        ("test_1", "test\\_1", true),
        ("ä1", "_1", true),
        ("ä", "__", false),
        ("xäö", "x__", true),
        ("äxy", "%__xy", false),
        ("€uro😀", "_uro_", true),
    ] {
        assert_eq!(like(text.as_bytes(), pattern.as_bytes()), expected, "{text} LIKE {pattern}");
    }
}

#[test]
fn a_pattern_covers_what_it_cannot_miss() {
    for (outer, inner, expected) in [
        ("a_", "a%", false),
        ("a_", "a_", true),
        ("a%", "a_", true),
        ("a%", "ab", true),
        ("a%", "%", false),
        ("%", "%", true),
        ("a\\_", "a_", false),
        ("a_", "a\\_", true),
        ("a%b", "a%%b", true),
        ("a%b", "a_%b", true),
        ("a_b", "a%b", false),
        ("_", "ä", true),
        ("__", "ä", false),
        ("ab", "abc", false),
        ("", "", true),
        ("%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%a", "%%%%%%%%%%%%%%%%%%%%%%%%%%%%%b", false),
    ] {
        assert_eq!(covers(outer, inner), expected, "{outer} covers {inner}");
    }
}

#[test]
fn nobody_gives_away_more_databases_than_they_have() {
    let mut a = Account::new("u", "%");
    let all = DB_PRIVILEGES;
    a.grants.databases.push(DbGrant { pattern: "a_".into(), privileges: all });
    assert_eq!(a.rights().on_databases_of("a%"), Privileges::NONE);
    assert_eq!(a.rights().on_databases_of("a\\_"), all);
    a.grants.databases.push(DbGrant { pattern: "b%".into(), privileges: all });
    assert_eq!(a.rights().on_databases_of("b_c"), all);
}

#[test]
fn names_without_an_account_have_plugins_as_accounts_have() {
    // AUTH-1
    let account = |n: usize| {
        let plugin = if n < 3 { "mysql_native_password" } else { "caching_sha2_password" };
        let mut account = Account::new(&format!("u{n}"), "%");
        account.credentials.plugin = plugin.into();
        account.credentials.auth = vec![n as u8];
        account
    };
    let table = AccessTable::build((0..10).map(account).collect(), false);
    let plugin = |n: usize| table.decoy_plugin(&format!("name{n}"));
    let native = (0..1000).filter(|n| plugin(*n) == "mysql_native_password").count();
    assert!((200..400).contains(&native), "{native} of 1000");
    assert_eq!(plugin(7), plugin(7));
    assert_eq!(AccessTable::build(vec![Account::root()], false).decoy_plugin("x"), "caching_sha2_password");
}

#[test]
fn administrators_are_changed_by_administrators() {
    let (root, mut clerk) = (Account::root(), Account::new("clerk", "%"));
    clerk.grants.privileges = Privileges::CREATE_USER;
    assert_eq!(clerk.may_change(&root).unwrap_err().code, 1227);
    assert!(clerk.may_change(&Account::new("u", "%")).is_ok() && root.may_change(&root).is_ok());
}

#[test]
fn every_privilege_of_other_servers_has_a_name_here() {
    for name in include_str!("../../testdata/privileges.txt").lines().filter(|line| !line.starts_with('#')) {
        assert!(by_name(name).is_some() || name == "Proxy", "{name}");
    }
    // Taken, and no more than that.
    assert_eq!(by_name("DELETE HISTORY"), Some(Privileges::NONE));
}

#[test]
fn hosts_match_by_name_address_network_and_pattern() {
    for (pattern, ip, expected) in [
        ("localhost", "127.0.0.1", true),
        ("localhost", "::1", true),
        ("localhost", "10.0.0.1", false),
        ("127.0.0.1", "127.0.0.1", true),
        ("10.0.0.%", "10.0.0.7", true),
        ("10.0.0.%", "10.0.1.7", false),
        ("10.0.0.0/255.255.255.0", "10.0.0.9", true),
        ("10.0.0.0/24", "10.0.1.9", false),
        ("%", "8.8.8.8", true),
        ("10.0.0.1", "::ffff:10.0.0.1", true),
    ] {
        assert_eq!(HostPattern::new(pattern).matches(&client(ip)), expected, "{pattern} {ip}");
    }
    assert!(HostPattern::new("localhost").matches(&ClientHost::local()));
    assert!(!HostPattern::new("127.0.0.1").matches(&ClientHost::local()));
}

#[test]
fn the_most_specific_account_wins() {
    let table = AccessTable::build(
        [("u", "%"), ("u", "10.%"), ("u", "10.0.0.1"), ("", "localhost"), ("u", "10.0.%")]
            .map(|(u, h)| Account::new(u, h))
            .into(),
        false,
    );
    let host = |ip: &str| table.find("u", &client(ip)).unwrap().host.as_str().to_owned();
    assert_eq!(host("10.0.0.1"), "10.0.0.1");
    assert_eq!(host("10.0.0.2"), "10.0.%");
    assert_eq!(host("10.1.0.2"), "10.%");
    assert_eq!(host("11.1.0.2"), "%");
    assert_eq!(table.find("u", &ClientHost::local()).unwrap().user, "", "host before name, as in MySQL");
    assert!(table.find("v", &client("10.0.0.1")).is_none());
}

#[test]
fn root_is_reachable_from_this_machine_only() {
    let table = AccessTable::build(vec![Account::root()], false);
    assert!(table.find("root", &ClientHost::local()).is_some());
    assert!(table.find("root", &client("127.0.0.1")).is_some());
    assert!(table.find("root", &client("192.168.1.2")).is_none());
    assert!(!table.knows_host(&client("192.168.1.2")));
}

#[test]
fn database_grants_add_to_global_ones() {
    let mut a = Account::new("u", "%");
    a.grants.databases.push(DbGrant { pattern: "app\\_%".into(), privileges: Privileges::SELECT });
    a.grants.databases.push(DbGrant { pattern: "app_1".into(), privileges: Privileges::INSERT });
    assert_eq!(a.rights().on_database("app_2"), Privileges::SELECT);
    assert_eq!(a.rights().on_database("app_1"), Privileges::INSERT, "the exact name hides the pattern");
    assert_eq!(a.rights().on_database("appx1"), Privileges::INSERT, "an unescaped underscore is a wildcard");
    assert!(a.rights().sees_database("app_2") && !a.rights().sees_database("mysql"));
    a.grants.privileges = Privileges::UPDATE;
    assert!(a.rights().on_database("app_2").has(Privileges::UPDATE.with(Privileges::SELECT)));
}

#[test]
fn grants_are_printed_as_statements() {
    let mut a = Account::new("it's", "%");
    assert_eq!(show_grants(&a), ["GRANT USAGE ON *.* TO `it's`@`%`"]);
    a.grants.privileges = Privileges::SELECT.with(Privileges::BINLOG_ADMIN).with(Privileges::GRANT_OPTION);
    a.grants
        .databases
        .push(DbGrant { pattern: "d".into(), privileges: DB_PRIVILEGES.without(Privileges::GRANT_OPTION) });
    assert_eq!(
        show_grants(&a),
        [
            "GRANT SELECT ON *.* TO `it's`@`%` WITH GRANT OPTION",
            "GRANT BINLOG_ADMIN ON *.* TO `it's`@`%` WITH GRANT OPTION",
            "GRANT ALL PRIVILEGES ON `d`.* TO `it's`@`%`",
        ]
    );
    let root = show_grants(&Account::root());
    assert!(
        root[0].starts_with("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, SHUTDOWN, PROCESS")
    );
    assert!(root[0].ends_with("CREATE ROLE, DROP ROLE ON *.* TO `root`@`localhost` WITH GRANT OPTION"));
}

#[test]
fn every_privilege_has_one_bit_and_a_name() {
    let sum: u32 = PRIVILEGES.iter().map(|p| p.bit.0.count_ones()).sum();
    assert_eq!(grants::all().0.count_ones(), sum);
    for p in PRIVILEGES {
        assert_eq!(by_name(p.name), Some(p.bit));
    }
    assert_eq!(by_name("usage"), Some(Privileges::NONE));
    assert_eq!(by_name("nonsense"), None);
}

#[test]
fn changes_are_kept_and_seen_at_once() {
    let accounts = Accounts::open(Box::new(MemoryStore::new(vec![Account::root()]))).unwrap();
    let before = accounts.table();
    accounts.change(|_| Ok((vec![Record::Put(Box::new(Account::new("u", "%")))], vec![]))).unwrap();
    assert_eq!((before.len(), accounts.table().len()), (1, 2), "readers keep the table they have");
    accounts.change(|_| Ok((vec![Record::Delete { user: "u".into(), host: "%".into() }], vec![]))).unwrap();
    assert!(accounts.table().exact("u", "%").is_none());
}
