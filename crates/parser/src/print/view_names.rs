//! Names that members of a view's select list get because they are called alike.

use super::query::{Meaning, place};
use crate::ast::{Expr, Ident, Query, SelectItem};

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
        for later in 1..list.len() {
            let same = |other: &usize| is_same(&list[*other].name, &list[later].name);
            let Some(earlier) = (0..later).find(same) else { continue };
            let Some(at) = [later, earlier].into_iter().find(|at| list[*at].generated) else { continue };
            let name = free_name(&list, at);
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

fn is_same(left: &str, right: &str) -> bool {
    left.to_lowercase() == right.to_lowercase()
}

fn free_name(list: &[Named<'_>], at: usize) -> Ident {
    let own = &*list[at].name;
    let first = std::iter::once(format!("Name_exp_{own}"));
    let mut names = first.chain((1u32..).map(|number| format!("Name_exp_{number}_{own}")));
    let free = |name: &String| !list.iter().any(|other| is_same(&other.name, name));
    names.find(free).unwrap_or_default().into()
}
