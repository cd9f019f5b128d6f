//! The name that somebody probably meant.

/// Edit distance with transpositions left out: insertions, deletions, replacements cost one each.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The nearest of `names`, if any is near enough to be worth saying.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    within(name.len() / 3 + 1, name, names)
}

/// The nearest of `names`, if it is so near that nothing else can be meant: two letters at most differ.
pub fn mistyped<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    within(2, name, names)
}

fn within<'a>(limit: usize, name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let best = names.map(|n| (distance(name.as_bytes(), n.as_bytes()), n)).min()?;
    (best.0 <= limit).then_some(best.1)
}
