//! The routines of the schema `sys`, with MySQL's names and arguments: what people call on lists, amounts and names.
//!
//! They are the paragraphs of `sys_routines.sql`. Like the schema's views they are in no list, so that no copy of a server takes them along.

use super::{ProgramDef, charset, program_key};
use omnibus_parser::ast::ProgramKind;
use std::sync::{Arc, LazyLock};

/// The schema's name.
const SYS: &str = "sys";

static ROUTINES: LazyLock<Vec<Arc<ProgramDef>>> = LazyLock::new(|| {
    include_str!("sys_routines.sql").split("\n\n").filter_map(routine).map(Arc::new).collect()
});

fn routine(text: &str) -> Option<ProgramDef> {
    let name = text.strip_prefix("FUNCTION `")?.split('`').next()?;
    let collation = charset::server_default();
    Some(ProgramDef {
        kind: Some(ProgramKind::Function),
        db: SYS.into(),
        name: name.into(),
        text: format!("CREATE DEFINER=`mysql.sys`@`localhost` {}", text.trim_end()).into(),
        client: collation,
        connection: collation,
        database: collation,
        ..ProgramDef::default()
    })
}

/// Finds a routine of `sys` by its name.
pub(super) fn find(kind: ProgramKind, db: &str, name: &str) -> Option<&'static Arc<ProgramDef>> {
    if !db.eq_ignore_ascii_case(SYS) {
        return None;
    }
    let key = program_key(kind, name);
    ROUTINES.iter().find(|routine| routine.key() == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paragraph_is_a_routine() {
        assert_eq!(ROUTINES.len(), include_str!("sys_routines.sql").matches("FUNCTION `").count());
        assert!(ROUTINES.iter().all(|routine| routine.routine().is_ok()));
        assert!(find(ProgramKind::Function, "SYS", "List_Add").is_some());
    }
}
