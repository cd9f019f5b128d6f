//! Accounts, roles and rights: what SHOW CREATE USER and SHOW GRANTS say of them, with the passwords as they are stored.
//!
//! An account that the target has already stays as it is. What the target does not take, such as a plugin, is reported.

use crate::error::ImportError;
use crate::quote;
use crate::session::{Family, Server, Session};
use crate::table::take;

/// Accounts that servers make for themselves.
const OWN: [&str; 5] = ["mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys", "PUBLIC"];

/// Everything about one account, in the order in which it has to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// As it stands in statements.
    pub name: String,
    pub create: String,
    pub grants: Vec<String>,
    pub default_role: Option<String>,
}

/// Reads all accounts.
pub(crate) fn read(server: &Server, session: &mut Session) -> Result<Vec<Account>, ImportError> {
    session.optional("SET SESSION print_identified_with_as_hex = ON")?;
    let mariadb = server.family == Family::Mariadb;
    let columns = if mariadb { "User, Host, is_role, default_role" } else { "User, Host, 'N', ''" };
    let list = session.texts(&format!("SELECT {columns} FROM mysql.user ORDER BY User, Host")).map_err(|error| {
        ImportError::Refused(format!(
            "accounts cannot be read ({error}): GRANT SELECT ON mysql.* to the account, or say --no-accounts"
        ))
    })?;
    let mut accounts = Vec::new();
    for [user, host, role, default_role] in list.into_iter().map(take) {
        if OWN.contains(&&*user) || (user == "root" && host == "localhost") {
            continue;
        }
        let is_role = role == "Y";
        let name = if is_role {
            quote::name(&user)
        } else {
            format!("{}@{}", quote::name(&user), quote::name(&host))
        };
        let create = if is_role {
            format!("CREATE ROLE {name}")
        } else {
            session.value(&format!("SHOW CREATE USER {name}"))?
        };
        let grants = session.texts(&format!("SHOW GRANTS FOR {name}"))?.into_iter().flatten().collect();
        let (create, default) = without_default_role(&create);
        let default_role = default.or_else(|| (!default_role.is_empty()).then(|| quote::name(&default_role)));
        accounts.push(Account { name, create, grants, default_role });
    }
    Ok(accounts)
}

/// Takes the clause out that needs a role to have been granted.
fn without_default_role(create: &str) -> (String, Option<String>) {
    const CLAUSE: &str = " DEFAULT ROLE ";
    let Some((head, tail)) = create.split_once(CLAUSE) else { return (create.to_owned(), None) };
    // The clause ends where no name, no @ and no comma goes on.
    let mut end = 0;
    let mut quoted = false;
    for (at, c) in tail.char_indices() {
        match c {
            '`' => quoted = !quoted,
            ' ' if !quoted => break,
            _ => {}
        }
        end = at + c.len_utf8();
    }
    (format!("{head}{}", &tail[end..]), Some(tail[..end].to_owned()))
}

/// The result of creating accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// The number of accounts and roles that were created.
    pub created: usize,
    /// The names of those that the target had.
    pub kept: Vec<String>,
    /// The refusals of the target, with its reasons.
    pub refused: Vec<String>,
}

/// Creates accounts at the target.
pub(crate) fn create(session: &mut Session, accounts: &[Account]) -> Result<Made, ImportError> {
    let mut made = Vec::new();
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    let mut tell = |what: String, error: ImportError| match &error {
        ImportError::Server { error: inner, .. } if error.code().is_some() && !error.is_lost() => {
            refused.push(format!("{what}: {inner}"));
            Ok(())
        }
        _ => Err(error),
    };
    for account in accounts {
        match session.run(&account.create) {
            Ok(_) => made.push(account),
            Err(error) if error.code() == Some(1396) => kept.push(account.name.clone()),
            Err(error) => tell(format!("account {}", account.name), error)?,
        }
    }
    for account in &made {
        for grant in &account.grants {
            let grant = &without_password(grant);
            if grant.starts_with("SET DEFAULT ROLE") {
                continue;
            }
            if let Err(error) = session.run(grant) {
                tell(shortened(grant), error)?;
            }
        }
    }
    for account in &made {
        let Some(role) = &account.default_role else { continue };
        let mysql = format!("SET DEFAULT ROLE {role} TO {}", account.name);
        let mariadb = format!("SET DEFAULT ROLE {role} FOR {}", account.name);
        if session.run(&mysql).is_err()
            && let Err(error) = session.run(&mariadb)
        {
            tell(mysql, error)?;
        }
    }
    Ok(Made { created: made.len(), kept, refused })
}

/// Takes the password out, which MariaDB and MySQL 5.7 say once more in the first grant.
fn without_password(grant: &str) -> String {
    let Some((head, tail)) = grant.split_once(" IDENTIFIED ") else { return grant.to_owned() };
    const OPTION: &str = " WITH GRANT OPTION";
    format!("{head}{}", if tail.ends_with(OPTION) { OPTION } else { "" })
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(120).collect();
    if short.len() < text.len() { format!("{short}..") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_granted() {
        assert_eq!(
            without_password("GRANT ALL ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*AB' WITH GRANT OPTION"),
            "GRANT ALL ON *.* TO `a`@`%` WITH GRANT OPTION"
        );
        assert_eq!(
            without_password("GRANT USAGE ON *.* TO `a`@`%` IDENTIFIED VIA x USING 'y'"),
            "GRANT USAGE ON *.* TO `a`@`%`"
        );
    }

    #[test]
    fn default_roles_are_said_later() {
        let (rest, role) = without_default_role(
            "CREATE USER `a`@`%` IDENTIFIED WITH 'x' AS 'y' DEFAULT ROLE `r 1`@`%`,`s`@`%` REQUIRE NONE",
        );
        assert_eq!(rest, "CREATE USER `a`@`%` IDENTIFIED WITH 'x' AS 'y' REQUIRE NONE");
        assert_eq!(role.as_deref(), Some("`r 1`@`%`,`s`@`%`"));
        assert_eq!(without_default_role("CREATE USER a"), ("CREATE USER a".into(), None));
    }
}
