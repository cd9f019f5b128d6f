//! Triggers whose table is dropped or gets another name.

use super::exec::{Change, Ddl};
use crate::catalog::{ProgramDef, Table, of_trigger, persist, quote_ident};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{CreateTrigger, ProgramKind};
use std::sync::Arc;

/// The statement that makes a trigger, with what stands behind FOR EACH ROW.
pub(crate) fn trigger_text(tree: &CreateTrigger, definer: &str, table: &str, order: &str) -> String {
    let CreateTrigger {
        // The caller deals with one that is there.
        or_replace: _,
        if_not_exists: _,
        // The account, the table and the place among others are given as they are meant.
        definer: _,
        table: _,
        order: _,
        name,
        time,
        event,
        program,
    } = tree;
    format!(
        "CREATE DEFINER={definer} TRIGGER {} {} {} ON {} FOR EACH ROW{order} {}",
        quote_ident(&name.name),
        time.name(),
        event.name(),
        quote_ident(table),
        String::from_utf8_lossy(&program.text)
    )
}

/// The triggers of a table.
pub(crate) fn triggers_of(change: &Change, table: &Table) -> Vec<(Arc<ProgramDef>, CreateTrigger)> {
    let all = change.next.programs_of(&table.def.db, ProgramKind::Trigger);
    let own =
        |def: &&Arc<ProgramDef>| of_trigger(def, |tree| *tree.table.name == *table.def.name).unwrap_or(false);
    all.filter(own).filter_map(|def| Some((def.clone(), def.trigger().ok()?))).collect()
}

/// The table goes, and its triggers with it.
pub(super) fn drop_triggers(ddl: &mut Ddl<'_>, change: &mut Change, table: &Table) {
    for (def, _) in triggers_of(change, table) {
        change.next.remove_program(&def.db, &def.key());
        persist::delete_program(&mut ddl.trx.transaction.writes, &def);
    }
}

/// The table gets another name, in its own database.
pub(super) fn move_triggers(
    ddl: &mut Ddl<'_>,
    change: &mut Change,
    table: &Table,
    db: &str,
    name: &str,
) -> SqlResult<()> {
    for (def, tree) in triggers_of(change, table) {
        if db != &*table.def.db {
            return Err(SqlError::new(1435, b"HY000", "Trigger in wrong schema"));
        }
        let definer = def.definer();
        let definer = format!("{}@{}", quote_ident(&definer.user), quote_ident(&definer.host));
        let mut moved = ProgramDef::clone(&def);
        moved.set_text(trigger_text(&tree, &definer, name, ""));
        persist::put_program(&mut ddl.trx.transaction.writes, &moved);
        change.next.put_program(Arc::new(moved));
    }
    Ok(())
}
