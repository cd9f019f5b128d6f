//! Accounts: CREATE USER, ALTER USER, GRANT, REVOKE.

use super::{Parser, Rule, names};
use crate::ParseError;
use crate::ast::{
    Auth, AuthSecret, CreateRole, CreateUser, Grant, GrantTarget, GrantWhat, Ident, PasswordExpire,
    Privilege, Require, Revoke, RoleSet, SetDefaultRole, Statement, UserName, UserSpec,
};
use crate::lexer::Tok;
use crate::lexer::keyword::Kw;

const RESOURCES: &[&str] = &[
    "MAX_QUERIES_PER_HOUR",
    "MAX_UPDATES_PER_HOUR",
    "MAX_CONNECTIONS_PER_HOUR",
    "MAX_USER_CONNECTIONS",
    "MAX_STATEMENT_TIME",
];

/// Behind CREATE USER.
pub(super) fn create_user(p: &mut Parser<'_>, or_replace: bool) -> Rule<Statement> {
    let if_clause = names::if_not_exists(p);
    let user = user_statement(p, or_replace, if_clause)?;
    Ok(Statement::CreateUser(Box::new(user)))
}

/// Behind ALTER USER.
pub(super) fn alter_user(p: &mut Parser<'_>) -> Rule<Statement> {
    let if_clause = names::if_exists(p);
    // USER() is the old way to say CURRENT_USER.
    let user = user_statement(p, false, if_clause)?;
    Ok(Statement::AlterUser(Box::new(user)))
}

fn user_statement(p: &mut Parser<'_>, or_replace: bool, if_clause: bool) -> Rule<CreateUser> {
    let users = p.comma_list(user_spec)?;
    let mut statement = CreateUser { or_replace, if_clause, users, ..CreateUser::default() };
    if p.eat_words(&["DEFAULT", "ROLE"]) {
        statement.default_roles = Some(role_set(p)?);
    }
    statement.require = require(p)?;
    if p.eat_kw(Kw::WITH) {
        statement.resources = resources(p)?;
    }
    while user_option(p, &mut statement)? {}
    Ok(statement)
}

/// NONE, DEFAULT, ALL [EXCEPT ..] or a list.
pub(super) fn role_set(p: &mut Parser<'_>) -> Rule<RoleSet> {
    if p.eat_word("NONE") {
        return Ok(RoleSet::None);
    }
    if p.eat_kw(Kw::DEFAULT) {
        return Ok(RoleSet::Default);
    }
    if p.eat_kw(Kw::ALL) {
        return match p.eat_word("EXCEPT") {
            true => p.comma_list(names::user_name).map(RoleSet::AllExcept),
            false => Ok(RoleSet::All),
        };
    }
    p.comma_list(names::user_name).map(RoleSet::List)
}

/// At SET ROLE or SET DEFAULT ROLE, behind SET.
pub(super) fn set_role(p: &mut Parser<'_>) -> Rule<Statement> {
    if p.eat_word("ROLE") {
        return role_set(p).map(Statement::SetRole);
    }
    p.eat_words(&["DEFAULT", "ROLE"]);
    let roles = role_set(p)?;
    // MySQL's TO, MariaDB's FOR.
    let users = match p.eat_kw(Kw::TO) || p.eat_kw(Kw::FOR) {
        true => p.comma_list(names::user_name)?,
        false => Vec::new(),
    };
    Ok(Statement::SetDefaultRole(Box::new(SetDefaultRole { roles, users })))
}

/// Behind CREATE ROLE.
pub(super) fn create_role(p: &mut Parser<'_>, or_replace: bool) -> Rule<Statement> {
    let if_not_exists = names::if_not_exists(p);
    let roles = p.comma_list(names::user_name)?;
    let admin = match p.eat_kw(Kw::WITH) {
        true => {
            p.expect_word("ADMIN")?;
            Some(names::user_or_role(p)?)
        }
        false => None,
    };
    Ok(Statement::CreateRole(Box::new(CreateRole { or_replace, if_not_exists, roles, admin })))
}

fn user_option(p: &mut Parser<'_>, statement: &mut CreateUser) -> Rule<bool> {
    if p.eat_words(&["ACCOUNT", "LOCK"]) {
        statement.account_locked = Some(true);
    } else if p.eat_words(&["ACCOUNT", "UNLOCK"]) {
        statement.account_locked = Some(false);
    } else if p.eat_word("COMMENT") {
        statement.comment = Some(names::string(p)?);
    } else if p.eat_word("ATTRIBUTE") {
        statement.attribute = Some(names::string(p)?);
    } else if p.eat_words(&["PASSWORD", "EXPIRE"]) {
        statement.password.expire = Some(password_expire(p)?);
    } else if p.eat_words(&["PASSWORD", "HISTORY"]) {
        let value = number_or_words(p, &["DEFAULT"])?;
        statement.password.others.push(("PASSWORD_HISTORY".into(), value));
    } else if p.eat_words(&["PASSWORD", "REUSE", "INTERVAL"]) {
        let value = number_or_words(p, &["DEFAULT"])?;
        p.eat_word("DAY");
        statement.password.others.push(("PASSWORD_REUSE_INTERVAL".into(), value));
    } else if p.eat_words(&["PASSWORD", "REQUIRE", "CURRENT"]) {
        let value = match p.eat_any(&["DEFAULT", "OPTIONAL"]) {
            Some("DEFAULT") => None,
            Some(_) => Some(0),
            None => Some(1),
        };
        statement.password.others.push(("PASSWORD_REQUIRE_CURRENT".into(), value));
    } else if p.eat_word("FAILED_LOGIN_ATTEMPTS") {
        let value = Some(names::number(p)?);
        statement.password.others.push(("FAILED_LOGIN_ATTEMPTS".into(), value));
    } else if p.eat_word("PASSWORD_LOCK_TIME") {
        let value = number_or_words(p, &["UNBOUNDED"])?;
        statement.password.others.push(("PASSWORD_LOCK_TIME".into(), value));
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn number_or_words(p: &mut Parser<'_>, words: &[&'static str]) -> Rule<Option<u64>> {
    if p.eat_any(words).is_some() { Ok(None) } else { names::number(p).map(Some) }
}

fn password_expire(p: &mut Parser<'_>) -> Rule<PasswordExpire> {
    Ok(if p.eat_kw(Kw::DEFAULT) {
        PasswordExpire::Default
    } else if p.eat_word("NEVER") {
        PasswordExpire::Never
    } else if p.eat_kw(Kw::INTERVAL) {
        let days = names::number(p)?;
        p.expect_word("DAY")?;
        PasswordExpire::Days(days)
    } else {
        PasswordExpire::Now
    })
}

fn resources(p: &mut Parser<'_>) -> Rule<Vec<(Ident, u64)>> {
    let mut list = Vec::new();
    while let Some(name) = p.eat_any(RESOURCES) {
        list.push((name.into(), names::number(p)?));
    }
    Ok(list)
}

/// REQUIRE or nothing.
fn require(p: &mut Parser<'_>) -> Rule<Option<Require>> {
    if !p.eat_kw(Kw::REQUIRE) {
        return Ok(None);
    }
    Ok(Some(match p.eat_any(&["NONE", "SSL", "X509"]) {
        Some("NONE") => Require::None,
        Some("SSL") => Require::Ssl,
        Some(_) => Require::X509,
        None => {
            let mut list = Vec::new();
            while let Some(name) = p.eat_any(&["SUBJECT", "ISSUER", "CIPHER"]) {
                list.push((name.into(), names::string(p)?));
                p.eat_kw(Kw::AND);
            }
            if list.is_empty() {
                return Err(p.error());
            }
            Require::Specified(list)
        }
    }))
}

/// The account or role that gets something.
fn grantee(p: &mut Parser<'_>) -> Rule<UserSpec> {
    if names::at_current_role(p) {
        return names::user_or_role(p).map(UserSpec::of);
    }
    user_spec(p)
}

/// An account and its IDENTIFIED clause.
fn user_spec(p: &mut Parser<'_>) -> Rule<UserSpec> {
    let user = if p.is_word("USER") && p.peek().kind == Tok::LParen {
        p.advance();
        p.advance();
        p.expect(Tok::RParen)?;
        UserName::CurrentUser
    } else {
        names::user_name(p)?
    };
    let mut spec = UserSpec::of(user);
    if p.eat_words(&["DISCARD", "OLD", "PASSWORD"]) {
        spec.discard_old = true;
        return Ok(spec);
    }
    if p.eat_word("IDENTIFIED") {
        spec.auth = Some(auth(p)?);
        if p.eat_kw(Kw::REPLACE) {
            spec.replaces = Some(names::string(p)?);
        }
        spec.retain_current = p.eat_words(&["RETAIN", "CURRENT", "PASSWORD"]);
        // MariaDB has OR between plugins.
        if p.is_kw(Kw::OR) || p.is_kw(Kw::AND) {
            return Err(ParseError::NotSupported("several authentication factors"));
        }
    }
    let factor = p.is(Tok::Int) && p.peek_is_word("FACTOR");
    if factor || p.is_kw(Kw::ADD) || p.is_kw(Kw::DROP) || p.is_word("MODIFY") {
        return Err(ParseError::NotSupported("several authentication factors"));
    }
    Ok(spec)
}

/// Behind IDENTIFIED.
fn auth(p: &mut Parser<'_>) -> Rule<Auth> {
    if p.eat_kw(Kw::BY) {
        return Ok(Auth { plugin: None, secret: by_secret(p)? });
    }
    if !p.eat_kw(Kw::WITH) {
        p.expect_word("VIA")?;
    }
    let plugin = Some(names::ident_or_text(p)?);
    let secret = if p.eat_kw(Kw::BY) {
        by_secret(p)?
    } else if p.eat_kw(Kw::AS) {
        AuthSecret::Stored(names::text_value(p)?)
    } else if p.eat_kw(Kw::USING) {
        if p.eat_word("PASSWORD") {
            p.expect(Tok::LParen)?;
            let text = names::string(p)?;
            p.expect(Tok::RParen)?;
            AuthSecret::Clear(text)
        } else {
            AuthSecret::Stored(names::text_value(p)?)
        }
    } else {
        AuthSecret::None
    };
    Ok(Auth { plugin, secret })
}

fn by_secret(p: &mut Parser<'_>) -> Rule<AuthSecret> {
    if p.eat_words(&["RANDOM", "PASSWORD"]) {
        return Ok(AuthSecret::Random);
    }
    if p.eat_word("PASSWORD") {
        return Ok(AuthSecret::Stored(names::string(p)?));
    }
    Ok(AuthSecret::Clear(names::text_value(p)?))
}

/// At GRANT.
pub(super) fn grant(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let (what, _) = grant_what(p, Kw::TO)?;
    p.expect_kw(Kw::TO)?;
    let users = p.comma_list(grantee)?;
    let mut grant = Grant {
        what,
        users,
        grant_option: false,
        admin_option: false,
        require: require(p)?,
        resources: Vec::new(),
    };
    if p.eat_kw(Kw::WITH) {
        loop {
            if p.eat_words(&["GRANT", "OPTION"]) {
                grant.grant_option = true;
            } else if p.eat_words(&["ADMIN", "OPTION"]) {
                grant.admin_option = true;
            } else {
                let resources = resources(p)?;
                if resources.is_empty() {
                    break;
                }
                grant.resources.extend(resources);
            }
        }
        if !grant.grant_option && !grant.admin_option && grant.resources.is_empty() {
            return Err(p.error());
        }
    }
    if p.eat_kw(Kw::AS) {
        names::user_name(p)?;
        if p.eat_words(&["WITH", "ROLE"]) && p.eat_any(&["DEFAULT", "NONE", "ALL"]).is_none() {
            p.comma_list(names::user_name)?;
        }
    }
    Ok(Statement::Grant(Box::new(grant)))
}

/// At REVOKE.
pub(super) fn revoke(p: &mut Parser<'_>) -> Rule<Statement> {
    p.advance();
    let if_exists = names::if_exists(p);
    let admin_option_for = p.eat_words(&["ADMIN", "OPTION", "FOR"]);
    let (what, grant_option) = grant_what(p, Kw::FROM)?;
    p.expect_kw(Kw::FROM)?;
    let users = p.comma_list(names::user_or_role)?;
    let ignore_unknown_user = p.eat_words(&["IGNORE", "UNKNOWN", "USER"]);
    Ok(Statement::Revoke(Box::new(Revoke {
        if_exists,
        what,
        grant_option,
        users,
        admin_option_for,
        ignore_unknown_user,
    })))
}

/// Privileges and their target, roles, or PROXY; `end` is TO or FROM. Also whether GRANT OPTION was listed.
fn grant_what(p: &mut Parser<'_>, end: Kw) -> Rule<(GrantWhat, bool)> {
    if p.eat_word("PROXY") {
        p.expect_kw(Kw::ON)?;
        return Ok((GrantWhat::Proxy(names::user_name(p)?), false));
    }
    let start = p.mark();
    let mut grant_option = false;
    let mut privileges = Vec::new();
    if let Ok(list) = p.comma_list(privilege) {
        for privilege in list {
            if privilege.name.is("GRANT OPTION") {
                grant_option = true;
            }
            privileges.push(privilege);
        }
        if p.eat_kw(Kw::ON) {
            let target = grant_target(p)?;
            return Ok((GrantWhat::Privileges { privileges, target }, grant_option));
        }
        let all = privileges.iter().any(|p| p.name.is("ALL"));
        if end == Kw::FROM && all && p.is_kw(end) {
            return Ok((GrantWhat::Everything, grant_option));
        }
    }
    // No ON: the names are roles.
    p.reset(start);
    Ok((GrantWhat::Roles(p.comma_list(names::user_or_role)?), false))
}

/// One or more words, and columns.
fn privilege(p: &mut Parser<'_>) -> Rule<Privilege> {
    if p.eat_kw(Kw::ALL) {
        p.eat_word("PRIVILEGES");
        return Ok(Privilege { name: "ALL".into(), columns: Vec::new() });
    }
    let mut name = String::new();
    while p.is(Tok::Word) && !matches!(p.token.kw, Kw::ON | Kw::TO | Kw::FROM) {
        if !name.is_empty() {
            name.push(' ');
        }
        name.push_str(&names::upper_word(p)?);
    }
    if name.is_empty() {
        return Err(p.error());
    }
    let columns = if p.is(Tok::LParen) { names::ident_list(p)? } else { Vec::new() };
    Ok(Privilege { name: name.into(), columns })
}

/// Behind ON.
fn grant_target(p: &mut Parser<'_>) -> Rule<GrantTarget> {
    if p.eat_kw(Kw::PROCEDURE) {
        return Ok(GrantTarget::Procedure(names::object_name(p)?));
    }
    if p.eat_kw(Kw::FUNCTION) {
        return Ok(GrantTarget::Function(names::object_name(p)?));
    }
    p.eat_kw(Kw::TABLE);
    if p.eat(Tok::Star) {
        if p.eat(Tok::Dot) {
            p.expect(Tok::Star)?;
            return Ok(GrantTarget::Global);
        }
        return Ok(GrantTarget::CurrentSchema);
    }
    let first = names::ident(p)?;
    if !p.eat(Tok::Dot) {
        return Ok(GrantTarget::Table(crate::ast::ObjectName { schema: None, name: first }));
    }
    if p.eat(Tok::Star) {
        return Ok(GrantTarget::Schema(first));
    }
    let name = names::ident_after_dot(p)?;
    Ok(GrantTarget::Table(crate::ast::ObjectName { schema: Some(first), name }))
}
