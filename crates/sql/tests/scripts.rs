//! Scripts of statements and what they answer, in `testdata/*.test`. `OMNIBUS_REWRITE=1` writes
//! the answers anew (of the folder `OMNIBUS_SCRIPTS`, if set); look at the difference before committing it.
//!
//! A line that starts with `> ` is a statement; the lines behind it are its rows, tab-separated, or
//! its error.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, database};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn answer(client: &mut Client, sql: &str) -> String {
    let mut out = String::new();
    match client.run(sql) {
        Ok((_, rows)) => {
            for row in rows.text() {
                writeln!(out, "{}", row.join("\t").replace('\n', "\\n").replace('\0', "\\0")).unwrap();
            }
        }
        Err(error) => writeln!(out, "error {}: {}", error.code, error.message).unwrap(),
    }
    out
}

fn run_script(path: &Path) {
    let script = std::fs::read_to_string(path).unwrap();
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    let rewrite = std::env::var_os("OMNIBUS_REWRITE").is_some();
    let (mut actual, mut wrong) = (String::new(), String::new());
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(sql) = line.strip_prefix("> ") else {
            writeln!(actual, "{line}").unwrap();
            continue;
        };
        let mut expected = String::new();
        while let Some(row) = lines.next_if(|l| !l.starts_with("> ") && !l.starts_with('#')) {
            writeln!(expected, "{row}").unwrap();
        }
        let answer = answer(&mut client, sql);
        if answer != expected {
            writeln!(wrong, "> {sql}\nexpected:\n{expected}answered:\n{answer}").unwrap();
        }
        write!(actual, "> {sql}\n{answer}").unwrap();
    }
    if rewrite {
        std::fs::write(path, actual).unwrap();
    } else {
        assert!(wrong.is_empty(), "{}:\n{wrong}", path.display());
    }
}

#[test]
fn scripts_answer_as_written() {
    let folder = match std::env::var_os("OMNIBUS_SCRIPTS") {
        Some(folder) => folder.into(),
        None => PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("testdata"),
    };
    let mut scripts: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    scripts.sort();
    for script in scripts.iter().filter(|p| p.extension().is_some_and(|e| e == "test")) {
        run_script(script);
    }
}
