//! Partial revokes: what an account has everywhere but in some databases. REVOKE on a database takes away there what was granted on
//! everything, under `partial_revokes`; a GRANT on the database gives it back.

use super::Grants;
use super::privilege::{DB_PRIVILEGES, PRIVILEGES, Privileges};
use omnibus_value::json::Json;

/// Databases by their exact names, in order, with the global privileges that do not hold there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions(Vec<(String, Privileges)>);

impl Restrictions {
    /// The privileges that do not hold in a database.
    #[must_use]
    pub fn of(&self, db: &str) -> Privileges {
        let found = self.0.binary_search_by(|(name, _)| name.as_str().cmp(db));
        found.map_or(Privileges::NONE, |at| self.0[at].1)
    }

    /// Changes that.
    pub fn change(&mut self, db: &str, f: impl Fn(Privileges) -> Privileges) {
        match self.0.binary_search_by(|(name, _)| name.as_str().cmp(db)) {
            Ok(at) => self.0[at].1 = f(self.0[at].1),
            Err(at) => self.0.insert(at, (db.to_owned(), f(Privileges::NONE))),
        }
        self.0.retain(|(_, set)| *set != Privileges::NONE);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Privileges)> {
        self.0.iter().map(|(db, set)| (db.as_str(), *set))
    }

    /// GRANT of global privileges: they hold wherever they do for who grants them, and what was held before stays.
    pub fn granted(&mut self, held: Privileges, granted: Privileges, grantor: &Restrictions) {
        let names: Vec<String> = self.0.iter().chain(&grantor.0).map(|(db, _)| db.clone()).collect();
        for db in names {
            let (own, theirs) = (self.of(&db), grantor.of(&db));
            let unrestricted = held.without(own).with(granted.without(theirs));
            let all = Privileges(held.with(granted).0 & own.with(theirs).0);
            self.change(&db, |_| all.without(unrestricted));
        }
    }

    /// REVOKE of global privileges: what is not held is not restricted.
    pub fn revoked(&mut self, revoked: Privileges) {
        for (_, set) in &mut self.0 {
            *set = set.without(revoked);
        }
        self.0.retain(|(_, set)| *set != Privileges::NONE);
    }

    /// Of an account and its roles together: what none of them holds in a database.
    pub fn together<'a>(all_grants: impl Iterator<Item = &'a Grants> + Clone) -> Restrictions {
        let mut all = Restrictions::default();
        let names: Vec<String> =
            all_grants.clone().flat_map(|one| one.restrictions.0.iter().map(|(db, _)| db.clone())).collect();
        for db in names {
            let sum = |part: fn(&Grants, Privileges) -> Privileges| {
                let parts = all_grants.clone().map(|one| part(one, one.restrictions.of(&db)));
                parts.fold(Privileges::NONE, Privileges::with)
            };
            let restricted = sum(|_, own| own);
            let free = sum(|one, own| one.privileges.without(own));
            all.change(&db, |_| restricted.without(free));
        }
        all
    }

    /// For `Attributes`, as MySQL has them there.
    #[must_use]
    pub fn to_json(&self) -> Option<Json> {
        let one = |(db, set): &(String, Privileges)| {
            let names = PRIVILEGES.iter().filter(|p| set.has(p.bit));
            let names = names.map(|p| Json::String(p.name.to_owned())).collect();
            Json::object([
                ("Database".to_owned(), Json::String(db.clone())),
                ("Privileges".to_owned(), Json::Array(names)),
            ])
        };
        (!self.is_empty()).then(|| Json::Array(self.0.iter().map(one).collect()))
    }

    /// From there. What this version does not know is passed over.
    #[must_use]
    pub fn of_json(json: &Json) -> Restrictions {
        let mut all = Restrictions::default();
        let Json::Array(list) = json else { return all };
        for one in list {
            let (Some(Json::String(db)), Some(Json::Array(names))) =
                (one.get("Database"), one.get("Privileges"))
            else {
                continue;
            };
            let known = names.iter().filter_map(|name| match name {
                Json::String(name) => super::privilege::by_name(name),
                _ => None,
            });
            let set = known.fold(Privileges::NONE, Privileges::with);
            all.change(db, |_| Privileges(set.0 & DB_PRIVILEGES.0));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const READ: Privileges = Privileges::SELECT;
    const WRITE: Privileges = Privileges::INSERT;

    #[test]
    fn what_is_granted_on_holds_where_it_does_for_the_grantor() {
        let both = READ.with(WRITE);
        let mut grantor = Restrictions::default();
        grantor.change("a", |_| both);
        let mut own = Restrictions::default();
        own.change("a", |_| WRITE);
        own.change("b", |_| READ);
        // READ was held in `a`, and stays; WRITE was not, and the grantor cannot give it. READ in `b` comes back.
        own.granted(both, both, &grantor);
        assert_eq!((own.of("a"), own.of("b")), (WRITE, Privileges::NONE));
        own.revoked(WRITE);
        assert!(own.is_empty());
        own.granted(Privileges::NONE, READ, &grantor);
        assert_eq!(own.of("a"), READ, "new to it");
        assert_eq!(Restrictions::of_json(&own.to_json().unwrap()), own);
    }

    #[test]
    fn a_role_gives_what_its_holder_lacks() {
        let grants = |set, restricted: Privileges| {
            let mut grants = Grants { privileges: set, ..Grants::default() };
            grants.restrictions.change("a", |_| restricted);
            grants
        };
        let of = |all: &[Grants]| Restrictions::together(all.iter()).of("a");
        let own = grants(READ.with(WRITE), READ.with(WRITE));
        assert_eq!(of(&[own.clone(), grants(READ, Privileges::NONE)]), WRITE);
        assert_eq!(of(&[own, grants(READ, READ)]), READ.with(WRITE));
    }
}
