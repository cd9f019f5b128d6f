//! Doubles and floats as text, with or without a fixed number of decimals.

use super::types::NOT_FIXED;

/// A DOUBLE with `decimals` digits, or its shortest form if that is `NOT_FIXED`.
pub fn double(n: f64, decimals: u8, out: &mut Vec<u8>) {
    if decimals < NOT_FIXED {
        omnibus_value::text::write_f64_fixed(n, decimals, out);
    } else {
        omnibus_value::text::write_f64(n, out);
    }
}

/// A FLOAT, as [`double`].
pub fn float(n: f32, decimals: u8, out: &mut Vec<u8>) {
    if decimals < NOT_FIXED {
        double(f64::from(n), decimals, out);
    } else {
        omnibus_value::text::write_f32(n, out);
    }
}
