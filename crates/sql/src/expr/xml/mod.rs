//! XML in texts: EXTRACTVALUE and UPDATEXML find parts of it by XPath.
//!
//! The reader is as lenient as MySQL's, which no library is: a tag closes whatever is open, references (`&lt;`) stay as they
//! are, text may stand outside of the root. `document` has the nodes as places in the text, `path` the syntax of XPath, `eval`
//! what a path finds.

mod document;
mod eval;
mod path;

pub use document::{BadDocument, Document, Kind, Node};
pub use eval::{XPathValue, find};
pub use path::Path;
