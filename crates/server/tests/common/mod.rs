//! A server in this process with a tiny stand-in for the SQL layer, and clients for it.
#![allow(clippy::unwrap_used, dead_code)]

use omnibus_locks::WaitOutcome;
use omnibus_parser::ast::{Expr, Literal, QueryBody, SelectItem, Show, Spanned, Statement, VarScope};
use omnibus_parser::{ParseOptions, parse_first};
use omnibus_server::*;
use omnibus_sql::{
    ExecResult, Interrupt, Isolation, Mode, Outcome, Priv, ResultColumn, RowSink, SessionState, SqlError,
    SqlResult, VariableScope,
};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

/// Runs SELECT of literals and variables; `SELECT 'big', n` makes n wide rows; anything else is OK.
pub struct FakeRunner {
    state: SessionState,
    trx: TrxState,
    kill: Arc<omnibus_sql::KillFlag>,
}

fn ty(kind: ColumnKind, length: u32) -> ColumnType {
    let collation = if kind == ColumnKind::VarChar { 255 } else { 63 };
    ColumnType {
        kind,
        unsigned: false,
        zerofill: false,
        length,
        decimals: 0,
        collation,
        labels: Arc::new([]),
    }
}

impl FakeRunner {
    fn value(&self, expr: &Expr, params: &[Value]) -> SqlResult<(Value, ColumnType)> {
        Ok(match expr {
            Expr::Literal(Literal::Int(n)) => (Value::Int(*n as i64), ty(ColumnKind::BigInt, 20)),
            Expr::Literal(Literal::Str(s)) => {
                (Value::Bytes(s.clone()), ty(ColumnKind::VarChar, s.len() as u32))
            }
            Expr::Literal(Literal::Null) => (Value::Null, ty(ColumnKind::VarChar, 0)),
            Expr::Param(n) => {
                (params.get(*n as usize).cloned().unwrap_or(Value::Null), ty(ColumnKind::VarChar, 255))
            }
            Expr::UserVar(name) => self
                .state
                .user_variables
                .get(&name.to_ascii_lowercase())
                .cloned()
                .unwrap_or((Value::Null, ty(ColumnKind::VarChar, 0))),
            Expr::SysVar { scope, name } => {
                let scope = match scope {
                    None => VariableScope::Either,
                    Some(VarScope::Session) => VariableScope::Session,
                    Some(_) => VariableScope::Global,
                };
                self.state.host.variable(scope, name)?
            }
            _ => return Err(SqlError::not_supported_yet("an expression in the stand-in")),
        })
    }

    fn columns(&self, items: &[SelectItem], params: &[Value]) -> SqlResult<(Vec<ResultColumn>, Vec<Value>)> {
        let mut columns = Vec::new();
        let mut row = Vec::new();
        for item in items {
            let SelectItem::Expr { expr, text, .. } = item else {
                return Err(SqlError::not_supported_yet("*"));
            };
            let (value, ty) = self.value(expr, params)?;
            let empty: Arc<str> = "".into();
            columns.push(ResultColumn {
                schema: empty.clone(),
                table: empty.clone(),
                org_table: empty.clone(),
                name: String::from_utf8_lossy(text).as_ref().into(),
                org_name: empty,
                ty,
                flags: 0,
            });
            row.push(value);
        }
        Ok((columns, row))
    }

    fn select(
        &mut self,
        items: &[SelectItem],
        params: &[Value],
        mode: Mode,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        let (columns, row) = self.columns(items, params)?;
        sink.columns(&columns)?;
        let repeat = match row.as_slice() {
            [Value::Bytes(b), Value::Int(n)] if b.as_ref() == b"big" => *n,
            [Value::Bytes(b), Value::Int(n)] if b.as_ref() == b"sleep" => {
                if mode == Mode::Inline {
                    return Err(Interrupt::NeedBlocking);
                }
                for _ in 0..*n {
                    self.kill.check()?;
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                1
            }
            _ => 1,
        };
        for _ in 0..repeat {
            match row.first() {
                Some(Value::Bytes(b)) if b.as_ref() == b"big" => {
                    sink.row(&[Value::Bytes(vec![b'x'; 1000].into()), Value::Int(1)])?;
                }
                _ => sink.row(&row)?,
            }
        }
        Ok(Outcome::rows())
    }

    fn run(
        &mut self,
        statement: &Statement,
        params: &[Value],
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        self.state.diagnostics.clear();
        match statement {
            Statement::Select(query) => {
                let QueryBody::Select(select) = &query.body else { return Ok(Outcome::ok()) };
                self.select(&select.items, params, context.mode, sink)
            }
            Statement::Begin(_) => {
                self.trx.open = true;
                Ok(Outcome::ok())
            }
            Statement::Commit(_) | Statement::Rollback(_) => {
                self.trx.open = false;
                Ok(Outcome::ok())
            }
            Statement::Show(show) => {
                let lines = match show.as_ref() {
                    Show::Status { .. } => self.state.host.status(VariableScope::Session),
                    Show::Variables { .. } => self.state.host.variables(VariableScope::Session),
                    _ => return Ok(Outcome::ok()),
                };
                let column = |name: &str| ResultColumn {
                    schema: "".into(),
                    table: "".into(),
                    org_table: "".into(),
                    name: name.into(),
                    org_name: "".into(),
                    ty: ty(ColumnKind::VarChar, 1024),
                    flags: 0,
                };
                sink.columns(&[column("Variable_name"), column("Value")])?;
                for (name, value) in lines {
                    sink.row(&[Value::Bytes(name.into()), Value::Bytes(value.into())])?;
                }
                Ok(Outcome::rows())
            }
            Statement::Use(name) => {
                context.access.check(name, None, Priv::Any)?;
                self.state.database = Some(name.as_str().into());
                Ok(Outcome::ok())
            }
            Statement::CreateDatabase(c) => {
                context.access.check(&c.name, None, Priv::Create)?;
                Ok(Outcome::ok())
            }
            _ => Ok(Outcome::ok()),
        }
    }
}

impl Runner for FakeRunner {
    fn state(&self) -> &SessionState {
        &self.state
    }
    fn state_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }
    fn parse(
        &mut self,
        text: &bytes::Bytes,
        markers: bool,
    ) -> SqlResult<(Arc<Spanned<Statement>>, Option<usize>)> {
        let parsed = parse_first(text, &ParseOptions { markers, ..ParseOptions::default() });
        let (statement, next) = parsed.map_err(|e| SqlError {
            code: e.code(),
            state: e.state().as_bytes().try_into().unwrap(),
            message: e.to_string(),
        })?;
        Ok((Arc::new(statement), next))
    }
    fn set_next_transaction(&mut self, _: Option<Isolation>, _: Option<bool>) -> SqlResult<()> {
        if self.trx.open { Err(SqlError::cant_change_tx_characteristics()) } else { Ok(()) }
    }
    fn trx(&self) -> TrxState {
        self.trx
    }
    fn execute(
        &mut self,
        parsed: &Arc<Parsed>,
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        self.run(&parsed.statement.node, &[], context, sink)
    }
    fn prepare(&mut self, parsed: &Arc<Parsed>, _: &RunContext<'_>) -> SqlResult<PreparedInfo> {
        let columns = match &parsed.statement.node {
            Statement::Select(query) => match &query.body {
                QueryBody::Select(select) => self.columns(&select.items, &[])?.0,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        Ok(PreparedInfo { handle: Box::new(()), columns })
    }
    fn with_params(&self, text: &bytes::Bytes, _params: &[Value]) -> bytes::Bytes {
        text.clone()
    }
    fn prepared_text(&self, _name: &str) -> Option<bytes::Bytes> {
        None
    }
    fn execute_prepared(
        &mut self,
        parsed: &Arc<Parsed>,
        _: &mut PreparedHandle,
        params: &[Value],
        context: &RunContext<'_>,
        sink: &mut dyn RowSink,
    ) -> ExecResult<Outcome> {
        self.run(&parsed.statement.node, params, context, sink)
    }
    fn wait_failed(&mut self, _: WaitOutcome) -> SqlError {
        SqlError::lock_wait_timeout()
    }
    fn reset(&mut self) {
        self.trx = TrxState::default();
        self.state.user_variables = Arc::default();
    }
}

pub struct FakeFactory;
impl RunnerFactory for FakeFactory {
    fn open(&self, identity: RunnerIdentity) -> SqlResult<Box<dyn Runner>> {
        let mut state = SessionState::default();
        state.settings = identity.settings;
        state.connection_id = identity.connection_id;
        state.user = identity.user;
        state.account = identity.account;
        state.host = identity.host;
        Ok(Box::new(FakeRunner { state, trx: TrxState::default(), kill: identity.kill }))
    }
    fn database_exists(&self, name: &str) -> bool {
        name != "nowhere"
    }
}

/// A running server; stops when dropped.
pub struct TestServer {
    pub server: Arc<Server>,
    pub port: u16,
    pub socket: PathBuf,
    pub folder: tempfile::TempDir,
    runtime: Option<tokio::runtime::Runtime>,
    done: Option<tokio::task::JoinHandle<()>>,
}

/// Starts one with these options.
pub fn start(args: &[&str]) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let mut options = options::parse(&args, &[]).unwrap();
    options.set("datadir", VarValue::Str(folder.path().to_str().unwrap().into()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let places = Places { bind_address: "127.0.0.1".into(), port: 0, ..options.places() };
    let listeners = places.reserve().and_then(|reserved| reserved.listen(1024)).unwrap();
    let port = listeners.tcp[0].local_addr().unwrap().port();
    let tls = acceptor(&TlsFiles::generated(folder.path()).unwrap()).unwrap();
    let accounts = Accounts::open(Box::new(MemoryStore::new(vec![Account::root()]))).unwrap();
    // Making an RSA key without optimisation takes many seconds; openssl is quick, where it is there.
    let key = folder.path().join("private_key.pem");
    let _ =
        Command::new("openssl").args(["genpkey", "-quiet", "-algorithm", "RSA", "-out"]).arg(key).output();
    let rsa = RsaKey::new(folder.path().to_owned());
    let socket = options.socket().unwrap();
    let server = Arc::new(Server::new(
        options.globals,
        accounts,
        rsa,
        Some(tls),
        Arc::new(NoLog),
        Box::new(FakeFactory),
    ));
    let running = server.clone();
    let done = runtime.spawn(async move { running.run(listeners).await });
    drop(_inside);
    TestServer { server, port, socket, folder, runtime: Some(runtime), done: Some(done) }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.server.stop("test over");
        if let (Some(runtime), Some(done)) = (self.runtime.take(), self.done.take()) {
            let _ = runtime
                .block_on(async { tokio::time::timeout(std::time::Duration::from_secs(5), done).await });
            runtime.shutdown_background();
        }
    }
}

impl TestServer {
    /// Runs the `mariadb` client; `args` select transport and account.
    pub fn client(&self, args: &[&str], sql: &str) -> Output {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--default-character-set=utf8mb4"]);
        if !args.iter().any(|a| a.starts_with("-h")) {
            command.arg(format!("--socket={}", self.socket.display()));
        } else {
            command.arg(format!("--port={}", self.port));
        }
        command.args(args).args(["-N", "-B", "-e", sql]).output().unwrap()
    }

    /// What the client printed; panics if it failed.
    pub fn ask(&self, args: &[&str], sql: &str) -> String {
        let output = self.client(args, sql);
        assert!(output.status.success(), "{args:?} {sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// What the client complained of; panics if it succeeded.
    pub fn fail(&self, args: &[&str], sql: &str) -> String {
        let output = self.client(args, sql);
        assert!(!output.status.success(), "{args:?} {sql} succeeded");
        String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
    }
}
