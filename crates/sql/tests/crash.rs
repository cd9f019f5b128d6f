//! COMMIT-3 and RECOVER-2 with the real log, coordinator and LSM engine: what was acknowledged is
//! there after a stop without any farewell, through the log alone or on top of a checkpoint.
#![allow(clippy::unwrap_used)]

mod common;

use common::Client;
use common::server::start;
use std::path::Path;

fn contents(client: &mut Client) -> Vec<Vec<String>> {
    let mut all = client.rows("SELECT id, k, c FROM t ORDER BY id");
    all.extend(client.rows("SELECT id, k, c FROM t WHERE k > 0 ORDER BY k, id"));
    all.extend(client.rows("SELECT a, b FROM h ORDER BY a, b"));
    all
}

#[test]
fn acknowledged_transactions_survive_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let mut client = Client::new(&server.database);
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, k int, c varchar(20), KEY (k))");
    client.ok("CREATE TABLE h (a int, b varchar(10))");
    for n in 0..50 {
        client.ok(&format!("INSERT INTO t (k, c) VALUES ({n}, 'row {n}'), ({n}, NULL)"));
        client.ok(&format!("INSERT INTO h VALUES ({n}, 'h'), ({n}, NULL)"));
    }
    server.coordinator.engine().checkpoint().unwrap();
    client.ok("UPDATE t SET k = k + 100 WHERE id <= 20");
    client.ok("DELETE FROM h WHERE a < 10 AND b IS NULL");
    client.ok("CREATE UNIQUE INDEX u ON t (c)");
    client.ok("INSERT INTO t (k, c) VALUES (7, 'new')");
    client.ok("BEGIN");
    client.ok("DELETE FROM t");
    let mut other = Client::new(&server.database);
    let before = contents(&mut other);
    // No farewell: the engine forgets what it had in memory, the open transaction is nobody's.
    drop(client);
    drop(other);
    let copy = tempfile::tempdir().unwrap();
    copy_files(dir.path(), copy.path());
    let server = start(copy.path());
    assert!(server.replayed > 0, "something had to come from the log");
    let mut client = Client::new(&server.database);
    assert_eq!(contents(&mut client), before);
    assert_eq!(client.error("INSERT INTO t (c) VALUES ('new')").0, 1062);
    assert_eq!(client.ok("INSERT INTO t (k) VALUES (1)").last_insert_id, 103);
    drop(client);
    server.coordinator.close().unwrap();
    drop(server);
    let server = start(copy.path());
    assert_eq!(server.replayed, 0, "a clean stop leaves nothing to replay");
    let mut client = Client::new(&server.database);
    assert_eq!(client.rows("SELECT COUNT(*) FROM t"), [["102"]]);
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_files(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
