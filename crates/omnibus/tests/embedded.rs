//! An embedded server: what its program relies on.
#![allow(clippy::unwrap_used)]

use omnibus::{Options, Server};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use tokio::io::AsyncReadExt;

fn options(folder: &Path) -> Options {
    Options::new(folder).set("binlog_preallocate", 0)
}

#[test]
fn two_servers_in_a_process_keep_what_they_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| folder.path().join(name));
    let servers = paths.each_ref().map(|path| Server::start(&options(path)).unwrap());
    for (server, value) in servers.iter().zip(["1", "2"]) {
        let mut session = server.session("root", "").unwrap();
        session.query("CREATE DATABASE d").unwrap();
        session.query("CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(9))").unwrap();
        session.query(&format!("INSERT INTO d.t VALUES ({value}, 'ä'), (7, NULL)")).unwrap();
        let duplicate = session.query("INSERT INTO d.t VALUES (7, NULL)").unwrap_err();
        assert_eq!(duplicate.code, 1062, "{duplicate}");
    }
    // A third one can't have the directory of the first, and leaves it alone.
    let taken = Server::start(&options(&paths[0])).unwrap_err().to_string();
    assert!(taken.contains("in use") || taken.contains("lock"), "{taken}");
    let [one, two] = servers;
    let mut held = one.session("root", "").unwrap();
    one.stop().unwrap();
    assert_eq!(held.query("SELECT 1").unwrap_err().code, 2013);
    assert_eq!(two.session("root", "").unwrap().query("SELECT 1").unwrap().text(0, 0), Some("1"));
    drop(two);
    for (path, value) in paths.iter().zip(["1", "2"]) {
        let server = Server::start(&options(path)).unwrap();
        let rows = server.session("root", "").unwrap().query("SELECT a, b FROM d.t ORDER BY a").unwrap();
        assert_eq!((rows.len(), rows.text(0, 0), rows.text(0, 1)), (2, Some(value), Some("ä")));
        assert_eq!(rows.text(1, 1), None);
    }
}

#[test]
fn accounts_hold_within_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path())).unwrap();
    let mut root = server.session("root", "").unwrap();
    for plugin in ["caching_sha2_password", "mysql_native_password"] {
        root.query(&format!("CREATE USER {plugin}@localhost IDENTIFIED WITH {plugin} BY 'secret'")).unwrap();
        assert_eq!(server.session(plugin, "wrong").unwrap_err().code, 1045);
        let mut session = server.session(plugin, "secret").unwrap();
        assert_eq!(session.query("SELECT * FROM mysql.user").unwrap_err().code, 1142);
    }
}

#[test]
fn shutdown_ends_it_and_what_cannot_be_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path())).unwrap();
    server.session("root", "").unwrap().query("SHUTDOWN").unwrap();
    server.wait().unwrap();
    let unknown = Server::start(&options(folder.path()).set("sync_binlock", 1)).unwrap_err().to_string();
    assert!(unknown.contains("did you mean '--sync-binlog'"), "{unknown}");
    let log = Server::start(&options(folder.path()).set("log_error", "error.log")).unwrap_err().to_string();
    assert!(log.contains("tracing"), "{log}");
}

#[test]
fn others_are_let_in_where_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path()).listen("127.0.0.1", 0)).unwrap();
    assert_ne!(server.port(), 0);
    let mut greeting = [0; 5];
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    std::io::Read::read_exact(&mut socket, &mut greeting).unwrap();
    assert_eq!(greeting[4], 10);
}

#[test]
fn an_async_program_has_it_beside_its_own_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = Server::start(&options(folder.path())).unwrap();
        let stream = server.connect().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut stream = tokio::net::UnixStream::from_std(stream).unwrap();
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).await.unwrap();
        assert_eq!(greeting[4], 10);
        // Dropped where a runtime must not be.
    });
}

#[test]
fn the_example_counts_its_starts_and_the_programs_supervisor_hears_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let supervisor = folder.path().join("notify");
    let heard = UnixDatagram::bind(&supervisor).unwrap();
    heard.set_nonblocking(true).unwrap();
    let own = std::env::current_exe().unwrap();
    let example = own.parent().unwrap().parent().unwrap().join("examples/embed");
    for number in 1..3 {
        let mut command = Command::new(&example);
        let out = command.arg(folder.path().join("data")).env("NOTIFY_SOCKET", &supervisor).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert_eq!(text, format!("start number {number}\n"));
    }
    assert_eq!(heard.recv(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
