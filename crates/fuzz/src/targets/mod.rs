//! One file per family of decoders.

mod compressed;
mod encryption;
mod events;
mod gtids;
mod json;
mod log_file;
mod login;
mod options;
mod packets;
mod rows;
mod state;
mod statement;

use crate::Target;

const fn of(name: &'static str, memory: usize, check: fn(&[u8])) -> Target {
    Target { name, check, memory }
}

/// The multiples are of what a decoded form takes beside its bytes: a tree node for a byte of JSON or SQL is the most.
pub(crate) const ALL: &[Target] = &[
    of("event", 400, events::body),
    of("event_stream", 400, log_file::stream),
    of("log_file", 400, log_file::file),
    of("log_index", 100, state::log_index),
    of("packet", 100, packets::any),
    of("parameters", 100, packets::parameters),
    of("login", 100, login::exchange),
    of("dump_request", 100, packets::dump_request),
    of("statement", 4000, statement::text),
    of("expression", 4000, statement::expression),
    of("options", 400, options::file),
    of("gtid_set", 400, gtids::mysql),
    of("gtid_list", 400, gtids::mariadb),
    of("json_text", 400, json::text),
    of("json_binary", 400, json::binary),
    of("json_diff", 400, json::diff),
    of("json_lines", 400, json::lines),
    of("rows", 400, rows::images),
    of("compressed", 2000, compressed::blocks),
    of("engine_state", 100, state::engine),
    of("redo", 100, state::redo),
    of("encrypted_header", 100, encryption::header),
    of("keyring", 400, encryption::keyring),
    of("encrypted_tables", 400, encryption::tables),
];
