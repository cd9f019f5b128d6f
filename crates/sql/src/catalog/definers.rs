//! Whose definitions there are.

use super::{Catalog, Definer};
use omnibus_parser::ast::ProgramKind;
use std::collections::BTreeSet;

impl Catalog {
    /// Kinds of objects that an account is the definer of, as messages name them.
    #[must_use]
    pub fn defined_by(&self, user: &str, host: &str) -> BTreeSet<&'static str> {
        let is = |definer: &Definer| *definer.user == *user && definer.host.eq_ignore_ascii_case(host);
        let mut kinds = BTreeSet::new();
        for schema in self.schemas.values() {
            if schema.views.values().any(|view| is(&view.def.definer)) {
                kinds.insert("a view");
            }
            for program in schema.programs.values().filter(|program| is(&program.definer())) {
                kinds.insert(match program.kind {
                    Some(ProgramKind::Trigger) => "a trigger",
                    Some(ProgramKind::Event) => "an event",
                    _ => "a stored routine",
                });
            }
        }
        kinds
    }
}
