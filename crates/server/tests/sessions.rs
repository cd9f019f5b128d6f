//! The assembled server with the real SQL layer, engine and log: what a session promises.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

struct Running {
    child: Child,
    socket: std::path::PathBuf,
}

/// Starts the example program on `folder`, and waits until it is ready.
fn start(folder: &Path) -> Running {
    let program = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("examples/serve.rs");
    assert!(program.exists());
    let own = std::env::current_exe().unwrap();
    let serve = own.parent().unwrap().parent().unwrap().join("examples/serve");
    let socket = folder.join("s.sock");
    let mut child = Command::new(serve)
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--socket={}", socket.display()))
        .args(["--skip-networking", "--binlog-preallocate=0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("ready for connections"), "{line}");
    Running { child, socket }
}

impl Running {
    fn ask(&self, sql: &str) -> String {
        let out = self.client(sql).output().unwrap();
        assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    fn client(&self, sql: &str) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-uroot", "-N", "-B", "--default-character-set=utf8mb4", "-e", sql]);
        command.arg(format!("--socket={}", self.socket.display()));
        command
    }

    fn signal(mut self, signal: &str) -> Option<i32> {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash_and_after_a_shutdown() {
    // SESSION-1, through the whole server.
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.ask("CREATE DATABASE d; CREATE TABLE d.t(a INT PRIMARY KEY, b VARCHAR(20))");
    server.ask(
        "INSERT INTO d.t VALUES(1,'ä'),(2,'b'); CREATE USER u IDENTIFIED BY 'p'; GRANT SELECT ON d.* TO u",
    );
    assert_eq!(server.signal("-KILL"), None);
    let server = start(folder.path());
    assert_eq!(server.ask("SELECT * FROM d.t"), "1\tä\n2\tb");
    assert!(server.ask("SHOW GRANTS FOR u").contains("GRANT SELECT ON `d`.* TO `u`@`%`"));
    server.ask("UPDATE d.t SET b='c' WHERE a=2");
    assert_eq!(server.signal("-TERM"), Some(0));
    let server = start(folder.path());
    assert_eq!(server.ask("SELECT b FROM d.t WHERE a=2"), "c");
    let format = std::fs::read_to_string(folder.path().join("data/omnibus.format")).unwrap();
    assert_eq!(format.lines().next(), Some("1"));
    assert_eq!(server.signal("-INT"), Some(0));
}

#[test]
fn a_session_that_is_killed_or_gone_leaves_no_lock() {
    // SESSION-2
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.ask("CREATE DATABASE d; CREATE TABLE d.t(a INT PRIMARY KEY, b INT); INSERT INTO d.t VALUES(1,1)");
    for end in ["KILL", "vanish"] {
        let mut holder =
            server.client("BEGIN; UPDATE d.t SET b=2 WHERE a=1; SELECT SLEEP(60)").spawn().unwrap();
        let id = loop {
            let id =
                server.ask("SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'");
            if !id.is_empty() {
                break id;
            }
        };
        // The session itself notices a vanished client only when its statement ends.
        server.ask(&format!("{} {id}", if end == "KILL" { "KILL" } else { "KILL QUERY" }));
        let _ = holder.kill();
        holder.wait().unwrap();
        server.ask("SET innodb_lock_wait_timeout=20; UPDATE d.t SET b=b+10 WHERE a=1");
    }
    assert_eq!(server.ask("SELECT b FROM d.t"), "21", "neither holder's update was kept");
    assert_eq!(server.signal("-TERM"), Some(0));
}

#[test]
fn a_waiting_statement_is_killed_by_its_number_or_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.ask("CREATE DATABASE d; CREATE TABLE d.t(a INT PRIMARY KEY, b INT); INSERT INTO d.t VALUES(1,1)");
    let mut holder = server.client("BEGIN; UPDATE d.t SET b=2 WHERE a=1; SELECT SLEEP(60)").spawn().unwrap();
    let running = |what: &str| loop {
        let sql = format!(
            "SELECT id FROM information_schema.processlist WHERE info LIKE '{what}%' AND state<>'executing'"
        );
        let id = server.ask(&sql);
        if !id.is_empty() {
            break id;
        }
    };
    while server.ask("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'")
        == "0"
    {}
    let out = server.client("SET innodb_lock_wait_timeout=1; UPDATE d.t SET b=3 WHERE a=1").output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("1205"));
    let mut waiter = server.client("UPDATE d.t SET b=4 WHERE a=1");
    let waiter = waiter.stderr(Stdio::piped()).spawn().unwrap();
    let id = running("UPDATE");
    server.ask(&format!("KILL QUERY {id}"));
    let out = waiter.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("1317"));
    let _ = holder.kill();
    holder.wait().unwrap();
    assert_eq!(server.signal("-TERM"), Some(0), "a sleeping statement does not hold a shutdown up");
}
