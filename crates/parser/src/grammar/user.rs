//! Accounts: CREATE USER, ALTER USER, GRANT, REVOKE.

use super::{Parser, Rule};
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

impl Parser<'_> {
    /// Behind CREATE USER.
    pub(super) fn create_user(&mut self, or_replace: bool) -> Rule<Statement> {
        let if_clause = self.if_not_exists();
        let user = self.user_statement(or_replace, if_clause)?;
        Ok(Statement::CreateUser(Box::new(user)))
    }

    /// Behind ALTER USER.
    pub(super) fn alter_user(&mut self) -> Rule<Statement> {
        let if_clause = self.if_exists();
        // USER() is the old way to say CURRENT_USER.
        let user = self.user_statement(false, if_clause)?;
        Ok(Statement::AlterUser(Box::new(user)))
    }

    fn user_statement(&mut self, or_replace: bool, if_clause: bool) -> Rule<CreateUser> {
        let users = self.comma_list(Self::user_spec)?;
        let mut statement = CreateUser { or_replace, if_clause, users, ..CreateUser::default() };
        if self.eat_words(&["DEFAULT", "ROLE"]) {
            statement.default_roles = Some(self.role_set()?);
        }
        statement.require = self.require()?;
        if self.eat_kw(Kw::WITH) {
            statement.resources = self.resources()?;
        }
        while self.user_option(&mut statement)? {}
        Ok(statement)
    }

    /// NONE, DEFAULT, ALL [EXCEPT ..] or a list.
    pub(super) fn role_set(&mut self) -> Rule<RoleSet> {
        if self.eat_word("NONE") {
            return Ok(RoleSet::None);
        }
        if self.eat_kw(Kw::DEFAULT) {
            return Ok(RoleSet::Default);
        }
        if self.eat_kw(Kw::ALL) {
            return match self.eat_word("EXCEPT") {
                true => self.comma_list(Self::user_name).map(RoleSet::AllExcept),
                false => Ok(RoleSet::All),
            };
        }
        self.comma_list(Self::user_name).map(RoleSet::List)
    }

    /// At SET ROLE or SET DEFAULT ROLE, behind SET.
    pub(super) fn set_role(&mut self) -> Rule<Statement> {
        if self.eat_word("ROLE") {
            return self.role_set().map(Statement::SetRole);
        }
        self.eat_words(&["DEFAULT", "ROLE"]);
        let roles = self.role_set()?;
        // MySQL's TO, MariaDB's FOR.
        let users = match self.eat_kw(Kw::TO) || self.eat_kw(Kw::FOR) {
            true => self.comma_list(Self::user_name)?,
            false => Vec::new(),
        };
        Ok(Statement::SetDefaultRole(Box::new(SetDefaultRole { roles, users })))
    }

    /// Behind CREATE ROLE.
    pub(super) fn create_role(&mut self, or_replace: bool) -> Rule<Statement> {
        let if_not_exists = self.if_not_exists();
        let roles = self.comma_list(Self::user_name)?;
        let admin = match self.eat_kw(Kw::WITH) {
            true => {
                self.expect_word("ADMIN")?;
                Some(self.user_or_role()?)
            }
            false => None,
        };
        Ok(Statement::CreateRole(Box::new(CreateRole { or_replace, if_not_exists, roles, admin })))
    }

    fn user_option(&mut self, statement: &mut CreateUser) -> Rule<bool> {
        if self.eat_words(&["ACCOUNT", "LOCK"]) {
            statement.account_locked = Some(true);
        } else if self.eat_words(&["ACCOUNT", "UNLOCK"]) {
            statement.account_locked = Some(false);
        } else if self.eat_word("COMMENT") {
            statement.comment = Some(self.string()?);
        } else if self.eat_word("ATTRIBUTE") {
            statement.attribute = Some(self.string()?);
        } else if self.eat_words(&["PASSWORD", "EXPIRE"]) {
            statement.password.expire = Some(self.password_expire()?);
        } else if self.eat_words(&["PASSWORD", "HISTORY"]) {
            let value = self.number_or_words(&["DEFAULT"])?;
            statement.password.others.push(("PASSWORD_HISTORY".into(), value));
        } else if self.eat_words(&["PASSWORD", "REUSE", "INTERVAL"]) {
            let value = self.number_or_words(&["DEFAULT"])?;
            self.eat_word("DAY");
            statement.password.others.push(("PASSWORD_REUSE_INTERVAL".into(), value));
        } else if self.eat_words(&["PASSWORD", "REQUIRE", "CURRENT"]) {
            let value = match self.eat_any(&["DEFAULT", "OPTIONAL"]) {
                Some("DEFAULT") => None,
                Some(_) => Some(0),
                None => Some(1),
            };
            statement.password.others.push(("PASSWORD_REQUIRE_CURRENT".into(), value));
        } else if self.eat_word("FAILED_LOGIN_ATTEMPTS") {
            let value = Some(self.number()?);
            statement.password.others.push(("FAILED_LOGIN_ATTEMPTS".into(), value));
        } else if self.eat_word("PASSWORD_LOCK_TIME") {
            let value = self.number_or_words(&["UNBOUNDED"])?;
            statement.password.others.push(("PASSWORD_LOCK_TIME".into(), value));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn number_or_words(&mut self, words: &[&'static str]) -> Rule<Option<u64>> {
        if self.eat_any(words).is_some() { Ok(None) } else { self.number().map(Some) }
    }

    fn password_expire(&mut self) -> Rule<PasswordExpire> {
        Ok(if self.eat_kw(Kw::DEFAULT) {
            PasswordExpire::Default
        } else if self.eat_word("NEVER") {
            PasswordExpire::Never
        } else if self.eat_kw(Kw::INTERVAL) {
            let days = self.number()?;
            self.expect_word("DAY")?;
            PasswordExpire::Days(days)
        } else {
            PasswordExpire::Now
        })
    }

    fn resources(&mut self) -> Rule<Vec<(Ident, u64)>> {
        let mut list = Vec::new();
        while let Some(name) = self.eat_any(RESOURCES) {
            list.push((name.into(), self.number()?));
        }
        Ok(list)
    }

    /// REQUIRE or nothing.
    fn require(&mut self) -> Rule<Option<Require>> {
        if !self.eat_kw(Kw::REQUIRE) {
            return Ok(None);
        }
        Ok(Some(match self.eat_any(&["NONE", "SSL", "X509"]) {
            Some("NONE") => Require::None,
            Some("SSL") => Require::Ssl,
            Some(_) => Require::X509,
            None => {
                let mut list = Vec::new();
                while let Some(name) = self.eat_any(&["SUBJECT", "ISSUER", "CIPHER"]) {
                    list.push((name.into(), self.string()?));
                    self.eat_kw(Kw::AND);
                }
                if list.is_empty() {
                    return Err(self.error());
                }
                Require::Specified(list)
            }
        }))
    }

    /// The account or role that gets something.
    fn grantee(&mut self) -> Rule<UserSpec> {
        if self.at_current_role() {
            return self.user_or_role().map(UserSpec::of);
        }
        self.user_spec()
    }

    /// An account and its IDENTIFIED clause.
    fn user_spec(&mut self) -> Rule<UserSpec> {
        let user = if self.is_word("USER") && self.peek().kind == Tok::LParen {
            self.advance();
            self.advance();
            self.expect(Tok::RParen)?;
            UserName::CurrentUser
        } else {
            self.user_name()?
        };
        let mut spec = UserSpec::of(user);
        if self.eat_words(&["DISCARD", "OLD", "PASSWORD"]) {
            spec.discard_old = true;
            return Ok(spec);
        }
        if self.eat_word("IDENTIFIED") {
            spec.auth = Some(self.auth()?);
            if self.eat_kw(Kw::REPLACE) {
                spec.replaces = Some(self.string()?);
            }
            spec.retain_current = self.eat_words(&["RETAIN", "CURRENT", "PASSWORD"]);
            // MariaDB has OR between plugins.
            if self.is_kw(Kw::OR) || self.is_kw(Kw::AND) {
                return Err(ParseError::NotSupported("several authentication factors"));
            }
        }
        let factor = self.is(Tok::Int) && self.peek_is_word("FACTOR");
        if factor || self.is_kw(Kw::ADD) || self.is_kw(Kw::DROP) || self.is_word("MODIFY") {
            return Err(ParseError::NotSupported("several authentication factors"));
        }
        Ok(spec)
    }

    /// Behind IDENTIFIED.
    fn auth(&mut self) -> Rule<Auth> {
        if self.eat_kw(Kw::BY) {
            return Ok(Auth { plugin: None, secret: self.by_secret()? });
        }
        if !self.eat_kw(Kw::WITH) {
            self.expect_word("VIA")?;
        }
        let plugin = Some(self.ident_or_text()?);
        let secret = if self.eat_kw(Kw::BY) {
            self.by_secret()?
        } else if self.eat_kw(Kw::AS) {
            AuthSecret::Stored(self.text_value()?)
        } else if self.eat_kw(Kw::USING) {
            if self.eat_word("PASSWORD") {
                self.expect(Tok::LParen)?;
                let text = self.string()?;
                self.expect(Tok::RParen)?;
                AuthSecret::Clear(text)
            } else {
                AuthSecret::Stored(self.text_value()?)
            }
        } else {
            AuthSecret::None
        };
        Ok(Auth { plugin, secret })
    }

    fn by_secret(&mut self) -> Rule<AuthSecret> {
        if self.eat_words(&["RANDOM", "PASSWORD"]) {
            return Ok(AuthSecret::Random);
        }
        if self.eat_word("PASSWORD") {
            return Ok(AuthSecret::Stored(self.string()?));
        }
        Ok(AuthSecret::Clear(self.text_value()?))
    }

    /// At GRANT.
    pub(super) fn grant(&mut self) -> Rule<Statement> {
        self.advance();
        let (what, _) = self.grant_what(Kw::TO)?;
        self.expect_kw(Kw::TO)?;
        let users = self.comma_list(Self::grantee)?;
        let mut grant = Grant {
            what,
            users,
            grant_option: false,
            admin_option: false,
            require: self.require()?,
            resources: Vec::new(),
        };
        if self.eat_kw(Kw::WITH) {
            loop {
                if self.eat_words(&["GRANT", "OPTION"]) {
                    grant.grant_option = true;
                } else if self.eat_words(&["ADMIN", "OPTION"]) {
                    grant.admin_option = true;
                } else {
                    let resources = self.resources()?;
                    if resources.is_empty() {
                        break;
                    }
                    grant.resources.extend(resources);
                }
            }
            if !grant.grant_option && !grant.admin_option && grant.resources.is_empty() {
                return Err(self.error());
            }
        }
        if self.eat_kw(Kw::AS) {
            self.user_name()?;
            if self.eat_words(&["WITH", "ROLE"]) && self.eat_any(&["DEFAULT", "NONE", "ALL"]).is_none() {
                self.comma_list(Self::user_name)?;
            }
        }
        Ok(Statement::Grant(Box::new(grant)))
    }

    /// At REVOKE.
    pub(super) fn revoke(&mut self) -> Rule<Statement> {
        self.advance();
        let if_exists = self.if_exists();
        let admin_option_for = self.eat_words(&["ADMIN", "OPTION", "FOR"]);
        let (what, grant_option) = self.grant_what(Kw::FROM)?;
        self.expect_kw(Kw::FROM)?;
        let users = self.comma_list(Self::user_or_role)?;
        let ignore_unknown_user = self.eat_words(&["IGNORE", "UNKNOWN", "USER"]);
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
    fn grant_what(&mut self, end: Kw) -> Rule<(GrantWhat, bool)> {
        if self.eat_word("PROXY") {
            self.expect_kw(Kw::ON)?;
            return Ok((GrantWhat::Proxy(self.user_name()?), false));
        }
        let start = self.mark();
        let mut grant_option = false;
        let mut privileges = Vec::new();
        if let Ok(list) = self.comma_list(Self::privilege) {
            for privilege in list {
                if privilege.name.is("GRANT OPTION") {
                    grant_option = true;
                }
                privileges.push(privilege);
            }
            if self.eat_kw(Kw::ON) {
                let target = self.grant_target()?;
                return Ok((GrantWhat::Privileges { privileges, target }, grant_option));
            }
            let all = privileges.iter().any(|p| p.name.is("ALL"));
            if end == Kw::FROM && all && self.is_kw(end) {
                return Ok((GrantWhat::Everything, grant_option));
            }
        }
        // No ON: the names are roles.
        self.reset(start);
        Ok((GrantWhat::Roles(self.comma_list(Self::user_or_role)?), false))
    }

    /// One or more words, and columns.
    fn privilege(&mut self) -> Rule<Privilege> {
        if self.eat_kw(Kw::ALL) {
            self.eat_word("PRIVILEGES");
            return Ok(Privilege { name: "ALL".into(), columns: Vec::new() });
        }
        let mut name = String::new();
        while self.is(Tok::Word) && !matches!(self.token.kw, Kw::ON | Kw::TO | Kw::FROM) {
            if !name.is_empty() {
                name.push(' ');
            }
            name.push_str(&self.upper_word()?);
        }
        if name.is_empty() {
            return Err(self.error());
        }
        let columns = if self.is(Tok::LParen) { self.ident_list()? } else { Vec::new() };
        Ok(Privilege { name: name.into(), columns })
    }

    /// Behind ON.
    fn grant_target(&mut self) -> Rule<GrantTarget> {
        if self.eat_kw(Kw::PROCEDURE) {
            return Ok(GrantTarget::Procedure(self.object_name()?));
        }
        if self.eat_kw(Kw::FUNCTION) {
            return Ok(GrantTarget::Function(self.object_name()?));
        }
        self.eat_kw(Kw::TABLE);
        if self.eat(Tok::Star) {
            if self.eat(Tok::Dot) {
                self.expect(Tok::Star)?;
                return Ok(GrantTarget::Global);
            }
            return Ok(GrantTarget::CurrentSchema);
        }
        let first = self.ident()?;
        if !self.eat(Tok::Dot) {
            return Ok(GrantTarget::Table(crate::ast::ObjectName { schema: None, name: first }));
        }
        if self.eat(Tok::Star) {
            return Ok(GrantTarget::Schema(first));
        }
        let name = self.ident_after_dot()?;
        Ok(GrantTarget::Table(crate::ast::ObjectName { schema: Some(first), name }))
    }
}
