//! The `Attributes` column of `mysql.user`: what of an account has no column of its own, as a JSON object.

use super::credentials::{Lifetime, PasswordRules, Requirement};
use super::grants::Restrictions;
use super::table::Account;
use omnibus_value::json::Json;

/// A document as text.
pub(super) fn text_of(json: &Json) -> String {
    let mut text = Vec::new();
    json.write_text(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

const OWN_MEMBERS: [&str; 8] = [
    "metadata",
    "Password_locking",
    "additional_password",
    "password_lifetime",
    "Resource_limits",
    "Password_rules",
    "Tls_names",
    "Restrictions",
];

/// The `Attributes` column: MySQL's form, with the account's attribute under `metadata`.
#[must_use]
pub fn attributes(account: &Account) -> Option<String> {
    let mut members = account.options.members();
    if !account.credentials.second_auth.is_empty() {
        let second = String::from_utf8_lossy(&account.credentials.second_auth).into_owned();
        members.push(("additional_password".to_owned(), Json::String(second)));
    }
    if let Some(restrictions) = account.grants.restrictions.to_json() {
        members.push(("Restrictions".to_owned(), restrictions));
    }
    if let Some(names) = account.require.names() {
        members.push(("Tls_names".to_owned(), names));
    }
    if let Some(attribute) = account.attribute.as_deref().and_then(|text| Json::parse(text.as_bytes()).ok()) {
        members.push(("metadata".to_owned(), attribute));
    }
    (!members.is_empty()).then(|| text_of(&Json::object(members)))
}

/// Reads that column into the account, whose `Ssl_type` is `require`. A version before this one kept the attribute there by itself.
pub fn read_attributes(account: &mut Account, text: &str, require: &str) {
    account.require = Requirement::read(require, None);
    let Ok(json @ Json::Object(_)) = Json::parse(text.as_bytes()) else { return };
    if !OWN_MEMBERS.iter().any(|name| json.get(name).is_some()) {
        account.attribute = Some(text.to_owned());
        return;
    }
    account.require = Requirement::read(require, json.get("Tls_names"));
    account.grants.restrictions = json.get("Restrictions").map(Restrictions::of_json).unwrap_or_default();
    account.attribute = json.get("metadata").map(text_of);
    if let Some(Json::String(second)) = json.get("additional_password") {
        account.credentials.second_auth = second.as_bytes().to_vec();
    }
    let number = |part: &str, name: &str| match json.get(part).and_then(|part| part.get(name)) {
        Some(Json::Int(value)) => *value,
        _ => 0,
    };
    let limit = |name| u32::try_from(number("Resource_limits", name)).unwrap_or(0);
    let options = &mut account.options;
    options.resources.queries = limit("max_queries");
    options.resources.updates = limit("max_updates");
    options.resources.connections = limit("max_connections");
    options.lock.attempts = u16::try_from(number("Password_locking", "failed_login_attempts")).unwrap_or(0);
    options.lock.days = i32::try_from(number("Password_locking", "password_lock_time_days")).unwrap_or(0);
    let rule = |name| match json.get("Password_rules").and_then(|rules| rules.get(name)) {
        Some(Json::Int(value)) => u32::try_from(*value).ok(),
        _ => None,
    };
    options.passwords = PasswordRules {
        history: rule("history"),
        reuse_days: rule("reuse_interval"),
        require_current: rule("require_current").map(|asked| asked != 0),
    };
    options.lifetime = match json.get("password_lifetime") {
        Some(Json::Int(0)) => Lifetime::Never,
        Some(Json::Int(days)) => u16::try_from(*days).map_or(Lifetime::Default, Lifetime::Days),
        _ => Lifetime::Default,
    };
}
