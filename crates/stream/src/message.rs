//! Changes as messages, in either form; each is told which transaction it is of.

use omnibus_format::RawEvent;
use omnibus_replication::consume::{
    ConsumeError, Consumer, End, Envelopes, Feed, FilePosition, JsonLines, Topic,
};
use omnibus_replication::model::{RowsView, StatementView, TrxHeader};

/// The form of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A message is one of our JSON lines (docs/use/json.md), all on one topic.
    #[default]
    Json,
    /// A message is a row, as Debezium's connector for MySQL makes it, with its schema; a topic for each table.
    Debezium,
}

/// A message on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The topic behind the stream's name; empty for the name itself.
    pub topic: String,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    /// The transaction: its GTID, or where it begins.
    pub transaction: String,
    /// Its number there, from 0.
    pub number: u64,
    /// The number of messages, in the last one of a transaction.
    pub count: Option<u64>,
}

/// Turns a log's events into messages.
pub(crate) struct Messages {
    feed: Feed<Sink>,
}

/// Collects messages from the feed.
struct Sink {
    form: FormSink,
    ready: Vec<Message>,
    bytes: usize,
    transaction: String,
    number: u64,
    /// The position of the next transaction, after one has ended.
    ended: Option<(String, u64)>,
}

/// Topic, key, value.
type Made = (String, Option<Vec<u8>>, Option<Vec<u8>>);

enum FormSink {
    Json(Box<JsonLines<Vec<u8>>>),
    Debezium(Box<Envelopes>),
}

impl Messages {
    pub fn new(form: Form, name: &str) -> Messages {
        let form = match form {
            Form::Json => FormSink::Json(Box::new(JsonLines::new(Vec::new()))),
            Form::Debezium => FormSink::Debezium(Box::new(Envelopes::new(name))),
        };
        let (ready, transaction) = (Vec::new(), String::new());
        Messages { feed: Feed::new(Sink { form, ready, bytes: 0, transaction, number: 0, ended: None }) }
    }

    /// Takes the next event of `file`.
    pub fn event(&mut self, event: &RawEvent<'_>, file: &str) -> Result<(), String> {
        self.feed.event(event, Some(file)).map_err(|error| match error {
            ConsumeError::Consumer(what) => what,
            other => other.to_string(),
        })
    }

    /// Bytes of the messages that wait.
    pub fn bytes(&mut self) -> usize {
        self.feed.consumer().bytes
    }

    /// Returns whether a transaction has ended since messages were taken last.
    pub fn has_ended(&mut self) -> bool {
        self.feed.consumer().ended.is_some()
    }

    /// The messages that wait, and the place behind the last transaction that ended since this was last asked.
    pub fn take(&mut self) -> (Vec<Message>, Option<(String, u64)>) {
        let sink = self.feed.consumer();
        sink.bytes = 0;
        (std::mem::take(&mut sink.ready), sink.ended.take())
    }
}

impl Sink {
    /// Makes messages of what the form has collected.
    fn collect(&mut self) {
        let made: Vec<Made> = match &mut self.form {
            FormSink::Json(lines) => {
                let text = std::mem::take(lines.out());
                let key = self.transaction.clone().into_bytes();
                text.split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(|line| (String::new(), Some(key.clone()), Some(line.to_vec())))
                    .collect()
            }
            FormSink::Debezium(envelopes) => (envelopes.take().into_iter())
                .map(|envelope| (topic(&envelope.topic), envelope.key, envelope.value))
                .collect(),
        };
        for (topic, key, value) in made {
            self.bytes +=
                100 + topic.len() + [&key, &value].into_iter().flatten().map(Vec::len).sum::<usize>();
            let (transaction, number) = (self.transaction.clone(), self.number);
            self.ready.push(Message { topic, key, value, transaction, number, count: None });
            self.number += 1;
        }
    }

    fn each<T>(
        &mut self,
        json: impl FnOnce(&mut JsonLines<Vec<u8>>) -> std::io::Result<T>,
        envelopes: impl FnOnce(&mut Envelopes) -> Result<T, omnibus_replication::consume::EnvelopeError>,
    ) -> Result<(), String> {
        match &mut self.form {
            FormSink::Json(lines) => json(lines).map(drop).map_err(|error| error.to_string())?,
            FormSink::Debezium(sink) => envelopes(sink).map(drop).map_err(|error| error.to_string())?,
        }
        self.collect();
        Ok(())
    }
}

impl Consumer for Sink {
    type Error = String;

    fn begin(&mut self, trx: &TrxHeader, place: Option<FilePosition<'_>>) -> Result<(), String> {
        self.number = 0;
        self.transaction = match (&trx.gtid, place) {
            (Some(gtid), _) => gtid.to_string(),
            (None, Some(at)) => format!("{}:{}", at.file, at.offset),
            (None, None) => String::new(),
        };
        self.each(|lines| lines.begin(trx, place), |envelopes| envelopes.begin(trx, place))
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), String> {
        self.each(|lines| lines.statement(statement), |envelopes| envelopes.statement(statement))
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), String> {
        self.each(|lines| lines.rows(rows), |envelopes| envelopes.rows(rows))
    }

    fn end(&mut self, end: End<'_>, place: Option<FilePosition<'_>>) -> Result<(), String> {
        self.each(|lines| lines.end(end, place), |envelopes| envelopes.end(end, place))?;
        if let Some(last) = self.ready.last_mut() {
            last.count = Some(self.number);
        }
        self.ended = place.map(|at| (at.file.to_owned(), at.offset));
        Ok(())
    }

    fn undo(&mut self) -> Result<(), String> {
        self.each(Consumer::undo, Consumer::undo)
    }
}

/// The part of the topic behind the stream's name.
fn topic(topic: &Topic) -> String {
    match topic {
        Topic::Table(database, table) => format!("{}.{}", plain(database), plain(table)),
        Topic::Definitions => String::new(),
        Topic::Transactions => "transaction".to_owned(),
    }
}

/// Without what names of topics may not have.
fn plain(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().map(allowed).collect()
}
