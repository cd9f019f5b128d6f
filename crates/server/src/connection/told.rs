//! The changes of a session's state that OK packets tell to clients which track it.

use crate::sysvars::{Registry, SessionVars, VarId, VarValue};
use omnibus_commit::Coordinator;
use omnibus_engine::CommitNo;
use omnibus_wire::session_state::StateChange;

/// `session_track_gtids`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TrackedGtids {
    #[default]
    Off,
    Own,
    All,
}

/// `session_track_system_variables`.
#[derive(Default)]
struct TrackedVariables {
    /// The text that the rest comes from.
    list: String,
    all: bool,
    some: Vec<VarId>,
}

impl TrackedVariables {
    fn follow(&mut self, list: &str) {
        if self.list == list {
            return;
        }
        let known = list.split(',').filter_map(|name| Registry::get().find(name.trim()));
        *self = TrackedVariables { list: list.to_owned(), all: list.trim() == "*", some: known.collect() };
    }

    fn has(&self, id: VarId) -> bool {
        self.all || self.some.contains(&id)
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Told {
    gtids: TrackedGtids,
    committed: Option<CommitNo>,
    schemas: bool,
    /// USE, or DROP DATABASE of the default one, since the last OK.
    schema_changed: bool,
    variables: TrackedVariables,
    /// Tracked variables that were set since the last OK, each once, with their values.
    set: Vec<(VarId, String)>,
}

impl Told {
    /// Follows the variables of a new session; what its login set is not told.
    pub(crate) fn begin(&mut self, vars: &mut SessionVars) {
        vars.take_set();
        self.follow(vars);
    }

    /// After each SET: follows the variables that say what is tracked, and takes over those that were set.
    pub(crate) fn follow(&mut self, vars: &mut SessionVars) {
        self.gtids = match vars.named("session_track_gtids").as_str() {
            "OWN_GTID" => TrackedGtids::Own,
            "ALL_GTIDS" => TrackedGtids::All,
            _ => TrackedGtids::Off,
        };
        self.schemas = vars.named("session_track_schema").as_bool();
        self.variables.follow(vars.named("session_track_system_variables").as_str());
        for id in vars.take_set() {
            if !self.variables.has(id) {
                continue;
            }
            let value = match vars.get(id) {
                VarValue::Null => String::new(),
                value => value.text(),
            };
            match self.set.iter_mut().find(|(known, _)| *known == id) {
                Some((_, old)) => *old = value,
                None => self.set.push((id, value)),
            }
        }
    }

    /// The default database is another one, or there is none.
    pub(crate) fn schema_changed(&mut self) {
        self.schema_changed = true;
    }

    /// The statement has committed.
    pub(crate) fn committed(&mut self, number: CommitNo) {
        self.committed = Some(number);
    }

    /// All that changed since the last OK, once.
    pub(crate) fn take(&mut self, database: Option<&str>, coordinator: Option<&Coordinator>) -> Changes {
        let schema = std::mem::take(&mut self.schema_changed) && self.schemas;
        let mut variables = std::mem::take(&mut self.set);
        variables.sort_unstable_by_key(|(id, _)| *id);
        Changes {
            variables,
            schema: schema.then(|| database.unwrap_or_default().to_owned()),
            gtids: self.take_gtids(coordinator),
        }
    }

    /// The id of what the statement committed, or all that there is then.
    fn take_gtids(&mut self, coordinator: Option<&Coordinator>) -> Option<String> {
        let number = self.committed.take()?;
        match self.gtids {
            TrackedGtids::Off => None,
            TrackedGtids::All => {
                Some(coordinator?.gtids().executed().to_string()).filter(|set| !set.is_empty())
            }
            TrackedGtids::Own => Some(coordinator?.gtids().of(number)?.to_string()),
        }
    }
}

/// The changes that one OK tells.
pub(crate) struct Changes {
    variables: Vec<(VarId, String)>,
    schema: Option<String>,
    gtids: Option<String>,
}

impl Changes {
    /// In the order of MySQL's types and of names, which is that of the registry.
    pub(crate) fn as_packets(&self) -> Vec<StateChange<'_>> {
        let variables = self.variables.iter().map(|(id, value)| {
            let name = Registry::get().def(*id).name.as_bytes();
            StateChange::SystemVariable { name, value: value.as_bytes() }
        });
        let schema = self.schema.as_ref().map(|name| StateChange::Schema(name.as_bytes()));
        let gtids = self.gtids.as_ref().map(|set| StateChange::Gtids(set.as_bytes()));
        variables.chain(schema).chain(gtids).collect()
    }
}
