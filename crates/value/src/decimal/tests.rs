//! Decimals against tables made with a real server, and properties.
#![allow(clippy::unwrap_used)]
use super::tables::*;
use super::*;
use proptest::prelude::*;

fn d(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn quotient_keeps_nine_digit_groups_and_shows_four_more() {
    let third = d("1").div(&d("3"), 4).unwrap().unwrap();
    assert_eq!(third.to_string(), "0.3333");
    assert_eq!(third.mul(&d("3")).unwrap().to_string(), "1.0000");
    assert_eq!(d("2").div(&d("3"), 4).unwrap().unwrap().to_string(), "0.6667");
    assert_eq!(d("10.00").div(&d("4.0"), 4).unwrap().unwrap().to_string(), "2.500000");
}

#[test]
fn arithmetic_agrees_with_a_server() {
    let show = |v: Option<Decimal>| v.map_or("NULL".to_owned(), |v| v.to_string());
    let mut wrong = Vec::new();
    for row in ARITH {
        let (a, b) = (d(row[0]), d(row[1]));
        let got = [
            show(a.add(&b).ok()),
            show(a.sub(&b).ok()),
            show(a.mul(&b).ok()),
            show(a.div(&b, 4).unwrap()),
            show(a.rem(&b)),
        ];
        for (i, got) in got.iter().enumerate() {
            if got != row[i + 2] {
                wrong.push(format!(
                    "{} {} {}: {} not {}",
                    row[0],
                    "+-*/%".as_bytes()[i] as char,
                    row[1],
                    got,
                    row[i + 2]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

#[test]
fn rounding_agrees_with_a_server() {
    for &(a, digits, round, truncate) in ROUNDS {
        // The functions pad with zeros as well, which is `rescale`.
        let pad = |v: Decimal| if digits > 0 { v.rescale(digits as u8) } else { v };
        assert_eq!(pad(d(a).round(digits)).to_string(), round, "round {a} {digits}");
        assert_eq!(pad(d(a).truncate(digits)).to_string(), truncate, "truncate {a} {digits}");
    }
    assert_eq!(d("-1.5").ceil().to_string(), "-1");
    assert_eq!(d("-1.5").floor().to_string(), "-2");
    assert_eq!(d("1.2").ceil().to_string(), "2");
}

#[test]
fn text_and_doubles_become_what_a_server_makes_of_them() {
    let cast = |v: Decimal, p, s| v.fit(p, s).map_or_else(|v| v, |(v, _)| v).to_string();
    for &(text, want) in CASTS {
        assert_eq!(cast(Decimal::parse(text.as_bytes()).value, 20, 5), want, "{text:?}");
    }
    for &(n, want) in DOUBLES {
        assert_eq!(cast(Decimal::from_f64(n).unwrap(), 30, 10), want, "{n}");
    }
}

#[test]
fn limits_hold() {
    let nines = "9".repeat(65);
    assert_eq!(d(&nines).to_string(), nines);
    assert_eq!(d(&nines), Decimal::max_value(65, 0, false));
    assert!(format!("1{nines}").parse::<Decimal>().is_err());
    assert!(d(&nines).add(&d("1")).is_err());
    assert!(d(&nines).mul(&d(&nines)).is_err());
    assert_eq!(d(&nines).fit(10, 2).unwrap_err().to_string(), "99999999.99");
    assert_eq!(d("123.455").fit(5, 2).unwrap().0.to_string(), "123.46");
    assert_eq!(d("9223372036854775807.5").to_i64(), Err(i64::MAX));
    assert_eq!(d("-0.4").to_u64(), Ok(0));
    assert_eq!(d("-0.5").to_u64(), Err(0));
    assert_eq!(std::mem::size_of::<Decimal>(), 32);
}

#[test]
fn binlog_bytes_are_the_documented_ones() {
    let bytes = |text: &str, p, s| {
        let mut out = Vec::new();
        d(text).to_binlog(p, s, &mut out);
        out
    };
    assert_eq!(bytes("1234567890.1234", 14, 4), [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2]);
    assert_eq!(bytes("-1234567890.1234", 14, 4), [0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d]);
    assert_eq!(binlog_size(65, 30), 30);
}

fn any_decimal() -> impl Strategy<Value = Decimal> {
    prop_oneof![
        (any::<i64>(), 0u8..=18).prop_map(|(n, s)| Decimal::from_i128(n.into(), s)),
        (any::<i128>(), 0u8..=26).prop_map(|(n, s)| Decimal::from_i128(n / 1000, s)),
        "-?[0-9]{1,35}(\\.[0-9]{1,30})?".prop_map(|s| d(&s)),
    ]
}

proptest! {
    #[test]
    fn text_and_binlog_round_trip(v in any_decimal()) {
        prop_assert_eq!(d(&v.to_string()), v);
        let mut out = Vec::new();
        v.to_binlog(65, v.scale(), &mut out);
        prop_assert_eq!(Decimal::from_binlog(65, v.scale(), &out).unwrap(), (v, out.len()));
    }

    #[test]
    fn columns_of_any_precision_round_trip(v in any_decimal(), p in 1u8..=65, s in 0u8..=30) {
        let s = s.min(p);
        let mut out = Vec::new();
        v.to_binlog(p, s, &mut out);
        let (read, len) = Decimal::from_binlog(p, s, &out).unwrap();
        let kept = v.fit(p, s).map_or_else(|clipped| clipped, |(kept, _)| kept);
        prop_assert_eq!((read, len, read.scale(), read.shown_scale()), (kept, out.len(), s, s));
        prop_assert!(!(read.is_zero() && read.is_negative()));
    }

    #[test]
    fn products_are_exact(a in any::<i64>(), b in any::<i64>(), x in 0u8..=18, y in 0u8..=18) {
        let product = Decimal::from_i128(a.into(), x).mul(&Decimal::from_i128(b.into(), y)).unwrap();
        let exact = i128::from(a) * i128::from(b);
        if x + y <= 30 {
            prop_assert_eq!((product, product.scale()), (Decimal::from_i128(exact, x + y), x + y));
        }
        prop_assert!(!(product.is_zero() && product.is_negative()));
    }

    #[test]
    fn order_is_the_order_of_binlog_bytes_and_sort_keys(a in any_decimal(), b in any_decimal()) {
        let sort = |v: &Decimal| { let mut out = Vec::new(); v.to_sort_key(&mut out); out };
        prop_assert_eq!(sort(&a).cmp(&sort(&b)), a.cmp(&b));
        let hash = |v: &Decimal| {
            let mut h = std::collections::hash_map::DefaultHasher::new();
            v.hash(&mut h);
            h.finish()
        };
        prop_assert!(a != b || hash(&a) == hash(&b));
    }

    #[test]
    fn arithmetic_is_consistent(a in any_decimal(), b in any_decimal()) {
        if let Ok(sum) = a.add(&b) && a.scale().max(b.scale()) == sum.scale() {
            prop_assert_eq!(sum.sub(&b).unwrap(), a);
        }
        if let Some(rest) = a.rem(&b) && let Some(times) = a.int_div(&b)
            && let Ok(product) = Decimal::from_i128(times, 0).mul(&b)
        {
            prop_assert!(rest.abs() < b.abs());
            if product.scale() == b.scale() {
                prop_assert_eq!(product.add(&rest).unwrap(), a);
            }
        }
    }

    #[test]
    fn decoders_and_parsers_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40), p in any::<u8>(), s in any::<u8>(), text in "[-+0-9.eE ]{0,120}") {
        let _ = Decimal::from_binlog(p, s, &bytes);
        let _ = Decimal::parse(text.as_bytes()).value.to_string();
    }
}
