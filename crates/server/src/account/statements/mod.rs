//! The statements about accounts: from a statement and the present table to the records that change, and to the text for the log. Pure, apart
//! from random salts; `SHOW` and the computed tables read the table.
//!
//! - `names` says which accounts a statement means. - `users`, `options` and `passwords`: CREATE USER and kin. - `grant` and `proxies`: GRANT and
//!   REVOKE. - `roles`: those of roles; `holders`: who has a role that changes. - `plan`: what a whole statement changes. - `show`,
//!   `show_mariadb` and `rows` print.

mod grant;
mod holders;
mod names;
mod options;
mod passwords;
mod plan;
mod proxies;
mod roles;
mod rows;
mod show;
pub mod show_mariadb;
mod users;

pub use names::resolve;
pub use plan::{By, password_hash, plan_users, with_hashes};
pub use roles::{RoleContext, choose};
pub use rows::{role_rows, system_rows};
pub use show::{privilege_rows, show_create_user, show_grants, with_own_roles};
pub use users::{NewPassword, SetPassword, set_password};
