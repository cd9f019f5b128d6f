//! LOAD DATA as a session runs it: where its file comes from, and who may read it. And INTO OUTFILE.
//!
//! A file that was supplied is taken as it is. LOCAL without one asks for it (`Interrupt::NeedFile`) once
//! everything else is in order, so that a client is never asked in vain.

use super::{Call, StatementContext, query, statement_log};
use crate::api::{Mode, Outcome};
use crate::bind::uses::UsesCell;
use crate::dml::{Planner, Run};
use crate::error::{ExecResult, Interrupt, SqlError};
use crate::exec;
use crate::load::{LoadInput, LoadPlan, announce_variables};
use crate::plan::QueryPlan;
use crate::storage::LockMode;
use crate::text_file::{Outfile, OutfileSink};
use omnibus_parser::ast::{LoadData, OnDuplicate};
use omnibus_replication::model::LoadedFile;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// A file's name; one without a folder is in that of the default database, whose name is spelled so that it is one folder.
fn in_database<'a>(path: &'a [u8], database: Option<&str>) -> Cow<'a, [u8]> {
    let Some(database) = database.filter(|_| !path.contains(&b'/')) else { return Cow::Borrowed(path) };
    let mut whole = String::new();
    for letter in database.chars() {
        if letter.is_alphanumeric() || matches!(letter, '_' | '$' | '-') {
            whole.push(letter);
        } else {
            whole.push_str(&format!("@{:04x}", u32::from(letter)));
        }
    }
    Cow::Owned([whole.as_bytes(), b"/", path].concat())
}

/// SELECT .. INTO OUTFILE. A file of a statement that fails, or is run again, goes.
pub(super) fn write_file(
    cx: &mut StatementContext<'_>,
    plan: &QueryPlan,
    outfile: &Outfile,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    let host = cx.state.connection.host.clone();
    if outfile.path.is_empty() || outfile.path.ends_with(b"/") {
        let name = String::from_utf8_lossy(&outfile.path);
        let text = format!("Can't create/write to file '{name}' (OS errno 21 - Is a directory)");
        return Err(SqlError::new(1, b"HY000", text).into());
    }
    let path = in_database(&outfile.path, cx.state.database.as_deref());
    let file = host.open_file(&path, true)?;
    let (floor, kill) = (cx.trx.floor().clone(), cx.state.budget.kill().clone());
    let mut sink = OutfileSink::new(file, floor, kill, outfile, &plan.types);
    let written = exec::execute(plan, cx.state, cx.trx, call.params, &mut sink)
        .and_then(|rows| Ok(sink.finish().map(|()| rows)?));
    if written.is_err() {
        host.remove_file(&path);
    }
    Ok(Outcome { affected: written?, ..Outcome::ok() })
}

/// LOAD DATA, of the file that was supplied, if one was.
pub(super) fn load_data(
    cx: &mut StatementContext<'_>,
    tree: &LoadData,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let supplied = cx.attempts.load_input.clone();
    if tree.local && supplied.is_none() && !cx.state.settings.local_infile {
        return Err(SqlError::local_files_disabled().into());
    }
    if !tree.local && supplied.is_none() {
        call.access.check_files()?;
    }
    announce_variables(tree, cx.state)?;
    let catalog = cx.catalog();
    let virtuals = cx.database.virtual_tables();
    let (uses, read_lock) = (UsesCell::default(), LockMode::Share);
    let planner = Planner {
        session: cx.state,
        catalog: &catalog,
        access: call.access,
        virtuals,
        params: None,
        uses: &uses,
        read_lock,
    };
    let plan = LoadPlan::build(&planner, tree)?;
    if cx.state.settings.server_read_only && !plan.only_temporary() {
        return Err(SqlError::option_prevents_statement("--read-only").into());
    }
    if tree.local && supplied.is_none() {
        return Err(Interrupt::NeedFile(tree.file.clone()));
    }
    if call.mode == Mode::Inline {
        return Err(Interrupt::NeedBlocking);
    }
    let input = match supplied {
        Some(input) => input,
        None => {
            let path = in_database(&tree.file, cx.state.database.as_deref());
            LoadInput::File(Arc::new(cx.state.connection.host.clone().open_file(&path, false)?.into()))
        }
    };
    cx.state.programs.tables = vec![plan.target().def.id];
    cx.enter();
    query::hold_back(cx, call.mode)?;
    let as_text = statement_log::choose_load_format(cx, &uses.take())?;
    let effect = plan.run(&mut Run { trx: cx.trx, state: cx.state, params: &[] }, &input)?;
    if let Some(before) = as_text {
        let file = RunFile {
            span: super::statement_log::file_span(cx.state, call),
            duplicates: duplicates(tree),
            input: &input,
        };
        statement_log::log_text(cx, &before, Some(&file), call)?;
    }
    Ok(Outcome {
        affected: effect.affected,
        last_insert_id: effect.last_insert_id,
        info: effect.info,
        ..Outcome::ok()
    })
}

/// The file of a statement that has run, for a log of statements.
struct RunFile<'a> {
    span: (u32, u32),
    duplicates: u8,
    input: &'a LoadInput,
}

impl LoadedFile for RunFile<'_> {
    fn name_span(&self) -> (u32, u32) {
        self.span
    }
    fn duplicate_handling(&self) -> u8 {
        self.duplicates
    }
    fn blocks(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.input.blocks(128 << 10, each)
    }
}

/// As events say it. A file from the client cannot be stopped, so its duplicates are ignored.
fn duplicates(tree: &LoadData) -> u8 {
    match tree.duplicates {
        OnDuplicate::Replace => 2,
        OnDuplicate::Ignore => 1,
        OnDuplicate::Error => u8::from(tree.local),
    }
}
