//! SHOW, DESCRIBE and information_schema.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Client, TestPort, database};
use omnibus_sql::{Database, SessionHost, SqlError, SqlResult, VariableScope};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

fn client() -> Client {
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client.ok(
        "CREATE TABLE t1 (id INT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(20) NOT NULL DEFAULT 'x''y' COMMENT 'n', \
         ts TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), d DECIMAL(10,2), \
         e ENUM('a','bc') CHARACTER SET latin1 DEFAULT 'a', blb BLOB, PRIMARY KEY (id), UNIQUE KEY u (name), \
         KEY k (d, blb(10) DESC) COMMENT 'kk') COMMENT='first'",
    );
    client.ok("CREATE TABLE t2 (a INT NOT NULL, b INT, UNIQUE KEY (a))");
    client
}

fn column(rows: &[Vec<String>], at: usize) -> Vec<&str> {
    rows.iter().map(|row| row[at].as_str()).collect()
}

fn titles(client: &mut Client, sql: &str) -> Vec<String> {
    let (_, rows) = client.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    rows.columns.iter().map(|c| c.name.to_string()).collect()
}

#[test]
fn databases_and_tables() {
    let mut client = client();
    let all = client.rows("SHOW DATABASES");
    assert_eq!(column(&all, 0), ["information_schema", "mysql", "performance_schema", "test"]);
    assert_eq!(client.rows("SHOW DATABASES LIKE 'te%'"), [["test"]]);
    assert_eq!(titles(&mut client, "SHOW DATABASES LIKE 'te%'"), ["Database (te%)"]);
    assert_eq!(client.rows("SHOW SCHEMAS WHERE `Database` = 'mysql'"), [["mysql"]]);
    assert_eq!(client.rows("SHOW TABLES"), [["t1"], ["t2"]]);
    assert_eq!(titles(&mut client, "SHOW FULL TABLES"), ["Tables_in_test", "Table_type"]);
    assert_eq!(client.rows("SHOW FULL TABLES FROM test LIKE '%2'"), [["t2", "BASE TABLE"]]);
    assert_eq!(client.rows("SHOW FULL TABLES WHERE Table_type = 'VIEW'"), [[""; 0]; 0]);
    assert!(client.rows("SHOW TABLES FROM INFORMATION_SCHEMA").iter().any(|row| row[0] == "COLUMNS"));
    assert_eq!(client.error("SHOW TABLES FROM nowhere").0, 1049);
    client.session.state.database = None;
    assert_eq!(client.error("SHOW TABLES").0, 1046);
}

#[test]
fn columns_are_described_as_mysql_does() {
    let mut client = client();
    let plain = client.rows("SHOW COLUMNS FROM t1");
    assert_eq!(
        plain,
        [
            ["id", "int unsigned", "NO", "PRI", "NULL", "auto_increment"],
            ["name", "varchar(20)", "NO", "UNI", "x'y", ""],
            [
                "ts",
                "timestamp(3)",
                "NO",
                "",
                "CURRENT_TIMESTAMP(3)",
                "DEFAULT_GENERATED on update CURRENT_TIMESTAMP(3)"
            ],
            ["d", "decimal(10,2)", "YES", "MUL", "NULL", ""],
            ["e", "enum('a','bc')", "YES", "", "a", ""],
            ["blb", "blob", "YES", "", "NULL", ""],
        ]
    );
    assert_eq!(client.rows("DESCRIBE t1"), plain);
    assert_eq!(client.rows("SHOW FIELDS FROM t1 FROM test"), plain);
    assert_eq!(client.rows("DESC t1 name"), plain[1..2]);
    assert_eq!(client.rows("DESC t1 'd%'"), plain[3..4]);
    assert_eq!(client.rows("SHOW COLUMNS FROM t1 WHERE `Key` = 'PRI'"), plain[..1]);
    let full = client.rows("SHOW FULL COLUMNS FROM t1 LIKE 'name'");
    assert_eq!(full[0][8], "n");
    assert_eq!(full[0].len(), 9);
    assert_eq!(column(&client.rows("SHOW COLUMNS FROM t2"), 3), ["PRI", ""]);
    assert_eq!(client.error("SHOW COLUMNS FROM nothing").0, 1146);
    assert_eq!(client.rows("SHOW COLUMNS FROM information_schema.engines")[0][0], "ENGINE");
    let facts = client.rows(
        "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, \
         DATETIME_PRECISION, CHARACTER_SET_NAME FROM information_schema.columns WHERE table_schema = 'test' AND table_name = 't1'",
    );
    assert_eq!(facts[0], ["id", "int", "NULL", "NULL", "10", "0", "NULL", "NULL"]);
    assert_eq!(facts[1], ["name", "varchar", "20", "80", "NULL", "NULL", "NULL", "utf8mb4"]);
    assert_eq!(facts[2], ["ts", "timestamp", "NULL", "NULL", "NULL", "NULL", "3", "NULL"]);
    assert_eq!(facts[4], ["e", "enum", "2", "2", "NULL", "NULL", "NULL", "latin1"]);
}

#[test]
fn indexes_and_constraints() {
    let mut client = client();
    let rows = client.rows("SHOW INDEX FROM t1");
    let parts: Vec<_> =
        rows.iter().map(|r| [r[1].as_str(), &r[2], &r[3], &r[4], &r[5], &r[7], &r[12]]).collect();
    assert_eq!(
        parts,
        [
            ["0", "PRIMARY", "1", "id", "A", "NULL", ""],
            ["0", "u", "1", "name", "A", "NULL", ""],
            ["1", "k", "1", "d", "A", "NULL", "kk"],
            ["1", "k", "2", "blb", "D", "10", "kk"],
        ]
    );
    assert_eq!(client.rows("SHOW KEYS FROM t1 WHERE Key_name = 'PRIMARY'").len(), 1);
    assert_eq!(
        client.rows(
            "SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_NAME = 't1'"
        ),
        [["PRIMARY", "PRIMARY KEY"], ["u", "UNIQUE"]]
    );
    assert_eq!(
        client.rows(
            "SELECT k.COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.TABLES t \
             USING (TABLE_SCHEMA, TABLE_NAME) WHERE k.TABLE_NAME = 't2' AND t.ENGINE = 'InnoDB'"
        ),
        [["a"]]
    );
}

#[test]
fn tables_and_their_status() {
    let mut client = client();
    let status = client.rows("SHOW TABLE STATUS LIKE 't1'");
    assert_eq!(status.len(), 1);
    assert_eq!([&status[0][0], &status[0][1], &status[0][17]], ["t1", "InnoDB", "first"]);
    assert_eq!(status[0].len(), 18);
    assert_eq!(client.rows("SHOW TABLE STATUS FROM mysql WHERE Name = 'user'").len(), 1);
    assert_eq!(
        client.rows(
            "SELECT TABLE_NAME FROM information_schema.tables WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1 DESC"
        ),
        [["t2"], ["t1"]]
    );
    assert_eq!(
        client.rows("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='test'"),
        [["1"]]
    );
    client.ok("DROP TABLE t1");
    assert_eq!(client.rows("SHOW TABLES"), [["t2"]]);
}

#[test]
fn character_sets_engines_and_absent_things() {
    let mut client = client();
    assert_eq!(client.rows("SHOW CHARACTER SET LIKE 'utf8mb4'")[0][3], "4");
    assert_eq!(
        client.rows("SHOW COLLATION WHERE Charset = 'utf8mb4' AND `Default` = 'Yes'")[0][..3],
        ["utf8mb4_general_ci", "utf8mb4", "45"]
    );
    assert_eq!(client.rows("SHOW ENGINES")[0][..2], ["InnoDB", "DEFAULT"]);
    for sql in [
        "SHOW TRIGGERS LIKE 't1'",
        "SHOW EVENTS",
        "SHOW FUNCTION STATUS WHERE Db = 'test'",
        "SHOW PROCEDURE STATUS WHERE Db = 'test'",
        "SHOW OPEN TABLES FROM test LIKE 'x'",
        "SELECT * FROM information_schema.VIEWS",
        "SELECT LOGFILE_GROUP_NAME FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL \
         AND LOGFILE_GROUP_NAME IS NOT NULL GROUP BY LOGFILE_GROUP_NAME, FILE_NAME ORDER BY LOGFILE_GROUP_NAME",
    ] {
        assert!(client.rows(sql).is_empty(), "{sql}");
    }
    assert_eq!(client.error("SHOW CREATE PROCEDURE p").0, 1305);
}

struct Host;

impl SessionHost for Host {
    fn variable(&self, _: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)> {
        Err(SqlError::unknown_system_variable(name))
    }
    fn variables(&self, scope: VariableScope) -> Vec<(String, String)> {
        let scope = if scope == VariableScope::Global { "global" } else { "session" };
        vec![("version".into(), "8.4.0".into()), ("autocommit".into(), scope.into())]
    }
    fn status(&self, _: VariableScope) -> Vec<(String, String)> {
        vec![("Uptime".into(), "5".into())]
    }
    fn processlist(&self) -> Vec<[Value; 8]> {
        let text = |s: &str| Value::Bytes(s.to_owned().into());
        let info = "SELECT ".repeat(30);
        vec![[
            Value::UInt(1),
            text("u"),
            text("h"),
            Value::Null,
            text("Query"),
            Value::Int(0),
            text("init"),
            text(&info),
        ]]
    }
    fn may_see(&self, db: &str, table: Option<&str>) -> bool {
        db == "test" && table != Some("t1")
    }
}

#[test]
fn the_host_gives_variables_and_hides_tables() {
    let mut client = client();
    client.session.state.connection.host = Arc::new(Host);
    assert_eq!(client.rows("SHOW VARIABLES"), [["autocommit", "session"], ["version", "8.4.0"]]);
    assert_eq!(client.rows("SHOW GLOBAL VARIABLES LIKE 'AUTO%'"), [["autocommit", "global"]]);
    assert_eq!(client.rows("SHOW VARIABLES WHERE Variable_name IN ('version','x')"), [["version", "8.4.0"]]);
    assert_eq!(client.rows("SHOW STATUS LIKE 'uptime'"), [["Uptime", "5"]]);
    assert_eq!(client.rows("SELECT VARIABLE_VALUE FROM performance_schema.global_status"), [["5"]]);
    assert_eq!(client.rows("SHOW PROCESSLIST")[0][7].len(), 100);
    assert_eq!(client.rows("SHOW FULL PROCESSLIST")[0][7].len(), 210);
    assert_eq!(client.rows("SHOW DATABASES"), [["test"]]);
    assert_eq!(client.rows("SHOW TABLES"), [["t2"]]);
}

#[test]
fn show_works_under_any_sql_mode() {
    let mut client = client();
    client.session.state.settings.sql_mode =
        omnibus_sql::api::sql_mode::ANSI_QUOTES | omnibus_sql::api::sql_mode::NO_BACKSLASH_ESCAPES;
    assert_eq!(client.rows("SHOW TABLES LIKE 't1'"), [["t1"]]);
    assert_eq!(client.rows("SHOW COLUMNS FROM \"t2\" WHERE \"Field\" = 'a'").len(), 1);
}

#[test]
fn analyze_check_and_checksum() {
    let port = TestPort::new();
    let mut client = Client::new(&Database::open(port.clone()).unwrap());
    client.ok("CREATE DATABASE d");
    client.ok("CREATE TABLE d.t (a int, b int, c varchar(5), KEY x (a), KEY y (b, c DESC))");
    let rows: Vec<String> = (0..100).map(|i| format!("({}, {}, '{}')", i % 3, i % 20, i % 5)).collect();
    client.ok(&format!("INSERT INTO d.t VALUES {}, (NULL, NULL, NULL)", rows.join(",")));
    let chosen = |client: &mut Client| {
        let plan = client.rows("EXPLAIN SELECT * FROM d.t WHERE a = 1 AND b = 1").remove(0);
        plan.into_iter().find(|cell| cell == "x" || cell == "y")
    };
    assert_eq!(chosen(&mut client).as_deref(), Some("y"), "EXPLAIN counts a table that nobody has read");
    assert_eq!(client.rows("ANALYZE TABLE d.t, d.none")[0], ["d.t", "analyze", "status", "OK"]);
    client.ok("SELECT 1");
    assert_eq!(chosen(&mut client).as_deref(), Some("y"), "the one with more values");
    assert_eq!(client.rows("ANALYZE TABLE d.none")[0][2..], ["Error", "Table 'd.none' doesn't exist"]);
    let cardinality = "SELECT INDEX_NAME, SEQ_IN_INDEX, CARDINALITY FROM information_schema.STATISTICS \
                       WHERE TABLE_SCHEMA = 'd' ORDER BY 1, 2";
    let want = [["x", "1", "4"], ["y", "1", "21"], ["y", "2", "21"]];
    assert_eq!(client.rows(cardinality), want);
    assert_eq!(client.rows("CHECK TABLE d.t"), [["d.t", "check", "status", "OK"]]);
    let sum = client.rows("CHECKSUM TABLE d.t");
    client.ok("UPDATE d.t SET c = 'x' WHERE a = 1 LIMIT 1");
    assert_ne!(client.rows("CHECKSUM TABLE d.t"), sum);
    client.ok("CREATE TEMPORARY TABLE d.tmp (a int, b int, c varchar(5))");
    client.ok("INSERT INTO d.tmp SELECT * FROM d.t");
    let sums = client.rows("CHECKSUM TABLE d.t, d.tmp");
    assert_eq!(sums[0][1], sums[1][1]);
    assert_eq!(client.rows("ANALYZE TABLE d.tmp")[0][2..], ["status", "OK"]);
    // Kept across a restart.
    let last = port.last.load(std::sync::atomic::Ordering::Acquire);
    let again = Database::open(TestPort::over(port.engine.clone(), last)).unwrap();
    let mut client = Client::new(&again);
    assert_eq!(client.rows(cardinality), want);
    // The order of rows and hidden ids do not matter.
    client.ok("CREATE TABLE d.u LIKE d.t");
    client.ok("INSERT INTO d.u SELECT * FROM d.t ORDER BY c");
    let sums = client.rows("CHECKSUM TABLE d.t, d.u");
    assert_eq!(sums[0][1], sums[1][1]);
}

#[test]
fn rows_of_tables_that_no_condition_asks_for_are_not_made() {
    let mut client = client();
    client.ok("CREATE DATABASE other");
    client.ok("CREATE TABLE other.t1 (z INT)");
    client.ok("CREATE TABLE gone (a INT)");
    client.ok("CREATE VIEW broken AS SELECT a FROM gone");
    client.ok("DROP TABLE gone");
    let mut ask = |from: &str, condition: &str| -> (Vec<String>, usize) {
        let sql = format!(
            "SELECT DISTINCT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.{from} AS i WHERE {condition} ORDER BY 1"
        );
        let rows = client.rows(&sql);
        let warned = client.rows("SHOW WARNINGS").len();
        (rows.into_iter().map(|mut row| row.remove(0)).collect(), warned)
    };
    for from in ["TABLES", "COLUMNS"] {
        // A view is looked at, and found broken, only where its rows are asked for.
        for (condition, found, warned) in [
            ("TABLE_NAME = 't1'", &["other.t1", "test.t1"][..], 0),
            ("TABLE_SCHEMA = 'test' AND TABLE_NAME = 't1'", &["test.t1"], 0),
            ("'t1' = TABLE_NAME AND TABLE_SCHEMA IN ('other', 'none')", &["other.t1"], 0),
            ("TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 't_'", &["test.t1", "test.t2"], 0),
            ("TABLE_NAME COLLATE utf8mb3_general_ci = 'T2'", &["test.t2"], 0),
            ("TABLE_NAME = 'T2'", &[], 0),
            ("TABLE_NAME = NULL", &[], 0),
            ("TABLE_NAME = 't2' OR TABLE_SCHEMA = 'other'", &["other.t1", "test.t2"], 0),
            ("(TABLE_NAME = 't2' OR TABLE_CATALOG = 'other') AND TABLE_SCHEMA = 'test'", &["test.t2"], 1),
            ("TABLE_NAME = (SELECT 't2')", &["test.t2"], 1),
            ("NOT TABLE_NAME <> 'STATISTICS'", &["information_schema.STATISTICS"], 0),
        ] {
            let found: Vec<String> = found.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(ask(from, condition), (found, warned), "{from}: {condition}");
        }
    }
    let joined = "information_schema.COLUMNS c JOIN information_schema.TABLES t \
                  ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME";
    let sql = format!("SELECT COUNT(*) FROM {joined} WHERE t.TABLE_NAME = 't2' AND c.TABLE_SCHEMA = 'test'");
    assert_eq!(client.rows(&sql), [["2"]]);
    assert_eq!(client.rows("SHOW WARNINGS"), [[""; 0]; 0]);
}

#[test]
fn counts_of_conditions_are_those_of_the_statement_before() {
    let mut client = client();
    client.ok("DROP TABLE IF EXISTS none, nothing");
    assert_eq!(client.rows("SELECT @@warning_count, @@session.error_count"), [["2", "0"]]);
    assert_eq!(client.rows("SELECT @@warning_count"), [["2"]]);
    assert_eq!(client.rows("SHOW WARNINGS").len(), 2);
    assert_eq!(client.rows("SELECT @@warning_count FROM t2"), [[""; 0]; 0]);
    assert_eq!(client.rows("SELECT @@warning_count"), [["0"]]);
}

#[test]
fn columns_of_base_tables_are_called_as_the_query_calls_them() {
    let mut client = client();
    let names = titles(&mut client, "SELECT user, Host FROM information_schema.processlist");
    assert_eq!(names, ["user", "Host"]);
    let names = titles(&mut client, "SELECT p.engine FROM information_schema.engines p");
    assert_eq!(names, ["engine"]);
    let names = titles(&mut client, "SELECT trx_ID FROM information_schema.innodb_trx");
    assert_eq!(names, ["trx_ID"]);
    let names = titles(&mut client, "SELECT table_name FROM information_schema.tables");
    assert_eq!(names, ["TABLE_NAME"], "a view in MySQL");
    let names = titles(&mut client, "SELECT variable_name FROM performance_schema.global_variables");
    assert_eq!(names, ["variable_name"]);
}
