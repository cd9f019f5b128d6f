//! The accounts that have another one as a role, as that one changes.

use crate::account::roles::AccountName;
use crate::account::store::Record;
use crate::account::table::{AccessTable, Account};

/// Changes an account on, as the changes so far leave it.
pub(super) fn edit(changes: &mut Vec<Record>, account: &Account, f: impl FnOnce(&mut Account)) {
    let put = changes.iter_mut().find_map(|record| match record {
        Record::Put(put) if put.is(&account.user, account.host.as_str()) => Some(put),
        _ => None,
    });
    if let Some(put) = put {
        return f(put);
    }
    let mut changed = account.clone();
    f(&mut changed);
    changes.push(Record::Put(Box::new(changed)));
}

/// After an account was dropped or got another name: whoever has it as a role follows.
pub(super) fn follow(
    table: &AccessTable,
    changes: &mut Vec<Record>,
    old: &Account,
    new: Option<&AccountName>,
) {
    let gone = |changes: &[Record], account: &Account| {
        changes.iter().any(|record| matches!(record, Record::Delete { user, host } if account.is(user, host)))
    };
    for holder in table.all() {
        let holds = holder.grants.roles.iter().any(|role| old.is(&role.user, &role.host));
        if !holds || gone(changes, &holder) {
            continue;
        }
        edit(changes, &holder, |holder| match new {
            None => holder.grants.roles.retain(|role| !old.is(&role.user, &role.host)),
            Some((user, host)) => {
                for role in holder.grants.roles.iter_mut().filter(|role| old.is(&role.user, &role.host)) {
                    (role.user, role.host) = (user.clone(), host.clone());
                }
            }
        });
    }
}

/// Takes accounts that go from those that have them as roles.
pub(super) fn follow_dropped(table: &AccessTable, changes: &mut Vec<Record>) {
    let name = |record: &Record| match record {
        Record::Delete { user, host } => table.exact(user, host),
        Record::Put(_) => None,
    };
    let dropped: Vec<_> = changes.iter().filter_map(name).collect();
    for account in dropped {
        follow(table, changes, &account, None);
    }
}
