//! Stored programs: what their names mean, and what is refused as MySQL refuses it.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::ast::{CreateRoutine, Expr, ProgramNode, SetItem, Statement};
use omnibus_parser::{ParseError, ParseOptions, parse};

fn first(sql: &str) -> Result<Statement, ParseError> {
    Ok(parse(sql.as_bytes(), &ParseOptions::default())?.remove(0).node)
}

fn routine(sql: &str) -> CreateRoutine {
    match first(sql).unwrap_or_else(|error| panic!("{sql}: {error}")) {
        Statement::CreateRoutine(routine) => *routine,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn variables_hide_columns_and_are_found_in_the_text() {
    let sql = "CREATE PROCEDURE p(IN a INT, OUT b INT) \
               BEGIN DECLARE c, d INT DEFAULT a; INSERT INTO t (a) SELECT a, `d`, t.a FROM t WHERE c = x LIMIT b; \
               SET d = c + 1, @u = b; SELECT a INTO b; END";
    let routine = routine(sql);
    assert_eq!(routine.params_text, "IN a INT, OUT b INT");
    let names: Vec<_> = routine.program.variables.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert!(!routine.program.returns_rows);
    let ProgramNode::Block(block) = &*routine.program.body else { panic!("a block") };
    let ProgramNode::Statement(insert) = &block.body[0] else { panic!("a statement") };
    let found: Vec<_> = insert
        .locals
        .iter()
        .map(|(span, number)| (std::str::from_utf8(span.of(sql.as_bytes())).unwrap(), *number))
        .collect();
    assert_eq!(found, [("a", 0), ("`d`", 3), ("c", 2), ("b", 1)]);
    let text = insert.statement.span.of(sql.as_bytes());
    assert!(text.starts_with(b"INSERT") && text.ends_with(b"LIMIT b"), "{text:?}");
    let ProgramNode::Statement(set) = &block.body[1] else { panic!("a statement") };
    let Statement::Set(items) = &set.statement.node else { panic!("SET") };
    assert!(matches!(items[0], SetItem::Local { local: 3, value: Expr::Binary { .. } }));
}

#[test]
fn an_inner_name_hides_an_outer_one_until_its_block_ends() {
    let routine =
        routine("CREATE PROCEDURE p(a INT) BEGIN BEGIN DECLARE a INT; SET a = 1; END; SET a = 2; END");
    let ProgramNode::Block(block) = &*routine.program.body else { panic!("a block") };
    let ProgramNode::Block(inner) = &block.body[0] else { panic!("a block") };
    let local = |node: &ProgramNode| match node {
        ProgramNode::Statement(set) => match &set.statement.node {
            Statement::Set(items) => match items[0] {
                SetItem::Local { local, .. } => local,
                _ => panic!("a variable"),
            },
            _ => panic!("SET"),
        },
        _ => panic!("a statement"),
    };
    assert_eq!((local(&inner.body[0]), local(&block.body[1])), (1, 0));
}

#[test]
fn bodies_are_refused_as_mysql_refuses_them() {
    let body = |text: &str| format!("CREATE PROCEDURE p() {text}");
    for (code, sql) in [
        (1303, body("BEGIN CREATE PROCEDURE q() SELECT 1; END")),
        (1308, body("LEAVE x")),
        (1308, body("x: BEGIN ITERATE x; END")),
        (1308, body("x: BEGIN DECLARE EXIT HANDLER FOR NOT FOUND LEAVE x; END")),
        (1309, body("x: LOOP x: LOOP LEAVE x; END LOOP; END LOOP")),
        (1310, body("x: LOOP LEAVE x; END LOOP y")),
        (1313, body("RETURN 1")),
        (1319, body("SIGNAL nothing")),
        (1319, body("BEGIN DECLARE EXIT HANDLER FOR nothing BEGIN END; END")),
        (1322, body("BEGIN DECLARE c CURSOR FOR UPDATE t SET a = 1; END")),
        (1323, body("BEGIN DECLARE c CURSOR FOR SELECT 1 INTO @a; END")),
        (1324, body("OPEN c")),
        (1327, body("SELECT 1 INTO a")),
        (1331, body("BEGIN DECLARE a INT; DECLARE A INT; END")),
        (1332, body("BEGIN DECLARE a CONDITION FOR 1; DECLARE a CONDITION FOR 2; END")),
        (1333, body("BEGIN DECLARE a CURSOR FOR SELECT 1; DECLARE a CURSOR FOR SELECT 1; END")),
        (1337, body("BEGIN DECLARE EXIT HANDLER FOR 1 BEGIN END; DECLARE a INT; END")),
        (1338, body("BEGIN DECLARE EXIT HANDLER FOR 1 BEGIN END; DECLARE a CURSOR FOR SELECT 1; END")),
        (1407, body("SIGNAL SQLSTATE '00000'")),
        (1407, body("SIGNAL SQLSTATE '4200'")),
        (1413, body("BEGIN DECLARE EXIT HANDLER FOR 1, 1 BEGIN END; END")),
        (1413, body("BEGIN DECLARE EXIT HANDLER FOR 1 BEGIN END; DECLARE EXIT HANDLER FOR 1 BEGIN END; END")),
        (1641, body("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1, MYSQL_ERRNO = 2")),
        (1646, body("BEGIN DECLARE c CONDITION FOR 1064; SIGNAL c; END")),
        (1064, body("BEGIN SELECT ?; END")),
        (1064, body("BEGIN SELECT 1 END")),
        (1235, body("BEGIN IMPORT TABLE FROM 'x'; END")),
        (1330, "CREATE PROCEDURE p(a INT, A INT) SELECT 1".to_owned()),
        (1362, "CREATE TRIGGER t BEFORE UPDATE ON t FOR EACH ROW SET OLD.a = 1".to_owned()),
        (1362, "CREATE TRIGGER t AFTER UPDATE ON t FOR EACH ROW SET NEW.a = 1".to_owned()),
        (1363, "CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW SET @a = OLD.a".to_owned()),
        (1363, "CREATE TRIGGER t BEFORE DELETE ON t FOR EACH ROW SET @a = NEW.a".to_owned()),
    ] {
        let error = first(&sql).expect_err(&sql);
        assert_eq!(error.code(), code, "{sql}: {error}");
    }
}

#[test]
fn every_part_of_a_body_is_read() {
    routine(
        "CREATE DEFINER=`a`@`b` FUNCTION IF NOT EXISTS d.f(a VARCHAR(10) CHARSET latin1) RETURNS INT \
         DETERMINISTIC NO SQL SQL SECURITY INVOKER COMMENT 'x' \
         top: BEGIN DECLARE n INT; DECLARE gone CONDITION FOR SQLSTATE '02000'; DECLARE c CURSOR FOR SELECT 1; \
         DECLARE CONTINUE HANDLER FOR gone, SQLWARNING, 1062 SET n = 1; \
         DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN GET STACKED DIAGNOSTICS CONDITION 1 n = MYSQL_ERRNO; RESIGNAL; END; \
         OPEN c; FETCH NEXT FROM c INTO n; FETCH c INTO n, n; CLOSE c; \
         IF a THEN SET n = 1; ELSEIF n THEN SET n = 2; ELSE SET n = 3; END IF; \
         CASE a WHEN 1 THEN SET n = 1; ELSE BEGIN END; END CASE; CASE WHEN a THEN SET n = 1; END CASE; \
         l: LOOP ITERATE l; LEAVE top; END LOOP l; WHILE n DO SET n = n - 1; END WHILE; \
         REPEAT SET n = n + 1; UNTIL n > 3 END REPEAT; \
         GET DIAGNOSTICS n = NUMBER, @r = ROW_COUNT; RETURN CASE n WHEN 1 THEN 2 ELSE 3 END; END top",
    );
    assert!(
        first("CREATE TRIGGER d.t AFTER UPDATE ON u FOR EACH ROW FOLLOWS x SET @a = NEW.a + OLD.b").is_ok()
    );
    assert!(
        first("CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SELECT 1; FETCH c INTO @x; END").is_err(),
        "neither peer has user variables there"
    );
    assert!(first("ALTER PROCEDURE p COMMENT 'x' SQL SECURITY INVOKER").is_ok());
    assert!(first("DROP EVENT IF EXISTS e").is_ok());
    assert!(
        first("ALTER DEFINER=a@b EVENT d.e ON COMPLETION PRESERVE RENAME TO f DISABLE ON REPLICA").is_ok()
    );
    assert!(first("ALTER EVENT e").is_err());
}

#[test]
fn depth_is_bounded() {
    let deep =
        format!("CREATE PROCEDURE p() {}SELECT 1;{}", "BEGIN ".repeat(100_000), " END;".repeat(100_000));
    assert_eq!(first(&deep).unwrap_err().code(), 1436);
}
