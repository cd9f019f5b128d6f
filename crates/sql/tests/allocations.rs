//! The number of allocations that a short statement makes: each is some tens of nanoseconds, and a cache line or two.
//!
//! `WHERE=1 cargo test -p omnibus-sql --test allocations -- --nocapture` prints where each is made. The numbers may only fall. One that grows is a copy that somebody has added to every statement; one that falls is written down here.

#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use bytes::Bytes;
use common::{Client, database};
use omnibus_sql::{AllowAll, Mode, ResultColumn, RowSink, SqlResult};
use omnibus_value::Value;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<Option<u64>> = const { Cell::new(None) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|count| {
        if let Some(n) = count.get() {
            count.set(None);
            if std::env::var_os("WHERE").is_some() {
                eprintln!("ALLOC {n}\n{}", std::backtrace::Backtrace::force_capture());
            }
            count.set(Some(n + 1));
        }
    });
}

// SAFETY: all is the system allocator's, which is given what was asked for.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Rows go nowhere.
struct Nowhere;

impl RowSink for Nowhere {
    fn columns(&mut self, _: &[ResultColumn]) -> SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, _: &[Value]) -> SqlResult<()> {
        Ok(())
    }
}

/// Runs it often enough that all buffers have their size, then counts.
fn allocations(mut statement: impl FnMut()) -> u64 {
    for _ in 0..50 {
        statement();
    }
    ALLOCATIONS.set(Some(0));
    statement();
    ALLOCATIONS.take().unwrap_or_default()
}

/// A table as sysbench has it, in a memory engine.
fn table() -> Client {
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))");
    client.ok("INSERT INTO t VALUES (1, 1, 'c', 'p'), (2, 2, 'c', 'p'), (3, 3, 'c', 'p')");
    client
}

/// Of a statement whose first parameter is another number each time, behind it the row's key if `keyed`.
fn prepared(client: &mut Client, text: &'static str, keyed: bool) -> u64 {
    let mut statement = client.session.prepare(&Bytes::from_static(text.as_bytes()), &AllowAll).unwrap();
    let mut n = 0;
    allocations(|| {
        n += 1;
        let parameters = if keyed { &[Value::Int(n), Value::Int(2)][..] } else { &[Value::Int(2)] };
        let run = client.session.execute_prepared(
            &mut statement,
            parameters,
            Mode::Inline,
            &AllowAll,
            &mut Nowhere,
        );
        if let Some(ticket) = run.unwrap().wait {
            ticket.wait().unwrap();
        }
    })
}

#[test]
fn a_short_statement_allocates_no_more_than_it_did() {
    let mut client = table();
    let select = prepared(&mut client, "SELECT c FROM t WHERE id = ?", false);
    let plain = prepared(&mut client, "UPDATE t SET c = ? WHERE id = ?", true);
    let indexed = prepared(&mut client, "UPDATE t SET k = ? WHERE id = ?", true);
    let text = Bytes::from_static(b"SELECT c FROM t WHERE id = 2");
    let text = allocations(|| {
        let read = client.session.read(&text).unwrap();
        let session = &mut client.session;
        session.execute(&read.statement, &text, &read.values, Mode::Inline, &AllowAll, &mut Nowhere).unwrap();
    });
    let made =
        [("SELECT", select), ("SELECT as text", text), ("UPDATE", plain), ("UPDATE of an index", indexed)];
    assert_eq!(made, [("SELECT", 3), ("SELECT as text", 4), ("UPDATE", 16), ("UPDATE of an index", 17)]);
}
