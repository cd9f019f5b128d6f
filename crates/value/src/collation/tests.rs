//! Collation order, keys and matching.
#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

fn key(c: &Collation, s: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    c.write_sort_key(s, &mut out);
    out
}

#[test]
fn general_ci_folds_case_and_accents() {
    let c = by_name("utf8mb4_general_ci").unwrap();
    for (a, b, want) in [
        ("a", "A", Ordering::Equal),
        ("ß", "s", Ordering::Equal),
        ("Ä", "a", Ordering::Equal),
        ("ß", "ss", Ordering::Less),
        ("😀", "😃", Ordering::Equal),
        ("a", "a  ", Ordering::Equal),
        ("a", "a\t", Ordering::Greater),
        ("a", "a !", Ordering::Less),
        ("й", "И", Ordering::Greater),
    ] {
        assert_eq!(c.compare(a.as_bytes(), b.as_bytes()), want, "{a} {b}");
    }
}

#[test]
fn uca_900_folds_and_expands() {
    let c = by_name("utf8mb4_0900_ai_ci").unwrap();
    assert_eq!(Charset::Utf8mb4.default_collation().name, "utf8mb4_general_ci", "every server knows it");
    assert_eq!(by_id(255), Some(c));
    for (a, b, want) in [
        ("a", "Á", Ordering::Equal),
        ("ß", "ss", Ordering::Equal),
        ("æ", "ae", Ordering::Equal),
        ("a", "a ", Ordering::Less),
        ("a", "b", Ordering::Less),
        ("Z", "a", Ordering::Greater),
        ("9", "a", Ordering::Less),
        ("_", "0", Ordering::Less),
        ("e\u{301}", "é", Ordering::Equal),
        ("😀", "😃", Ordering::Less),
        ("가", "나", Ordering::Less),
        ("가", "ㄱㅏ", Ordering::Equal),
        ("一", "丁", Ordering::Less),
        ("\u{3400}", "\u{9fd5}", Ordering::Greater),
        ("я", "Я", Ordering::Equal),
        ("\u{1}a", "a", Ordering::Equal),
    ] {
        assert_eq!(c.compare(a.as_bytes(), b.as_bytes()), want, "{a} {b}");
    }
    assert_eq!(key(c, "A".as_bytes()), [0x1c, 0x47, 0, 0]);
    assert!(c.like("Straße".as_bytes(), "straß%".as_bytes(), None));
    assert!(!c.like("Strasse".as_bytes(), "straße".as_bytes(), None));
}

#[test]
fn older_unicode_collations_pad_and_expand() {
    for name in ["utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci"] {
        let c = by_name(name).unwrap();
        let cmp = |a: &str, b: &str| c.compare(a.as_bytes(), b.as_bytes());
        assert_eq!(cmp("ß ", "SS"), Ordering::Equal);
        assert_eq!(cmp("a", "a\t"), Ordering::Greater);
        assert_eq!(cmp("a\u{a0}", "a"), Ordering::Equal);
        assert_eq!(cmp("가", "나"), Ordering::Less);
        let emoji = if c.id == 224 { Ordering::Equal } else { Ordering::Less };
        assert_eq!(cmp("😀", "😃"), emoji);
    }
    assert_eq!(for_client(2304).charset, Charset::Utf8mb4);
    assert_eq!(for_client(31).id, 31);
    assert_eq!(for_client(76).charset, Charset::Utf8mb3);
}

#[test]
fn like_matches_by_collation() {
    let ci = by_id(45).unwrap();
    let bin = by_id(46).unwrap();
    let esc = Some(u32::from('\\'));
    for (text, pattern, want_ci, want_bin) in [
        ("abc", "A%", true, false),
        ("abc", "a_c", true, true),
        ("aéc", "a_c", true, true),
        ("a%c", "a\\%c", true, true),
        ("axc", "a\\%c", false, false),
        ("mississippi", "%iss%ip%", true, true),
        ("mississippi", "%iss%ipx%", false, false),
        ("", "%", true, true),
        ("", "", true, true),
        ("a ", "a", false, false),
        ("ab", "%b_", false, false),
        ("ab", "\\a\\b", true, true),
    ] {
        assert_eq!(ci.like(text.as_bytes(), pattern.as_bytes(), esc), want_ci, "{text} {pattern}");
        assert_eq!(bin.like(text.as_bytes(), pattern.as_bytes(), esc), want_bin, "{text} {pattern}");
    }
}

/// Letters, and what some collation has as one with what follows.
fn like_letters() -> Vec<char> {
    let mut letters: Vec<char> = "aAbcCçdDžeghHijlLłmnNñostTuyzZßä ".chars().collect();
    for collation in all() {
        if let Kind::Uca(levels) = collation.kind {
            let of_level = |level: &tailoring::Level| level.table().sequences().take(40).collect::<Vec<_>>();
            letters.extend(levels.iter().flat_map(of_level).flatten().filter_map(char::from_u32));
        }
    }
    letters.sort_unstable();
    letters.dedup();
    letters
}

#[test]
fn keys_of_all_texts_that_match_begin_as_the_prefix_says() {
    let letters = like_letters();
    let mut state = 7u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let spanish = by_name("utf8mb4_spanish2_ci").unwrap();
    assert!(spanish.like(b"llama", b"l%", None), "else the test means nothing");
    for collation in all() {
        let encode = |text: &[char]| {
            let (text, mut out) = (text.iter().collect::<String>(), Vec::new());
            Charset::Utf8mb4.convert(collation.charset, text.as_bytes(), &mut out);
            out
        };
        let own: Vec<char> = match collation.kind {
            Kind::Uca(levels) => {
                let sequences = levels.iter().flat_map(|level| level.table().sequences());
                sequences.take(200).flatten().filter_map(char::from_u32).collect()
            }
            _ => Vec::new(),
        };
        for _ in 0..400 {
            let mut letter = || match draw(3) {
                0 if !own.is_empty() => own[draw(own.len())],
                _ => letters[draw(letters.len())],
            };
            let written: Vec<char> = (0..4).map(|_| letter()).collect();
            let behind: Vec<char> = (0..2).map(|_| letter()).collect();
            let length = 1 + draw(4);
            // The same letters, and others that are equal to them for LIKE.
            let text: Vec<char> = written[..length]
                .iter()
                .map(|c| if draw(4) == 0 { c.to_uppercase().next().unwrap_or(*c) } else { *c })
                .collect();
            let pattern = [encode(&written[..length]), b"%".to_vec()].concat();
            let text = [encode(&text), encode(&behind)].concat();
            let made = LikePattern::new(collation, &pattern, None);
            if !made.matches(&text, |_| Ok::<_, ()>(())).unwrap() {
                continue;
            }
            let (end, start) = (key(collation, b""), key(collation, made.prefix()));
            if let Some(start) = start.strip_suffix(&end[..]) {
                assert!(key(collation, &text).starts_with(start), "{} {pattern:?} {text:?}", collation.name);
            }
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just(' '),
            Just('\t'),
            Just('\0'),
            Just('a'),
            Just('A'),
            Just('c'),
            Just('h'),
            Just('é'),
            Just('😀'),
            any::<char>()
        ],
        0..6,
    )
    .prop_map(|v| v.into_iter().collect())
}

proptest! {
    #[test]
    fn keys_order_and_hash_like_compare(a in text(), b in text(), tail in any::<u8>()) {
        for c in all() {
            let encode = |s: &str| {
                let mut out = Vec::new();
                Charset::Utf8mb4.convert(c.charset, s.as_bytes(), &mut out);
                out
            };
            let (a, b) = (encode(&a), encode(&b));
            let order = c.compare(&a, &b);
            let (ka, kb) = (key(c, &a), key(c, &b));
            prop_assert_eq!(ka.cmp(&kb), order, "{} {:?} {:?}", c.name, &a, &b);
            let hash = |s: &[u8]| {
                use std::hash::Hasher;
                let mut h = std::collections::hash_map::DefaultHasher::new();
                c.hash(s, &mut h);
                h.finish()
            };
            prop_assert!(order != Ordering::Equal || hash(&a) == hash(&b));
            let mut longer = ka.clone();
            longer.push(tail);
            prop_assert_eq!(skip_sort_key(c, &longer), Some(ka.len()));
        }
    }
}

/// As a MariaDB 11.4 answers.
#[test]
fn uca_1400_has_levels() {
    for (name, a, b, want) in [
        ("ai_ci", "a", "Ä ", Ordering::Equal),
        ("nopad_ai_ci", "a", "Ä ", Ordering::Less),
        ("as_ci", "a", "A", Ordering::Equal),
        ("as_ci", "ae", "äd", Ordering::Greater),
        ("as_ci", "ad", "äd", Ordering::Less),
        ("ai_cs", "a", "ä", Ordering::Equal),
        ("ai_cs", "a", "A", Ordering::Less),
        ("as_cs", "aB", "Ab", Ordering::Less),
        ("as_cs", "ä", "Ä", Ordering::Less),
        ("as_cs", "a ", "a", Ordering::Equal),
        ("nopad_as_cs", "a ", "a", Ordering::Greater),
        ("as_cs", "Å", "\u{212b}", Ordering::Equal),
        ("ai_ci", "😀", "😃", Ordering::Less),
        ("ai_ci", "𗀀", "𗀁", Ordering::Less),
    ] {
        for set in ["utf8mb3", "utf8mb4"].into_iter().filter(|set| *set == "utf8mb4" || a < "😀") {
            let c = by_name(&format!("{set}_uca1400_{name}")).unwrap();
            assert_eq!(c.compare(a.as_bytes(), b.as_bytes()), want, "{set} {name} {a} {b}");
            assert_eq!(key(c, a.as_bytes()).cmp(&key(c, b.as_bytes())), want, "{set} {name} {a} {b}");
        }
    }
    assert_eq!(by_id(2304).map(|c| c.name), Some("utf8mb4_uca1400_ai_ci"));
    assert_eq!(by_id(2055).map(|c| c.name), Some("utf8mb3_uca1400_nopad_as_cs"));
    let as_cs = by_name("utf8mb4_uca1400_as_cs").unwrap();
    assert!(as_cs.like("Äb".as_bytes(), "Ä_".as_bytes(), None));
    assert!(!as_cs.like("Äb".as_bytes(), "ä_".as_bytes(), None));
    assert!(!as_cs.like("Äb".as_bytes(), "A_".as_bytes(), None));
}

/// Each is less than the next one, as CLDR has it.
#[test]
fn languages_have_orders_of_their_own() {
    for (name, words) in [
        ("utf8mb4_0900_as_cs", "a A á Á b"),
        ("utf8mb4_sv_0900_as_cs", "y ü Ü z å Å ä Ä æ ö"),
        ("utf8mb4_swedish_ci", "z å ä ö"),
        ("utf8mb3_danish_ci", "z æ ø å"),
        ("utf8mb4_da_0900_as_cs", "A a Z z Æ æ Ø ø Å AA Aa å aa"),
        ("utf8mb4_nb_0900_as_cs", "z æ ø å Å aa Aa AA"),
        ("utf8mb4_cs_0900_ai_ci", "c č d h chata i"),
        ("utf8mb4_cs_0900_as_cs", "hz ch cH Ch CH i"),
        ("utf8mb4_es_trad_0900_ai_ci", "cz ch d lz ll m nz ñ o"),
        ("utf8mb4_hu_0900_as_cs", "c cs d dz dzs e o ö ő p"),
        ("utf8mb4_tr_0900_ai_ci", "h I i j"),
        ("utf8mb4_de_pb_0900_as_cs", "ad ae ä Ä af"),
        ("utf8mb4_lt_0900_ai_ci", "c č d i"),
        ("utf8mb4_et_0900_ai_ci", "s š z ž t u v w õ ä ö ü x"),
        ("utf8mb4_hr_0900_as_cs", "c č ć d dž ǆ Dž đ l lj ǉ m ж ω"),
        ("utf8mb4_ru_0900_ai_ci", "а я a z"),
        ("utf8mb4_vi_0900_as_cs", "a à ả ã á ạ ă ằ ắ â ấ b d đ e"),
        ("utf8mb4_uca1400_czech_as_cs", "c č h ch i"),
        ("utf8mb4_uca1400_turkish_ai_ci", "h ı i j"),
    ] {
        let c = by_name(name).unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        for (at, pair) in words.windows(2).enumerate() {
            for tail in ["", "x", "ж"] {
                let [a, b] = [pair[0], pair[1]].map(|word| format!("{word}{tail}"));
                // What stands behind accents and case does not decide before them.
                assert_eq!(c.compare(a.as_bytes(), b.as_bytes()), Ordering::Less, "{name} {at} {a} {b}");
                assert_eq!(key(c, a.as_bytes()).cmp(&key(c, b.as_bytes())), Ordering::Less, "{name} {a} {b}");
            }
        }
        assert_eq!(by_id(c.id), Some(c));
    }
    for (name, a, b) in [
        ("utf8mb4_de_pb_0900_ai_ci", "Straße ä", "STRASSE AE"),
        ("utf8mb4_sv_0900_ai_ci", "ä", "Æ"),
        ("utf8mb4_la_0900_ai_ci", "iulius", "JVLIVS"),
        ("utf8mb4_hu_0900_ai_ci", "ccs Ddzs", "cscs dzsdzs"),
        ("utf8mb4_german2_ci", "ä", "AE"),
        ("utf8mb4_lithuanian_ci", "ch", "c"),
    ] {
        let c = by_name(name).unwrap();
        assert_eq!(c.compare(a.as_bytes(), b.as_bytes()), Ordering::Equal, "{name} {a} {b}");
    }
    assert_eq!(
        all().map(|c| c.id).collect::<std::collections::HashSet<_>>().len(),
        all().count(),
        "ids are one's own"
    );
}

#[test]
fn latin1_has_its_languages() {
    let compare = |name: &str, a: &[u8], b: &[u8]| by_name(name).expect("known").compare(a, b);
    use std::cmp::Ordering::{Equal, Greater, Less};
    for (name, a, b, expected) in [
        ("latin1_general_cs", &b"a"[..], &b"A"[..], Greater),
        ("latin1_general_cs", b"a", b"B", Less),
        ("latin1_german1_ci", b"\xe4", b"a", Equal),
        ("latin1_german1_ci", b"\xdf", b"S", Equal),
        ("latin1_german2_ci", b"\xe4", b"AE", Equal),
        ("latin1_german2_ci", b"stra\xdfe", b"STRASSE", Equal),
        ("latin1_german2_ci", b"\xe4", b"af", Less),
        ("latin1_danish_ci", b"\xe5", b"z", Greater),
        ("latin1_danish_ci", b"\xf8", b"\xe6", Greater),
        ("latin1_spanish_ci", b"\xf1", b"n", Greater),
        ("latin1_spanish_ci", b"\xe1", b"A  ", Equal),
    ] {
        assert_eq!(compare(name, a, b), expected, "{name}: {a:?} {b:?}");
        let key = |text: &[u8]| {
            let mut out = Vec::new();
            by_name(name).expect("known").write_sort_key(text, &mut out);
            out
        };
        assert_eq!(key(a).cmp(&key(b)), expected, "{name}: keys of {a:?} {b:?}");
    }
}
