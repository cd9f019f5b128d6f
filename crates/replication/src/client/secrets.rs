//! Removes credentials from addresses in errors and notes.

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
