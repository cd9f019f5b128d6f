//! The SHOW forms that the server answers itself.

use crate::account::show_mariadb as mariadb;
use crate::account::{self, PRIVILEGES, RoleContext, show_create_user, show_grants};
use crate::errors;
use crate::result_set::{ResultSet, integer_column, text_column};
use crate::session::Session;
use bytes::Bytes;
use omnibus_parser::ast::{Limit, Show, UserName};
use omnibus_sql::{AccessCheck, Level, Priv, SqlError, SqlResult};
use omnibus_value::Value;

fn text(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

impl Session {
    pub(super) async fn show(&mut self, show: &Show, more: bool) -> SqlResult<()> {
        let rows = match show {
            Show::Warnings { count, limit } => self.conditions(*count, limit.as_ref(), false).await?,
            Show::Errors { count, limit } => self.conditions(*count, limit.as_ref(), true).await?,
            Show::Grants { user, using } => self.grants(user.as_ref(), using)?,
            Show::CreateUser(user) => self.create_user_text(user)?,
            Show::Privileges => privileges(),
            Show::BinaryLogs => self.show_binary_logs()?,
            Show::BinaryLogStatus => self.show_binary_log_status()?,
            Show::BinlogEvents(events) => self.show_binlog_events(events).await?,
            Show::Profiles => empty(&["Query_ID", "Duration", "Query"]),
            Show::Profile => empty(&["Status", "Duration"]),
            Show::Replicas { old_names } => self.show_replicas(*old_names)?,
            Show::ReplicaStatus { all, channel, old_names } => {
                self.replica_status(*all, channel.as_deref(), *old_names)?
            }
            _ => return Err(SqlError::internal("a SHOW form that is not the server's")),
        };
        self.reply_rows(&rows, more)
    }

    /// SHOW WARNINGS and SHOW ERRORS: of the statement before, which they leave as it is.
    async fn conditions(
        &mut self,
        count: bool,
        limit: Option<&Limit>,
        errors_only: bool,
    ) -> SqlResult<ResultSet> {
        let diagnostics = self.runner.state().diagnostics.clone();
        if count {
            let (name, n) = if errors_only {
                ("@@session.error_count", diagnostics.error_count())
            } else {
                ("@@session.warning_count", u64::from(diagnostics.count()))
            };
            return Ok(ResultSet { columns: vec![integer_column(name)], rows: vec![vec![Value::UInt(n)]] });
        }
        let (skip, take) = match limit {
            Some(limit) => self.limit(limit).await?,
            None => (0, u64::MAX),
        };
        let shown =
            diagnostics.conditions().iter().filter(|(level, _)| !errors_only || *level == Level::Error);
        let rows = shown
            .skip(usize::try_from(skip).unwrap_or(usize::MAX))
            .take(usize::try_from(take).unwrap_or(usize::MAX))
            .map(|(level, c)| vec![text(level.name()), Value::UInt(u64::from(c.code)), text(&c.message)])
            .collect();
        let columns = vec![text_column("Level", 7), integer_column("Code"), text_column("Message", 512)];
        Ok(ResultSet { columns, rows })
    }

    /// The account a SHOW names: one's own, or another's with the right to read `mysql`.
    fn named_account(&self, user: Option<&UserName>) -> SqlResult<std::sync::Arc<crate::account::Account>> {
        let own = self.account();
        let role = match user {
            Some(UserName::CurrentRole) => {
                let none = || errors::nonexisting_grant(&own.user, own.host.as_str());
                let (role, host) = self.identity.access.roles().first().ok_or_else(none)?;
                Some(UserName::Named { user: role.as_str().into(), host: host.as_str().into() })
            }
            _ => None,
        };
        let user = role.as_ref().or(user);
        let (user, host) = account::resolve(user.unwrap_or(&UserName::CurrentUser), own);
        let (user, host) = (user.as_str(), host.as_str());
        // What a role in force has, its holder knows.
        if own.is_anybody() {
            return Ok(own.clone());
        }
        if !own.is(user, host) && !own.active.iter().any(|role| role.is(user, host)) {
            self.identity.access.check("mysql", None, Priv::Select)?;
        }
        self.server.accounts.table().exact(user, host).ok_or_else(|| errors::nonexisting_grant(user, host))
    }

    /// SHOW GRANTS: one's own with the roles in force, unless others are named.
    fn grants(&self, user: Option<&UserName>, using: &[UserName]) -> SqlResult<ResultSet> {
        let (table, rules) = (self.server.accounts.table(), self.server.accounts.rules());
        let mariadb = self.is_mariadb();
        let me = self.named_account(user)?;
        let own = me.is(&self.account().user, self.account().host.as_str());
        let roles = match own && user.is_none() && using.is_empty() {
            true => self.identity.access.roles().to_vec(),
            // What a role has of others is in force wherever it is.
            false if mariadb && me.is_role => account::available(&table, &me, &rules),
            false => {
                let cx = RoleContext { table: &table, me: &me, rules: &rules, mariadb };
                account::choose(&cx, &me, &omnibus_parser::ast::RoleSet::List(using.to_vec()))?
            }
        };
        let account = account::with_roles(&table, &me, &roles);
        let title =
            format!("Grants for {}", if me.is_role && mariadb { me.user.clone() } else { me.plain() });
        let lines = match mariadb {
            true => {
                let active = account.active.iter().flat_map(|role| mariadb::show_grants(role));
                mariadb::show_grants(&me).into_iter().chain(active).collect()
            }
            false => show_grants(&account::with_own_roles(&account)),
        };
        let rows = lines.iter().map(|line| vec![text(line)]).collect();
        Ok(ResultSet { columns: vec![text_column(&title, 1024)], rows })
    }

    fn create_user_text(&self, user: &UserName) -> SqlResult<ResultSet> {
        let account = self.named_account(Some(user))?;
        let title = format!("CREATE USER for {}", account.plain());
        Ok(ResultSet {
            columns: vec![text_column(&title, 1024)],
            rows: vec![vec![text(&match self.is_mariadb() {
                true => mariadb::show_create_user(&account),
                false => show_create_user(&account),
            })]],
        })
    }
}

fn empty(columns: &[&str]) -> ResultSet {
    ResultSet { columns: columns.iter().map(|c| text_column(c, 255)).collect(), rows: Vec::new() }
}

fn privileges() -> ResultSet {
    let title_case = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let mut chars = lower.chars();
        chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
    };
    let name =
        |p: &crate::account::PrivilegeInfo| if p.dynamic { p.name.to_owned() } else { title_case(p.name) };
    ResultSet {
        columns: vec![text_column("Privilege", 64), text_column("Context", 64), text_column("Comment", 128)],
        rows: PRIVILEGES.iter().map(|p| vec![text(&name(p)), text(p.context), text(p.comment)]).collect(),
    }
}
