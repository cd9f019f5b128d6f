//! Definitions: what is accepted, what is refused and how, what survives a restart.
#![allow(clippy::unwrap_used)]

mod common;

use common::engine::MemEngine;
use common::{Client, TestPort, database};
use omnibus_engine::{CommitNo, Engine};
use omnibus_sql::Database;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const SBTEST: &str = "CREATE TABLE sbtest1(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ ";

fn client() -> Client {
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client
}

fn shown(client: &mut Client, table: &str) -> String {
    client.rows(&format!("SHOW CREATE TABLE {table}"))[0][1].clone()
}

#[test]
fn a_table_is_shown_as_mysql_shows_it() {
    let mut client = client();
    client.ok(SBTEST);
    client.ok("CREATE INDEX k_1 ON sbtest1(k)");
    let text = shown(&mut client, "sbtest1");
    let start = "CREATE TABLE `sbtest1` (
  `id` int NOT NULL AUTO_INCREMENT,
  `k` int NOT NULL DEFAULT '0',
  `c` char(120) NOT NULL DEFAULT '',
  `pad` char(60) NOT NULL DEFAULT '',
  PRIMARY KEY (`id`),
  KEY `k_1` (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn every_type_survives_show_and_restart() {
    let (port, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE t (
        a tinyint(1) DEFAULT 1, b smallint unsigned, c mediumint zerofill, d bigint unsigned NOT NULL DEFAULT 18446744073709551615,
        e decimal(20,5) DEFAULT -1.5, f float, g double(10,2), h bit(9) DEFAULT b'101', i year DEFAULT 2024,
        j date DEFAULT '2024-02-29', k time(3) DEFAULT '-01:02:03.5', l datetime(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
        m timestamp NULL DEFAULT NULL, n char(5) CHARACTER SET latin1 DEFAULT 'x', o varchar(300) DEFAULT 'it''s \\\\ \"q\"' COMMENT 'a ''comment''',
        p binary(3), q varbinary(20) DEFAULT 'ab', r text, s mediumblob, u enum('a','b''c') DEFAULT 'b''c', v set('x','y') DEFAULT 'x,y', w json,
        `od``d` int, UNIQUE KEY uq (b, n DESC), KEY pre (r(10)), KEY (o))
        COMMENT='tbl' ROW_FORMAT=DYNAMIC AUTO_INCREMENT=5");
    let text = shown(&mut client, "t");
    for part in [
        "`a` tinyint(1) DEFAULT '1'",
        "`b` smallint unsigned DEFAULT NULL",
        "`c` mediumint(8) unsigned zerofill DEFAULT NULL",
        "`d` bigint unsigned NOT NULL DEFAULT '18446744073709551615'",
        "`e` decimal(20,5) DEFAULT '-1.50000'",
        "`f` float DEFAULT NULL",
        "`g` double(10,2) DEFAULT NULL",
        "`h` bit(9) DEFAULT b'101'",
        "`i` year DEFAULT '2024'",
        "`j` date DEFAULT '2024-02-29'",
        "`k` time(3) DEFAULT '-01:02:03.500'",
        "`l` datetime(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
        "`m` timestamp NULL DEFAULT NULL",
        "`n` char(5) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT 'x'",
        "COMMENT 'a ''comment'''",
        "`q` varbinary(20) DEFAULT 'ab'",
        "`r` text,",
        "`u` enum('a','b''c') DEFAULT 'b''c'",
        "`v` set('x','y') DEFAULT 'x,y'",
        "`w` json DEFAULT NULL",
        "`od``d` int DEFAULT NULL",
        "UNIQUE KEY `uq` (`b`,`n` DESC)",
        "KEY `pre` (`r`(10))",
        "KEY `o` (`o`)",
        "ROW_FORMAT=DYNAMIC",
        "COMMENT='tbl'",
    ] {
        assert!(text.contains(part), "{part} not in {text}");
    }
    let again = Database::open(TestPort::over(
        port.engine.clone(),
        port.last.load(std::sync::atomic::Ordering::Acquire),
    ))
    .unwrap();
    assert_eq!(shown(&mut Client::new(&again), "t"), text);
    let old = database.catalog().table("test", "t").unwrap().def.clone();
    let new = again.catalog().table("test", "t").unwrap().def.clone();
    assert_eq!(format!("{old:?}"), format!("{new:?}"), "the stored definition is the definition");
}

#[test]
fn bad_definitions_get_mysqls_errors() {
    let mut client = client();
    client.ok("CREATE TABLE t (a int)");
    for (sql, code) in [
        ("CREATE DATABASE test", 1007),
        ("DROP DATABASE nope", 1008),
        ("CREATE TABLE t (a int)", 1050),
        ("DROP TABLE nope", 1051),
        ("CREATE TABLE nope.t (a int)", 1049),
        ("CREATE TABLE u (a int, A int)", 1060),
        ("CREATE TABLE u (a int, KEY x (a), KEY X (a))", 1061),
        ("CREATE TABLE u (a int PRIMARY KEY, PRIMARY KEY (a))", 1068),
        ("CREATE TABLE u (a int, PRIMARY KEY (b))", 1072),
        ("CREATE TABLE u (a int AUTO_INCREMENT)", 1075),
        ("CREATE TABLE u (a int AUTO_INCREMENT PRIMARY KEY, b int AUTO_INCREMENT UNIQUE)", 1075),
        ("CREATE TABLE u (a varchar(10) AUTO_INCREMENT PRIMARY KEY)", 1063),
        ("CREATE TABLE u (a int DEFAULT 'x')", 1067),
        ("CREATE TABLE u (a int NOT NULL DEFAULT NULL)", 1067),
        ("CREATE TABLE u (a text DEFAULT 'x')", 1101),
        ("CREATE TABLE u (a text, KEY (a))", 1170),
        ("CREATE TABLE u (a int, KEY (a(3)))", 1089),
        ("CREATE TABLE u (a int NULL PRIMARY KEY)", 1171),
        ("CREATE TABLE u (a varchar(1000) PRIMARY KEY)", 1071),
        ("CREATE TABLE u (a decimal(66,1))", 1426),
        ("CREATE TABLE u (a decimal(10,11))", 1427),
        ("CREATE TABLE u (a int) ENGINE=nonsense", 1286),
        ("CREATE TABLE u (a int) CHARSET=nonsense", 1115),
        ("CREATE TABLE u (a int, FOREIGN KEY (a) REFERENCES t (zz))", 3734),
        ("ALTER TABLE t DROP COLUMN zz", 1091),
        ("ALTER TABLE t DROP KEY zz", 1091),
        ("ALTER TABLE t DROP COLUMN a", 1090),
        ("ALTER TABLE t ADD COLUMN a int", 1060),
        ("ALTER TABLE t ADD KEY (zz)", 1072),
        ("ALTER TABLE t DROP PRIMARY KEY", 1091),
        ("RENAME TABLE nope TO x", 1146),
        ("RENAME TABLE t TO t", 1050),
        ("TRUNCATE nope", 1146),
        ("USE nope", 1049),
    ] {
        let (got, message) = client.error(sql);
        assert_eq!(got, code, "{sql}: {message}");
    }
    assert_eq!(client.error("DROP TABLE t, nope").1, "Unknown table 'test.nope'");
    client.ok("DROP TABLE t");
}

#[test]
fn existence_clauses_leave_notes() {
    let mut client = client();
    client.ok("CREATE DATABASE IF NOT EXISTS test");
    assert_eq!(
        client.rows("SHOW WARNINGS"),
        [["Note", "1007", "Can't create database 'test'; database exists"]]
    );
    client.ok("CREATE TABLE t (a int) ENGINE=MyISAM");
    assert_eq!(client.rows("SHOW WARNINGS"), [["Note", "1266", "Using storage engine InnoDB for table 't'"]]);
    for name in ["innodb", "LSM", "Omnibus"] {
        client.ok(&format!("CREATE TABLE {name} (a int) /*!999999 ENGINE={name} */"));
        assert_eq!(client.rows("SHOW WARNINGS"), [[""; 0]; 0]);
        assert!(client.rows(&format!("SHOW CREATE TABLE {name}"))[0][1].contains(") ENGINE=InnoDB DEFAULT"));
    }
    client.ok("CREATE TABLE IF NOT EXISTS t (a int)");
    assert_eq!(client.rows("SHOW WARNINGS"), [["Note", "1050", "Table 't' already exists"]]);
    client.ok("DROP TABLE IF EXISTS t, u");
    assert_eq!(client.rows("SHOW WARNINGS"), [["Note", "1051", "Unknown table 'test.u'"]]);
    assert_eq!(client.error("SHOW CREATE TABLE t").0, 1146);
    assert_eq!(client.rows("SHOW ERRORS")[0][1], "1146");
}

#[test]
fn rename_like_and_truncate_keep_definitions() {
    let mut client = client();
    client.ok(SBTEST);
    client.ok("CREATE TABLE copy LIKE sbtest1");
    let text = shown(&mut client, "copy");
    client.ok("RENAME TABLE copy TO b, sbtest1 TO copy, b TO sbtest1");
    assert_eq!(shown(&mut client, "sbtest1"), text.replace("`copy`", "`sbtest1`"));
    client.ok("TRUNCATE TABLE copy");
    client.ok("CREATE DATABASE other");
    client.ok("ALTER TABLE copy RENAME TO other.t");
    assert_eq!(client.error("SHOW CREATE TABLE copy").0, 1146);
    shown(&mut client, "other.t");
    assert_eq!(client.ok("DROP DATABASE other").affected, 1);
}

#[test]
fn clauses_of_one_alter_name_what_was_before_it() {
    let mut client = client();
    client.ok("CREATE TABLE t (a int PRIMARY KEY, b varchar(9), KEY kb (b), KEY ab (a, b))");
    client.ok("INSERT INTO t VALUES (1, 'one')");
    for (sql, code) in [
        ("ALTER TABLE t CHANGE b c text, MODIFY c blob", 1054),
        ("ALTER TABLE t ADD c int, DROP c", 1091),
        ("ALTER TABLE t ALTER b SET DEFAULT 'x', RENAME COLUMN b TO c", 1054),
        ("ALTER TABLE t DROP b, DROP b", 1091),
        ("ALTER TABLE t ADD KEY n (b), DROP KEY n", 1091),
    ] {
        assert_eq!(client.error(sql).0, code, "{sql}");
    }
    client.ok(
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD PRIMARY KEY (a), DROP PRIMARY KEY",
    );
    assert_eq!(client.rows("SELECT a, b FROM t"), [["one", "1"]]);
    let text = shown(&mut client, "t");
    for key in ["PRIMARY KEY (`a`)", "KEY `kb` (`a`)", "KEY `ab` (`b`,`a`)"] {
        assert!(text.contains(key), "{key}: {text}");
    }
    client.ok("ALTER TABLE t DROP b, ADD b date, ADD KEY n (b)");
    assert_eq!(client.rows("SELECT a, b FROM t"), [["one", "NULL"]]);
}

#[test]
fn a_copied_timestamp_stays_the_same_instant() {
    let mut client = client();
    client.session.state.settings.zone = omnibus_value::temporal::Zone::Offset(-8 * 3600);
    client.ok("CREATE TABLE t (at timestamp(3) NULL, late timestamp NULL DEFAULT '2020-01-01 10:00:00')");
    client.ok("INSERT INTO t (at) VALUES ('1998-07-25 12:12:22.5'), (NULL)");
    client.ok("ALTER TABLE t ADD x int FIRST, ADD y timestamp NOT NULL DEFAULT '2020-01-01 00:00:00', MODIFY at timestamp(6) NULL");
    let text = shown(&mut client, "t");
    assert!(text.contains("`late` timestamp NULL DEFAULT '2020-01-01 10:00:00'"), "{text}");
    client.session.state.settings.zone = omnibus_value::temporal::Zone::Offset(0);
    assert_eq!(
        client.rows("SELECT at, late, y FROM t WHERE at IS NOT NULL"),
        [["1998-07-25 20:12:22.500000", "2020-01-01 18:00:00", "2020-01-01 08:00:00"]]
    );
    let text = shown(&mut client, "t");
    assert!(text.contains("`late` timestamp NULL DEFAULT '2020-01-01 18:00:00'"), "{text}");
}

#[test]
fn what_a_replica_would_refuse_is_refused() {
    let mut client = client();
    for sql in [
        "CREATE TABLE t (e enum('a','b') DEFAULT 1)",
        "CREATE TABLE t (e enum('a','b') DEFAULT '1')",
        "CREATE TABLE t (e set('a','b') DEFAULT 3)",
    ] {
        assert_eq!(client.error(sql).0, 1067, "{sql}");
    }
    client.ok("CREATE TABLE t (e enum('1','b') DEFAULT '1', id tinyint AUTO_INCREMENT PRIMARY KEY)");
    client.ok("ALTER TABLE t ADD d date NOT NULL, ADD c date NOT NULL DEFAULT '2020-01-01'");
    client.ok("INSERT INTO t (id, d) VALUES (126, '2020-01-01')");
    assert_eq!(client.error("INSERT INTO t (d) VALUES ('2020-01-01'), ('2020-01-01')").0, 1467);
    client.ok("INSERT INTO t (id, d) VALUES (127, '2020-01-01')");
    assert_eq!(client.error("REPLACE INTO t (d) VALUES ('2020-01-02')").0, 1062);
    assert_eq!(client.error("ALTER TABLE t ADD f datetime NOT NULL").0, 1292);
    client.session.state.settings.sql_mode = 0;
    client.ok("ALTER TABLE t ADD f datetime NOT NULL");
    client.ok("CREATE TABLE k (a INT, b INT)");
    assert_eq!(client.error("ALTER TABLE k ALTER a SET DEFAULT NULL, ADD PRIMARY KEY (a)").0, 1067);
    client.ok("ALTER TABLE k ADD PRIMARY KEY (a)");
}

#[test]
fn what_is_not_built_is_refused_or_left_out_with_leave() {
    let mut client = client();
    let sql =
        "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY (a)) PARTITION BY HASH (id) PARTITIONS 4";
    assert_eq!(client.error(sql).0, 1235);
    client.session.state.settings.ignore_unsupported_constraints = true;
    client.ok(sql);
    assert_eq!(client.rows("SHOW WARNINGS").len(), 2);
    client.ok("ALTER TABLE t ADD FULLTEXT INDEX f (a)");
    client.ok("INSERT INTO t VALUES (1, 'one')");
    // What was asked for stays, in what only servers of this kind read.
    client.ok("ALTER TABLE t STATS_PERSISTENT=0, ADD b INT");
    let text = shown(&mut client, "t");
    for kept in ["FULLTEXT KEY (`a`)", "FULLTEXT KEY `f` (`a`)", "PARTITION BY HASH (id) PARTITIONS 4"] {
        assert!(text.contains(&format!(" /*!999999 NOT_BUILT='{kept}' */")), "{kept}: {text}");
    }
    client.ok("DROP TABLE t");
    client.session.state.settings.ignore_unsupported_constraints = false;
    client.ok(&text);
    assert_eq!(shown(&mut client, "t"), text);
}

#[test]
fn other_character_sets_and_spatial_types_are_refused_or_replaced_with_leave() {
    let mut client = client();
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b TEXT CHARACTER SET koi8r COLLATE koi8r_bin NOT NULL, p POINT NOT NULL SRID 4326,
               SPATIAL KEY (p)) DEFAULT CHARSET=cp1251 COLLATE=cp1251_general_ci /* as it was */";
    assert_eq!(client.error(sql).0, 1235);
    assert_eq!(client.error("CREATE TABLE u (a TEXT) CHARSET=cp1251").0, 1115);
    client.session.state.settings.ignore_unsupported_constraints = true;
    client.ok(sql);
    assert_eq!(client.rows("SHOW WARNINGS").len(), 4);
    let text = shown(&mut client, "t");
    assert!(text.contains("`b` text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"), "{text}");
    assert!(text.contains("`p` longblob NOT NULL"), "{text}");
    let kept = [
        "DEFAULT CHARSET=cp1251 COLLATE=cp1251_general_ci",
        "`b` CHARACTER SET koi8r COLLATE koi8r_bin",
        "`p` POINT SRID 4326",
    ];
    for kept in kept {
        assert!(text.contains(&format!("NOT_BUILT='{kept}'")), "{kept}: {text}");
    }
    client.ok("INSERT INTO t VALUES (1, 'жук', 'ё', x'E6100000')");
    assert_eq!(client.rows("SELECT a, b, HEX(p) FROM t"), [["жук", "ё", "E6100000"]]);
    client.ok("CREATE DATABASE d CHARACTER SET gbk");
    client.ok("CREATE TABLE no_end (a INT) PARTITION BY HASH (a) /* what */ PARTITIONS 2");
    let text = shown(&mut client, "no_end");
    client.ok("DROP TABLE no_end");
    client.ok(&text);
}

#[test]
fn expressions_survive_their_text() {
    let mut client = client();
    client.ok("CREATE TABLE t (a INT CHECK (a > 0 AND a NOT IN (7, 9)), v VARCHAR(20) AS (CONCAT('é', a, _binary x'41')) STORED,
               d INT DEFAULT (IF(a BETWEEN 1 AND 2, a, -a)), KEY (v), CHECK (v LIKE 'é%' AND d IS NOT NULL))");
    let text = shown(&mut client, "t");
    client.ok("INSERT INTO t (a) VALUES (1), (3)");
    assert_eq!(client.rows("SELECT a, v, d FROM t"), [["1", "é1A", "1"], ["3", "é3A", "-3"]]);
    for (sql, code) in [
        ("INSERT INTO t (a) VALUES (7)", 3819),
        ("UPDATE t SET a = 0", 3819),
        ("UPDATE t SET v = 'é'", 3105),
        ("UPDATE t SET d = NULL", 3819),
    ] {
        assert_eq!(client.error(sql).0, code, "{sql}");
    }
    client.ok("DROP TABLE t");
    client.ok(&text);
    assert_eq!(shown(&mut client, "t"), text);
    // MariaDB lets a TEXT have a default.
    assert_eq!(client.error("CREATE TABLE m (a INT, b TEXT DEFAULT 'é')").0, 1101);
    client.session.state.settings.mariadb = true;
    client.ok("CREATE TABLE m (a INT, b TEXT DEFAULT 'é')");
    client.ok("INSERT INTO m (a) VALUES (1)");
    assert_eq!(client.rows("SELECT b FROM m"), [["é"]]);
    assert!(shown(&mut client, "m").contains("`b` text DEFAULT (_utf8mb4'é')"));
}

#[test]
fn a_foreign_key_has_an_index_and_survives_its_text() {
    let mut client = client();
    client.ok("CREATE TABLE p (id INT PRIMARY KEY)");
    client.ok(
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT, UNIQUE (q), FOREIGN KEY (p) REFERENCES p (id),
               CONSTRAINT cq FOREIGN KEY (q) REFERENCES p (id) ON DELETE CASCADE ON UPDATE RESTRICT)",
    );
    let text = shown(&mut client, "c");
    assert!(text.contains("KEY `p` (`p`)") && !text.contains("KEY `cq`"), "the unique key will do: {text}");
    assert!(text.contains("CONSTRAINT `c_ibfk_1` FOREIGN KEY (`p`) REFERENCES `p` (`id`),\n"), "{text}");
    client.ok("DROP TABLE c");
    client.ok(&text);
    assert_eq!(shown(&mut client, "c"), text);
    assert_eq!(client.error("INSERT INTO c VALUES (1, 2, NULL)").0, 1452);
    client.ok("INSERT INTO p VALUES (1)");
    client.ok("INSERT INTO c VALUES (1, NULL, 1)");
    client.ok("DELETE FROM p");
    assert!(client.rows("SELECT * FROM c").is_empty());
}

/// A chain of rows that refer to each other goes as far as InnoDB lets it.
#[test]
fn rows_follow_fifteen_levels_deep() {
    let mut client = client();
    client.ok(
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE)",
    );
    client.ok("INSERT INTO t VALUES (0, NULL)");
    for id in 1..=16 {
        client.ok(&format!("INSERT INTO t VALUES ({id}, {})", id - 1));
    }
    assert_eq!(client.error("DELETE FROM t WHERE id = 0").0, 3008);
    assert_eq!(client.rows("SELECT COUNT(*) FROM t"), [["17"]], "nothing of it is done");
    client.ok("DELETE FROM t WHERE id = 1");
    assert_eq!(client.rows("SELECT id FROM t"), [["0"]]);
    // A ring of two tables ends where it began.
    client.ok("CREATE TABLE a (id INT PRIMARY KEY, b INT)");
    client.ok(
        "CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE)",
    );
    client.ok("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b (id) ON DELETE CASCADE");
    client.ok("INSERT INTO a VALUES (1, NULL)");
    client.ok("INSERT INTO b VALUES (1, 1)");
    client.ok("UPDATE a SET b = 1");
    client.ok("DELETE FROM a");
    assert_eq!(client.rows("SELECT (SELECT COUNT(*) FROM a), (SELECT COUNT(*) FROM b)"), [["0", "0"]]);
}

/// A start names what an engine still holds, not every space there ever was.
#[test]
fn a_start_drops_what_is_left_of_dead_spaces_and_names_nothing_else() {
    let engine = Arc::new(MemEngine::default());
    let port = TestPort::over(engine.clone(), 0);
    let mut client = Client::new(&Database::open(port.clone()).unwrap());
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE test.kept (a INT PRIMARY KEY, b INT, KEY (b))");
    client.ok("INSERT INTO test.kept VALUES (1, 2)");
    for _ in 0..20 {
        client.ok("CREATE TABLE test.t (a INT PRIMARY KEY)");
        client.ok("INSERT INTO test.t VALUES (1)");
        client.ok("DROP TABLE test.t");
    }
    let gone = engine.dropped.read().last().copied().unwrap();
    engine.dropped.write().clear();
    // As after a crash before the engine got to it.
    let key = [&gone.prefix()[..], b"k"].concat();
    engine.load(CommitNo(1), &mut std::iter::once((key.into(), bytes::Bytes::new()))).unwrap();
    let database = Database::open(port).unwrap();
    assert_eq!(*engine.dropped.read(), [gone]);
    assert_eq!(Client::new(&database).rows("SELECT * FROM test.kept"), [["1", "2"]]);
}

/// COMMIT-4: what a definition has filled before its commit does not stay on the disk when that is taken back.
#[test]
fn what_was_filled_for_a_definition_goes_with_its_commit() {
    let engine = Arc::new(MemEngine::default());
    let port = TestPort::over(engine.clone(), 0);
    let mut client = Client::new(&Database::open(port.clone()).unwrap());
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE t (a INT PRIMARY KEY, b INT)");
    client.ok("INSERT INTO t VALUES (1, 2), (2, 3)");
    for (locks, statement) in [
        ("DO 0", "ALTER TABLE t ADD INDEX (b)"),
        ("DO 0", "ALTER TABLE t ADD INDEX (b), LOCK=SHARED"),
        ("DO 0", "ALTER TABLE t FORCE"),
        ("LOCK TABLES t WRITE", "ALTER TABLE t ADD INDEX (b)"),
    ] {
        client.ok(locks);
        let keys = engine.contents().len();
        engine.dropped.write().clear();
        port.refuse.store(true, Ordering::Relaxed);
        client.error(statement);
        assert!(!port.refuse.load(Ordering::Relaxed), "{statement}: its commit is what failed");
        assert_eq!((engine.contents().len(), engine.dropped.read().len()), (keys, 1), "{statement}");
        client.ok("INSERT INTO t VALUES (3, 4)");
        client.ok("DELETE FROM t WHERE a = 3");
        client.ok("UNLOCK TABLES");
    }
    engine.dropped.write().clear();
    client.ok("ALTER TABLE t ADD INDEX (b)");
    assert!(engine.dropped.read().is_empty());
    assert_eq!(client.rows("SELECT a FROM t FORCE INDEX (b) WHERE b = 3"), [["2"]]);
}
