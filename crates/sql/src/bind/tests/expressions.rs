//! Properties that a statement's rows do not show: warnings, folding, types, volatility.
#![allow(clippy::unwrap_used)]

use crate::bind::Scope;
use crate::bind::{Binder, Clause};
use crate::catalog::Catalog;
use crate::error::Interrupt;
use crate::expr::{Context, Expr};
use crate::state::SessionState;
use crate::storage::NoStorage;
use omnibus_parser::ParseOptions;
use omnibus_value::Value;

fn bind(session: &SessionState, text: &str) -> Expr {
    let tree = omnibus_parser::parse_expr(text.as_bytes(), &ParseOptions::default()).unwrap();
    let catalog = Catalog::default();
    let mut binder = Binder::new(session, &catalog);
    binder.open(Scope::default(), Clause::FieldList);
    binder.expr(&tree).unwrap()
}

/// Evaluates an expression; the codes of its warnings.
fn warnings(text: &str, strict: bool) -> Result<Vec<u16>, u16> {
    let mut session = SessionState::default();
    let expr = bind(&session, text);
    let mut storage = NoStorage;
    let mut cx = Context::new(&mut session, &mut storage, &[]);
    cx.strict = strict;
    match expr.eval(&mut cx) {
        Ok(_) => Ok(session.diagnostics.conditions().iter().map(|(_, c)| c.code).collect()),
        Err(Interrupt::Error(error)) => Err(error.code),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn bad_data_warns_in_a_query_and_fails_in_a_strict_write() {
    assert_eq!(warnings("1 / 0", false), Ok(vec![1365]));
    assert_eq!(warnings("1 / 0", true), Err(1365));
    assert_eq!(warnings("5 % 0", false), Ok(vec![1365]));
    assert_eq!(warnings("'1x' + 1", false), Ok(vec![1292]));
    assert_eq!(warnings("CAST('x' AS DATE)", false), Ok(vec![1292]));
    assert_eq!(warnings("LN(0)", false), Ok(vec![3020]));
    assert_eq!(warnings("1 + 1", true), Ok(vec![]));
}

#[test]
fn constants_are_folded_but_not_what_may_change_or_warn() {
    let session = SessionState::default();
    let is_const = |text: &str| bind(&session, text).as_const().is_some();
    assert!(is_const("1 + 2 * 3"));
    assert!(is_const("CONCAT('a', UPPER('b'))"));
    assert!(is_const("'2024-01-01' + INTERVAL 1 DAY"));
    for text in ["RAND()", "NOW()", "UUID()", "@v", "@v := 1", "1 / 0", "'1x' + 1", "CONNECTION_ID()"] {
        assert!(!is_const(text), "{text}");
    }
}

#[test]
fn a_sequence_of_rand_with_a_seed_is_always_the_same() {
    let mut session = SessionState::default();
    let expr = bind(&session, "RAND(3)");
    let mut storage = NoStorage;
    let mut run = || {
        let mut cx = Context::new(&mut session, &mut storage, &[]);
        [expr.eval_f64(&mut cx).unwrap().unwrap(), expr.eval_f64(&mut cx).unwrap().unwrap()]
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    // The values that MySQL and MariaDB give.
    assert!((first[0] - 0.905_769_755_976_072_7).abs() < 1e-12, "{first:?}");
    assert!((first[1] - 0.373_079_058_130_345_86).abs() < 1e-12, "{first:?}");
}

#[test]
fn a_timestamp_is_shown_in_the_session_zone() {
    let mut session = SessionState::default();
    session.settings.zone = omnibus_value::temporal::Zone::Offset(3600);
    session.statement.now_us = 86_400_000_000;
    let expr = bind(&session, "NOW()");
    let mut storage = NoStorage;
    let mut cx = Context::new(&mut session, &mut storage, &[]);
    assert_eq!(&expr.eval_str(&mut cx).unwrap().unwrap()[..], b"1970-01-02 01:00:00");
}

#[test]
fn sleeping_asks_for_a_thread_that_may_block() {
    let mut session = SessionState::default();
    let expr = bind(&session, "SLEEP(0.001)");
    let mut storage = NoStorage;
    let mut cx = Context::new(&mut session, &mut storage, &[]);
    assert!(matches!(expr.eval(&mut cx), Err(Interrupt::NeedBlocking)));
}

#[test]
fn assignment_remembers_value_and_type() {
    let mut session = SessionState::default();
    let expr = bind(&session, "@x := 1.50");
    let mut storage = NoStorage;
    expr.eval(&mut Context::new(&mut session, &mut storage, &[])).unwrap();
    let (value, ty) = session.values.get("x").unwrap();
    assert!(matches!(value, Value::Decimal(_)));
    assert_eq!((ty.length, ty.decimals), (3, 2));
}
