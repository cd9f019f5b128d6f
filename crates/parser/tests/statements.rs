//! Every statement kind, mostly as clients really send them.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::ast::*;
use omnibus_parser::print;
use omnibus_parser::{ParseOptions, parse};

fn one(sql: &str) -> Statement {
    let options = ParseOptions { markers: true, ..ParseOptions::default() };
    let mut list = parse(sql.as_bytes(), &options).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    assert_eq!(list.len(), 1, "{sql}");
    list.remove(0).node
}

/// (kind, statement)
fn kinds(list: &[(&str, &str)]) {
    for (kind, sql) in list {
        assert_eq!(one(sql).kind(), *kind, "{sql}");
    }
}

#[test]
fn sysbench_and_mysqlslap() {
    kinds(&[
        (
            "create_table",
            "CREATE TABLE sbtest1(\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) /*! ENGINE = innodb */ ",
        ),
        ("create_index", "CREATE INDEX k_1 ON sbtest1(k)"),
        ("insert", "INSERT INTO sbtest1(k, c, pad) VALUES(501, '686-1', '678-2'),(502, 'a', 'b')"),
        ("select", "SELECT c FROM sbtest1 WHERE id=?"),
        ("select", "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?"),
        ("select", "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 1 AND 100"),
        ("select", "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c"),
        ("update", "UPDATE sbtest1 SET k=k+1 WHERE id=?"),
        ("update", "UPDATE sbtest1 SET c=? WHERE id=?"),
        ("delete", "DELETE FROM sbtest1 WHERE id=?"),
        ("insert", "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)"),
        ("drop_table", "DROP TABLE IF EXISTS sbtest1"),
        ("begin", "BEGIN"),
        ("commit", "COMMIT"),
        ("drop_db", "DROP SCHEMA IF EXISTS `mysqlslap`"),
        ("create_db", "CREATE SCHEMA `mysqlslap`"),
        ("create_table", "CREATE TABLE `t1` (id serial,intcol1 INT(32) ,charcol1 VARCHAR(128))"),
        ("create_table", "CREATE TABLE `t1` (id varchar(36) primary key,intcol1 INT(32) )"),
        (
            "insert",
            "INSERT INTO t1 VALUES (NULL,1804289383,'mxvtvmC9127qJNm06sGB8R92q2j7vTiiITRDGXM9ZLzkdekbWtmXKwZ2qG1llkRw5m9DHOFilEREk3q7oce8O3BEJC0woJsm6uzFAEynLH2xCsw1KQ1lT4zg9rdxBL')",
        ),
        ("select", "SELECT intcol1,charcol1 FROM t1 WHERE id =  '100'"),
        ("set_option", "SET AUTOCOMMIT=0"),
    ]);
    let Statement::CreateTable(table) =
        one("CREATE TABLE `t1` (id serial,intcol1 INT(32) unsigned not null)")
    else {
        panic!()
    };
    let id = &table.columns[0];
    assert!(id.auto_increment && id.unique && id.nullable == Some(false) && id.ty.name == TypeName::Serial);
    assert!(table.columns[1].ty.unsigned && table.columns[1].ty.length == Some(32));
}

#[test]
fn command_line_clients_and_dumps() {
    kinds(&[
        ("select", "select @@version_comment limit 1"),
        ("select", "SELECT DATABASE()"),
        ("select", "select USER()"),
        ("show_databases", "show databases"),
        ("show_tables", "show tables"),
        ("show_status", "show /*!50002 GLOBAL */ status"),
        ("show_variables", "show global variables"),
        ("show_processlist", "show full processlist"),
        ("kill", "kill 5"),
        ("flush", "flush /*!32309 no_write_to_binlog */ logs"),
        ("flush", "FLUSH LOCAL TABLES"),
        ("flush", "FLUSH TABLES WITH READ LOCK"),
        (
            "set_option",
            "SET SQL_QUOTE_SHOW_CREATE=1/*!40102 ,SQL_MODE=concat(@@sql_mode, _utf8 ',NO_KEY_OPTIONS') */",
        ),
        ("set_option", "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */"),
        ("set_option", "/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */"),
        ("set_option", "/*!40101 SET NAMES utf8mb4 */"),
        ("set_option", "/*!40103 SET TIME_ZONE='+00:00' */"),
        ("set_option", "/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */"),
        ("set_option", "/*!40100 SET @@SQL_MODE='' */"),
        ("set_option", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
        ("begin", "START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */"),
        ("show_status", "SHOW STATUS LIKE 'binlog_snapshot_%'"),
        ("savepoint", "SAVEPOINT sp"),
        ("rollback_to_savepoint", "ROLLBACK TO SAVEPOINT sp"),
        ("rollback_to_savepoint", "ROLLBACK WORK TO sp"),
        ("release_savepoint", "RELEASE SAVEPOINT sp"),
        ("show_tables", "SHOW TABLES LIKE 't1'"),
        ("show_create_table", "show create table `t1`"),
        ("show_fields", "show fields from `t1`"),
        ("show_table_status", "show table status like 't1'"),
        ("select", "SELECT /*!40001 SQL_NO_CACHE */ `id`, `c` FROM `t1`"),
        ("show_create_db", "SHOW CREATE DATABASE IF NOT EXISTS `test`"),
        (
            "create_db",
            "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `test` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */",
        ),
        ("alter_table", "/*!40000 ALTER TABLE `t1` DISABLE KEYS */"),
        ("lock_tables", "LOCK TABLES `t1` WRITE"),
        ("lock_tables", "LOCK TABLES `t1` READ /*!32311 LOCAL */, db.`t2` AS x LOW_PRIORITY WRITE"),
        ("unlock_tables", "UNLOCK TABLES"),
        ("show_triggers", "SHOW TRIGGERS LIKE 't1'"),
        ("show_function_status", "SHOW FUNCTION STATUS WHERE Db = 'test'"),
        ("show_procedure_status", "SHOW PROCEDURE STATUS WHERE Db = 'test'"),
        ("show_package_status", "SHOW PACKAGE STATUS WHERE Db = 'test'"),
        ("show_events", "show events"),
        ("change_db", "use `test`"),
        (
            "select",
            "SELECT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL GROUP BY LOGFILE_GROUP_NAME, FILE_NAME ORDER BY LOGFILE_GROUP_NAME",
        ),
        ("show_binary_log_status", "SHOW MASTER STATUS"),
        ("show_replica_status", "SHOW ALL SLAVES STATUS"),
        ("set_option", "SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400"),
        ("show_warnings", "show warnings limit 5"),
        ("show_warnings", "SHOW COUNT(*) WARNINGS"),
    ]);
    let dump = "CREATE TABLE `t1` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `d` decimal(10,2) unsigned DEFAULT NULL,\n  `e` enum('a','b''c') CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'a' COMMENT 'x',\n  `ts` timestamp(6) NOT NULL DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6),\n  `g` int(11) GENERATED ALWAYS AS (`id` + 1) STORED,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`d`,`e`(10)) USING BTREE,\n  KEY `x` (`ts` DESC),\n  CONSTRAINT `fk` FOREIGN KEY (`id`) REFERENCES `o`.`t2` (`id`) ON DELETE CASCADE ON UPDATE SET NULL,\n  CONSTRAINT `ck` CHECK (`d` > 0)\n) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci ROW_FORMAT=DYNAMIC COMMENT='it''s';";
    let Statement::CreateTable(t) = one(dump) else { panic!() };
    assert_eq!(
        (t.columns.len(), t.indexes.len(), t.foreign_keys.len(), t.checks.len(), t.options.len()),
        (5, 3, 1, 1, 6)
    );
    assert_eq!(t.columns[2].ty.labels, [&b"a"[..], b"b'c"]);
    assert_eq!(t.columns[3].on_update, Some(6));
    let generated = t.columns[4].generated.as_ref().unwrap();
    assert!(generated.stored);
    assert_eq!(print::sql(&generated.expr), b"(`id` + 1)");
    assert_eq!(t.foreign_keys[0].references.on_delete, Some(ReferenceAction::Cascade));
    assert_eq!(print::sql(&t.checks[0].expr), b"(`d` > 0)");
    assert_eq!(t.options[1], TableOption::AutoIncrement(5));
}

#[test]
fn replication_clients() {
    kinds(&[
        ("select", "SELECT UNIX_TIMESTAMP()"),
        ("select", "SELECT @@GLOBAL.SERVER_ID"),
        ("set_option", "SET @master_heartbeat_period= 30000000000, @source_heartbeat_period= 30000000000"),
        (
            "set_option",
            "SET @master_binlog_checksum= @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
        ),
        ("set_option", "SET @slave_uuid= '6d1a', @replica_uuid= '6d1a'"),
        ("show_variables", "SHOW VARIABLES LIKE 'SERVER_ID'"),
        ("set_option", "SET @mariadb_slave_capability=4"),
        ("set_option", "SET @slave_connect_state='0-1-5'"),
        ("select", "SELECT binlog_gtid_pos('binlog.000001',4)"),
        (
            "show_variables",
            "SHOW VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled','rpl_semi_sync_source_enabled')",
        ),
        ("show_binary_log_status", "SHOW BINARY LOG STATUS"),
        ("show_binlogs", "SHOW BINARY LOGS"),
        ("show_binlog_events", "SHOW BINLOG EVENTS IN 'x' FROM 4 LIMIT 2,3"),
        ("show_replicas", "SHOW SLAVE HOSTS"),
        (
            "change_replication_source",
            "CHANGE MASTER TO MASTER_HOST='h', MASTER_PORT=3306, MASTER_USER='u', MASTER_PASSWORD='p', MASTER_LOG_FILE='f', MASTER_LOG_POS=4",
        ),
        (
            "change_replication_source",
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='h', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, IGNORE_SERVER_IDS=(1,2) FOR CHANNEL 'c'",
        ),
        ("change_replication_source", "CHANGE MASTER 'conn' TO master_use_gtid=current_pos"),
        ("replica_start", "START REPLICA"),
        ("replica_start", "START SLAVE IO_THREAD, SQL_THREAD UNTIL MASTER_LOG_FILE='f', MASTER_LOG_POS=4"),
        ("replica_stop", "STOP SLAVE SQL_THREAD"),
        ("replica_reset", "RESET SLAVE ALL"),
        ("reset", "RESET MASTER"),
        ("reset", "RESET BINARY LOGS AND GTIDS TO 5"),
        ("purge", "PURGE BINARY LOGS TO 'f'"),
        ("purge", "PURGE MASTER LOGS BEFORE NOW() - INTERVAL 1 DAY"),
        ("binlog", "BINLOG '\nAAAA=\n'"),
        ("show_replica_status", "SHOW REPLICA STATUS FOR CHANNEL ''"),
        ("change_repl_filter", "CHANGE REPLICATION FILTER REPLICATE_DO_DB = (a)"),
        ("set_option", "SET @@SESSION.GTID_NEXT= '6d1a:1'/*!*/"),
        (
            "set_option",
            "SET @@session.pseudo_thread_id=4/*!*/, @@session.foreign_key_checks=1, @@session.sql_auto_is_null=0",
        ),
        ("set_option", "SET GLOBAL sql_slave_skip_counter = 1"),
    ]);
    let Statement::ChangeSource(change) =
        one("CHANGE MASTER 'c1' TO MASTER_LOG_POS=4, MASTER_USE_GTID=slave_pos")
    else {
        panic!()
    };
    assert_eq!(change.options[0], ("SOURCE_LOG_POS".into(), SourceValue::Int(4)));
    assert_eq!(change.options[1], ("SOURCE_USE_GTID".into(), SourceValue::Word("slave_pos".into())));
    assert_eq!(change.channel.as_deref(), Some(&b"c1"[..]));
}

#[test]
fn transactions_and_prepared_statements() {
    kinds(&[
        ("begin", "START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT"),
        ("begin", "BEGIN WORK"),
        ("commit", "COMMIT AND CHAIN NO RELEASE"),
        ("rollback", "ROLLBACK RELEASE"),
        ("xa_start", "XA START 'a','b',1"),
        ("xa_end", "XA END 'a'"),
        ("xa_prepare", "XA PREPARE x'61'"),
        ("xa_commit", "XA COMMIT 'a' ONE PHASE"),
        ("xa_rollback", "XA ROLLBACK 'a'"),
        ("xa_recover", "XA RECOVER CONVERT XID"),
        ("prepare_sql", "PREPARE s FROM 'select ?'"),
        ("prepare_sql", "PREPARE s FROM @x"),
        ("execute_sql", "EXECUTE s USING @a, @b"),
        ("dealloc_sql", "DEALLOCATE PREPARE s"),
        ("dealloc_sql", "DROP PREPARE s"),
        ("set_option", "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"),
        ("set_option", "SET TRANSACTION READ WRITE"),
        ("lock_instance", "LOCK INSTANCE FOR BACKUP"),
        ("do", "DO SLEEP(1), 2"),
        ("call_procedure", "CALL p(1, @x)"),
    ]);
    let Statement::Set(items) = one("SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE") else { panic!() };
    assert_eq!(
        items,
        [SetItem::Transaction {
            scope: Some(VarScope::Global),
            isolation: Some(Isolation::Serializable),
            read_only: None
        }]
    );
    let Statement::Xa(xa) = one("XA START 'a', 0x6262, 7 JOIN") else { panic!() };
    let xid = XaId { gtrid: "a".into(), bqual: "bb".into(), format_id: 7 };
    assert_eq!(*xa, Xa::Start { xid, join: true, resume: false });
    assert!(parse(b"COMMIT AND CHAIN RELEASE", &ParseOptions::default()).is_err());
}

#[test]
fn set_forms() {
    let Statement::Set(items) = one(
        "SET @a := 1, @@global.b = ON, c = utf8, PERSIST d = DEFAULT, SESSION e = @@f + 1, GLOBAL x.y = 'z', @@sql_mode=''",
    ) else {
        panic!()
    };
    let scopes: Vec<_> = items
        .iter()
        .map(|i| match i {
            SetItem::System { scope, name, value } => {
                (*scope, name.as_str(), matches!(value, SetValue::Word(_)))
            }
            SetItem::User { name, .. } => (None, name.as_str(), false),
            _ => panic!(),
        })
        .collect();
    assert_eq!(
        scopes,
        [
            (None, "a", false),
            (Some(VarScope::Global), "b", true),
            (None, "c", true),
            (Some(VarScope::Persist), "d", false),
            (Some(VarScope::Session), "e", false),
            (Some(VarScope::Global), "x.y", false),
            (None, "sql_mode", false),
        ]
    );
    assert!(matches!(&items[3], SetItem::System { value: SetValue::Default, .. }));
    assert_eq!(
        one("SET NAMES utf8mb4 COLLATE utf8mb4_bin"),
        Statement::Set(vec![SetItem::Names {
            charset: Some("utf8mb4".into()),
            collation: Some("utf8mb4_bin".into())
        }])
    );
    assert_eq!(one("SET NAMES 'binary'"), one("set names binary"));
    assert_eq!(one("SET CHARACTER SET DEFAULT"), Statement::Set(vec![SetItem::CharacterSet(None)]));
    kinds(&[
        ("set_option", "SET PASSWORD FOR 'u'@'h' = 'x'"),
        ("set_option", "SET names = 1"),
        ("set_role", "SET ROLE ALL EXCEPT r, 's'@h"),
        ("alter_user_default_role", "SET DEFAULT ROLE r TO u, 'v'@h"),
        ("set_option", "SET STATEMENT max_statement_time=1 FOR SELECT 1"),
        ("set_option", "SET sql_log_bin=0, autocommit=@old, character_set_results=NULL"),
    ]);
}

#[test]
fn definitions() {
    kinds(&[
        ("create_table", "CREATE TEMPORARY TABLE IF NOT EXISTS a.b LIKE c.d"),
        ("create_table", "CREATE TABLE t (LIKE c)"),
        ("create_table", "CREATE TABLE t SELECT 1 AS x"),
        ("create_table", "CREATE TABLE t (a INT) ENGINE=InnoDB AS SELECT 1 AS a UNION SELECT 2"),
        (
            "create_table",
            "CREATE TABLE t (a INT, KEY(a)) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        ),
        (
            "create_table",
            "CREATE OR REPLACE TABLE t (a INT KEY, b VARCHAR(10) BINARY NULL UNIQUE KEY, c NATIONAL CHARACTER VARYING(3), d LONG VARCHAR, e DOUBLE PRECISION(5,2), f BIT, g YEAR(4), h POINT SRID 0, i TINYTEXT ASCII, j JSON DEFAULT (json_array()), k FLOAT4 DEFAULT -1.5, l DATE DEFAULT '2000-01-01' COMMENT 'x' INVISIBLE, m INT CHECK (m > 0) NOT ENFORCED REFERENCES x (y) ON DELETE SET NULL)",
        ),
        (
            "create_table",
            "CREATE TABLE t (a INT, PRIMARY KEY USING BTREE (a) COMMENT 'x', FULLTEXT KEY f (b) WITH PARSER ngram, SPATIAL INDEX s (c), INDEX ((a + 1)), UNIQUE u USING HASH (a ASC), CHECK (a > 1))",
        ),
        (
            "create_index",
            "CREATE UNIQUE INDEX i USING BTREE ON t (a(10), b DESC) COMMENT 'x' ALGORITHM=INPLACE LOCK=NONE",
        ),
        ("create_index", "CREATE FULLTEXT INDEX i ON t (a)"),
        ("drop_index", "DROP INDEX i ON t ALGORITHM INPLACE"),
        ("drop_table", "DROP TABLE IF EXISTS a, b.c CASCADE"),
        ("drop_view", "DROP VIEW IF EXISTS v"),
        ("truncate", "TRUNCATE t"),
        ("truncate", "TRUNCATE TABLE a.t"),
        ("rename_table", "RENAME TABLE a TO b, c.d TO e.f"),
        ("alter_db", "ALTER DATABASE d CHARACTER SET = utf8mb4"),
        ("alter_db", "ALTER SCHEMA DEFAULT COLLATE utf8mb4_bin"),
        ("alter_table", "ALTER TABLE t"),
        (
            "alter_table",
            "ALTER TABLE t ADD a INT FIRST, ADD COLUMN (b INT, c INT), ADD COLUMN IF NOT EXISTS d INT AFTER a, DROP COLUMN e, DROP f, MODIFY g BIGINT NOT NULL AFTER h, CHANGE COLUMN i j TEXT, RENAME COLUMN k TO l, ALTER m SET DEFAULT 5, ALTER COLUMN n DROP DEFAULT, ALTER o SET DEFAULT (uuid())",
        ),
        (
            "alter_table",
            "ALTER TABLE t ADD INDEX i (a), ADD UNIQUE (b), ADD CONSTRAINT PRIMARY KEY (c), ADD CONSTRAINT fk FOREIGN KEY x (d) REFERENCES p (id), ADD CHECK (e > 0), ADD FULLTEXT (f), DROP INDEX g, DROP KEY h, DROP PRIMARY KEY, DROP FOREIGN KEY k, DROP CHECK l, DROP CONSTRAINT m, RENAME INDEX n TO o, ALTER INDEX p INVISIBLE, ALTER CHECK q NOT ENFORCED",
        ),
        (
            "alter_table",
            "ALTER TABLE t ENGINE=InnoDB, AUTO_INCREMENT=10 COMMENT='x', CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, FORCE, ALGORITHM=INPLACE, LOCK=NONE, RENAME TO u, ORDER BY a DESC",
        ),
        ("alter_table", "ALTER TABLE t DROP PARTITION p0"),
        ("alter_table", "ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES IN (1,2))"),
        ("alter_table", "ALTER TABLE t REMOVE PARTITIONING"),
        ("alter_table", "ALTER TABLE t ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"),
        (
            "create_view",
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW v AS SELECT 1",
        ),
        (
            "create_trigger",
            "CREATE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON x FOR EACH ROW BEGIN SET @a = 1; SET @b = 2; END",
        ),
        ("create_procedure", "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END"),
        ("create_function", "CREATE FUNCTION f RETURNS STRING SONAME 'x.so'"),
        ("create_event", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1"),
    ]);
    let Statement::AlterTable(alter) =
        one("ALTER TABLE t ADD INDEX i (a), DROP e, ENGINE=x COMMENT='y', LOCK=NONE")
    else {
        panic!()
    };
    assert_eq!(alter.actions.len(), 4);
    assert_eq!(alter.online.lock, Some("NONE".into()));
    let Statement::CreateTable(t) = one(
        "CREATE TABLE t (a INT DEFAULT (1+1) CHECK (a > 0), b INT DEFAULT -1 REFERENCES p(id) ON UPDATE CASCADE, ts TIMESTAMP DEFAULT NOW() ON UPDATE CURRENT_TIMESTAMP)",
    ) else {
        panic!()
    };
    assert!(matches!(t.columns[0].default, Some(DefaultValue::Expression(_))));
    assert!(matches!(t.columns[1].default, Some(DefaultValue::Value(_))));
    assert_eq!(t.columns[1].references.as_ref().unwrap().on_update, Some(ReferenceAction::Cascade));
    assert_eq!(t.columns[2].on_update, Some(0));
}

#[test]
fn data_changes() {
    kinds(&[
        ("insert", "INSERT IGNORE INTO t SET a=1, b=DEFAULT"),
        ("insert", "INSERT t VALUES ()"),
        ("insert", "INSERT INTO t () VALUES ()"),
        (
            "insert",
            "INSERT LOW_PRIORITY INTO t PARTITION (p0) (a,b) VALUE (1,2) AS new(x,y) ON DUPLICATE KEY UPDATE a=x+1, b=VALUES(b)",
        ),
        ("insert_select", "INSERT INTO t SELECT * FROM u ON DUPLICATE KEY UPDATE a = u.a"),
        ("insert_select", "INSERT INTO t (a) (SELECT 1) UNION (SELECT 2)"),
        ("insert_select", "INSERT INTO t TABLE u"),
        ("insert", "INSERT INTO t VALUES ROW(1,2), ROW(3,4)"),
        ("insert_select", "INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c"),
        ("insert", "INSERT INTO t (a) VALUES (1) RETURNING id, a AS x"),
        ("replace", "REPLACE DELAYED t (a) VALUES (1)"),
        ("replace_select", "REPLACE INTO t SELECT 1"),
        (
            "update",
            "UPDATE LOW_PRIORITY IGNORE t AS x SET x.a = 1, b = DEFAULT WHERE c ORDER BY d DESC LIMIT 5",
        ),
        ("update_multi", "UPDATE a, b SET a.x = b.y WHERE a.id = b.id"),
        ("update_multi", "UPDATE a JOIN b USING (id) SET a.x = 1"),
        ("update", "WITH c AS (SELECT 1) UPDATE t SET a = (SELECT * FROM c)"),
        ("delete", "DELETE QUICK FROM t PARTITION (p0) WHERE a ORDER BY b LIMIT 1"),
        ("delete", "DELETE FROM t AS x WHERE x.a = 1"),
        ("delete", "DELETE FROM t RETURNING a"),
        ("delete_multi", "DELETE a, b.* FROM a JOIN b ON a.id=b.id WHERE 1"),
        ("delete_multi", "DELETE FROM a.x, y USING a.x JOIN y"),
        (
            "load",
            "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE d.t CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES STARTING BY 'x' TERMINATED BY '\\r\\n' IGNORE 1 LINES (a, @b, c) SET d = @b + 1",
        ),
    ]);
    let Statement::Insert(insert) = one("INSERT INTO t (a,b) VALUES (1,'x'),(-2,DEFAULT),(3.5,NULL)") else {
        panic!()
    };
    let InsertSource::Values(rows) = &insert.source else { panic!() };
    assert_eq!((rows.len(), insert.columns.len()), (3, 2));
    assert_eq!(rows[0][1], Expr::Literal(Literal::Str("x".into())));
    assert_eq!(rows[1][1], Expr::Default);
    let Statement::Insert(insert) = one("INSERT INTO t SET a=1, t.b='x'") else { panic!() };
    assert_eq!(insert.columns, ["a", "b"]);
}

#[test]
fn queries() {
    for sql in [
        "SELECT 1",
        "SELECT 1 FROM DUAL WHERE 1",
        "(SELECT 1)",
        "((SELECT 1) UNION (SELECT 2) ORDER BY 1 LIMIT 1)",
        "SELECT a x, b AS 'y', c `z`, t.*, s.t.* FROM s.t AS u WHERE a GROUP BY b WITH ROLLUP HAVING c ORDER BY d, e DESC LIMIT 5 OFFSET 6",
        "SELECT STRAIGHT_JOIN SQL_CALC_FOUND_ROWS HIGH_PRIORITY DISTINCT a FROM t LIMIT 1, 2",
        "SELECT * FROM a JOIN b ON a.x = b.x LEFT OUTER JOIN c USING (y, z) RIGHT JOIN d ON 1 CROSS JOIN e NATURAL LEFT JOIN f STRAIGHT_JOIN g",
        "SELECT * FROM a, b, (c, d) LEFT JOIN e ON 1",
        "SELECT * FROM (SELECT 1) AS x (y), LATERAL (SELECT 2) z, (VALUES ROW(1)) v",
        "SELECT * FROM ((SELECT 1) UNION SELECT 2) AS x",
        "SELECT * FROM (((SELECT 1))) x",
        "SELECT * FROM ((a JOIN b) JOIN (c))",
        "SELECT * FROM ((SELECT 1) x JOIN b)",
        "SELECT * FROM t USE INDEX (a, PRIMARY) IGNORE INDEX FOR ORDER BY (b) FORCE KEY (c) WHERE 1",
        "SELECT * FROM t PARTITION (p0, p1) x",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t FOR SHARE OF t NOWAIT FOR UPDATE OF u SKIP LOCKED",
        "SELECT * FROM t LOCK IN SHARE MODE",
        "SELECT a INTO @x FROM t",
        "SELECT a, b FROM t INTO @x, @y",
        "SELECT a FROM t LIMIT 1 INTO OUTFILE 'f' CHARACTER SET utf8 FIELDS TERMINATED BY ',' LINES TERMINATED BY '\\n'",
        "SELECT a FROM t INTO DUMPFILE 'f'",
        "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 4 ORDER BY 1",
        "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL SELECT n+1 FROM a), b AS (SELECT 2) SELECT * FROM a, b",
        "TABLE t ORDER BY a LIMIT 1",
        "VALUES ROW(1,2), ROW(3,4) ORDER BY 1",
        "SELECT RANK() OVER w, SUM(x) OVER (w ROWS UNBOUNDED PRECEDING) FROM t WINDOW w AS (PARTITION BY a ORDER BY b)",
        "SELECT (SELECT 1) + (SELECT 2), EXISTS (TABLE t)",
        "SELECT * FROM t WHERE (a, b) IN ((1,2),(3,4)) AND c IN (SELECT 1 UNION SELECT 2)",
        "SELECT date, time, timestamp, value, status, user, name, type, count FROM t",
        "SELECT 1 AS begin, 2 AS end",
        "SELECT `a`.`b` FROM `a` WHERE `select` = 1",
        "SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client",
        "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE table_schema = 'x'",
        "SELECT a FROM t WHERE id = ? LIMIT ?, ?",
        "SELECT { fn NOW() }",
    ] {
        assert_eq!(one(sql).kind(), "select", "{sql}");
    }
}

fn from(sql: &str) -> String {
    fn show(table: &TableRef) -> String {
        match table {
            TableRef::Table(t) => t.name.name.to_string(),
            TableRef::Derived(_) | TableRef::JsonTable(_) => "(..)".into(),
            TableRef::Group(g) => format!("[{}]", g.iter().map(show).collect::<Vec<_>>().join(",")),
            TableRef::Join(j) => {
                let on = match &j.condition {
                    JoinCondition::None => String::new(),
                    JoinCondition::On(e) => format!(":{}", String::from_utf8_lossy(&print::sql(e))),
                    JoinCondition::Using(_) => ":using".into(),
                };
                format!("({} {:?} {}{})", show(&j.left), j.kind, show(&j.right), on.replace('`', ""))
            }
        }
    }
    let Statement::Select(query) = one(&format!("SELECT * FROM {sql}")) else { panic!() };
    let QueryBody::Select(select) = query.body else { panic!() };
    select.from.iter().map(show).collect::<Vec<_>>().join(", ")
}

#[test]
fn joins_nest_as_in_mysql() {
    for (sql, tree) in [
        ("a JOIN b ON x JOIN c ON y", "((a Inner b:x) Inner c:y)"),
        ("a JOIN b JOIN c ON x ON y", "(a Inner (b Inner c:x):y)"),
        ("a JOIN b JOIN c ON x", "((a Inner b) Inner c:x)"),
        ("a JOIN b LEFT JOIN c ON x", "((a Inner b) Left c:x)"),
        ("a LEFT JOIN b JOIN c ON x ON y", "(a Left (b Inner c:x):y)"),
        ("a LEFT JOIN b LEFT JOIN c ON x ON y LEFT JOIN d ON z", "((a Left (b Left c:x):y) Left d:z)"),
        ("a JOIN b JOIN c JOIN d", "(((a Inner b) Inner c) Inner d)"),
        ("a NATURAL JOIN b JOIN c ON x", "((a Inner b) Inner c:x)"),
        ("a JOIN b NATURAL JOIN c", "((a Inner b) Inner c)"),
        ("a LEFT JOIN (b, c) ON x, d", "(a Left [b,c]:x), d"),
        ("(a JOIN b ON x) JOIN (c JOIN d USING (k))", "((a Inner b:x) Inner (c Inner d:using))"),
    ] {
        assert_eq!(from(sql), tree, "{sql}");
    }
    assert!(parse(b"SELECT * FROM a LEFT JOIN b", &ParseOptions::default()).is_err());
}

#[test]
fn accounts() {
    kinds(&[
        (
            "create_user",
            "CREATE USER 'u'@'%' IDENTIFIED BY 'p', v@localhost IDENTIFIED WITH mysql_native_password AS '*X' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 PASSWORD EXPIRE NEVER ACCOUNT LOCK COMMENT 'c'",
        ),
        (
            "create_user",
            "CREATE USER IF NOT EXISTS u IDENTIFIED WITH 'caching_sha2_password' BY 'p' PASSWORD HISTORY DEFAULT FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME UNBOUNDED",
        ),
        ("create_user", "CREATE OR REPLACE USER u IDENTIFIED VIA ed25519 USING PASSWORD('x')"),
        (
            "alter_user",
            "ALTER USER IF EXISTS CURRENT_USER() IDENTIFIED BY 'x' REPLACE 'y' RETAIN CURRENT PASSWORD",
        ),
        ("alter_user", "ALTER USER USER() IDENTIFIED BY 'x'"),
        ("drop_user", "DROP USER IF EXISTS a, 'b'@'c'"),
        ("rename_user", "RENAME USER a TO 'b'@'c'"),
        ("grant", "GRANT ALL PRIVILEGES ON *.* TO 'u'@'%' IDENTIFIED BY 'p' WITH GRANT OPTION"),
        ("grant", "GRANT SELECT, INSERT (a, b), REPLICATION SLAVE, BINLOG_ADMIN ON `d_%`.* TO u, v"),
        ("grant", "GRANT SELECT ON t TO CURRENT_USER"),
        ("grant", "GRANT EXECUTE ON PROCEDURE d.p TO u"),
        ("grant", "GRANT r1, 'r2'@'h' TO u WITH ADMIN OPTION"),
        ("grant", "GRANT PROXY ON a@b TO c"),
        ("revoke", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM u, v"),
        ("revoke", "REVOKE IF EXISTS SELECT, GRANT OPTION ON d.t FROM u IGNORE UNKNOWN USER"),
        ("create_role", "CREATE ROLE r"),
        ("drop_role", "DROP ROLE IF EXISTS r"),
        ("show_grants", "SHOW GRANTS FOR 'u'@'h'"),
        ("show_create_user", "SHOW CREATE USER u"),
    ]);
    let Statement::Grant(grant) = one("GRANT SELECT, REPLICATION CLIENT ON *.* TO 'U'@'LOCALHOST'") else {
        panic!()
    };
    let GrantWhat::Privileges { privileges, target } = grant.what else { panic!() };
    assert_eq!(privileges[1].name, "REPLICATION CLIENT");
    assert_eq!(target, GrantTarget::Global);
    assert_eq!(grant.users[0].user, UserName::Named { user: "U".into(), host: "localhost".into() });
}

#[test]
fn administration() {
    kinds(&[
        ("show_fields", "DESC t"),
        ("show_fields", "DESCRIBE d.t 'a%'"),
        ("explain_other", "EXPLAIN SELECT 1"),
        ("explain_other", "EXPLAIN FORMAT=JSON UPDATE t SET a=1"),
        ("explain_other", "EXPLAIN EXTENDED SELECT 1"),
        ("explain_other", "EXPLAIN FOR CONNECTION 5"),
        ("explain_other", "ANALYZE FORMAT=JSON SELECT 1"),
        ("analyze", "ANALYZE TABLE t, u"),
        ("analyze", "ANALYZE LOCAL TABLE t"),
        ("analyze", "ANALYZE TABLE t UPDATE HISTOGRAM ON a WITH 5 BUCKETS"),
        ("check", "CHECK TABLE t FOR UPGRADE QUICK"),
        ("checksum", "CHECKSUM TABLE t EXTENDED"),
        ("optimize", "OPTIMIZE NO_WRITE_TO_BINLOG TABLE t"),
        ("repair", "REPAIR TABLE t USE_FRM"),
        ("kill", "KILL QUERY 5"),
        ("kill", "KILL CONNECTION ?"),
        ("flush", "FLUSH BINARY LOGS, ENGINE LOGS"),
        ("flush", "FLUSH TABLES a, b FOR EXPORT"),
        ("flush", "FLUSH PRIVILEGES"),
        ("shutdown", "SHUTDOWN"),
        ("backup", "BACKUP TO '/x'"),
        ("backup", "BACKUP STAGE START"),
        ("help", "HELP 'select'"),
        ("ha_open", "HANDLER t OPEN"),
        ("ha_read", "HANDLER t READ i >= (1, 2) WHERE a < 3 LIMIT 4, 5"),
        ("ha_close", "HANDLER t CLOSE"),
        ("signal", "SIGNAL SQLSTATE '45000'"),
        ("get_diagnostics", "GET DIAGNOSTICS @p = NUMBER"),
        ("show_keys", "SHOW INDEX FROM t FROM d WHERE Key_name = 'x'"),
        ("show_fields", "SHOW EXTENDED FULL COLUMNS IN t IN d LIKE 'a'"),
        ("show_tables", "SHOW FULL TABLES FROM d WHERE Table_type = 'BASE TABLE'"),
        ("show_open_tables", "SHOW OPEN TABLES FROM d LIKE 'x'"),
        ("show_storage_engines", "SHOW STORAGE ENGINES"),
        ("show_engine_status", "SHOW ENGINE INNODB STATUS"),
        ("show_charsets", "SHOW CHARACTER SET LIKE 'utf8%'"),
        ("show_collations", "SHOW COLLATION WHERE Charset = 'utf8mb4'"),
        ("show_plugins", "SHOW PLUGINS"),
        ("show_privileges", "SHOW PRIVILEGES"),
        ("show_relaylog_events", "SHOW RELAYLOG EVENTS FROM 4"),
        ("show_profiles", "SHOW PROFILES"),
        ("show_profile", "SHOW PROFILE CPU FOR QUERY 1"),
        ("show_variables", "SHOW LOCAL VARIABLES WHERE Variable_name = 'x' OR Variable_name = 'y'"),
        ("show_errors", "SHOW ERRORS"),
        ("show_explain", "SHOW EXPLAIN FOR 4"),
    ]);
}
