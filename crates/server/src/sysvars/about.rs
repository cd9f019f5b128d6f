//! A line about each option that acts, for `serve --help`: those of `about.txt`.

/// The line about a variable; `None` for one that only answers who sets or reads it.
pub(crate) fn about(name: &str) -> Option<&'static str> {
    let mut lines = include_str!("about.txt").lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| *known == name).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sysvars::Registry;

    #[test]
    fn lines_are_about_variables_and_fit_a_terminal() {
        for line in include_str!("about.txt").lines().filter(|line| !line.starts_with('#')) {
            let (name, text) = line.split_once(": ").unwrap();
            assert!(Registry::get().find(name).is_some(), "{name} is no variable");
            assert!(text.len() <= 90, "{name}: {} bytes", text.len());
        }
    }

    /// docs/use/sql.md names those that act.
    #[test]
    fn every_option_that_acts_has_a_line() {
        let page = include_str!("../../../../docs/use/sql.md");
        let (_, acting) = page.split_once("Those that act:").unwrap();
        let (acting, _) = acting.split_once("Refused with 1235").unwrap();
        let registry = Registry::get();
        let settable = |name: &&str| {
            let def = registry.find(name).map(|id| registry.def(id));
            def.is_some_and(|def| def.is_option())
        };
        let named = acting.split('`').skip(1).step_by(2);
        let without: Vec<_> = named.filter(settable).filter(|name| about(name).is_none()).collect();
        assert!(without.is_empty(), "no line about {without:?}");
    }
}
