//! Values that a session's statements set for later ones: @variables, and the last number of each sequence.

use crate::api::SessionSettings;
use crate::error::SqlResult;
use crate::memory::{Account, MemoryLimits, SessionMemory, memory_of};
use omnibus_value::{ColumnType, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// @variables. Shared with the checkpoint of the running statement, so taking one copies nothing.
pub(super) type UserVariables = HashMap<String, (Value, ColumnType)>;

/// See the module's text.
pub struct UserValues {
    /// By lower-case name, with the type they were last given.
    variables: Arc<UserVariables>,
    /// Counts the times that a variable got a value of another type: a plan is for the types it was made with.
    types: u64,
    account: Account,
    /// LASTVAL(), by the id of the sequence.
    pub(crate) sequences: HashMap<u64, i64>,
}

impl UserValues {
    /// Of a session with this memory.
    pub(crate) fn new(memory: &Arc<SessionMemory>) -> UserValues {
        UserValues {
            variables: Arc::default(),
            types: 0,
            account: Account::new(memory),
            sequences: HashMap::new(),
        }
    }

    /// A variable's value and type, by its name in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&(Value, ColumnType)> {
        self.variables.get(name)
    }

    /// All variables, for `replace`.
    pub(super) fn variables(&self) -> Arc<UserVariables> {
        self.variables.clone()
    }

    /// Another number for other types of variables.
    pub(crate) fn types(&self) -> u64 {
        self.types
    }

    /// Gives a variable a value.
    pub(super) fn set(
        &mut self,
        name: String,
        value: (Value, ColumnType),
        settings: &SessionSettings,
    ) -> SqlResult<()> {
        let more = variable_memory(&name, &value.0);
        let less = self.variables.get(&name).map_or(0, |(value, _)| variable_memory(&name, value));
        if more > less {
            self.account.grow(more - less, settings)?;
        } else {
            self.account.shrink(less - more);
        }
        let like = |before: &(Value, ColumnType)| {
            same_type(&before.0, &value.0) && before.1.collation == value.1.collation
        };
        if !self.variables.get(&name).is_some_and(like) {
            self.types += 1;
        }
        Arc::make_mut(&mut self.variables).insert(name, value);
        Ok(())
    }

    /// Replaces all variables by some that were counted before, or that one statement brings along.
    pub(crate) fn replace(&mut self, variables: Arc<UserVariables>, settings: &SessionSettings) {
        if !Arc::ptr_eq(&self.variables, &variables) {
            let memory = variables.iter().map(|(name, (value, _))| variable_memory(name, value)).sum();
            // What was there once may be there again.
            let _ = self.account.resize(memory, MemoryLimits::of(settings));
            self.variables = variables;
            self.types += 1;
        }
    }
}

fn variable_memory(name: &str, value: &Value) -> usize {
    // Its type and its place in the map.
    name.len() + memory_of(std::slice::from_ref(value)) + 128
}

/// Whether two values have the same type where they stand for a parameter or a variable; the length of text does not count.
#[must_use]
pub fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Decimal(a), Value::Decimal(b)) => {
            (a.precision(), a.shown_scale()) == (b.precision(), b.shown_scale())
        }
        (Value::DateTime(a), Value::DateTime(b)) => (a.micros() == 0) == (b.micros() == 0),
        (Value::Time(a), Value::Time(b)) => (a.micros() == 0) == (b.micros() == 0),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
