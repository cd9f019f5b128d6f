//! POSIX's classes of characters.

/// The content of a set for `[:name:]`: the class that Unicode has for POSIX's, so that `[[:alpha:]]` has ä in it. A name that
/// is none of POSIX's is one of Unicode's properties, or one that the engines refuse.
pub fn class(name: &str) -> String {
    let (denied, plain) = match name.strip_prefix('^') {
        Some(plain) => (true, plain),
        None => (false, name),
    };
    let unicode = match plain {
        "alpha" => "Alphabetic",
        "digit" => "Nd",
        "lower" => "Lowercase",
        "upper" => "Uppercase",
        "space" => "White_Space",
        "punct" => "P",
        "alnum" if !denied => return r"\p{Alphabetic}\p{Nd}".into(),
        "alnum" => return r"[^\p{Alphabetic}\p{Nd}]".into(),
        "ascii" | "blank" | "cntrl" | "graph" | "print" | "word" | "xdigit" => return format!("[:{name}:]"),
        other => other,
    };
    format!("\\{}{{{unicode}}}", if denied { 'P' } else { 'p' })
}
