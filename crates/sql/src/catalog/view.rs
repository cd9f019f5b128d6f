//! A view: a query with a name. It shares the name space of tables, and is kept as the text that SHOW CREATE VIEW shows.

use super::charset;
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{
    CheckOption, CreateView, Expr, Ident, Query, QueryBody, Security, Select, SelectItem, Statement,
    UserName, ViewAlgorithm,
};
use omnibus_parser::print;
use omnibus_parser::{Facts, ParseError, ParseOptions, ViewText};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The account whose rights a definition has: name and host. In MariaDB's dialect it may be a role, whose host is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definer {
    /// Its name.
    pub user: Arc<str>,
    /// Where it comes from.
    pub host: Arc<str>,
}

impl Definer {
    /// As information_schema names it.
    #[must_use]
    pub fn plain(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }

    /// The role that it is.
    #[must_use]
    pub fn role(&self) -> Option<&Arc<str>> {
        (self.host.is_empty() && !self.user.is_empty()).then_some(&self.user)
    }

    /// As definitions name it: `` `user`@`host` ``, a role by its name alone.
    #[must_use]
    pub fn quoted(&self) -> String {
        let user = super::quote_ident(&self.user);
        if self.role().is_some() { user } else { format!("{user}@{}", super::quote_ident(&self.host)) }
    }

    /// CURRENT_USER() of whoever has its rights: a role is nobody.
    #[must_use]
    pub fn current_user(&self) -> String {
        if self.role().is_some() { "@".to_owned() } else { self.plain() }
    }

    /// The name and the host by which accounts are kept: a role has every host.
    #[must_use]
    pub fn account(&self) -> (&str, &str) {
        (&self.user, if self.role().is_some() { "%" } else { &self.host })
    }
}

/// The definition of a view.
#[derive(Clone, Debug)]
pub struct ViewDef {
    /// Never reused; tables and views have them of one sequence.
    pub id: u64,
    /// Schema name.
    pub db: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// The account that made it, or that was named.
    pub definer: Definer,
    /// The rights that its query runs with.
    pub security: Security,
    /// Names of its columns, where its query cannot have them.
    pub columns: Vec<Ident>,
    /// Its query; every name is complete.
    pub query: Arc<Query>,
    /// WITH CHECK OPTION.
    pub check: Option<CheckOption>,
    /// The collation of `character_set_client` of who made it; shown only, the text is kept in UTF-8.
    pub client: u16,
    /// `collation_connection` of who made it: what its literals are in.
    pub connection: u16,
    /// Seconds since the epoch.
    pub created: u64,
}

/// A view that statements can use.
#[derive(Debug)]
pub struct View {
    /// The definition.
    pub def: ViewDef,
    /// Whether its tables can stand in the place of its name.
    pub mergeable: bool,
    /// Dropped, or replaced by a newer definition.
    stale: AtomicBool,
    /// Bytes of the definition.
    pub(crate) memory: u64,
}

impl View {
    /// Derives what follows from the definition.
    #[must_use]
    pub fn new(def: ViewDef) -> View {
        let mergeable =
            def.algorithm != ViewAlgorithm::TempTable && mergeable_select(&def.query).is_some_and(is_plain);
        let memory = super::memory::of_view(&def) as u64;
        View { mergeable, def, stale: AtomicBool::new(false), memory }
    }

    /// Its one SELECT, if it is merged.
    #[must_use]
    pub fn select(&self) -> Option<&Select> {
        mergeable_select(&self.def.query).filter(|_| self.mergeable)
    }

    /// Whether this definition is no longer the current one.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    pub(crate) fn set_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// "db.view", as some messages want it.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.def.db, self.def.name)
    }
}

/// The SELECT of a query that is nothing else.
fn mergeable_select(query: &Query) -> Option<&Select> {
    match &query.body {
        QueryBody::Select(select) if query.with.is_none() && query.limit.is_none() => Some(select),
        _ => None,
    }
}

/// Whether each of its rows is a row of its tables.
fn is_plain(select: &Select) -> bool {
    let facts = Facts::of_list(select);
    !select.options.distinct
        && !select.from.is_empty()
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.windows.is_empty()
        && !facts.aggregate
        && !facts.subquery
}

impl ViewDef {
    /// The text of its query; `home` is left out of its names. `shown`: in MySQL's words.
    #[must_use]
    pub fn query_text(&self, home: Option<&str>, shown: bool) -> String {
        let charset = Some(charset::charset_name(self.connection)).filter(|_| self.connection != 0);
        let (text, _) =
            print::view_sql(&self.query, &ViewText { home, shown, charset, ..ViewText::default() });
        String::from_utf8_lossy(&text).into_owned()
    }

    /// CREATE VIEW as SHOW CREATE VIEW shows it to who is in database `current`; `shown`: in MySQL's words.
    #[must_use]
    pub fn show_create(&self, current: Option<&str>, shown: bool) -> String {
        use super::quote_ident;
        let near = current == Some(&*self.db);
        let mut name = quote_ident(&self.name);
        if !near {
            name = format!("{}.{name}", quote_ident(&self.db));
        }
        // MySQL leaves out the current database, MariaDB that of the view where it is the only one.
        let home = current.filter(|_| shown || near && !self.names_others());
        let text = self.query_text(home, shown);
        let check =
            self.check.map_or_else(String::new, |check| format!(" WITH {} CHECK OPTION", check.word()));
        format!("{} VIEW {name}{} AS {text}{check}", self.head("CREATE"), self.column_list())
    }

    /// The words in front of VIEW.
    #[must_use]
    pub fn head(&self, verb: &str) -> String {
        let security = match self.security {
            Security::Definer => "DEFINER",
            Security::Invoker => "INVOKER",
        };
        let algorithm = self.algorithm.word();
        let definer = self.definer.quoted();
        format!("{verb} ALGORITHM={algorithm} DEFINER={definer} SQL SECURITY {security}")
    }

    /// ` (a,b)`, where its query cannot have the names.
    fn column_list(&self) -> String {
        if self.columns.is_empty() {
            return String::new();
        }
        let names: Vec<_> = self.columns.iter().map(|name| super::quote_ident(name)).collect();
        format!(" ({})", names.join(","))
    }

    /// Whether a table of another database is in its query.
    fn names_others(&self) -> bool {
        self.tables().iter().any(|(schema, _)| **schema != *self.db)
    }

    /// Whether one of its columns is a column of something.
    #[must_use]
    pub fn names_columns(&self) -> bool {
        let column = |item: &SelectItem| matches!(item, SelectItem::Expr { expr: Expr::Column(_), .. });
        matches!(&self.query.body, QueryBody::Select(select) if select.items.iter().any(column))
    }

    /// The tables and views that its query names: database and name, each once.
    #[must_use]
    pub fn tables(&self) -> Vec<(Ident, Ident)> {
        let mut tables = print::view_sql(&self.query, &ViewText::default()).1.tables;
        tables.sort();
        tables.dedup();
        tables
    }
}

/// The error of a text of the catalog that does not parse. One is read before it is stored, and may be nested more deeply than the
/// statement that it was made from.
pub(crate) fn unreadable(text: &str, error: &ParseError) -> SqlError {
    if matches!(error, ParseError::TooDeep) {
        return SqlError::stack_overrun();
    }
    tracing::error!(%error, text, "a stored definition does not parse");
    SqlError::internal(format!("a stored definition does not parse: {error}"))
}

/// The definition that a stored text describes; the id is the caller's to fill in.
///
/// # Errors
/// The text is no CREATE VIEW.
pub(crate) fn parse_view(db: &str, text: &str) -> SqlResult<ViewDef> {
    let statements = omnibus_parser::parse(text.as_bytes(), &ParseOptions::default())
        .map_err(|error| unreadable(text, &error))?;
    let Some(Statement::CreateView(tree)) = statements.into_iter().next().map(|statement| statement.node)
    else {
        return Err(SqlError::internal("a stored definition is not CREATE VIEW"));
    };
    let CreateView { algorithm, definer, security, name, columns, query, check, .. } = *tree;
    let definer = match definer {
        Some(UserName::Named { user, host }) => Definer { user: Arc::from(&*user), host: Arc::from(&*host) },
        _ => return Err(SqlError::internal("a stored view has no definer")),
    };
    Ok(ViewDef {
        id: 0,
        db: Arc::from(db),
        name: Arc::from(&*name.name),
        algorithm: algorithm.unwrap_or_default(),
        definer,
        security: security.unwrap_or_default(),
        columns,
        query: Arc::from(query),
        check,
        client: 0,
        connection: 0,
        created: 0,
    })
}
