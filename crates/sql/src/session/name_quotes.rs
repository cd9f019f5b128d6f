//! The quotes around identifiers in SHOW CREATE, by `sql_mode=ANSI_QUOTES` and `sql_quote_show_create`.

use crate::api::is_keyword;
use crate::catalog::quote_ident;

/// The quotes that the identifiers of a shown definition have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameQuotes {
    /// `sql_mode=ANSI_QUOTES`: double quotes.
    pub(super) double: bool,
    /// `sql_quote_show_create=0`: only names that mean something else without quotes have them.
    pub(super) needed_only: bool,
}

/// A table's or a database's definition with these quotes around its identifiers. As in MySQL, those of a CHECK stay as they are, and those of
/// other expressions lose their quotes and never change them.
pub(super) fn requoted(text: &str, quotes: NameQuotes) -> String {
    let of_expressions = NameQuotes { double: false, ..quotes };
    requote(text, quotes, Some(of_expressions))
}

/// A view's definition with these quotes around all of its identifiers.
pub(super) fn requoted_view(text: &str, quotes: NameQuotes) -> String {
    requote(text, quotes, None)
}

/// `of_expressions`: the quotes within expressions, if they are others.
fn requote(text: &str, quotes: NameQuotes, of_expressions: Option<NameQuotes>) -> String {
    if !quotes.double && !quotes.needed_only {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    // Open parentheses of an expression.
    let (mut inside, mut check) = (0u32, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                let kept = NameQuotes { double: false, needed_only: false };
                let quotes = match of_expressions.filter(|_| inside > 0) {
                    Some(_) if check => kept,
                    Some(of_expressions) => of_expressions,
                    None => quotes,
                };
                push_name(&name(&mut chars), quotes, &mut out);
            }
            '\'' => copy_text(&mut chars, &mut out),
            '(' => {
                if inside == 0 {
                    check = out.ends_with("CHECK ");
                }
                inside += u32::from(inside > 0 || expression_follows(&out));
                out.push(c);
            }
            ')' => {
                inside = inside.saturating_sub(1);
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The rest of a name in backticks.
fn name(chars: &mut Chars<'_>) -> String {
    let mut name = String::new();
    while let Some(c) = chars.next() {
        // Two of them are one in a name.
        if c == '`' && chars.next_if_eq(&'`').is_none() {
            break;
        }
        name.push(c);
    }
    name
}

fn push_name(name: &str, quotes: NameQuotes, out: &mut String) {
    if quotes.needed_only && !needs_quotes(name) {
        out.push_str(name);
    } else if quotes.double {
        out.push('"');
        out.push_str(&name.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(&quote_ident(name));
    }
}

fn needs_quotes(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    name.is_empty()
        || !name.chars().all(plain)
        || name.chars().all(|c| c.is_ascii_digit())
        || is_keyword(&name.to_ascii_uppercase())
}

/// Copies a text behind its opening quote.
fn copy_text(chars: &mut Chars<'_>, out: &mut String) {
    out.push('\'');
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '\'' => break,
            _ => {}
        }
    }
}

/// Whether a parenthesis behind a part of a definition begins an expression: a column's, a check's or a key's.
fn expression_follows(text: &str) -> bool {
    ["GENERATED ALWAYS AS ", "DEFAULT ", "CHECK ", "(", ","].iter().any(|end| text.ends_with(end))
}
