//! Gives the program the commit that it is built from, for `omnibus --version`; `unknown` outside of a clone.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = |arguments: &[&str]| {
        let run = Command::new("git").args(arguments).output().ok().filter(|run| run.status.success())?;
        Some(String::from_utf8_lossy(&run.stdout).trim().to_owned())
    };
    println!(
        "cargo:rustc-env=OMNIBUS_COMMIT={}",
        git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or("unknown".to_owned())
    );
    // A commit changes the head, or the branch that it names.
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    let names = ["HEAD", "packed-refs"].into_iter().map(str::to_owned).chain(branch);
    for path in names.filter_map(|name| git(&["rev-parse", "--path-format=absolute", "--git-path", &name])) {
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
