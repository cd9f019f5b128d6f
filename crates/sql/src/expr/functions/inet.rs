//! Internet addresses as text, numbers and bytes.

use super::{Def, boolean, int_arg, str_arg, text, ty, value_arg};
use crate::error::{ExecResult, SqlResult};
use crate::expr::types::{BINARY, Family};
use crate::expr::{BindContext, Context, Expr, ExprType};
use omnibus_value::Value;
use omnibus_value::fixed::{parse_v4, parse_v6, write_v6};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const DEFS: &[Def] = &[
    Def::new("INET_ATON", 1, 1, |_, _| Ok(ExprType::ubigint().nullable(true)), inet_aton),
    Def::new("INET_NTOA", 1, 1, ty::ascii::<31>, inet_ntoa),
    Def::new("INET6_ATON", 1, 1, address_bytes, inet6_aton),
    Def::new("INET6_NTOA", 1, 1, ty::ascii::<39>, inet6_ntoa),
    Def::new("IS_IPV4", 1, 1, ty::boolean, |args, _, cx| is(args, cx, |text| parse_v4(text).is_some())),
    Def::new("IS_IPV6", 1, 1, ty::boolean, |args, _, cx| is(args, cx, |text| parse_v6(text).is_some())),
    Def::new("IS_IPV4_COMPAT", 1, 1, ty::boolean, |args, _, cx| {
        is(args, cx, |bytes| bytes.len() == 16 && bytes[..12] == [0; 12] && bytes[12..] > [0, 0, 0, 1][..])
    }),
    Def::new("IS_IPV4_MAPPED", 1, 1, ty::boolean, |args, _, cx| {
        is(args, cx, |bytes| bytes.len() == 16 && bytes[..10] == [0; 10] && bytes[10..12] == [0xff; 2])
    }),
];

fn address_bytes(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(16, BINARY).nullable(true))
}

/// NULL is no address.
fn is(args: &[Expr], cx: &mut Context<'_>, holds: impl FnOnce(&[u8]) -> bool) -> ExecResult<Value> {
    Ok(match args[0].eval_str(cx)? {
        None if !cx.session.settings.mariadb => Value::Null,
        bytes => boolean(bytes.is_some_and(|bytes| holds(&bytes))),
    })
}

fn inet_aton(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let parts: Option<Vec<u8>> =
        value.split(|b| *b == b'.').map(|p| std::str::from_utf8(p).ok()?.parse().ok()).collect();
    Ok(match parts.as_deref() {
        Some([a]) => Value::UInt(u64::from(*a)),
        Some([a, rest @ ..]) if rest.len() <= 3 => {
            let low = rest[..rest.len() - 1].iter().enumerate();
            let high = low.fold(u64::from(*a) << 24, |n, (i, b)| n | u64::from(*b) << (16 - 8 * i));
            Value::UInt(high | u64::from(rest[rest.len() - 1]))
        }
        _ => super::no_value("string", &args[0], "inet_aton", cx),
    })
}

fn inet_ntoa(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = int_arg!(args, 0, cx);
    Ok(match u32::try_from(value) {
        Ok(n) => text(Ipv4Addr::from(n).to_string()),
        Err(_) => super::no_value("integer", &args[0], "inet_ntoa", cx),
    })
}

fn inet6_aton(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = str_arg!(args, 0, cx);
    let address = parse_v4(&value).map(IpAddr::V4).or_else(|| parse_v6(&value).map(IpAddr::V6));
    Ok(match address {
        Some(IpAddr::V4(address)) => text(address.octets().to_vec()),
        Some(IpAddr::V6(address)) => text(address.octets().to_vec()),
        None => super::no_value("string", &args[0], "inet6_aton", cx),
    })
}

/// Only bytes are an address; text is none.
fn inet6_ntoa(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let bytes = args[0].to_str(&value);
    if args[0].ty.family() != Family::String || args[0].ty.column.collation != BINARY {
        return Ok(super::no_value("string", &args[0], "inet6_ntoa", cx));
    }
    if let Ok(octets) = <[u8; 4]>::try_from(&bytes[..]) {
        return Ok(text(Ipv4Addr::from(octets).to_string()));
    }
    Ok(match <[u8; 16]>::try_from(&bytes[..]) {
        Ok(octets) => {
            let mut shown = Vec::new();
            write_v6(Ipv6Addr::from(octets), &mut shown);
            text(shown)
        }
        Err(_) => super::no_value("string", &args[0], "inet6_ntoa", cx),
    })
}
