//! VIEWS and VIEW_TABLE_USAGE.

use super::computed::{Def, Reader, Ty, text, yes_no};
use crate::api::Priv;
use crate::catalog::charset;
use crate::error::ExecResult;
use omnibus_parser::ast::Security;
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "VIEWS",
        columns: &[
            ("TABLE_CATALOG", Ty::Text(64)),
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
            ("VIEW_DEFINITION", Ty::Long),
            ("CHECK_OPTION", Ty::Text(8)),
            ("IS_UPDATABLE", Ty::Text(3)),
            ("DEFINER", Ty::Text(288)),
            ("SECURITY_TYPE", Ty::Text(7)),
            ("CHARACTER_SET_CLIENT", Ty::Text(64)),
            ("COLLATION_CONNECTION", Ty::Text(64)),
        ],
        rows: views,
    },
    Def {
        schema: "information_schema",
        name: "VIEW_TABLE_USAGE",
        columns: &[
            ("VIEW_CATALOG", Ty::Text(64)),
            ("VIEW_SCHEMA", Ty::Name),
            ("VIEW_NAME", Ty::Name),
            ("TABLE_CATALOG", Ty::Text(64)),
            ("TABLE_SCHEMA", Ty::Name),
            ("TABLE_NAME", Ty::Name),
        ],
        rows: usage,
    },
];

fn views(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for (view, outline) in reader.views()? {
        let def = &view.def;
        let host = &reader.cx.session.connection.host;
        let (mysql, shown) =
            (!reader.cx.session.settings.mariadb, host.may(&def.db, &def.name, Priv::ShowView));
        let updatable = match outline {
            Ok(outline) => outline.updatable && def.names_columns(),
            Err(error) => {
                reader.cx.warn(error);
                false
            }
        };
        let row = vec![
            text("def"),
            text(&def.db),
            text(&def.name),
            text(if shown { def.query_text(None, mysql) } else { String::new() }),
            text(def.check.map_or("NONE", |check| check.word())),
            yes_no(updatable),
            text(def.definer.plain()),
            text(match def.security {
                Security::Definer => "DEFINER",
                Security::Invoker => "INVOKER",
            }),
            text(charset::charset_name(def.client)),
            text(charset::collation_name(def.connection)),
        ];
        reader.made(std::slice::from_ref(&row))?;
        rows.push(row);
    }
    Ok(rows)
}

fn usage(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for (view, _) in reader.views()? {
        for (db, table) in view.def.tables() {
            if reader.sees(&db, Some(&table)) {
                let place = [text("def"), text(&view.def.db), text(&view.def.name)];
                rows.push(place.into_iter().chain([text("def"), text(&*db), text(&*table)]).collect());
            }
        }
    }
    Ok(rows)
}
