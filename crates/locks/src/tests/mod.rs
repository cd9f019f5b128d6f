//! Tests of the lock manager: by hand, against a naive model, and with real threads.
#![allow(clippy::unwrap_used)]

mod basic;
mod deadlock;
mod lock;
mod model;
mod range;
mod stamps;
mod threads;
mod widen;

use crate::{LockManager, LockWait, Request, RowMode, TrxLocks, WaitOutcome};
use bytes::Bytes;
use std::sync::Arc;

const SPACE: u32 = lock::SPACE;

fn key(name: &str) -> Bytes {
    [&b"room"[..], name.as_bytes()].concat().into()
}

fn trxs<const N: usize>(manager: &Arc<LockManager>) -> [TrxLocks; N] {
    std::array::from_fn(|i| manager.begin(i as u64 + 1))
}

#[track_caller]
fn granted(request: Request) {
    assert!(request.is_granted(), "had to wait");
}

#[track_caller]
fn waits(request: Request) -> LockWait {
    match request {
        Request::Granted { .. } => panic!("did not wait"),
        Request::Wait(wait) => wait,
    }
}

fn x(trx: &TrxLocks, name: &str) -> Request {
    trx.lock_record(SPACE, &key(name), RowMode::Exclusive)
}

fn s(trx: &TrxLocks, name: &str) -> Request {
    trx.lock_record(SPACE, &key(name), RowMode::Shared)
}

const GRANTED: Option<WaitOutcome> = Some(WaitOutcome::Granted);
