//! Option files and arguments.

use crate::targets::state::Folder;
use omnibus_server::options::parse;

/// Lines that begin with `--` are arguments, the rest is a file.
pub(super) fn file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Other files are not part of the input, and `--help` is not an option.
    if text.contains("!include") || text.contains("--defaults") || text.contains('\0') {
        return;
    }
    let (arguments, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("--"));
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let folder = Folder::new();
    folder.write("my.cnf", lines.join("\n").as_bytes());
    let Ok(options) = parse(&arguments, &[folder.path().join("my.cnf")]) else { return };
    let _ =
        (options.datadir(), options.socket(), options.log_error(), options.places(), options.bind_address());
}
