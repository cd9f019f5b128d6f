//! Where values live: one vector for the server, and for each session the server's vector as it was
//! at connect time (shared, not copied) with the few values the session changed on top.

use super::{Registry, VarId, VarValue};
use crate::account::PasswordDefaults;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The server's values.
#[derive(Debug)]
pub struct GlobalVars {
    values: RwLock<Arc<Vec<VarValue>>>,
    /// Counts changes, so that sessions notice `read_only` and the like without a lock.
    generation: AtomicU64,
}

impl Default for GlobalVars {
    fn default() -> Self {
        let values = Registry::get().iter().map(|(_, def)| def.default.value()).collect();
        GlobalVars { values: RwLock::new(Arc::new(values)), generation: AtomicU64::new(0) }
    }
}

impl Clone for GlobalVars {
    fn clone(&self) -> Self {
        GlobalVars { values: RwLock::new(self.snapshot()), generation: AtomicU64::new(0) }
    }
}

impl GlobalVars {
    /// All values as they are now, by `VarId`.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Vec<VarValue>> {
        self.values.read().clone()
    }

    /// One value.
    #[must_use]
    pub fn get(&self, id: VarId) -> VarValue {
        self.values.read()[usize::from(id.0)].clone()
    }

    /// One value by name; NULL for an unknown name, which is a mistake in this program.
    #[must_use]
    pub fn named(&self, name: &str) -> VarValue {
        let id = Registry::get().find(name);
        debug_assert!(id.is_some(), "no variable {name}");
        id.map_or(VarValue::Null, |id| self.get(id))
    }

    /// The variables about passwords.
    #[must_use]
    pub fn password_defaults(&self) -> PasswordDefaults {
        let number = |name| u32::try_from(self.named(name).as_u64()).unwrap_or(u32::MAX);
        PasswordDefaults {
            history: number("password_history"),
            reuse_days: number("password_reuse_interval"),
            require_current: self.named("password_require_current").as_bool(),
            enforced: true,
        }
    }

    /// Changes one value.
    pub fn set(&self, id: VarId, value: VarValue) {
        let mut values = self.values.write();
        Arc::make_mut(&mut values)[usize::from(id.0)] = value;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Changes one value by name.
    pub fn set_named(&self, name: &str, value: VarValue) {
        if let Some(id) = Registry::get().find(name) {
            self.set(id, value);
        }
    }

    /// A number that is another one after every change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

/// One session's values.
#[derive(Clone, Debug)]
pub struct SessionVars {
    base: Arc<Vec<VarValue>>,
    changed: Vec<(VarId, VarValue)>,
    /// Those that were set since `take_set`, each once.
    set: Vec<VarId>,
}

impl SessionVars {
    /// A new session's, which starts from the server's present values.
    #[must_use]
    pub fn new(globals: &GlobalVars) -> SessionVars {
        SessionVars { base: globals.snapshot(), changed: Vec::new(), set: Vec::new() }
    }

    /// One value.
    #[must_use]
    pub fn get(&self, id: VarId) -> &VarValue {
        let own = self.changed.iter().find(|(changed, _)| *changed == id);
        own.map_or_else(|| &self.base[usize::from(id.0)], |(_, value)| value)
    }

    /// One value by name, as in `GlobalVars::named`.
    #[must_use]
    pub fn named(&self, name: &str) -> &VarValue {
        match Registry::get().find(name) {
            Some(id) => self.get(id),
            None => &VarValue::Null,
        }
    }

    /// Changes one value, as a SET does.
    pub fn set(&mut self, id: VarId, value: VarValue) {
        if !self.set.contains(&id) {
            self.set.push(id);
        }
        self.put(id, value);
    }

    /// As `put`, by name.
    pub fn put_named(&mut self, name: &str, value: VarValue) {
        if let Some(id) = Registry::get().find(name) {
            self.put(id, value);
        }
    }

    /// The variables that were set since the last time.
    pub fn take_set(&mut self) -> Vec<VarId> {
        std::mem::take(&mut self.set)
    }

    /// Changes one value for a while or for the server's own ends: clients that track variables are not told.
    pub fn put(&mut self, id: VarId, value: VarValue) {
        match self.changed.iter_mut().find(|(changed, _)| *changed == id) {
            Some((_, old)) => *old = value,
            None => self.changed.push((id, value)),
        }
    }

    /// Changes one value by name.
    pub fn set_named(&mut self, name: &str, value: VarValue) {
        if let Some(id) = Registry::get().find(name) {
            self.set(id, value);
        }
    }
}
