//! The RSA key for passwords over plain TCP. Made when first asked for, never at start-up, since
//! making one takes long; kept in `private_key.pem` and `public_key.pem` as MySQL does.

use crate::sealed;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Has the key.
pub const FILE: &str = "private_key.pem";

/// A key pair and the text that clients get.
#[derive(Debug)]
pub struct KeyPair {
    private: RsaPrivateKey,
    public_pem: String,
}

impl KeyPair {
    /// The public key as clients want it.
    #[must_use]
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// Decrypts what a client encrypted (OAEP with SHA-1, as clients do). Slow: about a millisecond.
    #[must_use]
    pub fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        // Blinding with fresh randomness keeps the time from telling anything about the key.
        self.private.decrypt_blinded(&mut rsa::rand_core::OsRng, Oaep::new::<Sha1>(), cipher).ok()
    }
}

/// The server's key, if it was needed yet.
#[derive(Debug)]
pub struct RsaKey {
    folder: PathBuf,
    pair: OnceCell<Option<Arc<KeyPair>>>,
}

impl RsaKey {
    /// Files in `folder`.
    #[must_use]
    pub fn new(folder: PathBuf) -> RsaKey {
        RsaKey { folder, pair: OnceCell::new() }
    }

    /// The key: read, or made and written in the background while other connections go on. `None`
    /// if that failed, which is logged.
    pub async fn get(&self) -> Option<Arc<KeyPair>> {
        let folder = self.folder.clone();
        let make = || async {
            let made = tokio::task::spawn_blocking(move || load_or_make(&folder)).await;
            match made {
                Ok(Ok(pair)) => Some(Arc::new(pair)),
                Ok(Err(error)) => {
                    tracing::error!(%error, "no RSA key pair for passwords over plain TCP");
                    None
                }
                Err(_) => None,
            }
        };
        self.pair.get_or_init(make).await.clone()
    }
}

fn load_or_make(folder: &std::path::Path) -> Result<KeyPair, Box<dyn std::error::Error + Send + Sync>> {
    let path = folder.join(FILE);
    let private = match std::fs::read_to_string(&path) {
        // An empty one was not finished.
        Ok(text) if !text.is_empty() => RsaPrivateKey::from_pkcs8_pem(sealed::open(&text, &path)?.0)?,
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {
            let private = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048)?;
            crate::net::write_private(&path, &sealed::seal(&private.to_pkcs8_pem(LineEnding::LF)?))?;
            private
        }
    };
    let public_pem = private.to_public_key().to_public_key_pem(LineEnding::LF)?;
    let _ = std::fs::write(folder.join("public_key.pem"), &public_pem);
    Ok(KeyPair { private, public_pem })
}
