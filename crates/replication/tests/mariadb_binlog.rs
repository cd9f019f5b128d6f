//! Files made of our events, read by MariaDB's `mariadb-binlog` (an independent decoder) and
//! applied by a real MariaDB server (LOG-1: every standard tool parses our files).
#![allow(clippy::unwrap_used)]

mod common;

use common::server::Server;
use common::{mariadb_binlog, sample_file, sample_file_with};
use omnibus_format::Checksum;
use omnibus_replication::generate::{RowImageMode, RowsOptions};

fn written(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("binlog.000001");
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

#[test]
fn mariadb_binlog_verifies_and_decodes_every_column_type() {
    let (_dir, path) = written(&sample_file());
    let (ok, out, err) = mariadb_binlog(&["--verify-binlog-checksum", "-vv"], &path);
    assert!(ok && err.is_empty(), "{err}\n{out}");
    let expected = [
        "server v 8.4.0-omnibus",
        "# Ignorable event type 28 (Ignorable log event)",
        "# Ignorable event type 33 (MySQL Gtid)",
        "Write_rows: table id 77 flags: STMT_END_F",
        "Update_rows: table id 77 flags: STMT_END_F",
        "Delete_rows: table id 77 flags: STMT_END_F",
        "@2=-128 (128) /* TINYINT",
        "@3=-1 (65535) /* SHORTINT",
        "@4=-8388608 (8388608) /* MEDIUMINT",
        "@5=-1 (18446744073709551615) /* LONGINT",
        "@6=1.5 ",
        "@7=-2.25 /* DOUBLE",
        "@8=-12345678901.250 /* DECIMAL(20,3)",
        "@9=b'1101010111100' /* BIT(13)",
        "@10=2024 /* YEAR",
        "@11='2024:02:29' /* DATE",
        "@12='-838:59:58.5' /* TIME(1)",
        "@13='2024-02-29 23:59:58.123456' /* DATETIME(6)",
        "/* TIMESTAMP(3)",
        "@15='chär' /* STRING(1020)",
        "@17='ab' /* STRING(4)",
        "@18='vb' /* VARSTRING(300)",
        "@19='tiny' /* TINYBLOB/TINYTEXT",
        "@20='medium' /* MEDIUMBLOB/MEDIUMTEXT",
        "@21='blob' /* LONGBLOB/LONGTEXT",
        "@22=2 /* ENUM(1 byte)",
        "@23=b'00000101' /* SET(1 bytes)",
        "@24=NULL /* INT",
        "# Number of rows: 3",
        "Xid = 3",
        "Rotate to binlog.000002  pos: 4",
    ];
    for part in expected {
        assert!(out.contains(part), "{part} is missing in\n{out}");
    }
}

#[test]
fn mariadb_binlog_reads_files_without_checksums_and_every_image_mode() {
    for checksum in [Checksum::None, Checksum::Crc32] {
        for image in [RowImageMode::Full, RowImageMode::Minimal, RowImageMode::NoBlob] {
            let options = RowsOptions { image, ..RowsOptions::default() };
            let (_dir, path) = written(&sample_file_with(checksum, options));
            let (ok, out, err) = mariadb_binlog(&["--verify-binlog-checksum", "-v"], &path);
            assert!(ok && err.is_empty(), "{err}\n{out}");
            let update = out.split("### UPDATE").nth(1).unwrap().split("# at ").next().unwrap();
            let columns = |part: &str| part.matches("###   @").count();
            let (before, after) = update.split_once("### SET").unwrap();
            let expected = match image {
                RowImageMode::Full => (24, 24),
                RowImageMode::Minimal => (1, 2),
                RowImageMode::NoBlob => (21, 21),
            };
            assert_eq!((columns(before), columns(after)), expected, "{image:?}");
        }
    }
}

#[test]
fn a_damaged_file_is_refused_by_mariadb_binlog_too() {
    let mut bytes = sample_file();
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    let (_dir, path) = written(&bytes);
    let (ok, _, err) = mariadb_binlog(&["--verify-binlog-checksum"], &path);
    assert!(!ok && err.contains("crc check failed"), "{err}");
}

#[test]
fn a_real_server_takes_what_mariadb_binlog_prints() {
    let (_dir, path) = written(&sample_file());
    let (ok, sql, err) = mariadb_binlog(&[], &path);
    assert!(ok, "{err}");
    // MariaDB 10.11 has no collation 255; the sample says what a MySQL 8.4 client would.
    let sql = sql
        .replace("collation_server=255", "collation_server=45")
        .replace("collation_database=255", "collation_database=45");
    let server = Server::start(&[]);
    let (ok, _, err) = server.run(&sql);
    assert!(ok, "{err}");
    let rows = server.query(
        "SET time_zone='+00:00'; SET NAMES utf8mb4; SELECT id, t, s, m, b, f, d, n, bi+0, y, da, ti, dt, ts, c, v, \
         bn, vb, tt, tx, bl, e, st, nu FROM db.all_types ORDER BY id",
    );
    let tail = "65535\t-8388608\t18446744073709551615\t1.5\t-2.25\t-12345678901.250\t6844\t2024\t2024-02-29\t\
                -838:59:58.5\t2024-02-29 23:59:58.123456\t2024-02-29 23:59:58.123\tchär\tv'q\\\\\tab\\0\\0\tvb\ttiny\t\
                medium\tblob\ty\ta,c";
    assert_eq!(rows, format!("7\tNULL\t{tail}\t5\n9\t-128\t{tail}\tNULL\n"));
}
