//! NATS JetStream: one stream, with the subjects below its name.
//!
//! It is made if it is missing, with no limits; one that is there is taken as it is. Each message has an id, so that the server
//! drops those that come twice within its window for duplicates. The place is the last message of the subject of positions.

use crate::error::StreamError;
use crate::login::Login;
use crate::message::Message;
use crate::place::POSITIONS;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{ConnectErrorKind, HeaderMap};
use std::time::Duration;

/// The maximum duration of connecting, and of waiting for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Messages that wait for their acknowledgements at once.
const WINDOW: usize = 512;
/// The maximum bytes of the other headers.
const HEADERS: usize = 512;
/// The header by which the server recognises duplicates.
const ID: &str = "Nats-Msg-Id";

/// See the module.
pub(crate) struct Nats {
    context: Context,
    stream: Stream,
    name: String,
}

impl Nats {
    pub async fn open(server: &str, name: &str, tls: bool, login: &Login) -> Result<Nats, StreamError> {
        let mut options = async_nats::ConnectOptions::new().name("omnibus stream").connection_timeout(ANSWER);
        if tls {
            options = options.require_tls(true).tls_client_config(login.tls()?);
        }
        if let Some((user, password)) = login.account()? {
            options = options.user_and_password(user, password);
        }
        if let Some(token) = login.token()? {
            options = options.token(token);
        }
        if let Some(path) = &login.credentials {
            let failed = |error| StreamError::Refused(format!("{}: {error}", path.display()));
            options = options.credentials_file(path).await.map_err(failed)?;
        }
        let client = options.connect(server).await.map_err(|error| match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                StreamError::Refused(format!("NATS: {error}"))
            }
            _ => lost(&error),
        })?;
        let mut context = jetstream::new(client);
        context.set_timeout(ANSWER);
        let stream = context.get_or_create_stream(Config {
            // A stream's own name has no dots.
            name: name.replace('.', "_"),
            subjects: vec![name.to_owned(), format!("{name}.>")],
            ..Config::default()
        });
        let stream = stream.await.map_err(|error| lost(&error))?;
        Ok(Nats { context, stream, name: name.to_owned() })
    }

    fn subject(&self, topic: &str) -> String {
        if topic.is_empty() { self.name.clone() } else { format!("{}.{topic}", self.name) }
    }

    pub async fn send(&mut self, messages: &[Message]) -> Result<(), StreamError> {
        // Deletions say all that there is to say: nothing is compacted here.
        let there: Vec<&Message> = messages.iter().filter(|message| message.value.is_some()).collect();
        for window in there.chunks(WINDOW) {
            let mut answers = Vec::with_capacity(window.len());
            for message in window {
                let payload = message.value.clone().unwrap_or_default();
                let most = self.context.client().server_info().max_payload;
                // Headers count.
                let key = message.key.as_ref().map_or(0, Vec::len);
                if payload.len() + key + HEADERS > most {
                    return Err(StreamError::Refused(format!(
                        "a message of {} bytes is too large for NATS, which takes {most}: raise its max_payload",
                        payload.len()
                    )));
                }
                let sent = self.context.publish_with_headers(
                    self.subject(&message.topic),
                    headers(message),
                    payload.into(),
                );
                answers.push(sent.await.map_err(|error| lost(&error))?);
            }
            for answer in answers {
                answer.await.map_err(|error| lost(&error))?;
            }
        }
        Ok(())
    }

    pub async fn keep(&mut self, place: Vec<u8>) -> Result<(), StreamError> {
        let sent = self.context.publish(self.subject(POSITIONS), place.into()).await;
        sent.map_err(|error| lost(&error))?.await.map_err(|error| lost(&error))?;
        Ok(())
    }

    pub async fn place(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        match self.stream.get_last_raw_message_by_subject(&self.subject(POSITIONS)).await {
            Ok(message) => Ok(Some(message.payload.to_vec())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(lost(&error)),
        }
    }
}

fn headers(message: &Message) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ID, format!("{}:{}", message.transaction, message.number));
    headers.insert("transaction", message.transaction.as_str());
    headers.insert("number", message.number.to_string());
    if let Some(count) = message.count {
        headers.insert("count", count.to_string());
    }
    if let Some(key) = message.key.as_deref().and_then(|key| std::str::from_utf8(key).ok()) {
        headers.insert("key", key);
    }
    headers
}

fn lost(error: &dyn std::error::Error) -> StreamError {
    let mut text = format!("NATS: {error}");
    if let Some(cause) = error.source() {
        text.push_str(&format!(": {cause}"));
    }
    StreamError::Unreachable(text)
}
