//! Stored programs: procedures, functions and triggers, from their trees to what they do.
//!
//! `compile` makes a list of instructions of a body, `check` refuses what a function or a trigger may not do. `machine` is a
//! program that runs: its frames, scopes and handlers. `run` is the interpreter, an `Execution` made where a call begins: each statement of a
//! body goes through the session's own entry, as if a client had sent it, with the program's variables in `state`. What only the server can
//! run (SET of system variables, accounts) suspends a procedure with [`crate::Interrupt::Server`] and goes on with its
//! result. `function` runs a program inside a statement, on a session of its own that has the caller's transaction and state for that time.
//! `conditions` is SIGNAL, RESIGNAL and GET DIAGNOSTICS, which exist outside of programs, too. `define` is CREATE, ALTER and DROP, `event` the same
//! of events, `show` their SHOW. `call` gives a procedure its arguments and takes results, `cursor` reads rows for FETCH, `trigger` runs what a row fires.
//!
//! A procedure runs where it may block, so each of its statements waits and reruns by itself. A statement that calls a
//! function or fires a trigger moves to such a thread before it does so.

mod call;
mod check;
mod compile;
pub(super) mod conditions;
mod cursor;
mod define;
pub(super) mod event;
mod function;
mod machine;
mod run;
pub(super) mod show;
mod trigger;

pub(crate) use call::takes_call;
use compile::Compiled;
pub(crate) use define::ProgramDdl;
pub(crate) use function::Interpreter;
pub(crate) use machine::Machine;
pub(crate) use run::Execution;
