//! Option files in the form of `my.cnf`: groups in brackets, `name=value`, comments, `!include`.

use std::path::{Path, PathBuf};

/// Groups that are the server's.
const GROUPS: [&str; 4] = ["mysqld", "server", "omnibus", "mysqld-8.4"];
/// How deep files may include one another.
const MAX_DEPTH: usize = 10;

/// One option of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOption {
    /// Name as written, without dashes in front.
    pub name: String,
    /// Text behind `=`, if any.
    pub value: Option<String>,
    /// `file:line`, for messages.
    pub place: String,
}

/// Reads a file and those it includes.
pub fn read(path: &Path) -> Result<Vec<FileOption>, String> {
    let mut options = Vec::new();
    read_into(path, 0, &mut options)?;
    Ok(options)
}

fn read_into(path: &Path, depth: usize, options: &mut Vec<FileOption>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("{}: option files include one another", path.display()));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("can't read option file {}: {e}", path.display()))?;
    let mut ours = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let place = format!("{}:{}", path.display(), number + 1);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix("!includedir") {
            for file in files_in(&resolve(path, rest.trim()))? {
                read_into(&file, depth + 1, options)?;
            }
        } else if let Some(rest) = line.strip_prefix("!include") {
            read_into(&resolve(path, rest.trim()), depth + 1, options)?;
        } else if let Some(group) = line.strip_prefix('[') {
            let (name, rest) = group.split_once(']').ok_or_else(|| format!("{place}: '{line}' has no ]"))?;
            if !strip_comment(rest.trim()).is_empty() {
                return Err(format!("{place}: '{}' behind a group's name", rest.trim()));
            }
            ours = Some(GROUPS.contains(&name.trim()));
        } else {
            match ours {
                Some(true) => options.push(option(line, place)),
                Some(false) => {}
                None => {
                    return Err(format!("{place}: an option before any group; begin with a line [mysqld]"));
                }
            }
        }
    }
    Ok(())
}

fn resolve(from: &Path, name: &str) -> PathBuf {
    from.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("can't read {}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "cnf")).collect();
    files.sort();
    Ok(files)
}

fn option(line: &str, place: String) -> FileOption {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(unquote(strip_comment(value.trim())))),
        None => (strip_comment(line), None),
    };
    FileOption { name: name.trim().to_owned(), value, place }
}

/// A `#` in the middle of a line begins a comment, unless it is within quotes.
fn strip_comment(text: &str) -> &str {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, '#') => return text[..at].trim_end(),
            _ => {}
        }
    }
    text
}

fn unquote(text: &str) -> String {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('s') => out.push(' '),
            Some(c) => out.push(c),
            None => out.push('\\'),
        }
    }
    out
}
