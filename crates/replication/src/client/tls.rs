//! The TLS settings of a connection to a source: trusted authorities, and the client's certificate.
//!
//! As in MySQL, without a CA any certificate is accepted (the traffic is private, the source is not authenticated);
//! with one the chain is checked; with `verify_host` the name as well.

use super::error::ClientError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, Error,
    RootCertStore, SignatureScheme, SupportedProtocolVersion,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// SOURCE_SSL_* of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Fail if TLS is not possible.
    pub required: bool,
    /// Authority whose certificates are trusted.
    pub ca: Option<PathBuf>,
    /// Folder with more of them.
    pub ca_folder: Option<PathBuf>,
    /// A list of revoked certificates.
    pub crl: Option<PathBuf>,
    /// Folder with more such lists.
    pub crl_folder: Option<PathBuf>,
    /// SOURCE_SSL_CIPHER: for TLSv1.2, OpenSSL's names separated by colons; empty for all supported ones.
    pub ciphers: String,
    /// SOURCE_TLS_CIPHERSUITES: the same for TLSv1.3.
    pub cipher_suites: String,
    /// SOURCE_TLS_VERSION: TLSv1.2 or TLSv1.3 or both, separated by a comma; empty for both.
    pub versions: String,
    /// This server's certificate, for sources that require one.
    pub cert: Option<PathBuf>,
    /// Key of `cert`.
    pub key: Option<PathBuf>,
    /// The certificate must match the host name.
    pub verify_host: bool,
}

fn failed(path: &Path, what: impl std::fmt::Display) -> ClientError {
    ClientError::Tls(format!("{}: {what}", path.display()))
}

/// The supported suites by OpenSSL's names.
const SUITES: [(&str, CipherSuite); 9] = [
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];
/// The number of those that belong to TLSv1.3.
const SUITES_13: usize = 3;

/// Returns the suites in a list. Unknown ones are ignored if there is a known one.
fn suites(option: &str, list: &str, known: &[(&str, CipherSuite)]) -> Result<Vec<CipherSuite>, String> {
    let all: Vec<CipherSuite> = known.iter().map(|(_, suite)| *suite).collect();
    if list.is_empty() {
        return Ok(all);
    }
    let named = |word: &str| known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.trim()));
    let found: Vec<CipherSuite> = list.split(':').filter_map(named).map(|(_, suite)| *suite).collect();
    if found.is_empty() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(format!("{option} '{list}': none of {}", names.join(":")));
    }
    Ok(found)
}

/// The files in a folder.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, ClientError> {
    let entries = std::fs::read_dir(folder).map_err(|e| failed(folder, e))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| failed(folder, e))?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

impl TlsSettings {
    /// Checks the settings that can be checked without a connection.
    ///
    /// # Errors
    /// None of the versions or ciphers is supported.
    pub fn check(&self) -> Result<(), String> {
        self.protocols()?;
        self.suites().map(drop)
    }

    fn protocols(&self) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
        if self.versions.is_empty() {
            return Ok(vec![&TLS12, &TLS13]);
        }
        let version = |word: &str| match word.trim().to_ascii_lowercase().as_str() {
            "tlsv1.2" => Ok(&TLS12),
            "tlsv1.3" => Ok(&TLS13),
            other => Err(format!("SOURCE_TLS_VERSION '{other}': it is TLSv1.2 or TLSv1.3 or both")),
        };
        self.versions.split(',').map(version).collect()
    }

    fn suites(&self) -> Result<Vec<CipherSuite>, String> {
        let (tls13, tls12) = SUITES.split_at(SUITES_13);
        let mut all = suites("SOURCE_TLS_CIPHERSUITES", &self.cipher_suites, tls13)?;
        all.extend(suites("SOURCE_SSL_CIPHER", &self.ciphers, tls12)?);
        Ok(all)
    }

    /// Creates the TLS client for one connection to `host`.
    pub(super) fn client(&self, host: &str) -> Result<ClientConnection, ClientError> {
        let wanted = self.suites().map_err(ClientError::Tls)?;
        let mut provider = ring::default_provider();
        provider.cipher_suites.retain(|suite| wanted.contains(&suite.suite()));
        let provider = Arc::new(provider);
        let proves = self.ca.is_some() || self.ca_folder.is_some();
        let lists = self.crl.is_some() || self.crl_folder.is_some();
        if !proves && (lists || self.verify_host) {
            let what = if lists { "SOURCE_SSL_CRL" } else { "SOURCE_SSL_VERIFY_SERVER_CERT" };
            return Err(ClientError::Tls(format!("{what} needs SOURCE_SSL_CA or SOURCE_SSL_CAPATH")));
        }
        let verifier = Arc::new(Verifier {
            chain: if proves { Some(self.chain(&provider)?) } else { None },
            check_name: self.verify_host,
            provider: provider.clone(),
        });
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.protocols().map_err(ClientError::Tls)?)
            .map_err(|e| ClientError::Tls(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let chain = certificates(cert)?;
                let private = PrivateKeyDer::from_pem_file(key).map_err(|e| failed(key, e))?;
                builder.with_client_auth_cert(chain, private).map_err(|e| failed(key, e))?
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(ClientError::Tls("SOURCE_SSL_CERT and SOURCE_SSL_KEY go together".into())),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|e| ClientError::Tls(e.to_string()))?;
        ClientConnection::new(Arc::new(config), name).map_err(|e| ClientError::Tls(e.to_string()))
    }

    fn chain(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, ClientError> {
        let mut roots = RootCertStore::empty();
        let files = |file: &Option<PathBuf>, folder: &Option<PathBuf>| {
            let mut files = folder.as_deref().map_or_else(|| Ok(Vec::new()), of_folder)?;
            files.extend(file.clone());
            Ok::<_, ClientError>(files)
        };
        for file in files(&self.ca, &self.ca_folder)? {
            for cert in certificates(&file)? {
                roots.add(cert).map_err(|e| failed(&file, e))?;
            }
        }
        let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        for file in files(&self.crl, &self.crl_folder)? {
            let list = CertificateRevocationListDer::pem_file_iter(&file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|e| failed(&file, e))?;
            builder = builder.with_crls(list);
        }
        builder.build().map_err(|e| ClientError::Tls(format!("SOURCE_SSL_CA: {e}")))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| failed(file, e))
}

#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        let checked = chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            // The name is looked at last: the chain is good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn with(versions: &str, ciphers: &str, cipher_suites: &str) -> TlsSettings {
        let [versions, ciphers, cipher_suites] = [versions, ciphers, cipher_suites].map(str::to_owned);
        TlsSettings { versions, ciphers, cipher_suites, ..TlsSettings::default() }
    }

    #[test]
    fn what_is_chosen_is_used_and_nothing_else() {
        assert_eq!(with("", "", "").suites().unwrap().len(), SUITES.len());
        let one = with("TLSv1.2", "AES128-SHA:ecdhe-rsa-aes128-gcm-sha256", "TLS_AES_128_GCM_SHA256");
        assert_eq!(
            one.suites().unwrap(),
            [CipherSuite::TLS13_AES_128_GCM_SHA256, CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
        );
        assert_eq!(one.protocols().unwrap().len(), 1);
        assert!(one.client("localhost").is_ok());
        for refused in [with("TLSv1.1,TLSv1.2", "", ""), with("", "AES128-SHA", ""), with("", "", "x")] {
            assert!(refused.check().is_err(), "{refused:?}");
        }
    }

    #[test]
    fn what_cannot_be_verified_is_an_error() {
        let verify = TlsSettings { verify_host: true, ..TlsSettings::default() };
        assert!(verify.client("localhost").unwrap_err().to_string().contains("needs SOURCE_SSL_CA"));
        let lone = TlsSettings { cert: Some("cert.pem".into()), ..TlsSettings::default() };
        assert!(lone.client("localhost").unwrap_err().to_string().contains("SOURCE_SSL_KEY"));
    }
}
