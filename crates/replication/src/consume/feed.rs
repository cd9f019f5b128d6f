//! `Feed`: decodes events and calls a consumer.

use super::{Consumer, End, FilePosition};
use crate::changes::{ApplyError, ApplyTarget, EventDecoder, Position};
use crate::model::{RowsView, StatementView, TrxHeader};
use omnibus_format::RawEvent;
use omnibus_format::events::XaPrepare;

/// The reason why a feed stopped.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError<E> {
    /// The consumer's error.
    #[error("{0}")]
    Consumer(E),
    /// An event cannot be decoded, or reports lost events.
    #[error(transparent)]
    Event(#[from] ApplyError),
}

/// A stream of events and its consumer.
#[derive(Default)]
pub struct Feed<C> {
    decoder: EventDecoder,
    consumer: C,
}

impl<C: Consumer> Feed<C> {
    /// Creates a feed for a stream from its beginning: its first event describes the format.
    pub fn new(consumer: C) -> Feed<C> {
        Feed { decoder: EventDecoder::default(), consumer }
    }

    /// The consumer of the feed.
    pub fn consumer(&mut self) -> &mut C {
        &mut self.consumer
    }

    /// Ends the feed and returns the consumer.
    pub fn into_consumer(self) -> C {
        self.consumer
    }

    /// Returns whether a transaction has begun and not ended.
    pub fn in_transaction(&self) -> bool {
        self.decoder.in_transaction()
    }

    /// Takes the next event; `file` is the name of its file, if it is from one.
    ///
    /// # Errors
    /// The consumer's error, or damage. The feed may continue with the first event of a later transaction.
    pub fn event(&mut self, event: &RawEvent<'_>, file: Option<&str>) -> Result<(), ConsumeError<C::Error>> {
        let place = |offset| file.map(|file| FilePosition { file, offset });
        let (begin, end) = (place(event.offset), place(event.end()));
        let mut target = Delivery { consumer: &mut self.consumer, begin, end, failed: None };
        let result = self.decoder.apply(&event.header, event.body, &mut target, None);
        if let Some(error) = target.failed {
            self.decoder.reset();
            return Err(ConsumeError::Consumer(error));
        }
        if let Err(error) = result {
            if self.decoder.in_transaction() {
                self.consumer.undo().map_err(ConsumeError::Consumer)?;
            }
            self.decoder.reset();
            return Err(error.into());
        }
        Ok(())
    }
}

/// The consumer as the decoder's target, during one event.
struct Delivery<'a, C: Consumer> {
    consumer: &'a mut C,
    begin: Option<FilePosition<'a>>,
    end: Option<FilePosition<'a>>,
    failed: Option<C::Error>,
}

impl<C: Consumer> Delivery<'_, C> {
    /// Keeps the consumer's error, because the decoder has its own kind.
    fn keep(&mut self, result: Result<(), C::Error>) -> Result<(), ApplyError> {
        result.map_err(|error| {
            self.failed = Some(error);
            ApplyError::new(1105, "the consumer failed")
        })
    }
}

impl<C: Consumer> ApplyTarget for Delivery<'_, C> {
    type Ticket = ();

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        let result = self.consumer.begin(trx, self.begin);
        self.keep(result)
    }

    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError> {
        let result = self.consumer.statement(statement);
        self.keep(result)
    }

    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        let result = self.consumer.rows(rows);
        self.keep(result)
    }

    fn commit(&mut self, _: Option<&Position>) -> Result<(), ApplyError> {
        let result = self.consumer.end(End::Commit, self.end);
        self.keep(result)
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>, _: Option<&Position>) -> Result<(), ApplyError> {
        let result = self.consumer.end(End::Prepare(xid), self.end);
        self.keep(result)
    }

    fn rollback(&mut self) {
        let result = self.consumer.undo();
        // The decoder goes on; `Feed::event` looks at it behind the event.
        let _ = self.keep(result);
    }
}
