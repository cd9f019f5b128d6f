//! The accounts behind definitions: who made the views and programs that there are.

use super::{Catalog, Definer};
use omnibus_parser::ast::ProgramKind;

/// Kinds of objects as messages name them, in the order in which they are told.
const KINDS: [&str; 4] = ["an event", "a view", "a stored routine", "a trigger"];

impl Catalog {
    /// The kinds of objects that an account is the definer of.
    pub fn defined_by(&self, user: &str, host: &str) -> impl Iterator<Item = &'static str> {
        let is = |definer: &Definer| *definer.user == *user && definer.host.eq_ignore_ascii_case(host);
        let mut found = [false; KINDS.len()];
        for schema in self.schemas.values() {
            found[1] |= schema.views.values().any(|view| is(&view.def.definer));
            for program in schema.programs.values().filter(|program| is(&program.definer())) {
                let at = match program.kind() {
                    ProgramKind::Event => 0,
                    ProgramKind::Procedure | ProgramKind::Function => 2,
                    ProgramKind::Trigger => 3,
                };
                found[at] = true;
            }
        }
        KINDS.into_iter().zip(found).filter_map(|(kind, found)| found.then_some(kind))
    }
}
