//! Kafka: topics that begin with the stream's name, made with one partition where they are missing.
//!
//! Messages of a topic with several partitions are spread by their key, so those of one row stay in order. A batch is
//! acknowledged by all replicas in sync. The place is the newest message of the topic of positions.

use crate::error::StreamError;
use crate::login::Login;
use crate::message::Message;
use crate::place::POSITIONS;
use chrono::{DateTime, Utc};
use rskafka::BackoffConfig;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A broker takes batches of up to a mebibyte, as it comes.
const BATCH: usize = 900 << 10;
/// The time for which the client retries by itself.
const DEADLINE: Duration = Duration::from_secs(15);
/// The maximum duration, in milliseconds, for a broker to create a topic.
const TOPIC_MS: i32 = 10_000;
/// The number of records that the search for the last position looks back at first; each further step doubles it.
const TAIL: i64 = 1;

/// The text in the client's error for an account or a password that the broker does not accept. The client keeps errors
/// of connections as text only.
const STRANGER: &str = "SaslAuthenticationFailed";

/// See the module.
pub(crate) struct Kafka {
    client: Client,
    name: String,
    /// Partitions of each topic that was used.
    topics: HashMap<String, Vec<PartitionClient>>,
}

impl Kafka {
    pub async fn open(brokers: &str, name: &str, tls: bool, login: &Login) -> Result<Kafka, StreamError> {
        let backoff = BackoffConfig {
            deadline: Some(DEADLINE),
            max_backoff: Duration::from_secs(1),
            ..BackoffConfig::default()
        };
        let mut builder = ClientBuilder::new(brokers.split(',').map(str::to_owned).collect());
        if tls {
            builder = builder.tls_config(Arc::new(login.tls()?));
        }
        if let Some(sasl) = login.sasl(tls)? {
            builder = builder.sasl_config(sasl);
        }
        let client = builder.client_id("omnibus").backoff_config(backoff).build().await.map_err(failed)?;
        Ok(Kafka { client, name: name.to_owned(), topics: HashMap::new() })
    }

    fn full(&self, topic: &str) -> String {
        if topic.is_empty() { self.name.clone() } else { format!("{}.{topic}", self.name) }
    }

    /// The partitions of a topic, which is made if it is missing.
    async fn partitions(&mut self, topic: &str) -> Result<&[PartitionClient], StreamError> {
        let name = self.full(topic);
        if !self.topics.contains_key(topic) {
            let there = self.client.list_topics().await.map_err(failed)?;
            let mut numbers: Vec<i32> = there
                .into_iter()
                .find(|known| known.name == name)
                .map(|known| known.partitions.into_iter().collect())
                .unwrap_or_default();
            if numbers.is_empty() {
                let controller = self.client.controller_client().map_err(failed)?;
                match controller.create_topic(&name, 1, -1, TOPIC_MS).await {
                    Err(Error::ServerError { protocol_error: ProtocolError::TopicAlreadyExists, .. }) => {}
                    other => other.map_err(failed)?,
                }
                numbers.push(0);
            }
            let mut clients = Vec::new();
            for number in numbers {
                let client = self.client.partition_client(&name, number, UnknownTopicHandling::Retry);
                clients.push(client.await.map_err(failed)?);
            }
            self.topics.insert(topic.to_owned(), clients);
        }
        Ok(self.topics.get(topic).map(Vec::as_slice).unwrap_or_default())
    }

    pub async fn send(&mut self, messages: &[Message]) -> Result<(), StreamError> {
        let mut of_topics: BTreeMap<&str, Vec<&Message>> = BTreeMap::new();
        for message in messages {
            of_topics.entry(&message.topic).or_default().push(message);
        }
        for (topic, messages) in of_topics {
            let partitions = self.partitions(topic).await?;
            let mut of_partitions: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
            for message in messages {
                // Ours are all of one topic, whose order is the log's.
                let key = message.key.as_deref().filter(|_| !topic.is_empty()).unwrap_or_default();
                let number =
                    if key.is_empty() { 0 } else { crc32fast::hash(key) as usize % partitions.len() };
                of_partitions.entry(number).or_default().push(record(message));
            }
            for (number, records) in of_partitions {
                produce(&partitions[number], records).await?;
            }
        }
        Ok(())
    }

    pub async fn keep(&mut self, place: Vec<u8>) -> Result<(), StreamError> {
        let record = Record {
            key: Some(POSITIONS.into()),
            value: Some(place),
            headers: BTreeMap::new(),
            timestamp: now(),
        };
        let partitions = self.partitions(POSITIONS).await?;
        produce(&partitions[0], vec![record]).await
    }

    pub async fn place(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        let partition = &self.partitions(POSITIONS).await?[0];
        let (first, end) = (
            partition.get_offset(OffsetAt::Earliest).await.map_err(failed)?,
            partition.get_offset(OffsetAt::Latest).await.map_err(failed)?,
        );
        if end <= first {
            return Ok(None);
        }
        let mut from = end;
        // A broker that compacts the topic may have gaps in front of its last message.
        while from > first {
            from = first.max(from - TAIL.max(end - from));
            let (records, _) = partition.fetch_records(from, 1..(4 << 20), 1_000).await.map_err(failed)?;
            if let Some(last) = records.into_iter().next_back() {
                return Ok(last.record.value);
            }
        }
        Ok(None)
    }
}

fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}

fn record(message: &Message) -> Record {
    let mut headers = BTreeMap::from([
        ("transaction".to_owned(), message.transaction.clone().into_bytes()),
        ("number".to_owned(), message.number.to_string().into_bytes()),
    ]);
    if let Some(count) = message.count {
        headers.insert("count".to_owned(), count.to_string().into_bytes());
    }
    Record { key: message.key.clone(), value: message.value.clone(), headers, timestamp: now() }
}

/// In batches that a broker takes.
async fn produce(partition: &PartitionClient, records: Vec<Record>) -> Result<(), StreamError> {
    let (mut batch, mut size) = (Vec::new(), 0);
    for record in records {
        let len = record.approximate_size() + 100;
        if size + len > BATCH && !batch.is_empty() {
            send(partition, std::mem::take(&mut batch)).await?;
            size = 0;
        }
        size += len;
        batch.push(record);
    }
    send(partition, batch).await
}

async fn send(partition: &PartitionClient, batch: Vec<Record>) -> Result<(), StreamError> {
    let size: usize = batch.iter().map(Record::approximate_size).sum();
    match partition.produce(batch, Compression::NoCompression).await {
        Err(Error::ServerError { protocol_error: ProtocolError::MessageTooLarge, .. }) => {
            Err(StreamError::Refused(format!(
                "a message of {size} bytes is too large for {}: raise the topic's max.message.bytes",
                partition.topic()
            )))
        }
        other => other.map(drop).map_err(failed),
    }
}

/// Converts an error: refusals of a broker are final; everything else may be temporary, as while it restarts.
fn failed(error: Error) -> StreamError {
    use ProtocolError as P;
    let text = format!("Kafka: {error}");
    match error {
        Error::ServerError {
            protocol_error:
                P::TopicAuthorizationFailed
                | P::ClusterAuthorizationFailed
                | P::InvalidTopicException
                | P::PolicyViolation
                | P::InvalidReplicationFactor
                | P::UnsupportedVersion,
            ..
        } => StreamError::Refused(text),
        Error::Connection(_) if text.contains(STRANGER) => StreamError::Refused(text),
        _ => StreamError::Unreachable(text),
    }
}
