//! Options: names, values, files, mistakes.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::sysvars::Registry;

fn run(args: &[&str]) -> Result<ServerOptions, OptionError> {
    parse(&args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>(), &[])
}

#[test]
fn names_values_and_switches() {
    let o = run(&[
        "--port=3307",
        "--max_connections",
        "5000",
        "--max-allowed-packet=1G",
        "--skip-binlog-order-commits",
        "--skip-networking",
        "--log-bin=mylog",
        "--loose-some-plugin=1",
        "--sql-mode=ANSI",
        "--collation-server=utf8mb4_bin",
    ])
    .unwrap();
    assert_eq!(o.places().port, 3307);
    assert_eq!(o.globals.named("max_connections").as_u64(), 5000);
    assert_eq!(o.globals.named("max_allowed_packet").as_u64(), 1 << 30);
    assert!(!o.globals.named("binlog_order_commits").as_bool());
    assert_eq!(o.bind_address(), "");
    assert_eq!(o.globals.named("binlog_name").as_str(), "mylog");
    assert!(o.globals.named("sql_mode").as_str().contains("ANSI_QUOTES"));
    assert_eq!(o.warnings.len(), 1);
}

#[test]
fn plugins_that_are_not_here_have_no_effect() {
    let o =
        run(&["--mysqlx=0", "--skip-mysqlx", "--mysqlx-port=33060", "--plugin-load=a=a.so", "--innodb-x=1"])
            .unwrap();
    assert_eq!(o.warnings.len(), 5, "{:?}", o.warnings);
    assert!(run(&["--mysqlxy=0"]).is_err());
    assert!(run(&["--innodb-lock-wait-timeout=20"]).unwrap().warnings.is_empty(), "one that is here");
    let told = run(&["--innodb-lock-wait-timeot=20"]).unwrap_err().0;
    assert!(
        told.ends_with("'--innodb-lock-wait-timeot'; did you mean '--innodb-lock-wait-timeout'?"),
        "{told}"
    );
    assert_eq!(
        run(&["--innodb-lock-schedule-algorithm=fcfs"]).unwrap().warnings.len(),
        1,
        "near nothing that acts"
    );
}

#[test]
fn a_variable_without_a_value_and_an_option_without_one_are_taken() {
    // As SET PERSIST keeps it.
    let o = run(&["--external-table-storage-engine=NULL", "--admin-ssl-ca=NULL"]).unwrap();
    assert!(matches!(o.globals.named("admin_ssl_ca"), crate::sysvars::VarValue::Null));
    assert_eq!(
        run(&["--dialect=mariadb", "--log-warnings"]).unwrap().globals.named("log_warnings").as_u64(),
        1
    );
}

#[test]
fn logs_are_kept_for_days_or_seconds() {
    let both = |option: &str| {
        let o = run(&["--dialect=mariadb", option]).unwrap();
        (o.globals.named("expire_logs_days").text(), o.globals.named("binlog_expire_logs_seconds").as_u64())
    };
    assert_eq!(both("--expire-logs-days=10"), ("10.000000".into(), 864_000));
    assert_eq!(both("--expire-logs-days=0"), ("0.000000".into(), 0), "never");
    assert_eq!(both("--binlog-expire-logs-seconds=43200"), ("0.500000".into(), 43_200));
    assert_eq!(both("--port=1"), ("30.000000".into(), 2_592_000));
}

#[test]
fn a_server_is_started_for_something() {
    assert_eq!(run(&[]).unwrap().task, Task::Serve);
    assert_eq!(run(&["--initialize-insecure", "--port=1"]).unwrap().task, Task::Initialize);
    let version = run(&["--version", "--dialect=mariadb"]).unwrap();
    assert_eq!(version.task, Task::Version);
    assert!(version.version().contains("Ver 11.") && version.version().contains("MariaDB"));
    assert!(run(&["--initialize"]).unwrap_err().0.contains("--initialize-insecure"));
}

#[test]
fn mistakes_are_named() {
    let message = |args: &[&str]| run(args).unwrap_err().0;
    assert_eq!(
        message(&["--sync-binlgo=1"]),
        "command line: unknown option '--sync-binlgo'; did you mean '--sync-binlog'?"
    );
    assert!(message(&["--hlep"]).ends_with("did you mean '--help'?"));
    assert!(message(&["--gtid-mode=YES"]).contains("one of OFF, OFF_PERMISSIVE, ON_PERMISSIVE, ON"));
    assert!(message(&["--enforce-gtid-consistency=OFF"]).contains("enforce_gtid_consistency=ON"));
    assert!(run(&["--enforce-gtid-consistency=WARN", "--gtid-mode=ON_PERMISSIVE"]).is_ok());
    assert!(run(&["--enforce-gtid-consistency", "--gtid-mode=ON"]).is_ok());
    assert!(message(&["--binlog-checksum=MD5"]).contains("one of NONE, CRC32"));
    assert!(message(&["--max-connections=many"]).contains("number"));
    assert!(message(&["--port"]).contains("missing"));
    assert!(message(&["stray"]).contains("stray"));
    assert!(message(&["--gtid-executed=x"]).contains("can't be set"));
    assert!(message(&["--datadir="]).contains("datadir"));
    assert!(message(&["--replicate-rewrite-db=a"]).contains("from->to"));
    assert!(message(&["--replicate-wild-do-table=a"]).contains("database.table"));
    assert!(message(&["--defaults-file=/nonexistent/my.cnf"]).contains("/nonexistent/my.cnf"));
}

#[test]
fn files_have_groups_comments_quotes_and_includes() {
    let folder = std::env::temp_dir().join(format!("omnibus-options-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("d")).unwrap();
    std::fs::write(folder.join("d/x.cnf"), "[omnibus]\nserver-id = 42\n").unwrap();
    let main = folder.join("my.cnf");
    std::fs::write(
        &main,
        "# comment\n[client]\nport=1\n[mysqld]\nport = 3310 # behind\nskip-networking\ndatadir='/x y'\n!includedir d\n",
    )
    .unwrap();
    let arg = format!("--defaults-file={}", main.display());
    let o = run(&[&arg, "--port=3311"]).unwrap();
    assert_eq!(o.places().port, 3311, "arguments win over files");
    assert_eq!(o.globals.named("datadir").as_str(), "/x y");
    assert_eq!(o.globals.named("server_id").as_u64(), 42);
    std::fs::write(&main, "[server]\nprot = 1\n").unwrap();
    let error = run(&[&arg]).unwrap_err().0;
    assert!(error.contains("my.cnf:2") && error.contains("--port"), "{error}");
    for wrong in ["port = 1\n[mysqld]\n", "[mysqld\nport = 1\n", "[mysqld] port = 1\n"] {
        std::fs::write(&main, wrong).unwrap();
        let error = run(&[&arg]).unwrap_err().0;
        assert!(error.contains("my.cnf:1"), "{wrong}: {error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_default_is_a_value_of_its_variable() {
    let mut before = "";
    for (_, def) in Registry::get().iter() {
        assert_ne!(def.name, before, "listed twice");
        before = def.name;
        let value = def.default.value();
        let given = match &value {
            VarValue::Null => continue,
            v => crate::sysvars::Given::Text(v.text()),
        };
        let (again, warning) =
            crate::sysvars::coerce(def, &given).unwrap_or_else(|e| panic!("{}: {e}", def.name));
        assert!(warning.is_none(), "{}: default out of bounds", def.name);
        assert_eq!(again.text(), value.text(), "{}", def.name);
    }
}

#[test]
fn a_name_that_is_not_known_is_what_is_told_and_not_its_value() {
    for args in [&["--prot", "16510"][..], &["--prot=16510"]] {
        let told = run(args).unwrap_err().0;
        assert!(told.contains("'--prot'") && told.contains("did you mean '--port'?"), "{told}");
    }
    let o = run(&["--loose-nothing-of-this-name", "5", "--port=1"]).unwrap();
    assert_eq!((o.places().port, o.warnings.len()), (1, 1));
    assert!(run(&["--skip-networking", "5"]).unwrap_err().0.contains("unexpected argument '5'"));
}
