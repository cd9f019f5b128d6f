//! SET NAMES and SET CHARACTER SET, and the variables that move together.

use super::Admin;
use crate::charset::{self, Collation};
use crate::connection::default_collation;
use crate::errors;
use crate::sysvars::VarValue;
use omnibus_sql::{SqlError, SqlResult};

fn known_charset(name: &str) -> SqlResult<Collation> {
    charset::of_charset(name).ok_or_else(|| SqlError::unknown_character_set(name))
}

pub(super) fn set_names(
    admin: &mut Admin<'_>,
    charset: Option<&str>,
    collation: Option<&str>,
) -> SqlResult<()> {
    let default = admin.server.globals.named("character_set_client");
    let name = charset.unwrap_or(default.as_str());
    let mut chosen = known_charset(name)?;
    if let Some(collation) = collation.filter(|c| !c.eq_ignore_ascii_case("default")) {
        let wanted = charset::by_name(collation).ok_or_else(|| SqlError::unknown_collation(collation))?;
        if wanted.charset != chosen.charset {
            return Err(errors::collation_charset_mismatch(wanted.name, chosen.charset));
        }
        chosen = wanted;
    } else if charset.is_some() {
        let vars = admin.settings.shared.vars.lock();
        chosen = default_collation(&vars, chosen.charset).unwrap_or(chosen);
    } else {
        let own = admin.server.globals.named("collation_connection");
        chosen = charset::by_name(own.as_str()).filter(|c| c.charset == chosen.charset).unwrap_or(chosen);
    }
    admin.settings.shared.set_names(&chosen);
    admin.apply_settings();
    Ok(())
}

/// As SET NAMES, but the connection gets the database's character set.
pub(super) fn set_character_set(admin: &mut Admin<'_>, charset: Option<&str>) -> SqlResult<()> {
    let default = admin.server.globals.named("character_set_client");
    let chosen = known_charset(charset.unwrap_or(default.as_str()))?;
    {
        let mut vars = admin.settings.shared.vars.lock();
        for name in ["character_set_client", "character_set_results"] {
            vars.set_named(name, VarValue::Str(chosen.charset.into()));
        }
        let (charset, collation) =
            (vars.named("character_set_database").clone(), vars.named("collation_database").clone());
        vars.set_named("character_set_connection", charset);
        vars.put_named("collation_connection", collation);
    }
    admin.apply_settings();
    Ok(())
}
