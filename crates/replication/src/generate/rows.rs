//! `RowsBuilder`: collects rows of one table and kind into events of bounded size.
//!
//! The event under construction stays here until the next row does not fit, another table or
//! kind follows, or the statement ends: only then is it known whether it is the last (STMT_END).
//! A table change ends the group (STMT_END, new TABLE_MAP) because a reader opens its tables at
//! the first rows event and takes no further TABLE_MAP before the group ends.

use std::sync::Arc;

use omnibus_format::events::{
    OptionalMetadata, ROWS_FLAG_NO_FOREIGN_KEY_CHECKS, ROWS_FLAG_RELAXED_UNIQUE_CHECKS, ROWS_FLAG_STMT_END,
    RowsKind, RowsQuery, put_rows_header,
};
use omnibus_format::header::FLAG_IGNORABLE;
use omnibus_format::row::{Bitmap, project};
use omnibus_format::{DecodeError, EventType, private};

use super::sink::EventSink;
use super::table::TableDef;

/// `binlog_row_image`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowImageMode {
    /// All columns before and after.
    #[default]
    Full,
    /// Before: the key. After: the columns that changed.
    Minimal,
    /// As FULL, less BLOBs that neither changed nor belong to the key.
    NoBlob,
}

/// Session settings that shape row events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsOptions {
    /// `binlog_row_image`.
    pub image: RowImageMode,
    /// `binlog_row_metadata`.
    pub metadata: OptionalMetadata,
    /// `binlog_row_event_max_size` in bytes: only an event's first row may exceed it.
    pub max_event_size: usize,
    /// `binlog_rows_query_log_events`.
    pub rows_query: bool,
    /// `foreign_key_checks=0`.
    pub no_foreign_key_checks: bool,
    /// `unique_checks=0`.
    pub relaxed_unique_checks: bool,
}

impl Default for RowsOptions {
    fn default() -> Self {
        Self {
            image: RowImageMode::Full,
            metadata: OptionalMetadata::Minimal,
            max_event_size: 8192,
            rows_query: false,
            no_foreign_key_checks: false,
            relaxed_unique_checks: false,
        }
    }
}

/// The reason why a row could not be turned into events.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError<E> {
    /// The sink's own error.
    #[error(transparent)]
    Sink(#[from] E),
    /// The image is not a row of the table: a bug in the caller, or a damaged engine.
    #[error("row image does not match its table")]
    BadImage(DecodeError),
}

/// Builds row events; see the module.
#[derive(Debug, Default)]
pub struct RowsBuilder {
    options: RowsOptions,
    /// Table whose TABLE_MAP was sent and whose group is open.
    table: Option<Arc<TableDef>>,
    kind: Option<RowsKind>,
    /// Whether the rows to come change because of a foreign key, and whether those of the event under construction do.
    unchecked: bool,
    event_unchecked: bool,
    /// Body of the event under construction; empty when there is none.
    body: Vec<u8>,
    /// Hidden row ids of its rows, when the table has them.
    row_ids: Vec<u64>,
    /// Columns of its images; compared to decide whether a row fits.
    before: Bitmap,
    after: Bitmap,
    /// Bitmaps of the row being added.
    next_before: Bitmap,
    next_after: Bitmap,
    query: Vec<u8>,
    scratch: Vec<u8>,
}

const FLAGS_AT: usize = 6;

impl RowsBuilder {
    /// Creates a builder with these settings.
    pub fn new(options: RowsOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Changes the settings; takes effect with the next statement.
    pub fn set_options(&mut self, options: RowsOptions) {
        self.options = options;
    }

    /// Marks the following rows as changes for a foreign key, which replicas do not check again. In effect until it is
    /// changed.
    pub fn set_unchecked(&mut self, unchecked: bool) {
        self.unchecked = unchecked;
    }

    /// Begins a statement; `sql` is sent ahead of its rows when ROWS_QUERY events are on.
    pub fn begin_statement(&mut self, sql: &[u8]) {
        self.discard();
        if self.options.rows_query {
            self.query.extend_from_slice(sql);
        }
    }

    /// Discards the statement under construction. The caller must remove the events that the sink has already.
    pub fn discard(&mut self) {
        self.table = None;
        self.kind = None;
        self.body.clear();
        self.row_ids.clear();
        self.query.clear();
    }

    /// Returns whether rows wait to be sent or a group waits for its end.
    pub fn is_open(&self) -> bool {
        self.table.is_some()
    }

    /// Adds an inserted row. `row_id` is its hidden row id, for tables without a key.
    ///
    /// # Errors
    /// The sink's error, or the image does not fit the table.
    pub fn write<S: EventSink>(
        &mut self,
        sink: &mut S,
        table: &Arc<TableDef>,
        after: &[u8],
        row_id: Option<u64>,
    ) -> Result<(), GenerateError<S::Error>> {
        // An insert needs every column: what is left out would get the replica's default.
        self.next_before.reset(0);
        self.next_after.clone_from(table.all());
        self.row(sink, table, RowsKind::Write, None, Some(after), row_id)
    }

    /// Adds a changed row. Unchanged rows (`before == after`) must not be passed.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn update<S: EventSink>(
        &mut self,
        sink: &mut S,
        table: &Arc<TableDef>,
        before: &[u8],
        after: &[u8],
        row_id: Option<u64>,
    ) -> Result<(), GenerateError<S::Error>> {
        self.choose_before(table);
        self.choose_after(table, before, after).map_err(GenerateError::BadImage)?;
        self.row(sink, table, RowsKind::Update, Some(before), Some(after), row_id)
    }

    /// Adds a deleted row.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn delete<S: EventSink>(
        &mut self,
        sink: &mut S,
        table: &Arc<TableDef>,
        before: &[u8],
        row_id: Option<u64>,
    ) -> Result<(), GenerateError<S::Error>> {
        self.choose_before(table);
        self.next_after.reset(0);
        self.row(sink, table, RowsKind::Delete, Some(before), None, row_id)
    }

    /// Sends the remaining rows, with STMT_END.
    ///
    /// # Errors
    /// The sink's error.
    pub fn end_statement<S: EventSink>(&mut self, sink: &mut S) -> Result<(), GenerateError<S::Error>> {
        self.end_group(sink)?;
        self.query.clear();
        Ok(())
    }

    fn choose_before(&mut self, table: &TableDef) {
        self.next_before.clone_from(match self.options.image {
            RowImageMode::Full => table.all(),
            RowImageMode::Minimal => table.key(),
            RowImageMode::NoBlob => table.without_blobs(),
        });
    }

    /// Chooses the columns of an update's after image.
    fn choose_after(&mut self, table: &TableDef, before: &[u8], after: &[u8]) -> Result<(), DecodeError> {
        let image = self.options.image;
        if image == RowImageMode::Full || image == RowImageMode::NoBlob && !table.has_blobs() {
            self.next_after.clone_from(table.all());
            return Ok(());
        }
        self.next_after.reset(table.shape().len());
        let (mut old, mut new) = (Walk::new(table, before), Walk::new(table, after));
        for (i, column) in table.shape().columns().iter().enumerate() {
            let changed = old.next()? != new.next()?;
            if changed || image == RowImageMode::NoBlob && !column.field.is_blob() {
                self.next_after.set(i);
            }
        }
        Ok(())
    }

    fn row<S: EventSink>(
        &mut self,
        sink: &mut S,
        table: &Arc<TableDef>,
        kind: RowsKind,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
        row_id: Option<u64>,
    ) -> Result<(), GenerateError<S::Error>> {
        let same_table = self.table.as_ref().is_some_and(|open| Arc::ptr_eq(open, table));
        if !same_table {
            self.end_group(sink)?;
            self.open_table(sink, table)?;
        }
        let extra = before.map_or(0, <[u8]>::len) + after.map_or(0, <[u8]>::len);
        let fits = self.kind == Some(kind)
            && self.event_unchecked == self.unchecked
            && self.body.len() + extra <= self.options.max_event_size
            && self.before == self.next_before
            && self.after == self.next_after
            && row_id.is_some() != self.row_ids.is_empty();
        if !fits {
            self.flush(sink, false)?;
            self.open_event(table, kind);
        }
        let rollback = self.body.len();
        for (image, bits) in [(before, &self.before), (after, &self.after)] {
            let Some(image) = image else { continue };
            if bits == table.all() {
                self.body.extend_from_slice(image);
            } else if let Err(error) = project(table.shape(), image, bits.as_bytes(), &mut self.body) {
                self.body.truncate(rollback);
                return Err(GenerateError::BadImage(error));
            }
        }
        self.row_ids.extend(row_id);
        Ok(())
    }

    fn open_table<S: EventSink>(
        &mut self,
        sink: &mut S,
        table: &Arc<TableDef>,
    ) -> Result<(), GenerateError<S::Error>> {
        if !self.query.is_empty() {
            self.scratch.clear();
            RowsQuery(&self.query).encode(&mut self.scratch);
            sink.event(EventType::ROWS_QUERY.0, FLAG_IGNORABLE, &self.scratch)?;
            self.query.clear();
        }
        sink.event(EventType::TABLE_MAP.0, 0, table.map_body(self.options.metadata))?;
        self.table = Some(Arc::clone(table));
        Ok(())
    }

    fn open_event(&mut self, table: &TableDef, kind: RowsKind) {
        self.kind = Some(kind);
        std::mem::swap(&mut self.before, &mut self.next_before);
        std::mem::swap(&mut self.after, &mut self.next_after);
        let mut flags = 0;
        self.event_unchecked = self.unchecked;
        if self.options.no_foreign_key_checks || self.unchecked {
            flags |= ROWS_FLAG_NO_FOREIGN_KEY_CHECKS;
        }
        if self.options.relaxed_unique_checks {
            flags |= ROWS_FLAG_RELAXED_UNIQUE_CHECKS;
        }
        let (before, after) = (self.before.as_bytes(), self.after.as_bytes());
        let both = [before, after];
        let bitmaps = match kind {
            RowsKind::Write => &both[1..],
            RowsKind::Update => &both[..],
            RowsKind::Delete => &both[..1],
        };
        put_rows_header(&mut self.body, table.table_id(), flags, table.shape().len(), bitmaps);
    }

    /// Sends the event under construction, if there is one.
    fn flush<S: EventSink>(&mut self, sink: &mut S, last: bool) -> Result<(), GenerateError<S::Error>> {
        let Some(kind) = self.kind.take() else { return Ok(()) };
        if !self.row_ids.is_empty() {
            self.scratch.clear();
            private::encode_row_ids(&mut self.scratch, &self.row_ids);
            sink.event(EventType::IGNORABLE.0, FLAG_IGNORABLE, &self.scratch)?;
            self.row_ids.clear();
        }
        if last {
            self.body[FLAGS_AT] |= ROWS_FLAG_STMT_END as u8;
        }
        let sent = sink.event(kind.event_type().0, 0, &self.body);
        self.body.clear();
        sent.map_err(GenerateError::Sink)
    }

    fn end_group<S: EventSink>(&mut self, sink: &mut S) -> Result<(), GenerateError<S::Error>> {
        if self.table.take().is_some() {
            self.flush(sink, true)?;
        }
        Ok(())
    }
}

/// Iterates over the fields of a full image.
struct Walk<'a> {
    table: &'a TableDef,
    row: &'a [u8],
    column: usize,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(table: &'a TableDef, row: &'a [u8]) -> Self {
        Self { table, row, column: 0, at: table.shape().null_bytes() }
    }

    /// The next field's bytes; `None` for NULL.
    fn next(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let i = self.column;
        self.column += 1;
        if omnibus_format::row::is_set(self.row, i) {
            return Ok(None);
        }
        let rest = self.row.get(self.at..).unwrap_or_default();
        let len = self.table.shape().columns()[i].len(rest);
        let len = len.ok_or(DecodeError::new(self.at, "field"))?;
        self.at += len;
        Ok(Some(&rest[..len]))
    }
}
