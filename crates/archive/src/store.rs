//! The store of an archive: `file:///folder` or `s3://bucket/prefix`, with the few requests that an archive makes.
//!
//! The library retries requests that fail temporarily for some seconds; later failures are errors here. A folder's
//! files are synced before a request returns. S3's keys, region and endpoint come from the variables that its other
//! clients read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL. Any thread that may block.

use crate::error::ArchiveError;
use crate::http::Hyper;
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::{Path as Name, PathPart};
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig, WriteMultipart};
use omnibus_replication::client::without_secrets;
use std::future::Future;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A request that has not ended after this time never will.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time for which a request is retried; after that its caller decides.
const RETRY: Duration = Duration::from_secs(20);
/// Parts of large objects. Files up to this size go in one request.
const PART: usize = 16 << 20;
/// Parts that are on their way at once.
const PARTS: usize = 3;

/// See the module.
pub struct Store {
    runtime: Runtime,
    store: Arc<dyn ObjectStore>,
    prefix: Name,
    url: String,
}

/// The direct contents of a folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Names of folders.
    pub folders: Vec<String>,
    /// Names of objects.
    pub objects: Vec<String>,
}

impl Store {
    /// Opens an existing store, as far as its address tells; an object store is not contacted yet.
    ///
    /// # Errors
    /// The address is invalid, or there is no such folder.
    pub fn open(url: &str) -> Result<Store, ArchiveError> {
        Store::at(url, false)
    }

    /// As [`Store::open`], for writing: creates the folder if it does not exist, but none above it.
    ///
    /// # Errors
    /// As [`Store::open`]; or the folder cannot be created.
    pub fn create(url: &str) -> Result<Store, ArchiveError> {
        Store::at(url, true)
    }

    fn at(url: &str, make: bool) -> Result<Store, ArchiveError> {
        let shown = without_secrets(url);
        let wrong = |what: &str| ArchiveError::Address { url: shown.clone(), what: what.to_owned() };
        let (store, prefix): (Arc<dyn ObjectStore>, _) = if let Some(path) = url.strip_prefix("file://") {
            if !path.starts_with('/') {
                return Err(wrong("a folder's address is file:///absolute/path"));
            }
            let path = Path::new(path);
            if make && !path.is_dir() {
                std::fs::create_dir(path).map_err(ArchiveError::io(path))?;
            } else if !path.is_dir() {
                return Err(wrong("there is no such folder"));
            }
            let folder = LocalFileSystem::new_with_prefix(path);
            let folder = folder.map_err(|source| ArchiveError::Store { name: shown.clone(), source })?;
            (Arc::new(folder.with_fsync(true).with_automatic_cleanup(true)), "")
        } else if let Some(rest) = url.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() || bucket.contains('@') {
                return Err(wrong(
                    "an address of S3 is s3://bucket/prefix; its keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                ));
            }
            let store = s3(bucket).map_err(|source| ArchiveError::Store { name: shown.clone(), source })?;
            (Arc::new(store), prefix)
        } else {
            return Err(wrong("it is neither file:///folder nor s3://bucket/prefix"));
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ArchiveError::io(Path::new("a runtime")))?;
        Ok(Store { runtime, store, prefix: Name::from(prefix), url: shown })
    }

    /// The address as given, without secrets.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    fn name(&self, name: &str) -> Name {
        self.prefix.parts().chain(name.split('/').map(PathPart::from)).collect()
    }

    fn wait<T>(
        &self,
        name: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ArchiveError> {
        let late = |_| Error::Generic { store: "archive", source: "no answer for three minutes".into() };
        let answer = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, request).await });
        answer.map_err(late).flatten().map_err(|source| ArchiveError::Store { name: name.to_owned(), source })
    }

    pub(crate) fn put(&self, name: &str, bytes: impl Into<Bytes>) -> Result<(), ArchiveError> {
        let payload = PutPayload::from_bytes(bytes.into());
        self.wait(name, self.store.put(&self.name(name), payload)).map(drop)
    }

    /// A whole file of this machine.
    pub(crate) fn put_file(&self, name: &str, path: &Path) -> Result<(), ArchiveError> {
        let failed = ArchiveError::io;
        let mut file = std::fs::File::open(path).map_err(failed(path))?;
        let mut piece = Vec::new();
        let mut next = |piece: &mut Vec<u8>| {
            piece.clear();
            Read::by_ref(&mut file).take(PART as u64).read_to_end(piece).map_err(failed(path))
        };
        if next(&mut piece)? < PART {
            return self.put(name, piece);
        }
        let upload = self.wait(name, self.store.put_multipart(&self.name(name)))?;
        let _inside = self.runtime.enter();
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
        loop {
            let read = self.wait(name, upload.wait_for_capacity(PARTS)).and_then(|()| {
                upload.put(Bytes::from(std::mem::take(&mut piece)));
                next(&mut piece)
            });
            match read {
                Ok(0) => return self.wait(name, upload.finish()).map(drop),
                Ok(_) => {}
                Err(error) => {
                    let _ = self.wait(name, upload.abort());
                    return Err(error);
                }
            }
        }
    }

    /// A whole object; `None` if there is none.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Bytes>, ArchiveError> {
        let full = self.name(name);
        let request = async { self.store.get(&full).await?.bytes().await };
        match self.wait(name, request) {
            Err(ArchiveError::Store { source: Error::NotFound { .. }, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Writes an object to a new file, durably. Returns its length and CRC-32.
    pub(crate) fn get_file(&self, name: &str, path: &Path) -> Result<(u64, u32), ArchiveError> {
        let failed = ArchiveError::io;
        let mut target = std::fs::File::create_new(path).map_err(failed(path))?;
        let full = self.name(name);
        let size = self.wait(name, self.store.head(&full))?.size;
        let (mut at, mut crc) = (0, crc32fast::Hasher::new());
        // In parts, each of which is tried again by itself.
        while at < size {
            let end = size.min(at + PART as u64);
            let bytes = self.wait(name, self.store.get_range(&full, at..end))?;
            crc.update(&bytes);
            target.write_all(&bytes).map_err(failed(path))?;
            at += bytes.len() as u64;
        }
        target.sync_all().map_err(failed(path))?;
        Ok((size, crc.finalize()))
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Listing, ArchiveError> {
        let full = self.name(folder);
        let found = self.wait(folder, self.store.list_with_delimiter(Some(&full)))?;
        let last = |name: &Name| name.filename().map(str::to_owned);
        Ok(Listing {
            folders: found.common_prefixes.iter().filter_map(last).collect(),
            objects: found.objects.iter().filter_map(|object| last(&object.location)).collect(),
        })
    }

    /// Deletes an object, which may be gone already.
    pub(crate) fn delete(&self, name: &str) -> Result<(), ArchiveError> {
        match self.wait(name, self.store.delete(&self.name(name))) {
            Err(ArchiveError::Store { source: Error::NotFound { .. }, .. }) => Ok(()),
            other => other,
        }
    }
}

fn s3(bucket: &str) -> object_store::Result<object_store::aws::AmazonS3> {
    let retry = RetryConfig { retry_timeout: RETRY, ..RetryConfig::default() };
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
    let endpoint =
        ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].iter().find_map(|name| std::env::var(name).ok());
    // Who names an endpoint without TLS means it.
    let plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    builder.with_allow_http(plain).with_http_connector(Hyper).build()
}
