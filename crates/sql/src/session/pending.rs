//! Not there yet.
use super::session::{Call, SqlSession};
use crate::api::Outcome;
use crate::error::{ExecResult, SqlError};
use omnibus_parser::ast::{CreateTable, Query, Statement};

impl SqlSession {
    pub(super) fn query(&mut self, _: &Statement, _: &mut Call<'_>) -> ExecResult<Outcome> {
        Err(SqlError::not_supported_yet("SELECT").into())
    }
    pub(super) fn write(&mut self, _: &Statement, _: &mut Call<'_>) -> ExecResult<Outcome> {
        Err(SqlError::not_supported_yet("DML").into())
    }
    pub(super) fn prepared_statement(&mut self, _: &Statement, _: &mut Call<'_>) -> ExecResult<Outcome> {
        Err(SqlError::not_supported_yet("PREPARE").into())
    }
    pub(super) fn create_table_select(&mut self, _: &CreateTable, _: &Query, _: &mut Call<'_>) -> ExecResult<Outcome> {
        Err(SqlError::not_supported_yet("CREATE TABLE SELECT").into())
    }
}
