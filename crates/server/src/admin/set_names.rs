//! SET NAMES and SET CHARACTER SET, and the variables that move together.

use crate::charset::{self, Collation};
use crate::errors;
use crate::session::{Session, SessionShared};
use crate::sysvars::{VarDef, VarId, VarValue};
use omnibus_sql::{SqlError, SqlResult};

fn known_charset(name: &str) -> SqlResult<Collation> {
    charset::of_charset(name).ok_or_else(|| SqlError::unknown_character_set(name))
}

impl Session {
    pub(super) fn set_names(&mut self, charset: Option<&str>, collation: Option<&str>) -> SqlResult<()> {
        let default = self.server.globals.named("character_set_client");
        let name = charset.unwrap_or(default.as_str());
        let mut chosen = known_charset(name)?;
        if let Some(collation) = collation.filter(|c| !c.eq_ignore_ascii_case("default")) {
            let wanted = charset::by_name(collation).ok_or_else(|| SqlError::unknown_collation(collation))?;
            if wanted.charset != chosen.charset {
                return Err(errors::collation_charset_mismatch(wanted.name, chosen.charset));
            }
            chosen = wanted;
        } else if charset.is_none() {
            let own = self.server.globals.named("collation_connection");
            chosen = charset::by_name(own.as_str()).filter(|c| c.charset == chosen.charset).unwrap_or(chosen);
        }
        self.shared.set_names(&chosen);
        self.apply_settings();
        Ok(())
    }

    /// As SET NAMES, but the connection gets the database's character set.
    pub(super) fn set_character_set(&mut self, charset: Option<&str>) -> SqlResult<()> {
        let default = self.server.globals.named("character_set_client");
        let chosen = known_charset(charset.unwrap_or(default.as_str()))?;
        {
            let mut vars = self.shared.vars.lock();
            for name in ["character_set_client", "character_set_results"] {
                vars.set_named(name, VarValue::Str(chosen.charset.into()));
            }
            for part in ["character_set", "collation"] {
                let database = vars.named(&format!("{part}_database")).clone();
                vars.set_named(&format!("{part}_connection"), database);
            }
        }
        self.apply_settings();
        Ok(())
    }
}

impl SessionShared {
    /// Sets a variable; a character set brings its default collation along and a collation its
    /// character set.
    pub(super) fn set_with_companions(&self, id: VarId, def: &VarDef, value: VarValue) {
        let mut vars = self.vars.lock();
        if let Some(suffix) = def.name.strip_prefix("collation_") {
            if let Some(collation) = charset::by_name(value.as_str()) {
                vars.set_named(&format!("character_set_{suffix}"), VarValue::Str(collation.charset.into()));
            }
        } else if let Some(suffix @ ("connection" | "server" | "database")) =
            def.name.strip_prefix("character_set_")
            && let Some(collation) = charset::of_charset(value.as_str())
        {
            vars.set_named(&format!("collation_{suffix}"), VarValue::Str(collation.name.into()));
        } else if def.name == "max_join_size" {
            // Who sets a bound wants it to act.
            vars.set_named("sql_big_selects", VarValue::Bool(value.as_u64() == u64::MAX));
        }
        vars.set(id, value);
    }
}
