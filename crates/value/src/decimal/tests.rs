//! Decimals against MySQL's documented results.
#![allow(clippy::unwrap_used)]
use super::*;

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
