//! Credentials in addresses: decoded where they are used, removed in errors and notes.

/// Returns `text` without the users and passwords in the addresses that it may contain.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let ends = |c: char| "\"'`".contains(c) || c.is_whitespace();
        let word = &after[..after.find(ends).unwrap_or(after.len())];
        let place = &word[..word.find(['/', '?', '#']).unwrap_or(word.len())];
        // A password may have a slash that nobody has escaped; a port has digits alone.
        let split = place.split_once(':').is_some_and(|(_, port)| !port.bytes().all(|c| c.is_ascii_digit()));
        rest = match place.rfind('@').or_else(|| word.rfind('@').filter(|_| split)) {
            Some(at) => {
                shown.push_str("***@");
                &after[at + 1..]
            }
            None => after,
        };
    }
    shown + rest
}

/// Returns a part of an address, in which `%41` is `A`; `None` where `%` is without two hexadecimal digits, or the result is no UTF-8.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        rest = more;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, behind) = more.split_at_checked(2)?;
        // A sign would be a digit for the parser.
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_and_no_password_is_shown() {
        for (text, shown) in [
            ("file:///folder", "file:///folder"),
            ("s3://bucket/p@th", "s3://bucket/p@th"),
            ("s3://u:p@bucket/x", "s3://***@bucket/x"),
            (
                "error sending request for url (http://u:p@h:1/b?x=1): at http://h/ and a://b@c",
                "error sending request for url (http://***@h:1/b?x=1): at http://h/ and a://***@c",
            ),
            ("http://u:p/q@h/x", "http://***@h/x"),
            ("http://h:9000/b@c", "http://h:9000/b@c"),
            ("no address@all", "no address@all"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
