//! Passwords among the arguments, which the list of processes shows to everybody on the machine.
//!
//! A program that was called with one runs itself anew, in the same process, with stars in its place and the argument as it was in a
//! variable of the environment, which only the same user may read. Between the two the list shows the password, for a millisecond: a
//! file or a variable of one's own is better.

use omnibus_replication::client::without_secrets;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The first part of the variables; the argument's number follows.
const VARIABLE: &str = "OMNIBUS_ARGUMENT_";

/// Returns the arguments as the user gave them. Does not return, the first time, if the list of processes must not show them.
#[must_use]
pub fn arguments(given: Vec<OsString>) -> Vec<OsString> {
    if !matches!(
        given.get(1).and_then(|command| command.to_str()),
        Some("binlog" | "archive" | "stream" | "restore" | "import")
    ) {
        return given;
    }
    let kept = |number: usize| std::env::var_os(format!("{VARIABLE}{number}"));
    if (0..given.len()).any(|number| kept(number).is_some()) {
        return given.into_iter().enumerate().map(|(number, shown)| kept(number).unwrap_or(shown)).collect();
    }
    let shown: Vec<OsString> = given.iter().map(starred).collect();
    if shown == given {
        return given;
    }
    let Ok(program) = std::env::current_exe() else { return given };
    let mut again = Command::new(program);
    again.arg0(&given[0]).args(&shown[1..]);
    for (number, (argument, shown)) in given.iter().zip(&shown).enumerate() {
        if argument != shown {
            again.env(format!("{VARIABLE}{number}"), argument);
        }
    }
    // It returns only if it has failed, as when the file was replaced. The command is more important than the stars.
    let _failed = again.exec();
    given
}

/// An argument as others may see it.
fn starred(argument: &OsString) -> OsString {
    let Some(text) = argument.to_str() else { return argument.clone() };
    for option in ["--password=", "-p"] {
        if text.strip_prefix(option).is_some_and(|secret| !secret.is_empty()) {
            return format!("{option}***").into();
        }
    }
    without_secrets(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_stars_and_the_rest_is_as_it_was() {
        for (given, shown) in [
            ("-psecret", "-p***"),
            ("-p", "-p"),
            ("--password", "--password"),
            ("--password=", "--password="),
            ("--password=secret", "--password=***"),
            ("--port=3306", "--port=3306"),
            ("nats://u:p@h/x", "nats://***@h/x"),
            ("--to=kafka://u:p@h/x", "--to=kafka://***@h/x"),
            ("mysql://u:p@h:3306/?ssl-mode=required", "mysql://***@h:3306/?ssl-mode=required"),
            ("binlog.000001", "binlog.000001"),
        ] {
            assert_eq!(starred(&given.into()), OsString::from(shown));
        }
    }
}
