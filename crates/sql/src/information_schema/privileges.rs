//! Grants: USER_PRIVILEGES, SCHEMA_PRIVILEGES and those of tables and columns. The server knows its accounts.

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
        rows: privileges,
    },
    Def {
        schema: "information_schema",
        name: "SCHEMA_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, SCHEMA, KIND, GRANTABLE],
        rows: privileges,
    },
    Def {
        schema: "information_schema",
        name: "TABLE_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, SCHEMA, TABLE, KIND, GRANTABLE],
        rows: privileges,
    },
    Def {
        schema: "information_schema",
        name: "USER_PRIVILEGES",
        columns: &[GRANTEE, CATALOG, KIND, GRANTABLE],
        rows: privileges,
    },
];

/// A role that an account or a role has.
const GRANTED_ROLE: &[(&str, Ty)] = &[
    ("USER", Ty::Text(97)),
    ("HOST", Ty::Text(256)),
    ("GRANTEE", Ty::Text(97)),
    ("GRANTEE_HOST", Ty::Text(256)),
    ("ROLE_NAME", Ty::Text(255)),
    ("ROLE_HOST", Ty::Text(256)),
    ("IS_GRANTABLE", Ty::Text(3)),
    ("IS_DEFAULT", Ty::Text(3)),
    ("IS_MANDATORY", Ty::Text(3)),
];

/// Roles, as MySQL has these tables.
pub(super) const ROLES: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
        columns: GRANTED_ROLE,
        rows: privileges,
    },
    Def { schema: "information_schema", name: "APPLICABLE_ROLES", columns: GRANTED_ROLE, rows: privileges },
    Def {
        schema: "information_schema",
        name: "ENABLED_ROLES",
        columns: &[
            ("ROLE_NAME", Ty::Text(255)),
            ("ROLE_HOST", Ty::Text(255)),
            ("IS_DEFAULT", Ty::Text(3)),
            ("IS_MANDATORY", Ty::Text(3)),
        ],
        rows: privileges,
    },
    Def {
        schema: "information_schema",
        name: "ROLE_COLUMN_GRANTS",
        columns: &[
            ("GRANTOR", Ty::Text(97)),
            ("GRANTOR_HOST", Ty::Text(256)),
            ("GRANTEE", Ty::Char(32)),
            ("GRANTEE_HOST", Ty::Char(255)),
            ("TABLE_CATALOG", Ty::Text(3)),
            ("TABLE_SCHEMA", Ty::Char(64)),
            ("TABLE_NAME", Ty::Char(64)),
            ("COLUMN_NAME", Ty::Char(64)),
            ("PRIVILEGE_TYPE", Ty::Text(512)),
            ("IS_GRANTABLE", Ty::Text(3)),
        ],
        rows: privileges,
    },
    Def {
        schema: "information_schema",
        name: "ROLE_ROUTINE_GRANTS",
        columns: &[
            ("GRANTOR", Ty::Text(97)),
            ("GRANTOR_HOST", Ty::Text(256)),
            ("GRANTEE", Ty::Char(32)),
            ("GRANTEE_HOST", Ty::Char(255)),
            ("SPECIFIC_CATALOG", Ty::Text(3)),
            ("SPECIFIC_SCHEMA", Ty::Char(64)),
            ("SPECIFIC_NAME", Ty::Char(64)),
            ("ROUTINE_CATALOG", Ty::Text(3)),
            ("ROUTINE_SCHEMA", Ty::Char(64)),
            ("ROUTINE_NAME", Ty::Char(64)),
            ("PRIVILEGE_TYPE", Ty::Text(512)),
            ("IS_GRANTABLE", Ty::Text(3)),
        ],
        rows: privileges,
    },
    Def {
        schema: "information_schema",
        name: "ROLE_TABLE_GRANTS",
        columns: &[
            ("GRANTOR", Ty::Text(97)),
            ("GRANTOR_HOST", Ty::Text(256)),
            ("GRANTEE", Ty::Char(32)),
            ("GRANTEE_HOST", Ty::Char(255)),
            ("TABLE_CATALOG", Ty::Text(3)),
            ("TABLE_SCHEMA", Ty::Char(64)),
            ("TABLE_NAME", Ty::Char(64)),
            ("PRIVILEGE_TYPE", Ty::Text(512)),
            ("IS_GRANTABLE", Ty::Text(3)),
        ],
        rows: privileges,
    },
];

/// Tables of `mysql` as other servers have them: what queries read in the place of our own. They are not listed.
pub(super) const SYSTEM: &[Def] = &[
    // Nothing is ever in these three.
    Def {
        schema: "mysql",
        name: "func",
        columns: &[("name", Ty::Char(64)), ("ret", Ty::Int4), ("dl", Ty::Char(128)), ("type", Ty::Text(16))],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "plugin",
        columns: &[("name", Ty::Text(64)), ("dl", Ty::Text(128))],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "servers",
        columns: &[
            ("Server_name", Ty::Char(64)),
            ("Host", Ty::Char(64)),
            ("Db", Ty::Char(64)),
            ("Username", Ty::Char(64)),
            ("Password", Ty::Char(64)),
            ("Port", Ty::Int4),
            ("Socket", Ty::Char(64)),
            ("Wrapper", Ty::Char(64)),
            ("Owner", Ty::Char(64)),
        ],
        rows: nothing,
    },
    Def {
        schema: "mysql",
        name: "user",
        columns: &[
            ("Host", Ty::Char(255)),
            ("User", Ty::Char(32)),
            ("Select_priv", Ty::Char(1)),
            ("Insert_priv", Ty::Char(1)),
            ("Update_priv", Ty::Char(1)),
            ("Delete_priv", Ty::Char(1)),
            ("Create_priv", Ty::Char(1)),
            ("Drop_priv", Ty::Char(1)),
            ("Reload_priv", Ty::Char(1)),
            ("Shutdown_priv", Ty::Char(1)),
            ("Process_priv", Ty::Char(1)),
            ("File_priv", Ty::Char(1)),
            ("Grant_priv", Ty::Char(1)),
            ("References_priv", Ty::Char(1)),
            ("Index_priv", Ty::Char(1)),
            ("Alter_priv", Ty::Char(1)),
            ("Show_db_priv", Ty::Char(1)),
            ("Super_priv", Ty::Char(1)),
            ("Create_tmp_table_priv", Ty::Char(1)),
            ("Lock_tables_priv", Ty::Char(1)),
            ("Execute_priv", Ty::Char(1)),
            ("Repl_slave_priv", Ty::Char(1)),
            ("Repl_client_priv", Ty::Char(1)),
            ("Create_view_priv", Ty::Char(1)),
            ("Show_view_priv", Ty::Char(1)),
            ("Create_routine_priv", Ty::Char(1)),
            ("Alter_routine_priv", Ty::Char(1)),
            ("Create_user_priv", Ty::Char(1)),
            ("Event_priv", Ty::Char(1)),
            ("Trigger_priv", Ty::Char(1)),
            ("Create_tablespace_priv", Ty::Char(1)),
            ("ssl_type", Ty::Text(9)),
            ("ssl_cipher", Ty::Long),
            ("x509_issuer", Ty::Long),
            ("x509_subject", Ty::Long),
            ("max_questions", Ty::UInt),
            ("max_updates", Ty::UInt),
            ("max_connections", Ty::UInt),
            ("max_user_connections", Ty::UInt),
            ("plugin", Ty::Char(64)),
            ("authentication_string", Ty::Long),
            ("password_expired", Ty::Char(1)),
            ("account_locked", Ty::Char(1)),
            ("Create_role_priv", Ty::Char(1)),
            ("Drop_role_priv", Ty::Char(1)),
            ("Password_reuse_history", Ty::UInt),
            ("Password_reuse_time", Ty::UInt),
            ("Password_require_current", Ty::Char(1)),
            ("User_attributes", Ty::Long),
            // MariaDB has these two besides.
            ("is_role", Ty::Char(1)),
            ("default_role", Ty::Text(80)),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "proxies_priv",
        columns: &[
            ("Host", Ty::Char(255)),
            ("User", Ty::Char(32)),
            ("Proxied_host", Ty::Char(255)),
            ("Proxied_user", Ty::Char(32)),
            ("With_grant", Ty::Int4),
            ("Grantor", Ty::Text(288)),
            ("Timestamp", Ty::Stamp),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "password_history",
        columns: &[
            ("Host", Ty::Char(255)),
            ("User", Ty::Char(32)),
            ("Password_timestamp", Ty::Stamp),
            ("Password", Ty::Long),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "tables_priv",
        columns: &[
            ("Host", Ty::Char(255)),
            ("Db", Ty::Char(64)),
            ("User", Ty::Char(32)),
            ("Table_name", Ty::Char(64)),
            ("Grantor", Ty::Text(288)),
            ("Timestamp", Ty::Stamp),
            ("Table_priv", Ty::Text(255)),
            ("Column_priv", Ty::Text(64)),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "columns_priv",
        columns: &[
            ("Host", Ty::Char(255)),
            ("Db", Ty::Char(64)),
            ("User", Ty::Char(32)),
            ("Table_name", Ty::Char(64)),
            ("Column_name", Ty::Char(64)),
            ("Timestamp", Ty::Stamp),
            ("Column_priv", Ty::Text(64)),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "procs_priv",
        columns: &[
            ("Host", Ty::Char(255)),
            ("Db", Ty::Char(64)),
            ("User", Ty::Char(32)),
            ("Routine_name", Ty::Char(64)),
            ("Routine_type", Ty::Text(16)),
            ("Grantor", Ty::Text(288)),
            ("Proc_priv", Ty::Text(64)),
            ("Timestamp", Ty::Stamp),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "role_edges",
        columns: &[
            ("FROM_HOST", Ty::Char(255)),
            ("FROM_USER", Ty::Char(32)),
            ("TO_HOST", Ty::Char(255)),
            ("TO_USER", Ty::Char(32)),
            ("WITH_ADMIN_OPTION", Ty::Char(1)),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "default_roles",
        columns: &[
            ("HOST", Ty::Char(255)),
            ("USER", Ty::Char(32)),
            ("DEFAULT_ROLE_HOST", Ty::Char(255)),
            ("DEFAULT_ROLE_USER", Ty::Char(32)),
        ],
        rows: system_table,
    },
    Def {
        schema: "mysql",
        name: "roles_mapping",
        columns: &[
            ("Host", Ty::Char(255)),
            ("User", Ty::Char(32)),
            ("Role", Ty::Char(80)),
            ("Admin_option", Ty::Char(1)),
        ],
        rows: system_table,
    },
];

/// A table of information_schema that the server makes of its accounts.
fn privileges(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.connection.host.privileges(reader.name))
}

/// A table of `mysql` that the server makes of its accounts.
fn system_table(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.connection.host.system_table(reader.name)?)
}

fn nothing(_: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(Vec::new())
}
