//! Who was granted what: USER_PRIVILEGES, SCHEMA_PRIVILEGES and those of tables and columns. The server knows its accounts.

use super::computed::{Def, Reader, Ty};
use crate::error::ExecResult;
use omnibus_value::Value;

const GRANTEE: (&str, Ty) = ("GRANTEE", Ty::Text(292));
const CATALOG: (&str, Ty) = ("TABLE_CATALOG", Ty::Text(512));
const SCHEMA: (&str, Ty) = ("TABLE_SCHEMA", Ty::Name);
const TABLE: (&str, Ty) = ("TABLE_NAME", Ty::Name);
const KIND: (&str, Ty) = ("PRIVILEGE_TYPE", Ty::Text(64));
const GRANTABLE: (&str, Ty) = ("IS_GRANTABLE", Ty::Text(3));

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "COLUMN_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, SCHEMA, TABLE, ("COLUMN_NAME", Ty::Text(64)), KIND, GRANTABLE],
        rows: of_columns,
    },
    Def {
        schema: "information_schema",
        name: "SCHEMA_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, SCHEMA, KIND, GRANTABLE],
        rows: of_schemas,
    },
    Def {
        schema: "information_schema",
        name: "TABLE_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, SCHEMA, TABLE, KIND, GRANTABLE],
        rows: of_tables,
    },
    Def {
        schema: "information_schema",
        name: "USER_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, KIND, GRANTABLE],
        rows: of_users,
    },
];

fn of_columns(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.host.privileges("COLUMN_PRIVILEGES"))
}

fn of_schemas(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.host.privileges("SCHEMA_PRIVILEGES"))
}

fn of_tables(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.host.privileges("TABLE_PRIVILEGES"))
}

fn of_users(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.host.privileges("USER_PRIVILEGES"))
}
