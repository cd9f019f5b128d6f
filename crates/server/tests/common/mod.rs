//! A server in this process, and clients for it.
#![allow(clippy::unwrap_used, dead_code)]

use omnibus_server::{Embedded, Server, VarValue, options};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

/// A running server; stops when dropped.
pub struct TestServer {
    pub server: Arc<Server>,
    pub port: u16,
    pub socket: PathBuf,
    running: Embedded,
    folder: tempfile::TempDir,
}

/// Starts one with these options.
pub fn start(args: &[&str]) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let mut options = options::parse(&args, &[]).unwrap();
    let datadir = folder.path().join("data");
    options.set("datadir", VarValue::Str(datadir.to_str().unwrap().into()));
    options.set("bind_address", VarValue::Str("127.0.0.1".into()));
    options.set("port", VarValue::UInt(0));
    options.set("binlog_preallocate", VarValue::UInt(0));
    let socket = options.socket().unwrap();
    let running = Embedded::start(options).unwrap();
    // Making an RSA key without optimisation takes many seconds; openssl is quick, where it is there.
    let key = datadir.join("private_key.pem");
    let _ =
        Command::new("openssl").args(["genpkey", "-quiet", "-algorithm", "RSA", "-out"]).arg(key).output();
    TestServer { server: running.server().clone(), port: running.port(), socket, running, folder }
}

/// A query for so many rows of a thousand bytes and a number.
pub fn wide_rows(count: u32) -> String {
    let digits =
        "WITH d AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)";
    format!("{digits} SELECT REPEAT('x', 1000), 1 FROM d a, d b, d c, d e, d f, d g, d h, d i LIMIT {count}")
}

impl TestServer {
    /// Runs the `mariadb` client; `args` select transport and account.
    pub fn client(&self, args: &[&str], sql: &str) -> Output {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--default-character-set=utf8mb4"]);
        if !args.iter().any(|a| a.starts_with("-h")) {
            command.arg(format!("--socket={}", self.socket.display()));
        } else {
            command.arg(format!("--port={}", self.port));
        }
        command.args(args).args(["-N", "-B", "-e", sql]).output().unwrap()
    }

    /// The client's output; panics if it failed.
    pub fn ask(&self, args: &[&str], sql: &str) -> String {
        let output = self.client(args, sql);
        assert!(output.status.success(), "{args:?} {sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The client's complaint; panics if it succeeded.
    pub fn fail(&self, args: &[&str], sql: &str) -> String {
        let output = self.client(args, sql);
        assert!(!output.status.success(), "{args:?} {sql} succeeded");
        String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
    }
}
