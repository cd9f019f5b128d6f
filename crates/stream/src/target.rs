//! A distributed log: Kafka or NATS JetStream, by its address.

use crate::error::StreamError;
use crate::kafka::Kafka;
use crate::login::Login;
use crate::message::Message;
use crate::nats::Nats;
use crate::place::{POSITIONS, StreamPosition};
use omnibus_replication::client::without_secrets;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;

/// An attempt that has not ended after this time never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// A target that can be reached.
pub struct Target {
    runtime: Runtime,
    log: Log,
    name: String,
}

enum Log {
    Kafka(Kafka),
    Nats(Box<Nats>),
}

impl Target {
    /// `kafka://host:port,host:port/name` or `nats://host:port/name`; `kafka+tls://` and `tls://` with TLS. An account may stand in front of
    /// the hosts: `user:password@`.
    ///
    /// # Errors
    /// The address is invalid, or the target cannot be reached.
    pub fn open(url: &str, login: &Login) -> Result<Target, StreamError> {
        let wrong = || {
            let shown = without_secrets(url);
            let text = format!("{shown}: an address is kafka://host:9092/name or nats://host:4222/name");
            StreamError::Refused(text)
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (place, name) = rest.split_once('/').ok_or_else(wrong)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if place.is_empty()
            || name.is_empty()
            || !name.chars().all(fits)
            || name.starts_with('.')
            || name.ends_with('.')
        {
            return Err(wrong());
        }
        let (login, place) = &login.of_place(place, matches!(scheme, "nats" | "tls"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| StreamError::Refused(error.to_string()))?;
        let log = wait(&runtime, async {
            match scheme {
                "kafka" if login.wants_tls() => {
                    Err(StreamError::Refused("certificates are for TLS: kafka+tls://".into()))
                }
                "kafka" | "kafka+tls" => {
                    Kafka::open(place, name, scheme == "kafka+tls", login).await.map(Log::Kafka)
                }
                "nats" | "tls" => Nats::open(
                    &format!("{scheme}://{place}"),
                    name,
                    scheme == "tls" || login.wants_tls(),
                    login,
                )
                .await
                .map(|nats| Log::Nats(Box::new(nats))),
                _ => Err(wrong()),
            }
        })?;
        Ok(Target { runtime, log, name: name.to_owned() })
    }

    /// The first part of topics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The place that was kept last.
    ///
    /// # Errors
    /// The target's, or it has something else there.
    pub fn place(&mut self) -> Result<Option<StreamPosition>, StreamError> {
        let bytes = match &mut self.log {
            Log::Kafka(kafka) => wait(&self.runtime, kafka.place())?,
            Log::Nats(nats) => wait(&self.runtime, nats.place())?,
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let what =
            || StreamError::Refused(format!("what is kept in {}.{POSITIONS} is no position", self.name));
        StreamPosition::of(&bytes).map(Some).ok_or_else(what)
    }

    /// Sends messages, in their order. All of them are there, safely, when it returns.
    pub(crate) fn send(&mut self, messages: &[Message]) -> Result<(), StreamError> {
        match &mut self.log {
            Log::Kafka(kafka) => wait(&self.runtime, kafka.send(messages)),
            Log::Nats(nats) => wait(&self.runtime, nats.send(messages)),
        }
    }

    /// Keeps a place behind everything that was sent.
    pub(crate) fn keep(&mut self, place: &StreamPosition) -> Result<(), StreamError> {
        match &mut self.log {
            Log::Kafka(kafka) => wait(&self.runtime, kafka.keep(place.bytes())),
            Log::Nats(nats) => wait(&self.runtime, nats.keep(place.bytes())),
        }
    }
}

fn wait<T>(
    runtime: &Runtime,
    attempt: impl Future<Output = Result<T, StreamError>>,
) -> Result<T, StreamError> {
    let late = |_| StreamError::Unreachable("the target does not answer".to_owned());
    runtime.block_on(async { tokio::time::timeout(PATIENCE, attempt).await }).map_err(late).flatten()
}
