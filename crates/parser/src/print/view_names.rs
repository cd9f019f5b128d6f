//! Names that members of a view's select list get because they are called alike.

use super::query::{Meaning, place};
use crate::ast::{Expr, Ident, Query, SelectItem};
use std::collections::{HashMap, HashSet};

/// A column of the list: its member, its place in that, its name, whether the statement does not give that.
struct Named<'a> {
    item: &'a SelectItem,
    at: usize,
    name: Ident,
    generated: bool,
}

impl Meaning {
    /// Renames members of the outermost select list that have no alias and are called as another, as MySQL does.
    pub fn tell_apart(&mut self, query: &Query) {
        let Some(select) = query.body.first_select() else { return };
        let mut list: Vec<Named<'_>> = Vec::new();
        for item in &select.items {
            let generated = match item {
                SelectItem::Expr { alias: None, expr, .. } => !matches!(expr, Expr::Column(_)),
                _ => false,
            };
            let named = self.items.get(&place(item)).into_iter().flatten().enumerate();
            list.extend(named.map(|(at, (_, name))| Named { item, at, name: name.clone(), generated }));
        }
        let mut free = FreeNames::beside(&list);
        // By name, the first member that is called so.
        let mut called: HashMap<String, usize> = HashMap::new();
        for later in 0..list.len() {
            let folded = list[later].name.to_lowercase();
            let Some(&earlier) = called.get(&folded) else {
                called.insert(folded, later);
                continue;
            };
            let Some(at) = [later, earlier].into_iter().find(|at| list[*at].generated) else { continue };
            let name = free.name(&list[at].name);
            if at == earlier {
                called.insert(folded, later);
            }
            called.entry(name.to_lowercase()).or_insert(at);
            let member = &mut list[at];
            if let Some((_, own)) =
                self.items.get_mut(&place(member.item)).and_then(|names| names.get_mut(member.at))
            {
                own.clone_from(&name);
            }
            member.name = name;
        }
    }
}

/// Names that are not taken, without asking for each of those that are once more: lists have thousands of members.
struct FreeNames {
    taken: HashSet<String>,
    /// How many were made of each.
    made: HashMap<String, u32>,
}

impl FreeNames {
    fn beside(list: &[Named<'_>]) -> FreeNames {
        let taken = list.iter().map(|named| named.name.to_lowercase()).collect();
        FreeNames { taken, made: HashMap::new() }
    }

    fn name(&mut self, own: &str) -> Ident {
        let made = self.made.entry(own.to_lowercase()).or_default();
        loop {
            let name = match *made {
                0 => format!("Name_exp_{own}"),
                number => format!("Name_exp_{number}_{own}"),
            };
            *made += 1;
            if self.taken.insert(name.to_lowercase()) {
                return name.into();
            }
        }
    }
}
