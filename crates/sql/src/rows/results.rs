//! Results of a correlated subquery by the values that it reads of the queries around it: a join often asks for the same ones again.
//!
//! In memory, up to a budget; what does not fit is computed each time. A subquery whose values hardly come twice is no longer looked up.

use super::Running;
use super::distinct::KEY_COST;
use crate::memory::{Account, memory_of};
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::collections::HashMap;

/// Bytes that the results of one subquery take at most.
const MOST: u64 = 1 << 20;
/// Questions before it is known whether looking pays.
const TRIAL: u32 = 256;
/// Looking up and keeping cost about a twentieth of running a subquery that reads one row.
const WORTH: u32 = 16;

/// Results by key.
#[derive(Debug)]
pub struct Results {
    known: HashMap<Box<[u8]>, Value, RandomState>,
    account: Account,
    asked: u32,
    found: u32,
}

impl Results {
    /// None yet.
    #[must_use]
    pub fn new(cx: &impl Running) -> Results {
        let account = Account::new(&cx.session().connection.memory);
        Results { known: HashMap::default(), account, asked: 0, found: 0 }
    }

    /// The result for a key, if it is known.
    pub fn get(&mut self, key: &[u8]) -> Option<Value> {
        let value = self.known.get(key)?.clone();
        self.found = self.found.saturating_add(1);
        Some(value)
    }

    /// Keeps a result. False: keys come twice so rarely that it is better to keep none.
    pub fn keep(&mut self, key: &[u8], value: &Value, cx: &impl Running) -> bool {
        self.asked = self.asked.saturating_add(1);
        if self.asked >= TRIAL && self.found < self.asked / WORTH {
            return false;
        }
        let more = key.len() + KEY_COST + memory_of(std::slice::from_ref(value));
        if self.account.has_room(more, MOST, &cx.session().settings) {
            self.known.insert(key.into(), value.clone());
        }
        true
    }
}
