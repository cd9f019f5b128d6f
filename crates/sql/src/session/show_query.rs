//! SHOW and DESCRIBE as queries of information_schema.
//!
//! Each form is a SELECT text over a computed table; LIKE and WHERE become the filter of a query
//! around it, so they see the columns by the names that SHOW gives them.

use super::{Call, StatementContext, query};
use crate::api::{Outcome, Priv, VariableScope};
use crate::bind;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::information_schema::SCHEMAS;
use crate::state::SessionState;
use bytes::Bytes;
use omnibus_parser::ast::{
    ColumnRef, Derived, EngineReport, Expr, Like, Literal, ObjectName, Query, QueryBody, Select, SelectItem,
    SelectOptions, Show, ShowFilter, Statement, TableRef, VarScope,
};
use omnibus_parser::{ParseOptions, parse_first};

/// A SHOW: its query, the name its LIKE filters, its filter.
struct Form {
    sql: String,
    first: String,
    filter: Option<ShowFilter>,
}

impl Form {
    fn new(first: &str, sql: String, filter: Option<&ShowFilter>) -> Form {
        Form { sql, first: first.to_owned(), filter: filter.cloned() }
    }
}

/// The query of SHOW ENGINE: of the reports only STATUS has a text.
fn engine_status(what: &EngineReport, state: &SessionState) -> String {
    let status = match what {
        EngineReport::Status => state.connection.host.engine_status(),
        EngineReport::Mutex | EngineReport::Logs => String::new(),
    };
    format!("SELECT 'InnoDB' AS `Type`, '' AS `Name`, {} AS `Status`", string(&status))
}

/// Runs a SHOW that is a query of a computed table.
pub(crate) fn show_query(
    cx: &mut StatementContext<'_>,
    show: &Show,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let form = form(cx, show, call)?;
    match show {
        Show::Columns { table, .. } | Show::Index { table, .. } => run_about(cx, table, form, call),
        _ => run_form(cx, form, call),
    }
}

/// A form about one table. A temporary one is in no computed table but for this query.
fn run_about(
    cx: &mut StatementContext<'_>,
    table: &ObjectName,
    form: Form,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let db = cx.schema_of(table)?;
    if cx.trx.temp.table(&db, &table.name).is_some() {
        cx.state.statement.described = Some(cx.catalog());
    }
    let result = run_form(cx, form, call);
    cx.state.statement.described = None;
    result
}

/// DESCRIBE t [column | 'pattern'].
pub(crate) fn describe(
    cx: &mut StatementContext<'_>,
    table: &ObjectName,
    column: Option<&Bytes>,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let filter = column.map(|pattern| ShowFilter::Like(pattern.clone()));
    let sql = columns_sql(cx, table, false, call)?;
    run_about(cx, table, Form::new("Field", sql, filter.as_ref()), call)
}

fn run_form(cx: &mut StatementContext<'_>, form: Form, call: &mut Call<'_>) -> ExecResult<Outcome> {
    let query = form_query(form)?;
    let plan = query::plan_query(cx, &query, call.access, Some(call.params))?;
    query::run_query(cx, &plan, call)
}

fn form(cx: &StatementContext<'_>, show: &Show, call: &Call<'_>) -> SqlResult<Form> {
    Ok(match show {
        Show::Databases(filter) => {
            let name = titled("Database", filter.as_ref());
            Form::new(
                &name,
                format!("SELECT SCHEMA_NAME AS {} FROM information_schema.SCHEMATA", ident(&name)),
                filter.as_ref(),
            )
        }
        Show::Tables { full, schema, filter, .. } => {
            let db = shown_schema(cx, schema.as_deref(), call)?;
            let name = titled(&format!("Tables_in_{db}"), filter.as_ref());
            let kind = if *full { ", TABLE_TYPE AS `Table_type`" } else { "" };
            // What is made up in `mysql` is no table that a dump of all databases should have.
            let sql = format!(
                "SELECT TABLE_NAME AS {}{kind} FROM information_schema.TABLES \
                 WHERE (TABLE_SCHEMA <> 'mysql' OR TABLE_TYPE <> 'SYSTEM VIEW') AND TABLE_SCHEMA = {}",
                ident(&name),
                string(&db)
            );
            Form::new(&name, sql, filter.as_ref())
        }
        Show::TableStatus { schema, filter } => {
            let db = shown_schema(cx, schema.as_deref(), call)?;
            Form::new("Name", format!("{TABLE_STATUS}{}", string(&db)), filter.as_ref())
        }
        Show::OpenTables { schema, filter } => {
            schema_exists(cx, schema.as_deref(), call)?;
            let sql = "SELECT TABLE_SCHEMA AS `Database`, TABLE_NAME AS `Table`, 0 AS `In_use`, 0 AS `Name_locked` \
                       FROM information_schema.TABLES WHERE FALSE";
            Form::new("Table", sql.into(), filter.as_ref())
        }
        Show::Columns { full, table, filter, .. } => {
            Form::new("Field", columns_sql(cx, table, *full, call)?, filter.as_ref())
        }
        Show::Index { table, filter, .. } => {
            let (db, name) = shown_table(cx, table, call)?;
            let sql =
                format!("{INDEX} WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}", string(&db), string(&name));
            let filter = filter.clone().map(ShowFilter::Where);
            Form::new("Key_name", sql, filter.as_ref())
        }
        Show::Engines => Form::new("Engine", ENGINES.into(), None),
        Show::Plugins => Form::new("Name", PLUGINS.into(), None),
        Show::CharacterSet(filter) => Form::new("Charset", CHARSETS.into(), filter.as_ref()),
        Show::Collation(filter) => Form::new("Collation", COLLATIONS.into(), filter.as_ref()),
        Show::Variables { scope, filter } => {
            let old = |name: &str| cx.state.connection.host.unlisted_variable(asked_scope(*scope), name);
            let sql = with_unlisted(pairs("VARIABLES", *scope), filter.as_ref(), old);
            Form::new("Variable_name", sql, filter.as_ref())
        }
        Show::Status { scope, filter } => {
            let old = |name: &str| cx.state.connection.host.unlisted_status(asked_scope(*scope), name);
            let sql = with_unlisted(pairs("STATUS", *scope), filter.as_ref(), old);
            Form::new("Variable_name", sql, filter.as_ref())
        }
        Show::ProcessList { full } => {
            let info = if *full { "INFO" } else { "LEFT(INFO, 100)" };
            let sql = format!("{PROCESSLIST}, {info} AS `Info` FROM information_schema.PROCESSLIST");
            Form::new("Id", sql, None)
        }
        Show::Triggers { schema, filter } => {
            let db = shown_schema(cx, schema.as_deref(), call)?;
            let sql = format!("{TRIGGERS} WHERE TRIGGER_SCHEMA = {}", string(&db));
            Form::new("Table", sql, filter.as_ref())
        }
        Show::Events { schema, filter } => {
            let db = shown_schema(cx, schema.as_deref(), call)?;
            // Nobody may make events in the server's own schema, and every dump asks for them.
            if !SCHEMAS.contains(&&*db) && !db.eq_ignore_ascii_case("mysql") {
                call.access.check(&db, None, Priv::Event)?;
            }
            let sql = format!("{EVENTS} WHERE EVENT_SCHEMA = {}", string(&db));
            Form::new("Name", sql, filter.as_ref())
        }
        Show::ProcedureStatus(filter) => Form::new("Name", routines("PROCEDURE"), filter.as_ref()),
        Show::FunctionStatus(filter) => Form::new("Name", routines("FUNCTION"), filter.as_ref()),
        Show::PackageStatus(filter) => Form::new("Name", routines("PACKAGE"), filter.as_ref()),
        Show::ProcedureCode(name) => return Err(missing("PROCEDURE", name)),
        Show::FunctionCode(name) => return Err(missing("FUNCTION", name)),
        Show::EngineStatus { what, .. } => Form::new("Type", engine_status(what, cx.state), None),
        other => {
            let name = other.kind().replace('_', " ").to_uppercase();
            return Err(SqlError::not_supported_yet(name));
        }
    })
}

/// The database a SHOW is about: it must exist, and the account must have something in it.
fn shown_schema(cx: &StatementContext<'_>, written: Option<&str>, call: &Call<'_>) -> SqlResult<String> {
    let name = match (written, &cx.state.database) {
        (Some(name), _) => name.to_owned(),
        (None, Some(current)) => current.to_string(),
        (None, None) => return Err(SqlError::no_db()),
    };
    if let Some(known) = SCHEMAS.iter().find(|known| name.eq_ignore_ascii_case(known)) {
        return Ok((*known).to_owned());
    }
    call.access.check(&name, None, Priv::Any)?;
    cx.catalog().schema(&name)?;
    Ok(name)
}

/// As above, for forms whose answer does not depend on which it is.
fn schema_exists(cx: &StatementContext<'_>, written: Option<&str>, call: &Call<'_>) -> SqlResult<()> {
    if written.is_some() || cx.state.database.is_some() {
        shown_schema(cx, written, call)?;
    }
    Ok(())
}

/// A table that a SHOW is about, by the names the computed tables know it by.
fn shown_table(cx: &StatementContext<'_>, name: &ObjectName, call: &Call<'_>) -> SqlResult<(String, String)> {
    let db = cx.schema_of(name)?;
    if let Some(table) = cx.database.virtual_tables().find(&db, &name.name)
        && let Some(column) = table.columns().first()
    {
        return Ok((column.schema.to_string(), column.org_table.to_string()));
    }
    if cx.trx.temp.table(&db, &name.name).is_none() {
        call.access.check(&db, Some(&name.name), Priv::Any)?;
    }
    let catalog = cx.catalog();
    if let Some(view) = catalog.find_view(&db, &name.name) {
        bind::outline(view, cx.state, &catalog, cx.database.virtual_tables())?;
        return Ok((view.def.db.to_string(), view.def.name.to_string()));
    }
    let table = catalog.table(&db, &name.name)?;
    Ok((table.def.db.to_string(), table.def.name.to_string()))
}

fn columns_sql(
    cx: &StatementContext<'_>,
    table: &ObjectName,
    full: bool,
    call: &Call<'_>,
) -> SqlResult<String> {
    let (db, name) = shown_table(cx, table, call)?;
    let (collation, rest) = if full {
        (", COLLATION_NAME AS `Collation`", ", PRIVILEGES AS `Privileges`, COLUMN_COMMENT AS `Comment`")
    } else {
        ("", "")
    };
    Ok(format!(
        "SELECT COLUMN_NAME AS `Field`, COLUMN_TYPE AS `Type`{collation}, IS_NULLABLE AS `Null`, COLUMN_KEY AS `Key`, \
         COLUMN_DEFAULT AS `Default`, EXTRA AS `Extra`{rest} FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        string(&db),
        string(&name)
    ))
}

const TABLE_STATUS: &str = "SELECT TABLE_NAME AS `Name`, ENGINE AS `Engine`, VERSION AS `Version`, ROW_FORMAT AS `Row_format`, \
    TABLE_ROWS AS `Rows`, AVG_ROW_LENGTH AS `Avg_row_length`, DATA_LENGTH AS `Data_length`, \
    MAX_DATA_LENGTH AS `Max_data_length`, INDEX_LENGTH AS `Index_length`, DATA_FREE AS `Data_free`, \
    AUTO_INCREMENT AS `Auto_increment`, CREATE_TIME AS `Create_time`, UPDATE_TIME AS `Update_time`, \
    CHECK_TIME AS `Check_time`, TABLE_COLLATION AS `Collation`, CHECKSUM AS `Checksum`, \
    CREATE_OPTIONS AS `Create_options`, TABLE_COMMENT AS `Comment` \
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = ";

const INDEX: &str = "SELECT TABLE_NAME AS `Table`, NON_UNIQUE AS `Non_unique`, INDEX_NAME AS `Key_name`, \
    SEQ_IN_INDEX AS `Seq_in_index`, COLUMN_NAME AS `Column_name`, COLLATION AS `Collation`, CARDINALITY AS `Cardinality`, \
    SUB_PART AS `Sub_part`, PACKED AS `Packed`, NULLABLE AS `Null`, INDEX_TYPE AS `Index_type`, COMMENT AS `Comment`, \
    INDEX_COMMENT AS `Index_comment`, IS_VISIBLE AS `Visible`, EXPRESSION AS `Expression` \
    FROM information_schema.STATISTICS";

const ENGINES: &str = "SELECT ENGINE AS `Engine`, SUPPORT AS `Support`, COMMENT AS `Comment`, \
    TRANSACTIONS AS `Transactions`, XA AS `XA`, SAVEPOINTS AS `Savepoints` FROM information_schema.ENGINES";

const PLUGINS: &str = "SELECT PLUGIN_NAME AS `Name`, PLUGIN_STATUS AS `Status`, PLUGIN_TYPE AS `Type`, \
    PLUGIN_LIBRARY AS `Library`, PLUGIN_LICENSE AS `License` FROM information_schema.PLUGINS";

const CHARSETS: &str = "SELECT CHARACTER_SET_NAME AS `Charset`, DESCRIPTION AS `Description`, \
    DEFAULT_COLLATE_NAME AS `Default collation`, MAXLEN AS `Maxlen` FROM information_schema.CHARACTER_SETS";

const COLLATIONS: &str = "SELECT COLLATION_NAME AS `Collation`, CHARACTER_SET_NAME AS `Charset`, ID AS `Id`, \
    IS_DEFAULT AS `Default`, IS_COMPILED AS `Compiled`, SORTLEN AS `Sortlen`, PAD_ATTRIBUTE AS `Pad_attribute` \
    FROM information_schema.COLLATIONS";

const PROCESSLIST: &str = "SELECT ID AS `Id`, USER AS `User`, HOST AS `Host`, DB AS `db`, COMMAND AS `Command`, \
    TIME AS `Time`, STATE AS `State`";

const TRIGGERS: &str = "SELECT TRIGGER_NAME AS `Trigger`, EVENT_MANIPULATION AS `Event`, EVENT_OBJECT_TABLE AS `Table`, \
    ACTION_STATEMENT AS `Statement`, ACTION_TIMING AS `Timing`, CREATED AS `Created`, SQL_MODE AS `sql_mode`, \
    DEFINER AS `Definer`, CHARACTER_SET_CLIENT AS `character_set_client`, COLLATION_CONNECTION AS `collation_connection`, \
    DATABASE_COLLATION AS `Database Collation` FROM information_schema.TRIGGERS";

const EVENTS: &str = "SELECT EVENT_SCHEMA AS `Db`, EVENT_NAME AS `Name`, DEFINER AS `Definer`, TIME_ZONE AS `Time zone`, \
    EVENT_TYPE AS `Type`, EXECUTE_AT AS `Execute at`, INTERVAL_VALUE AS `Interval value`, INTERVAL_FIELD AS `Interval field`, \
    STARTS AS `Starts`, ENDS AS `Ends`, STATUS AS `Status`, ORIGINATOR AS `Originator`, \
    CHARACTER_SET_CLIENT AS `character_set_client`, COLLATION_CONNECTION AS `collation_connection`, \
    DATABASE_COLLATION AS `Database Collation` FROM information_schema.EVENTS";

const ROUTINES: &str = "LAST_ALTERED AS `Modified`, CREATED AS `Created`, SECURITY_TYPE AS `Security_type`, \
    ROUTINE_COMMENT AS `Comment`, CHARACTER_SET_CLIENT AS `character_set_client`, \
    COLLATION_CONNECTION AS `collation_connection`, DATABASE_COLLATION AS `Database Collation` \
    FROM information_schema.ROUTINES";

/// The columns of MySQL 8.4, by whose places dump programs read them: 9 has one more, the language.
fn routines(kind: &str) -> String {
    format!(
        "SELECT ROUTINE_SCHEMA AS `Db`, ROUTINE_NAME AS `Name`, ROUTINE_TYPE AS `Type`, DEFINER AS `Definer`, \
         {ROUTINES} WHERE ROUTINE_TYPE = '{kind}'"
    )
}

fn pairs(what: &str, scope: VarScope) -> String {
    let scope = if scope == VarScope::Global { "GLOBAL" } else { "SESSION" };
    format!(
        "SELECT VARIABLE_NAME AS `Variable_name`, VARIABLE_VALUE AS `Value` FROM information_schema.{scope}_{what}"
    )
}

fn asked_scope(scope: VarScope) -> VariableScope {
    if scope == VarScope::Global { VariableScope::Global } else { VariableScope::Session }
}

/// Old names are in no list, because tools take servers that list both families for something else; who asks for one by its
/// whole name, as replicas and clients of other versions do, gets it.
fn with_unlisted(
    mut sql: String,
    filter: Option<&ShowFilter>,
    find: impl Fn(&str) -> Option<(String, String)>,
) -> String {
    let mut names = Vec::new();
    match filter {
        Some(ShowFilter::Like(pattern)) => names.extend(whole_name(pattern)),
        Some(ShowFilter::Where(expr)) => names_in(expr, &mut names),
        None => {}
    }
    names.sort_unstable();
    names.dedup();
    for (name, value) in names.iter().filter_map(|name| find(name)) {
        sql.push_str(&format!(" UNION ALL SELECT {}, {}", string(&name), string(&value)));
    }
    sql
}

/// The one name that a pattern is, if `%` is not in it; an underscore is meant as one.
fn whole_name(pattern: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(pattern).ok()?;
    (!text.contains('%')).then(|| text.replace('\\', "").to_ascii_lowercase())
}

/// The strings that a condition compares with.
fn names_in(expr: &Expr, names: &mut Vec<String>) {
    match expr {
        Expr::Literal(Literal::Str(text)) => names.extend(whole_name(text)),
        Expr::Binary { left, right, .. } => {
            names_in(left, names);
            names_in(right, names);
        }
        Expr::In { list, .. } => list.iter().for_each(|member| names_in(member, names)),
        Expr::Like(like) => names_in(&like.pattern, names),
        _ => {}
    }
}

/// The column title of SHOW DATABASES and SHOW TABLES tells the LIKE pattern.
fn titled(name: &str, filter: Option<&ShowFilter>) -> String {
    match filter {
        Some(ShowFilter::Like(pattern)) => format!("{name} ({})", String::from_utf8_lossy(pattern)),
        _ => name.to_owned(),
    }
}

fn missing(what: &str, name: &ObjectName) -> SqlError {
    SqlError::new(1305, b"42000", format!("{what} {} does not exist", name.name))
}

fn ident(name: &str) -> String {
    crate::catalog::quote_ident(name)
}

fn string(text: &str) -> String {
    format!("_utf8mb4{}", crate::catalog::quote_string(text))
}

fn parsed(sql: &str) -> SqlResult<Query> {
    let statement = parse_first(sql.as_bytes(), &ParseOptions::default());
    match statement.map(|(statement, _)| statement.node) {
        Ok(Statement::Select(query)) => Ok(*query),
        _ => Err(SqlError::internal("the query behind a SHOW does not parse")),
    }
}

fn form_query(form: Form) -> SqlResult<Query> {
    let query = parsed(&form.sql)?;
    Ok(match form.filter {
        None => query,
        Some(ShowFilter::Where(expr)) => around(query, expr),
        Some(ShowFilter::Like(pattern)) => {
            let column = ColumnRef { qualifier: None, name: form.first.as_str().into() };
            let like = Like {
                expr: Expr::Column(column),
                pattern: Expr::Literal(Literal::Str(pattern)),
                escape: None,
                negated: false,
            };
            around(query, Expr::Like(Box::new(like)))
        }
    })
}

/// `SELECT * FROM (query) WHERE filter`
fn around(query: Query, filter: Expr) -> Query {
    let derived = Derived { lateral: false, query, alias: Some("shown".into()), columns: Vec::new() };
    let select = Select {
        options: SelectOptions::default(),
        hints: Vec::new(),
        items: vec![SelectItem::Wildcard],
        from: vec![TableRef::Derived(Box::new(derived))],
        filter: Some(filter),
        group_by: Vec::new(),
        with_rollup: false,
        having: None,
        windows: Vec::new(),
    };
    Query {
        with: None,
        body: QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locking: Vec::new(),
        into: None,
    }
}
