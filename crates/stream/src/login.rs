//! Authentication at a target, and protection against interception.

use crate::error::StreamError;
use omnibus_replication::client::percent_decoded;
use rskafka::client::{Credentials, SaslConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The way in which a Kafka broker checks a password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mechanism {
    /// The password is sent, over TLS only.
    Plain,
    /// SCRAM-SHA-256.
    ScramSha256,
    /// SCRAM-SHA-512.
    #[default]
    ScramSha512,
}

/// The settings of a login; see the module. A target without authentication needs none of them.
#[derive(Clone, Default)]
pub struct Login {
    /// Certificates, in PEM, of those who vouch for the target; without, those that the system knows.
    pub ca: Option<PathBuf>,
    /// The client's own certificate and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// An account's name.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// The mechanism, for Kafka.
    pub mechanism: Mechanism,
    /// A file with a token, for NATS.
    pub token: Option<PathBuf>,
    /// A file of credentials, for NATS.
    pub credentials: Option<PathBuf>,
    /// A token that the target's address has, for NATS.
    pub address_token: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

fn refused<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> StreamError + '_ {
    move |error| StreamError::Refused(format!("{}: {error}", path.display()))
}

/// A file's first line.
///
/// # Errors
/// It cannot be read.
pub fn secret(path: &Path) -> Result<String, StreamError> {
    let text = read_to_string(path).map_err(refused(path))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

impl Login {
    /// Returns whether a setting requires TLS.
    pub(crate) fn wants_tls(&self) -> bool {
        self.ca.is_some() || self.certificate.is_some()
    }

    /// TLS with what is said.
    pub(crate) fn tls(&self) -> Result<ClientConfig, StreamError> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(refused(path))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed = |error| StreamError::Refused(format!("TLS: {error}"));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(roots);
        let Some((certificate, key)) = &self.certificate else { return Ok(builder.with_no_client_auth()) };
        let own = PrivateKeyDer::from_pem_file(key).map_err(refused(key))?;
        builder.with_client_auth_cert(certificates(certificate)?, own).map_err(refused(certificate))
    }

    /// Returns the login with what an address says of it in front of `@`, and the rest of the address: `user:password`, or for NATS also
    /// a token alone. What is no letter or digit may be `%` and two hexadecimal digits there.
    pub(crate) fn of_place<'a>(&self, place: &'a str, tokens: bool) -> Result<(Login, &'a str), StreamError> {
        let Some((account, rest)) = place.rsplit_once('@') else { return Ok((self.clone(), place)) };
        if self.user.is_some() || self.token.is_some() || self.credentials.is_some() {
            return Err(StreamError::Refused(
                "the address has an account, and an option has another one".into(),
            ));
        }
        let mut login = self.clone();
        match account.split_once(':') {
            Some((user, password)) => {
                login.user = Some(decoded(user)?);
                login.password = Some(decoded(password)?);
            }
            None if tokens => login.address_token = Some(decoded(account)?),
            None => login.user = Some(decoded(account)?),
        }
        Ok((login, rest))
    }

    /// The token, for NATS.
    pub(crate) fn token(&self) -> Result<Option<String>, StreamError> {
        match (&self.address_token, &self.token) {
            (Some(token), _) => Ok(Some(token.clone())),
            (None, Some(path)) => secret(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The account and its password; `None` for an anonymous login.
    pub(crate) fn account(&self) -> Result<Option<(String, String)>, StreamError> {
        match (&self.user, &self.password) {
            (None, _) => Ok(None),
            (Some(user), Some(password)) => Ok(Some((user.clone(), password.clone()))),
            (Some(_), None) => Err(StreamError::Refused("--to-user needs a password".into())),
        }
    }

    /// Returns the broker's SASL settings.
    pub(crate) fn sasl(&self, tls: bool) -> Result<Option<SaslConfig>, StreamError> {
        let Some((user, password)) = self.account()? else { return Ok(None) };
        let credentials = Credentials::new(user, password);
        match self.mechanism {
            Mechanism::Plain if !tls => Err(StreamError::Refused(
                "PLAIN tells the password to whoever listens: only with kafka+tls://".into(),
            )),
            Mechanism::Plain => Ok(Some(SaslConfig::Plain(credentials))),
            Mechanism::ScramSha256 => Ok(Some(SaslConfig::ScramSha256(credentials))),
            Mechanism::ScramSha512 => Ok(Some(SaslConfig::ScramSha512(credentials))),
        }
    }
}

/// A part of an address, in which `%41` is `A`.
fn decoded(text: &str) -> Result<String, StreamError> {
    percent_decoded(text).ok_or_else(|| {
        StreamError::Refused("an account in an address: % without two hexadecimal digits, or no UTF-8".into())
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StreamError> {
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(refused(path));
    let all = all?;
    if all.is_empty() { Err(refused(path)("there is no certificate in it")) } else { Ok(all) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_who_logs_in() {
        let none = Login::default();
        let (login, place) = none.of_place("u%40x:p%3A%2f:q@h:4222", true).unwrap();
        assert_eq!((login.account().unwrap(), place), (Some(("u@x".into(), "p:/:q".into())), "h:4222"));
        let (login, place) = none.of_place("to%20ken@h", true).unwrap();
        assert_eq!(
            (login.token().unwrap(), login.account().unwrap(), place),
            (Some("to ken".into()), None, "h")
        );
        let (login, place) = none.of_place("a:1,b:2", false).unwrap();
        assert_eq!((login.account().unwrap(), login.token().unwrap(), place), (None, None, "a:1,b:2"));
        assert!(none.of_place("u@a:1", false).unwrap().0.account().is_err(), "a user without a password");
        for wrong in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert!(none.of_place(&format!("u:{wrong}@h"), true).is_err(), "{wrong}");
        }
        let other = Login { user: Some("u".into()), ..Login::default() };
        assert!(other.of_place("v:p@h", true).is_err());
    }
}
