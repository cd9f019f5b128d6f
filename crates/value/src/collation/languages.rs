//! The collations of languages: MySQL's `utf8mb4_swedish_ci` and `utf8mb4_sv_0900_ai_ci`, MariaDB's `utf8mb4_uca1400_swedish_as_cs`, and
//! their kin. Made of the names in the files of `tailoring`, when one is first asked for.

use super::tailoring::{Changes, Level};
use super::{Charset, Collation, Kind, make};
use std::sync::LazyLock;

/// The collations by id.
static ALL: LazyLock<Vec<Collation>> = LazyLock::new(|| {
    let mut all = of_unicode();
    all.extend(of_0900());
    all.extend(of_uca1400());
    all.sort_by_key(|collation| collation.id);
    all
});

/// MySQL's ids of the 0900 collations, by language: of the one that sees neither accents nor case, and of the one that sees both.
const IDS_0900: [(u16, u16); 28] = [
    (256, 279),
    (257, 280),
    (258, 281),
    (259, 282),
    (260, 283),
    (261, 284),
    (262, 285),
    (263, 286),
    (264, 287),
    (265, 288),
    (266, 289),
    (267, 290),
    (268, 291),
    (269, 292),
    (270, 293),
    (271, 294),
    (273, 296),
    (274, 297),
    (275, 298),
    (277, 300),
    (306, 307),
    (310, 311),
    (312, 313),
    (314, 315),
    (316, 317),
    (318, 319),
    (320, 321),
    (322, 323),
];

pub(super) fn all() -> &'static [Collation] {
    &ALL
}

pub(super) fn by_id(id: u16) -> Option<&'static Collation> {
    ALL.binary_search_by_key(&id, |collation| collation.id).ok().map(|at| &ALL[at])
}

/// Leaks a name, because collations live as long as the server.
fn kept(name: String) -> &'static str {
    Box::leak(name.into_boxed_str())
}

fn levels(file: Changes, place: usize, levels: &[usize]) -> Kind {
    let levels: Vec<Level> = levels.iter().map(|level| Level::of(file, place, *level)).collect();
    Kind::Uca(Box::leak(levels.into_boxed_slice()))
}

/// `utf8mb3_icelandic_ci` is 193 and `utf8mb4_icelandic_ci` 225; the others follow, with a gap before the last.
fn of_unicode() -> Vec<Collation> {
    let mut found = Vec::new();
    for (set, first) in [(Charset::Utf8mb3, 193), (Charset::Utf8mb4, 225)] {
        for (place, language) in Changes::V400.languages().enumerate() {
            let gap = u16::from(language == "vietnamese");
            let name = kept(format!("{}_{language}_ci", set.name()));
            let kind = levels(Changes::V400, place, &[0]);
            found.push(make(first + place as u16 + gap, name, set, false, true, kind));
        }
    }
    found
}

fn of_0900() -> Vec<Collation> {
    let mut found = Vec::new();
    for ((place, language), (plain, exact)) in Changes::V900.languages().enumerate().zip(IDS_0900) {
        for (id, suffix, which) in [(plain, "ai_ci", &[0][..]), (exact, "as_cs", &[0, 1, 2])] {
            let name = kept(format!("utf8mb4_{language}_0900_{suffix}"));
            let kind = levels(Changes::V900, place, which);
            found.push(make(id, name, Charset::Utf8mb4, false, false, kind));
        }
    }
    found
}

/// Eight of each language, which follow those of no language. Two languages between German and Vietnamese have none.
fn of_uca1400() -> Vec<Collation> {
    const KINDS: [(&str, &[usize]); 4] =
        [("ai_ci", &[0]), ("ai_cs", &[0, 2]), ("as_ci", &[0, 1]), ("as_cs", &[0, 1, 2])];
    let mut found = Vec::new();
    for (set, first) in [(Charset::Utf8mb3, 2048), (Charset::Utf8mb4, 2304)] {
        for (place, language) in Changes::V1400.languages().enumerate() {
            let gap = if place >= 20 { 2 } else { 0 };
            let mut id = first + 8 * (place as u16 + 1 + gap);
            for pads in [true, false] {
                for (suffix, which) in KINDS {
                    let nopad = if pads { "" } else { "nopad_" };
                    let name = kept(format!("{}_uca1400_{language}_{nopad}{suffix}", set.name()));
                    found.push(make(id, name, set, false, pads, levels(Changes::V1400, place, which)));
                    id += 1;
                }
            }
        }
    }
    found
}
