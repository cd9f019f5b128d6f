//! A private MariaDB server on a socket in a temporary directory, for one test.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs until dropped. Without system tables or accounts, so it starts in a quarter of a second.
pub struct Server {
    process: Child,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Server {
    pub fn start(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("data")).unwrap();
        let socket = path("socket");
        let mut command = Command::new("mariadbd");
        // One that starts deletes the temporary files of all that have the same directory for them.
        command.env("TMPDIR", dir.path());
        command.arg("--no-defaults").args(["--skip-networking", "--skip-grant-tables", "--user=root"]);
        for (option, value) in
            [("datadir", "data"), ("socket", "socket"), ("log-error", "log"), ("pid-file", "pid")]
        {
            command.arg(format!("--{option}={}", path(value).display()));
        }
        command.args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"]).args(options);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("mariadbd must be installed (Debian package mariadb-server)");
        let server = Self { process, socket, _dir: dir };
        let deadline = Instant::now() + Duration::from_secs(300);
        while !server.run("SELECT 1").0 {
            assert!(Instant::now() < deadline, "mariadbd does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Runs SQL through the client: success, output, errors.
    pub fn run(&self, sql: &str) -> (bool, String, String) {
        let mut client = Command::new("mariadb")
            .args(["--no-defaults", "--batch", "--skip-column-names", "--binary-mode"])
            .arg(format!("--socket={}", self.socket.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mariadb must be installed (Debian package mariadb-client)");
        // A client that cannot connect closes its input early.
        let _ = client.stdin.take().unwrap().write_all(sql.as_bytes());
        let output = client.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    /// Runs SQL that must succeed.
    pub fn query(&self, sql: &str) -> String {
        let (ok, out, err) = self.run(sql);
        assert!(ok, "{sql}: {err}");
        out
    }

    pub fn data(&self) -> &Path {
        self.socket.parent().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
