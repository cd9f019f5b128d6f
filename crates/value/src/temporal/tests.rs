//! Temporal values against tables made with a real server (MariaDB 10.11 with `sql_mode=''`), less
//! the cases in which MySQL 8 is known to differ.
#![allow(clippy::unwrap_used)]
use super::tables::*;
use super::*;

fn shown(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

fn datetime(text: &str, fsp: u8) -> String {
    match parse_datetime(text.as_bytes(), fsp, DateMode::RELAXED) {
        Ok(p) => shown(|out| p.value.write_text(fsp, out)),
        Err(_) => "NULL".to_owned(),
    }
}

fn time(text: &str, fsp: u8) -> String {
    match parse_time(text.as_bytes(), fsp) {
        Ok(p) => shown(|out| p.value.write_text(fsp, out)),
        Err(TemporalError::OutOfRange { negative }) => {
            let clipped = if negative { Time::MIN } else { Time::MAX };
            shown(|out| clipped.write_text(fsp, out))
        }
        Err(_) => "NULL".to_owned(),
    }
}

#[test]
fn datetimes_read_like_a_server_reads_them() {
    let wrong: Vec<_> = DATETIMES
        .iter()
        .filter(|(text, micros, whole)| datetime(text, 6) != *micros || datetime(text, 0) != *whole)
        .map(|case| (case, datetime(case.0, 6), datetime(case.0, 0)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn times_read_like_a_server_reads_them() {
    let wrong: Vec<_> = TIMES
        .iter()
        .filter(|(text, micros, whole)| time(text, 6) != *micros || time(text, 0) != *whole)
        .map(|case| (case, time(case.0, 6), time(case.0, 0)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn mysql_differs_from_the_table_server_here() {
    assert_eq!(datetime("2020--01--02", 0), "2020-01-02 00:00:00");
    assert_eq!(datetime("2020.0102", 0), "2020-01-02 00:00:00");
    assert_eq!(datetime("9999-12-31 23:59:59.9999999", 6), "NULL");
    assert_eq!(time(".5", 6), "00:00:00.500000");
    assert_eq!(time("839:00:00", 6), "838:59:59.000000");
    assert_eq!(time("-838:59:59.5", 6), "-838:59:59.000000");
}

fn dt(text: &str) -> DateTime {
    parse_datetime(text.as_bytes(), 6, DateMode::RELAXED).unwrap().value
}

#[test]
fn intervals_add_like_a_server_adds_them() {
    for &(date, amount, unit, want) in SUMS {
        let unit = IntervalUnit::from_word(unit.as_bytes()).unwrap();
        let interval = match unit.is_compound() {
            true => Interval::parse(amount.as_bytes(), unit).unwrap(),
            false => Interval::of(amount.parse().unwrap(), unit).unwrap(),
        };
        let sum = dt(&format!("{date} 12:00:00")).add(interval);
        let got = sum.map_or("NULL".to_owned(), |v| shown(|out| v.write_text(6, out)));
        assert_eq!(got, want, "{date} + {amount} {unit:?}");
    }
}

#[test]
fn days_count_like_a_server_counts_them() {
    for &(date, days, weekday, of_year, last) in DAYS {
        let d = dt(date).date();
        assert_eq!(d.to_days(), Some(days), "{date}");
        assert_eq!(Date::from_days(days), Some(d));
        assert_eq!(d.weekday(), Some(weekday), "{date}");
        assert_eq!(d.day_of_year(), Some(of_year), "{date}");
        assert_eq!(shown(|out| d.last_day().unwrap().write_text(out)), last);
    }
    for &(from, to, want) in DIFFS {
        use IntervalUnit::{Day, Month, Second, Year};
        let got = [Month, Year, Day, Second].map(|u| dt(from).timestamp_diff(dt(to), u).unwrap());
        assert_eq!(got, want, "{from} {to}");
    }
}

#[test]
fn numbers_read_as_dates() {
    let read = |n| {
        let (value, _) = datetime_from_number(n, DateMode::RELAXED).ok()?;
        Some(shown(|out| value.write_text(0, out)))
    };
    assert_eq!(read(20200102).as_deref(), Some("2020-01-02 00:00:00"));
    assert_eq!(read(691231).as_deref(), Some("2069-12-31 00:00:00"));
    assert_eq!(read(700101).as_deref(), Some("1970-01-01 00:00:00"));
    assert_eq!(read(20200102030405).as_deref(), Some("2020-01-02 03:04:05"));
    assert_eq!(read(0).as_deref(), Some("0000-00-00 00:00:00"));
    assert_eq!((read(100), read(20201301), read(-1)), (None, None, None));
    assert_eq!(time_from_number(-10203, 0).unwrap(), Time::new(true, 1, 2, 3, 0).unwrap());
    assert!(time_from_number(8390000, 0).is_err());
    assert_eq!(parse_year(b"0").unwrap().value, 2000);
    assert_eq!(parse_year(b"0000").unwrap().value, 0);
    assert_eq!(year_from_number(70), Ok(1970));
    assert!(year_from_number(1900).is_err());
}

#[test]
fn sql_mode_decides_about_zero_and_impossible_dates() {
    let invalid = DateMode { allow_invalid: true, ..DateMode::RELAXED };
    let no_zero_in = DateMode { no_zero_in_date: true, ..DateMode::RELAXED };
    for (text, relaxed, strict, invalid_ok, no_zero_in_ok) in [
        ("0000-00-00", true, false, true, true),
        ("2020-00-01", true, false, true, false),
        ("2020-02-30", false, false, true, false),
        ("2020-02-29", true, true, true, true),
        ("0000-00-00 10:00:00", true, false, true, false),
    ] {
        let ok = |mode| parse_datetime(text.as_bytes(), 0, mode).is_ok();
        assert_eq!(ok(DateMode::RELAXED), relaxed, "{text}");
        assert_eq!(ok(DateMode::STRICT), strict, "{text}");
        assert_eq!(ok(invalid), invalid_ok, "{text}");
        assert_eq!(ok(no_zero_in), no_zero_in_ok, "{text}");
    }
}

#[test]
fn zones_shift_timestamps_and_refuse_what_they_cannot_hold() {
    let zone = Zone::by_name("+05:30").unwrap();
    let local = dt("2020-01-01 03:00:00.5");
    let utc = local.local_to_timestamp(zone).unwrap();
    assert_eq!(utc, dt("2019-12-31 21:30:00.5"));
    assert_eq!(utc.utc_to_local(zone), Some(local));
    assert_eq!(dt("1970-01-01 00:00:00").local_to_timestamp(UTC), None);
    assert_eq!(dt("2038-01-19 03:14:08").local_to_timestamp(UTC), None);
    assert_eq!(Zone::parse_offset(b"+14:01"), None);
    let parsed = parse_datetime(b"2020-01-01 00:00:00-02:00", 0, DateMode::STRICT).unwrap();
    assert_eq!((parsed.offset, parsed.truncated), (Some(-7200), false));
}

#[test]
fn zones_of_the_machine_have_gaps_and_overlaps() {
    assert_eq!(Zone::by_name("utc"), Some(UTC));
    assert_eq!(Zone::by_name("Nowhere/At_all"), None);
    assert_eq!(Zone::by_name("../zoneinfo/Europe/Berlin"), None);
    if Zone::no_files() {
        return;
    }
    let berlin = Zone::by_name("EUROPE/berlin").unwrap();
    assert_eq!(Zone::by_name("Europe/Berlin"), Some(berlin));
    assert_eq!(format!("{berlin:?}"), "Europe/Berlin");
    assert_eq!(Zone::by_name("Etc/GMT+3"), Some(Zone::Offset(-3 * 3600)));
    let at = |text: &str| dt(text).instant(berlin);
    assert_eq!(at("2024-03-31 01:59:59"), Some(Instant::Once(1_711_846_799)));
    assert_eq!(at("2024-03-31 02:00:00"), Some(Instant::Never(1_711_846_800)));
    assert_eq!(at("2024-03-31 02:59:59"), Some(Instant::Never(1_711_846_800)));
    assert_eq!(at("2024-03-31 03:00:00"), Some(Instant::Once(1_711_846_800)));
    assert_eq!(at("2024-10-27 01:59:59"), Some(Instant::Once(1_729_987_199)));
    assert_eq!(at("2024-10-27 02:00:00"), Some(Instant::Twice(1_729_987_200, 1_729_990_800)));
    assert_eq!(at("2024-10-27 02:59:59"), Some(Instant::Twice(1_729_990_799, 1_729_994_399)));
    assert_eq!(at("2024-10-27 03:00:00"), Some(Instant::Once(1_729_994_400)));
    // A moment comes back from what clocks show the second time.
    let second = DateTime::from_unix(1_729_990_800, 5).unwrap();
    let shown = second.utc_to_local(berlin).unwrap();
    assert_eq!(shown, dt("2024-10-27 02:00:00.000005"));
    assert_eq!((shown.time().to_micros(), shown.micros(), shown.packed() & 1 << 23), (7_200_000_005, 5, 0));
    assert_eq!(shown.local_to_timestamp(berlin), Some(second));
    assert_eq!(shown.fields().local_to_timestamp(berlin), DateTime::from_unix(1_729_987_200, 5));
    // Beyond the file's own changes its rule goes on.
    assert_eq!(at("2037-07-01 00:00:00"), Some(Instant::Once(2_130_012_000)));
    assert_eq!(at("0001-01-01 00:00:00").map(Instant::unix), Some(-62_135_600_008));
}

#[test]
fn binlog_bytes_are_the_documented_ones() {
    let bytes = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let d = dt("2020-01-02 03:04:05.123456");
    assert_eq!(bytes(&|o| d.date().to_binlog(o)), [0x22, 0xc8, 0x0f]);
    assert_eq!(bytes(&|o| d.to_binlog(0, o)), [0x99, 0xa5, 0x44, 0x31, 0x05]);
    assert_eq!(bytes(&|o| d.to_binlog(6, o))[5..], [0x01, 0xe2, 0x40]);
    assert_eq!(bytes(&|o| d.to_binlog_timestamp(0, o)), 1577934245u32.to_be_bytes());
    let minus = Time::new(true, 0, 0, 1, 500_000).unwrap();
    assert_eq!(bytes(&|o| minus.to_binlog(2, o)), [0x7f, 0xff, 0xfe, 0xce]);
    assert_eq!(bytes(&|o| Time::ZERO.to_binlog(0, o)), [0x80, 0, 0]);
}

use proptest::prelude::*;

proptest! {
    #[test]
    fn binlog_round_trips(us in 86_400_000_000i64..315_569_433_600_000_000, t in -3_020_399_000_000i64..3_020_399_000_000, fsp in 0u8..=6) {
        let value = DateTime::from_micros(us).unwrap();
        let value = value.truncate(fsp);
        let mut out = Vec::new();
        value.to_binlog(fsp, &mut out);
        prop_assert_eq!(datetime_from_binlog(fsp, &out), Ok((value, out.len())));
        let text = shown(|out| value.write_text(fsp, out));
        prop_assert_eq!(parse_datetime(text.as_bytes(), fsp, DateMode::STRICT).unwrap().value, value);
        prop_assert_eq!(DateTime::from_packed(value.packed()), Some(value));
        let time = Time::from_micros(t).unwrap().truncate(fsp);
        let mut out = Vec::new();
        time.to_binlog(fsp, &mut out);
        prop_assert_eq!(time_from_binlog(fsp, &out), Ok((time, out.len())));
        let text = shown(|out| time.write_text(fsp, out));
        prop_assert_eq!(parse_time(text.as_bytes(), fsp).unwrap().value, time);
    }

    #[test]
    fn decoders_and_parsers_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..12), text in "[-0-9:. T+eE]{0,24}", fsp in any::<u8>()) {
        let _ = datetime_from_binlog(fsp, &bytes);
        let _ = timestamp_from_binlog(fsp, &bytes);
        let _ = time_from_binlog(fsp, &bytes);
        let _ = date_from_binlog(&bytes);
        let _ = old_datetime_from_binlog(&bytes);
        let _ = old_time_from_binlog(&bytes);
        let _ = parse_datetime(text.as_bytes(), fsp, DateMode::RELAXED);
        let _ = parse_time(text.as_bytes(), fsp);
        let _ = parse_year(text.as_bytes());
        let _ = Interval::parse(text.as_bytes(), IntervalUnit::DayMicrosecond);
    }

    #[test]
    fn every_day_number_is_one_date(n in 1i64..=3_652_424) {
        let date = Date::from_days(n).unwrap();
        prop_assert_eq!(date.to_days(), Some(n));
        prop_assert!(date.check(DateMode::STRICT).is_ok());
    }
}
