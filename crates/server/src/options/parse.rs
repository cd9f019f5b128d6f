//! From arguments and option files to variables.
//!
//! Later wins: files in the order given, then arguments. Dashes and underscores are the same. Names may
//! be preceded by `skip-`, `disable-`, `enable-` (switches) and `loose-` (ignored if unknown).

use super::file::{self, FileOption};
use super::near::{mistyped, nearest};
use super::{ServerOptions, Task};
use crate::sysvars::persisted;
use crate::sysvars::{
    Change, Given, Kind, Registry, VarDef, VarId, VarValue, about, coerce, in_other_unit, refuse_unsupported,
};
use std::path::PathBuf;

/// A fault of the options; the text names the option and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(pub String);

const NO_RANDOM_PASSWORD: &str =
    "--initialize: no random password is made here; give --initialize-insecure, and root a password then";

/// Options that are not variables, and say what to do.
const TASKS: &[&str] =
    &["help", "version", "initialize_insecure", "defaults_file", "defaults_extra_file", "no_defaults"];

/// Options that are not variables: accepted, and of no effect here.
const IGNORED: &[&str] = &["console", "user", "log_warnings", "symbolic_links", "standalone", "daemonize"];

/// Plug-ins that are not here, or always: option files written for MySQL load and set them. What they have of options is
/// accepted, and of no effect. Not those that passwords, keys and audits depend on.
const PLUGINS: &[&str] = &[
    "plugin_load",
    "plugin_load_add",
    "mysql_native_password",
    "mysqlx",
    "clone",
    "innodb",
    "myisam",
    "rocksdb",
];

/// The option is a plug-in's own switch (`mysqlx`, `skip_mysqlx`) or one of its variables (`mysqlx_port`).
fn is_of_plugin(name: &str) -> bool {
    let prefixes = ["skip_", "disable_", "enable_"];
    let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    PLUGINS
        .iter()
        .any(|own| name.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')))
}

/// Parses arguments (without the program's name). `option_files` are read first; `--defaults-file=` among
/// the arguments replaces them, `--defaults-extra-file=` adds one, `--no-defaults` drops them. Files of
/// `option_files` that do not exist are passed over; those named in arguments must exist.
pub fn parse(args: &[String], option_files: &[PathBuf]) -> Result<ServerOptions, OptionError> {
    let mut files: Vec<PathBuf> = option_files.iter().filter(|p| p.exists()).cloned().collect();
    let mut rest = Vec::new();
    let mut task = Task::Serve;
    let mut iter = args.iter().peekable();
    while let Some(arg) = iter.next() {
        let name = arg.split('=').next().unwrap_or_default().replace('_', "-");
        let mut value = || match arg.split_once('=') {
            Some((_, v)) => Ok(PathBuf::from(v)),
            None => iter
                .next()
                .map(PathBuf::from)
                .ok_or_else(|| OptionError(format!("{arg}: a file name is missing"))),
        };
        match name.as_str() {
            "--defaults-file" => files = vec![value()?],
            "--defaults-extra-file" => {
                let file = value()?;
                files.push(file);
            }
            "--no-defaults" => files.clear(),
            "--help" | "--verbose" | "-?" => task = Task::Help,
            "--version" | "-V" => task = Task::Version,
            "--initialize-insecure" => task = Task::Initialize,
            "--initialize" => return Err(OptionError(NO_RANDOM_PASSWORD.into())),
            _ => rest.push(arg.clone()),
        }
    }
    let mut options = ServerOptions { task, ..ServerOptions::default() };
    for path in files {
        for option in file::read(&path).map_err(OptionError)? {
            apply(&mut options, &option)?;
        }
    }
    for option in arguments(&rest)? {
        apply(&mut options, &option)?;
    }
    check(&options)?;
    Ok(options)
}

/// Checks options against each other.
pub(super) fn check(options: &ServerOptions) -> Result<(), OptionError> {
    let value = |name: &str| options.globals.named(name);
    if value("datadir").as_str().is_empty() {
        return Err(OptionError("option 'datadir': it is empty; give the directory's path".into()));
    }
    let rewrite = value("replicate_rewrite_db");
    if let Some(wrong) =
        rewrite.as_str().split(',').find(|pair| !pair.trim().is_empty() && !pair.contains("->"))
    {
        return Err(OptionError(format!("option 'replicate-rewrite-db': '{wrong}' is not like 'from->to'")));
    }
    for name in ["do", "ignore", "wild_do", "wild_ignore"] {
        let tables = value(&format!("replicate_{name}_table"));
        if let Some(wrong) =
            tables.as_str().split(',').find(|table| !table.trim().is_empty() && !table.contains('.'))
        {
            let option = format!("replicate-{}-table", name.replace('_', "-"));
            return Err(OptionError(format!("option '{option}': '{wrong}' is not like 'database.table'")));
        }
    }
    let gtids = value("gtid_mode").as_str() == "ON" && value("dialect").as_str() != "mariadb";
    if gtids && value("enforce_gtid_consistency").as_str() != "ON" {
        let wrong = "gtid_mode=ON requires enforce_gtid_consistency=ON: give it, or a lower gtid_mode";
        return Err(OptionError(wrong.into()));
    }
    Ok(())
}

/// A value of `mysqld-auto.cnf`. A variable that this version does not know is passed over with a word.
pub(super) fn apply_persisted(
    options: &mut ServerOptions,
    name: &str,
    value: &str,
) -> Result<(), OptionError> {
    let place = persisted::FILE.to_owned();
    let option = FileOption { name: name.to_owned(), value: Some(value.to_owned()), place };
    let Some(id) = Registry::get().find(name) else {
        options.warnings.push(format!("{}: unknown variable '{name}' ignored", option.place));
        return Ok(());
    };
    let def = Registry::get().def(id);
    if persisted::check(def).is_err() {
        options.warnings.push(format!("{}: '{name}' can't be set there; ignored", option.place));
        return Ok(());
    }
    // What was given before is replaced, not added to.
    options.globals.set(id, def.default.value());
    set(options, id, Some(value.to_owned()), &option)
}

/// `--name=value`, `--name value`, `--name`; `-P 3307` and `-h dir` as the field's servers have them.
fn arguments(args: &[String]) -> Result<Vec<FileOption>, OptionError> {
    let mut options = Vec::new();
    let mut iter = args.iter().peekable();
    while let Some(arg) = iter.next() {
        let place = "command line".to_owned();
        let short = match arg.as_str() {
            "-P" => Some("port"),
            "-h" => Some("datadir"),
            "-u" => Some("user"),
            _ => None,
        };
        let Some(body) = short.or_else(|| arg.strip_prefix("--").filter(|b| !b.is_empty())) else {
            return Err(OptionError(format!("unexpected argument '{arg}'; options begin with --")));
        };
        let (name, mut value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        if value.is_none() && takes_value(name) {
            value = iter.next_if(|next| !next.starts_with("--")).cloned();
        }
        options.push(FileOption { name: name.to_owned(), value, place });
    }
    Ok(options)
}

fn normal(name: &str) -> String {
    name.trim_start_matches("--").replace('-', "_").to_ascii_lowercase()
}

fn takes_value(name: &str) -> bool {
    let registry = Registry::get();
    let name = normal(name);
    let bare = name.strip_prefix("loose_").unwrap_or(&name);
    match registry.find(bare) {
        Some(id) => registry.def(id).kind != Kind::Bool,
        // What is not known is refused by its name, and not what follows it.
        None => bare == "user" || resolve(bare, None).is_none() && !is_accepted(bare),
    }
}

/// Options that are no variables and are accepted all the same. One that is a slip of the pen from an option that acts is not: it would be
/// missed.
fn is_accepted(name: &str) -> bool {
    let acting = || names().filter(|name| about(name).is_some());
    IGNORED.contains(&name) || is_of_plugin(name) && mistyped(name, acting()).is_none()
}

fn names() -> impl Iterator<Item = &'static str> {
    Registry::get().iter().map(|(_, def)| def.name)
}

fn apply(options: &mut ServerOptions, option: &FileOption) -> Result<(), OptionError> {
    let name = normal(&option.name);
    let (name, loose) = match name.strip_prefix("loose_") {
        Some(rest) => (rest.to_owned(), true),
        None => (name, false),
    };
    match resolve(&name, option.value.as_deref()) {
        Some((id, given)) => set(options, id, given, option),
        None if is_accepted(&name) => {
            options.warnings.push(format!("option '{}' has no effect here", option.name));
            Ok(())
        }
        None if loose => {
            options.warnings.push(format!("unknown option '{}' ignored", option.name));
            Ok(())
        }
        None => Err(unknown(&name, option)),
    }
}

/// The variable and the text it gets. `None` as text: the option was written without a value.
fn resolve(name: &str, value: Option<&str>) -> Option<(VarId, Option<String>)> {
    let registry = Registry::get();
    let own = |s: &str| Some(s.to_owned());
    // The file-name forms of MySQL: --log-bin=name switches the log on and names its files.
    if name == "log_bin" && value.is_some_and(|v| !is_switch(v)) {
        return Some((registry.find("binlog_name")?, value.map(str::to_owned)));
    }
    if let Some(id) = registry.find(name) {
        return Some((id, value.map(str::to_owned)));
    }
    for (prefix, text) in [("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")] {
        if let Some(id) = name.strip_prefix(prefix).and_then(|rest| registry.find(rest))
            && registry.def(id).kind == Kind::Bool
        {
            let on = value.is_none_or(|v| !matches!(v.to_ascii_lowercase().as_str(), "0" | "off" | "false"));
            let text = if on {
                text
            } else if text == "OFF" {
                "ON"
            } else {
                "OFF"
            };
            return Some((id, own(text)));
        }
    }
    if name == "skip_ssl" {
        return Some((registry.find("auto_generate_certs")?, own("OFF")));
    }
    None
}

fn is_switch(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "0" | "1" | "on" | "off" | "true" | "false")
}

fn set(
    options: &mut ServerOptions,
    id: VarId,
    given: Option<String>,
    option: &FileOption,
) -> Result<(), OptionError> {
    let def = Registry::get().def(id);
    let fail = |what: String| Err(OptionError(format!("{}: option '{}': {what}", option.place, option.name)));
    if def.change == Change::Computed {
        return fail("this variable can't be set".into());
    }
    let text = match (given, def.kind) {
        (Some(text), _) => text,
        (None, Kind::Bool) => "ON".into(),
        (None, _) if def.name == "enforce_gtid_consistency" => "ON".into(),
        (None, _) if def.name == "log_warnings" => "1".into(),
        (None, _) => return fail("a value is missing".into()),
    };
    // Filters may be given one by one.
    let before = options.globals.get(id);
    let text =
        match def.name.starts_with("replicate_") && def.kind == Kind::Text && !before.as_str().is_empty() {
            true => format!("{},{text}", before.as_str()),
            false => text,
        };
    let is_null = matches!(def.kind, Kind::NullableText | Kind::NullableCharset) && text == persisted::NULL;
    let given =
        if is_null { Given::Value(omnibus_value::Value::Null) } else { Given::Text(with_suffix(def, &text)) };
    let (value, warning) = match coerce(def, &given) {
        Ok(done) => done,
        Err(_) => return fail(format!("'{text}' is not a value for it{}", allowed(def))),
    };
    if let Err(error) = refuse_unsupported(def, &value) {
        return fail(error.message);
    }
    if warning.is_some() {
        options.warnings.push(format!("option '{}': value {text} adjusted to {}", option.name, value.text()));
    }
    options.given.insert(Registry::get().def(id).name);
    options.globals.set(id, value);
    companions(options, def);
    Ok(())
}

/// Sets what an option means for others: `--character-set-server=latin1` alone means that set's default collation, and the other way round.
fn companions(options: &ServerOptions, def: &VarDef) {
    let value = options.globals.named(def.name);
    match def.name {
        "character_set_server" => {
            if let Some(c) = crate::charset::of_charset(value.as_str()) {
                options.globals.set_named("collation_server", VarValue::Str(c.name.into()));
            }
        }
        "collation_server" => {
            if let Some(c) = crate::charset::by_name(value.as_str()) {
                options.globals.set_named("character_set_server", VarValue::Str(c.charset.into()));
            }
        }
        name => {
            if let Some((other, same)) = in_other_unit(name, &value) {
                options.globals.set_named(other, same);
            }
        }
    }
}

/// 64M is 67108864.
fn with_suffix(def: &VarDef, text: &str) -> String {
    if !matches!(def.kind, Kind::UInt(..)) {
        return text.to_owned();
    }
    let trimmed = text.trim();
    let shift = match trimmed.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => return trimmed.to_owned(),
    };
    let digits = &trimmed[..trimmed.len() - 1];
    match digits.parse::<i64>().ok().and_then(|n| n.checked_mul(1 << shift)) {
        Some(n) => n.to_string(),
        None => trimmed.to_owned(),
    }
}

fn allowed(def: &VarDef) -> String {
    match def.kind {
        Kind::Enum(labels) => format!("; one of {} is", labels.join(", ")),
        Kind::Set(labels) => format!("; any of {} are", labels.join(", ")),
        Kind::Bool => "; ON or OFF is".into(),
        Kind::Int(min, max) => format!("; a number from {min} to {max} is"),
        Kind::UInt(min, max, _) => format!("; a number from {min} to {max} is"),
        _ => String::new(),
    }
}

fn unknown(name: &str, option: &FileOption) -> OptionError {
    let shown = option.name.trim_start_matches("--");
    let near = nearest(name, names().chain(TASKS.iter().copied()));
    let hint = near.map_or_else(String::new, |n| format!("; did you mean '--{}'?", n.replace('_', "-")));
    OptionError(format!("{}: unknown option '--{shown}'{hint}", option.place))
}
