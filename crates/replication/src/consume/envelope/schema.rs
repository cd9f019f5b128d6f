//! The fields of a table's columns in Debezium's schemas.

use super::kind::Kind;
use super::value::put_value;
use super::{BLOCK, EnvelopeError, SOURCE, Topic, full_name};
use crate::consume::json_value::Line;
use crate::model::TableView;
use omnibus_value::Value;

/// The columns of a table, and the schemas of its messages.
pub(super) struct Columns<'t> {
    pub view: &'t dyn TableView,
    pub database: String,
    pub table: String,
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// The numbers of the primary key's columns.
    pub key: Vec<usize>,
    pub key_schema: String,
    pub envelope_schema: String,
}

impl Columns<'_> {
    pub fn name(&self) -> String {
        full_name(self.view)
    }

    pub fn topic(&self) -> Topic {
        Topic::Table(self.database.clone(), self.table.clone())
    }

    pub fn put(&self, line: &mut Line, values: &[Value]) {
        for (at, value) in values.iter().enumerate() {
            self.put_one(line, at, value);
        }
    }

    pub fn put_key(&self, line: &mut Line, values: &[Value]) {
        for &at in &self.key {
            self.put_one(line, at, &values[at]);
        }
    }

    fn put_one(&self, line: &mut Line, at: usize, value: &Value) {
        let field = self.view.columns()[at];
        line.key(&self.names[at]);
        put_value(line, value, self.kinds[at], field, self.view.metadata(at));
    }

    /// Returns the list of fields of these columns.
    fn fields(&self, columns: &[usize]) -> String {
        let mut line = Line::default();
        line.open('[');
        for &at in columns {
            line.element().open('{');
            self.kinds[at].put(&mut line, self.view.metadata(at), self.view.nullable(at));
            line.key("field").text(&self.names[at]);
            line.close('}');
        }
        line.close(']');
        line.text_of()
    }
}

/// Derives the columns and schemas of a table.
pub(super) fn fields_of<'t>(source: &str, view: &'t dyn TableView) -> Result<Columns<'t>, EnvelopeError> {
    let count = view.columns().len();
    let mut names = Vec::with_capacity(count);
    for at in 0..count {
        let name = view.metadata(at).name.as_ref().ok_or_else(|| EnvelopeError::NoNames(full_name(view)))?;
        names.push(String::from_utf8_lossy(name).into_owned());
    }
    let kinds =
        view.columns().iter().enumerate().map(|(at, field)| Kind::of(*field, view.metadata(at))).collect();
    let key = view.primary_key().iter().map(|part| part.column as usize).filter(|at| *at < count).collect();
    let database = String::from_utf8_lossy(view.database()).into_owned();
    let table = String::from_utf8_lossy(view.name()).into_owned();
    let mut columns = Columns {
        view,
        names,
        kinds,
        key,
        key_schema: String::new(),
        envelope_schema: String::new(),
        database,
        table,
    };
    let name = format!("{source}.{}", full_name(view));
    let all: Vec<usize> = (0..count).collect();
    let fields = columns.fields(&all);
    let image = |field: &str| {
        format!(
            r#"{{"type":"struct","fields":{fields},"optional":true,"name":{},"field":"{field}"}}"#,
            quoted(&format!("{name}.Value"))
        )
    };
    columns.envelope_schema = format!(
        r#"{{"type":"struct","fields":[{},{},{SOURCE},{BLOCK},{{"type":"string","optional":false,"field":"op"}},{{"type":"int64","optional":true,"field":"ts_ms"}}],"optional":false,"name":{},"version":2}}"#,
        image("before"),
        image("after"),
        quoted(&format!("{name}.Envelope")),
    );
    columns.key_schema = format!(
        r#"{{"type":"struct","fields":{},"optional":false,"name":{}}}"#,
        columns.fields(&columns.key),
        quoted(&format!("{name}.Key")),
    );
    Ok(columns)
}

/// Returns `text` as a JSON string.
fn quoted(text: &str) -> String {
    let mut line = Line::default();
    line.text(text);
    line.text_of()
}
