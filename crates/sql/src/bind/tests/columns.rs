//! Metadata of result columns: types, lengths, flags, names.
#![allow(clippy::unwrap_used)]

use crate::api::{AllowAll, ResultColumn, flag};
use crate::bind::prepare;
use crate::catalog::Catalog;
use crate::logical::NoVirtualTables;
use crate::state::SessionState;
use crate::storage::LockMode;
use omnibus_parser::ParseOptions;
use omnibus_parser::ast::Statement;
use omnibus_value::{ColumnKind, Value};

fn columns(sql: &str, params: Option<&[Value]>) -> Vec<ResultColumn> {
    let (statement, _) = omnibus_parser::parse_first(
        sql.as_bytes(),
        &ParseOptions { markers: true, ..ParseOptions::default() },
    )
    .unwrap();
    let Statement::Select(query) = &statement.node else { panic!("not a query") };
    let session = SessionState::default();
    let plan =
        prepare(query, &session, &Catalog::default(), &NoVirtualTables, &AllowAll, params, LockMode::None)
            .unwrap();
    plan.columns.to_vec()
}

fn shape(sql: &str) -> Vec<(ColumnKind, u32, u8)> {
    columns(sql, None).iter().map(|c| (c.ty.kind, c.ty.length, c.ty.decimals)).collect()
}

#[test]
fn numbers_have_the_types_that_arithmetic_gives_them() {
    use ColumnKind as K;
    assert_eq!(shape("SELECT 1, 1.50, 1e0"), [(K::BigInt, 2, 0), (K::Decimal, 3, 2), (K::Double, 23, 31)]);
    assert_eq!(
        shape("SELECT 1 + 1, 1 / 3, 1.5 * 1.5"),
        [(K::BigInt, 3, 0), (K::Decimal, 5, 4), (K::Decimal, 4, 2)]
    );
    assert_eq!(
        shape("SELECT COUNT(*), SUM(1.5), AVG(2.25)"),
        [(K::BigInt, 21, 0), (K::Decimal, 24, 1), (K::Decimal, 7, 6)]
    );
    assert_eq!(shape("SELECT 1 = 1, NOT 1")[0], (K::BigInt, 1, 0));
}

#[test]
fn text_and_time_have_lengths() {
    use ColumnKind as K;
    assert_eq!(
        shape("SELECT 'abc', CONCAT('ab', 'cd'), NOW(3), CURDATE(), CURTIME()"),
        [(K::VarChar, 3, 0), (K::VarChar, 4, 0), (K::DateTime, 23, 3), (K::Date, 10, 0), (K::Time, 10, 0),]
    );
    let null = &columns("SELECT NULL", None)[0];
    assert_eq!(null.flags & flag::NOT_NULL, 0);
}

#[test]
fn names_are_the_alias_or_the_text_as_written() {
    let names: Vec<String> = columns("SELECT 1 AS one, 1  +  2, 'x', COUNT( * )", None)
        .iter()
        .map(|c| c.name.to_string())
        .collect();
    assert_eq!(names, ["one", "1  +  2", "x", "COUNT( * )"]);
}

#[test]
fn parameters_type_the_result_once_they_are_known() {
    let typed = |value: Value| columns("SELECT ?", Some(&[value]))[0].ty.kind;
    assert_eq!(typed(Value::Int(1)), ColumnKind::BigInt);
    assert_eq!(typed(Value::Double(1.0)), ColumnKind::Double);
    assert_eq!(typed(Value::Bytes("a".into())), ColumnKind::VarChar);
    let plan = |sql: &str| {
        let (statement, _) = omnibus_parser::parse_first(
            sql.as_bytes(),
            &ParseOptions { markers: true, ..ParseOptions::default() },
        )
        .unwrap();
        let Statement::Select(query) = &statement.node else { panic!("not a query") };
        let session = SessionState::default();
        prepare(query, &session, &Catalog::default(), &NoVirtualTables, &AllowAll, None, LockMode::None)
            .unwrap()
    };
    assert!(plan("SELECT ? + 1").statement.untyped_params);
    assert!(
        !plan("SELECT 1 FROM DUAL WHERE ? = 1 LIMIT ?").statement.untyped_params,
        "a plan for all executions"
    );
}
