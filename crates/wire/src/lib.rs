//! The MySQL client/server protocol as pure functions between bytes and structs, both directions.
//!
//! Not here: sockets, TLS, sessions, the meaning of a statement. Everything is a decoder over a
//! byte slice (bounds-checked, never panics on what a peer sent) or an encoder that appends to one
//! reusable output buffer, so that a whole reply leaves in one write.
//!
//! - WIRE-1 No input makes a decoder panic, loop, or allocate more than a small multiple of its size.
//! - WIRE-2 Rolling an output buffer back to a mark restores its bytes and its sequence number, so an
//!   interrupted statement leaves no trace in the reply.
//!
//! Called by the server's connection tasks and by the replication threads; holds no global state.

pub mod auth;
pub mod binary_row;
pub mod buf;
pub mod column;
pub mod command;
pub mod compressed;
pub mod consts;
pub mod frame;
pub mod greeting;
pub mod login;
mod param_value;
pub mod reply;
pub mod session_state;
pub mod stmt;
pub mod text_row;
mod value_text;

pub use buf::{DecodeError, Reader};
pub use column::ColumnDef;
pub use command::Command;
pub use consts::{Capability, FieldType, Status};
pub use frame::{FrameError, InBuf, MAX_FRAME, OutBuf, OutMark};
pub use greeting::Greeting;
pub use login::{Login, LoginPacket};
pub use reply::{ErrPacket, OkPacket};
