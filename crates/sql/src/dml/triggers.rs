//! The triggers of a table, and where they stand in the row pipeline: BEFORE triggers see a row when its values are given
//! and its defaults filled in, before generated columns, checks and keys; AFTER triggers when it is written. Rows that come from a source's
//! row events, or that a foreign key takes along, fire none.

use super::Run;
use crate::catalog::{Catalog, ProgramDef, Table, of_trigger};
use crate::error::ExecResult;
use omnibus_parser::ast::{ProgramKind, TriggerEvent, TriggerTime};
use omnibus_value::Value;
use std::sync::Arc;

/// A table's triggers in the order in which they fire.
#[derive(Clone, Debug)]
pub(crate) struct Triggers(Vec<(TriggerTime, TriggerEvent, Arc<ProgramDef>)>);

impl Triggers {
    /// `None`: it has none.
    pub(crate) fn of(catalog: &Catalog, table: &Table) -> Option<Triggers> {
        if table.temporary {
            return None;
        }
        let mut found = Vec::new();
        for def in catalog.programs_of(&table.def.db, ProgramKind::Trigger) {
            // One that does not parse any more says so when it is looked at.
            let fires = of_trigger(def, |tree| {
                (*tree.table.name == *table.def.name).then_some((tree.time, tree.event))
            });
            if let Ok(Some((time, event))) = fires {
                found.push((time, event, def.clone()));
            }
        }
        found.sort_by_key(|(.., def)| def.order);
        (!found.is_empty()).then_some(Triggers(found))
    }

    /// Whether there are any for this.
    pub(crate) fn has(&self, time: TriggerTime, event: TriggerEvent) -> bool {
        self.0.iter().any(|(at, of, _)| (*at, *of) == (time, event))
    }

    /// Fires those for this. BEFORE triggers may change `new`, and leave NULL where none may be.
    pub(crate) fn fire(
        &self,
        (time, event): (TriggerTime, TriggerEvent),
        table: &Arc<Table>,
        old: Option<&[Value]>,
        mut new: Option<&mut Vec<Value>>,
        run: &mut Run<'_>,
    ) -> ExecResult<()> {
        if !self.has(time, event) {
            return Ok(());
        }
        let Some(runner) = run.state.programs.runner.clone() else { return Ok(()) };
        let fired = self.0.iter().filter(|(at, of, _)| (*at, *of) == (time, event));
        for (.., def) in fired {
            runner.fire(def, table, old, new.as_deref_mut(), run.state, run.trx)?;
        }
        Ok(())
    }
}
