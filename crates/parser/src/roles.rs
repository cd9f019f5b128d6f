//! CURRENT_ROLE of statements about accounts: a name in its place.
//!
//! A reader of the statement in a log has no role in force, or another one.

use crate::ParseOptions;
use crate::ast::{GrantWhat, Statement, UserName};
use crate::lexer::{Lexer, Tok, Token};
use omnibus_value::literal::write_name;

/// The accounts and roles of GRANT, REVOKE, CREATE ROLE and DROP ROLE that CURRENT_ROLE may stand for.
pub fn accounts_and_roles(statement: &mut Statement) -> Vec<&mut UserName> {
    fn with<'s>(
        what: &'s mut GrantWhat,
        users: impl Iterator<Item = &'s mut UserName>,
    ) -> Vec<&'s mut UserName> {
        let roles = match what {
            GrantWhat::Roles(roles) => &mut roles[..],
            _ => &mut [],
        };
        roles.iter_mut().chain(users).collect()
    }
    match statement {
        Statement::Grant(s) => with(&mut s.what, s.users.iter_mut().map(|spec| &mut spec.user)),
        Statement::Revoke(s) => with(&mut s.what, s.users.iter_mut()),
        Statement::CreateRole(s) => s.admin.iter_mut().collect(),
        Statement::DropRole { roles, .. } => roles.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// The text of such a statement with the role's name where it has CURRENT_ROLE.
#[must_use]
pub fn name_current_role(sql: &[u8], options: &ParseOptions, role: &str) -> Vec<u8> {
    let (mut out, mut copied) = (Vec::with_capacity(sql.len() + role.len()), 0);
    let mut lexer = Lexer::new(sql, 0, options);
    let text = |token: &Token| &sql[token.start as usize..token.end as usize];
    let mut token = lexer.next();
    while !matches!(token.kind, Tok::Eof | Tok::Invalid) {
        let current = token.kind == Tok::Word && text(&token).eq_ignore_ascii_case(b"CURRENT_ROLE");
        let start = token.start as usize;
        let mut end = token.end as usize;
        token = lexer.next();
        if !current {
            continue;
        }
        if token.kind == Tok::LParen {
            // The statement has been parsed: nothing is between the parentheses.
            end = lexer.next().end as usize;
            token = lexer.next();
        }
        out.extend_from_slice(&sql[copied..start]);
        write_name(role.as_bytes(), &mut out);
        copied = end;
    }
    out.extend_from_slice(&sql[copied..]);
    out
}
