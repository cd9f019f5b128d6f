//! Wall-clock time and the system's time zone. The only place of this crate that asks the C library.

/// Microseconds since the epoch.
#[must_use]
pub fn now_us() -> i64 {
    i64::try_from(omnibus_log::now_us()).unwrap_or(i64::MAX)
}

fn local(unix: i64) -> Option<libc::tm> {
    // SAFETY: `tm` is plain data for which all zeros is a valid value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    let time = unix as libc::time_t;
    // SAFETY: both pointers are to live, properly typed locals; the function is the re-entrant form.
    let done = unsafe { libc::localtime_r(&raw const time, &raw mut tm) };
    (!done.is_null()).then_some(tm)
}

/// The system zone's present offset from UTC, in seconds.
#[must_use]
pub fn system_offset() -> i32 {
    local(now_us() / 1_000_000).map_or(0, |tm| tm.tm_gmtoff as i32)
}

/// The system zone's short name, such as `CET`.
#[must_use]
pub fn system_zone_name() -> String {
    let Some(tm) = local(now_us() / 1_000_000) else { return "UTC".into() };
    if tm.tm_zone.is_null() {
        return "UTC".into();
    }
    // SAFETY: localtime_r points tm_zone to a NUL-terminated string of static lifetime.
    let name = unsafe { std::ffi::CStr::from_ptr(tm.tm_zone) };
    name.to_string_lossy().into_owned()
}

/// The offset that a `time_zone` value means: `SYSTEM`, `UTC`, or `+hh:mm`. Named zones need tables that
/// are not there.
#[must_use]
pub fn zone_offset(name: &str) -> Option<i32> {
    match name.to_ascii_lowercase().as_str() {
        "system" => Some(system_offset()),
        "utc" | "etc/utc" | "gmt" => Some(0),
        _ => omnibus_value::temporal::FixedOffset::parse(name.as_bytes()).map(|o| o.seconds),
    }
}

/// `261121 20:02:31` in the system's zone, as Last_IO_Error_Timestamp has it.
#[must_use]
pub fn compact_stamp(us: i64) -> String {
    local(us / 1_000_000).map_or_else(String::new, |tm| {
        let (year, month) = (tm.tm_year % 100, tm.tm_mon + 1);
        format!("{year:02}{month:02}{:02} {:02}:{:02}:{:02}", tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec)
    })
}

/// `2026-11-21 20:02:31`, UTC.
#[must_use]
pub fn utc_text(unix: i64) -> String {
    let mut out = Vec::new();
    if let Some(t) = omnibus_value::temporal::DateTime::from_unix(unix, 0) {
        t.write_text(0, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}
