//! The real `mariadb` client: transports, plugins, TLS, passwords (AUTH-1, AUTH-2), statements of the server's own.
#![allow(clippy::unwrap_used)]

mod common;
use common::{start, wide_rows};

#[test]
fn socket_tcp_and_tls() {
    let s = start(&[]);
    assert_eq!(s.ask(&["-uroot"], "SELECT 1, 'a', NULL"), "1\ta\tNULL");
    assert_eq!(s.ask(&["-uroot", "-h127.0.0.1", "--skip-ssl"], "SELECT 2; SELECT 3"), "2\n3");
    let tls = ["-uroot", "-h127.0.0.1", "--ssl", "--skip-ssl-verify-server-cert"];
    assert!(s.ask(&tls, "SHOW SESSION STATUS").contains("TLS"));
    assert!(s.ask(&["-uroot"], "SELECT @@version").starts_with("8.4.0-omnibus"));
    assert!(s.fail(&["-uroot", "-Dnowhere"], "SELECT 1").contains("Unknown database 'nowhere'"));
    s.ask(&["-uroot"], "CREATE DATABASE here");
    assert_eq!(s.ask(&["-uroot", "-Dhere"], "SELECT 1"), "1");
}

#[test]
fn both_plugins_over_every_transport() {
    let s = start(&[]);
    let root = ["-uroot"];
    s.ask(&root, "CREATE USER n IDENTIFIED WITH mysql_native_password BY 'pw n', c IDENTIFIED BY 'pw\\'c'");
    let transports: [&[&str]; 3] =
        [&[], &["-h127.0.0.1", "--skip-ssl"], &["-h127.0.0.1", "--ssl", "--skip-ssl-verify-server-cert"]];
    for transport in transports {
        for (user, password) in [("-un", "-ppw n"), ("-uc", "-ppw'c")] {
            let mut args = vec![user, password];
            args.extend_from_slice(transport);
            // Twice: the second time through the cache of caching_sha2_password.
            assert_eq!(s.ask(&args, "SELECT 5"), "5", "{args:?}");
            assert_eq!(s.ask(&args, "SELECT 6"), "6", "{args:?}");
            args[1] = "-pwrong";
            let denied = s.fail(&args, "SELECT 5");
            assert!(denied.contains("1045 (28000)") && denied.contains("(using password: YES)"), "{denied}");
            args.remove(1);
            let denied = s.fail(&args, "SELECT 5");
            assert!(denied.contains("(using password: NO)"), "{denied}");
        }
        let mut args = vec!["-unobody", "-px"];
        args.extend_from_slice(transport);
        let denied = s.fail(&args, "SELECT 5");
        assert!(
            denied.contains("Access denied for user 'nobody'@'localhost' (using password: YES)"),
            "{denied}"
        );
    }
    s.ask(&root, "ALTER USER c IDENTIFIED BY 'new'");
    assert!(s.fail(&["-uc", "-ppw'c"], "SELECT 1").contains("1045"), "the cache forgets a changed password");
    assert_eq!(s.ask(&["-uc", "-pnew"], "SET PASSWORD = 'newer'; SELECT 1"), "1");
    assert_eq!(s.ask(&["-uc", "-pnewer"], "SELECT 1"), "1");
    s.ask(&root, "ALTER USER c ACCOUNT LOCK");
    assert!(s.fail(&["-uc", "-pnewer"], "SELECT 1").contains("3118"));
}

#[test]
fn accounts_and_privileges() {
    let s = start(&[]);
    let root = ["-uroot"];
    s.ask(&root, "CREATE USER u IDENTIFIED BY 'p'; GRANT CREATE, SELECT ON d.* TO u");
    let u = ["-uu", "-pp"];
    assert_eq!(
        s.ask(&u, "SHOW GRANTS"),
        "GRANT USAGE ON *.* TO `u`@`%`\nGRANT SELECT, CREATE ON `d`.* TO `u`@`%`"
    );
    s.ask(&u, "CREATE DATABASE d");
    assert!(s.fail(&u, "CREATE DATABASE e").contains("1044"));
    assert!(s.fail(&u, "CREATE USER v").contains("1227"));
    assert!(s.fail(&u, "SET GLOBAL sync_binlog=0").contains("1227"));
    assert!(s.fail(&u, "SHUTDOWN").contains("SHUTDOWN"));
    assert!(s.fail(&u, "SHOW GRANTS FOR root@localhost").contains("1044"));
    assert!(s.fail(&u, "GRANT SELECT ON d.* TO root@localhost").contains("1044"));
    assert!(s.fail(&root, "GRANT SELECT ON *.* TO nobody").contains("1410"));
    assert!(s.fail(&root, "CREATE USER u").contains("1396"));
    assert!(s.fail(&root, "DROP USER nobody").contains("1396"));
    assert!(s.fail(&root, "REVOKE SELECT ON e.* FROM u").contains("1141"));
    s.ask(&root, "REVOKE CREATE ON d.* FROM u; RENAME USER u TO w@localhost");
    assert_eq!(
        s.ask(&root, "SHOW GRANTS FOR w@localhost"),
        "GRANT USAGE ON *.* TO `w`@`localhost`\nGRANT SELECT ON `d`.* TO `w`@`localhost`"
    );
    assert!(
        s.ask(&root, "SHOW CREATE USER w@localhost")
            .contains("IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$")
    );
    s.ask(&root, "DROP USER w@localhost");
    assert!(s.fail(&["-uw", "-pp"], "SELECT 1").contains("1045"));
}

#[test]
fn variables() {
    let s = start(&["--sync-binlog=7"]);
    let root = ["-uroot"];
    assert_eq!(
        s.ask(&root, "SELECT @@global.sync_binlog, @@autocommit, @@character_set_client"),
        "7\t1\tutf8mb4"
    );
    assert_eq!(
        s.ask(&root, "SET SESSION sql_mode='ansi', autocommit=0, @x=5; SELECT @@autocommit, @x"),
        "0\t5"
    );
    assert_eq!(s.ask(&root, "SET GLOBAL sync_binlog=DEFAULT; SELECT @@sync_binlog"), "1");
    assert_eq!(
        s.ask(&root, "SET @old=@@sql_select_limit, sql_select_limit=5; SELECT @@sql_select_limit, @old"),
        "5\t18446744073709551615"
    );
    assert_eq!(
        s.ask(&root, "SET NAMES latin1; SELECT @@collation_connection, @@character_set_results"),
        "latin1_swedish_ci\tlatin1"
    );
    assert_eq!(
        s.ask(&root, "SET max_error_count=99999; SHOW WARNINGS"),
        "Warning\t1292\tTruncated incorrect max_error_count value: '99999'"
    );
    for (sql, code) in [
        ("SET nonsense=1", "1193"),
        ("SET version='x'", "1238"),
        ("SET GLOBAL timestamp=1", "1228"),
        ("SET sync_binlog=1", "1229"),
        ("SET autocommit=7", "1231"),
        ("SET sql_mode='NONSENSE'", "1231"),
        ("SET wait_timeout='abc'", "1232"),
        ("SET NAMES klingon", "1115"),
        ("SET NAMES utf8mb4 COLLATE latin1_bin", "1253"),
        ("SET collation_connection='x'", "1273"),
        ("SET time_zone='Mars/Base'", "1298"),
        ("SET binlog_format=TEXT", "1231"),
        ("SELECT @@session.sync_binlog", "1238"),
        ("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "1568"),
        ("BEGIN; SET sql_log_bin=0", "1694"),
        ("SET autocommit=0, sql_select_limit='x'", "1232"),
    ] {
        let error = s.fail(&root, sql);
        assert!(error.contains(code), "{sql}: {error}");
    }
    assert_eq!(s.ask(&root, "SET GLOBAL max_connections=77; SELECT @@max_connections"), "77");
    assert!(s.ask(&root, "SHOW BINARY LOG STATUS").starts_with("binlog.000001"));
    assert!(s.ask(&root, "SHOW PRIVILEGES").contains("Replication slave"));
}

#[test]
fn statements_follow_one_another_and_stop_at_an_error() {
    let s = start(&[]);
    let multi = &["-uroot", "--delimiter=//"];
    assert_eq!(s.ask(multi, "SELECT 1; SELECT 2"), "1\n2");
    let out = s.client(multi, "SELECT 1; SELECT nonsense(1); SELECT 2");
    assert!(!out.status.success(), "the third is not run");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "1\n");
    assert!(s.fail(&["-uroot"], "SELEKT 1").contains("1064 (42000)"));
    assert_eq!(s.ask(&["-uroot"], &wide_rows(20_000)).lines().count(), 20_000);
    let admin = std::process::Command::new("mariadb-admin")
        .args([
            "--no-defaults",
            "-uroot",
            &format!("--socket={}", s.socket.display()),
            "ping",
            "status",
            "flush-logs",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&admin.stdout);
    assert!(text.contains("mysqld is alive") && text.contains("Queries per second avg"), "{text}");
}

#[test]
fn kill_ends_queries_and_connections() {
    let s = start(&[]);
    let find =
        || s.server.processes.all().into_iter().find(|p| p.line(0).info.is_some_and(|i| i.contains("sleep")));
    for (connection, code) in [(false, "1317"), (true, "1317")] {
        let failed = std::thread::scope(|scope| {
            let waiting = scope
                .spawn(|| s.fail(&["-uroot"], "SELECT 'sleep', SLEEP(1) FROM information_schema.collations"));
            let process = loop {
                if let Some(process) = find() {
                    break process;
                }
                std::thread::yield_now();
            };
            let what = if connection { "KILL" } else { "KILL QUERY" };
            s.ask(&["-uroot"], &format!("{what} {}", process.id));
            waiting.join().unwrap()
        });
        assert!(failed.contains(code), "{failed}");
    }
    assert!(s.fail(&["-uroot"], "KILL 999999").contains("1094"));
}

#[test]
fn the_server_stops_when_asked() {
    let s = start(&[]);
    s.ask(&["-uroot"], "SHUTDOWN");
    let refused = loop {
        let out = s.client(&["-uroot"], "SELECT 1");
        if !out.status.success() {
            break String::from_utf8_lossy(&out.stderr).into_owned();
        }
    };
    assert!(refused.contains("2002") || refused.contains("1053") || refused.contains("2013"), "{refused}");
}
