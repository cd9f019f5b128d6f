//! Amounts with a unit that suits them: FORMAT_BYTES, FORMAT_PICO_TIME.

use super::{Def, real_arg, text, ty};
use crate::error::ExecResult;
use crate::expr::{Context, Expr, ExprType};
use omnibus_value::Value;

pub(super) const DEFS: &[Def] = &[
    Def::new("FORMAT_BYTES", 1, 1, ty::ascii::<20>, format_bytes),
    Def::new("FORMAT_PICO_TIME", 1, 1, ty::ascii::<20>, format_pico_time),
];

/// Each with how many of the one before it is; the first is 1.
const BYTES: &[(&str, f64)] = &[
    ("bytes", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1024.0),
    ("GiB", 1024.0),
    ("TiB", 1024.0),
    ("PiB", 1024.0),
    ("EiB", 1024.0),
];
const TIMES: &[(&str, f64)] = &[
    ("ps", 1.0),
    ("ns", 1000.0),
    ("us", 1000.0),
    ("ms", 1000.0),
    ("s", 1000.0),
    ("min", 60.0),
    ("h", 60.0),
    ("d", 24.0),
];

/// As MySQL writes it: whole ones of the smallest unit in `width` places, two decimals of others, and an exponent for what is longer.
fn with_unit(amount: f64, units: &[(&str, f64)], width: usize) -> String {
    let (mut unit, mut rest) = (units[0].0, amount);
    for (larger, factor) in &units[1..] {
        if rest.abs() < *factor {
            break;
        }
        (unit, rest) = (larger, rest / factor);
    }
    if unit == units[0].0 {
        return format!("{:>width$} {unit}", rest.trunc());
    }
    if rest.abs() < 99_999.5 {
        return format!("{rest:.2} {unit}");
    }
    let short = format!("{rest:.2e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    format!("{digits}e+{exponent:0>2} {unit}")
}

fn format_bytes(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(with_unit(real_arg!(args, 0, cx), BYTES, 4)))
}

fn format_pico_time(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(with_unit(real_arg!(args, 0, cx), TIMES, 3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_mysqls_manual_has_them() {
        let bytes = |amount| with_unit(amount, BYTES, 4);
        assert_eq!(bytes(512.0), " 512 bytes");
        assert_eq!(bytes(18_446_644_073_709_551_615.0), "16.00 EiB");
        let time = |amount| with_unit(amount, TIMES, 3);
        assert_eq!(time(3501.0), "3.50 ns");
        assert_eq!(time(188_732_396_662_000.0), "3.15 min");
        assert_eq!(time(0.0), "  0 ps");
        assert_eq!(time(1e23), "1.16e+06 d");
    }
}
