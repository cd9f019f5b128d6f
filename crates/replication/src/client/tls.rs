//! How TLS with a source is set up: whom to trust, and who we are.
//!
//! As MySQL does it: without a CA any certificate will do (the traffic is private, the source is not proved); with one
//! the chain is checked; with `verify_host` the name as well.

use super::error::ClientError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// SOURCE_SSL_* of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Use TLS, or fail.
    pub required: bool,
    /// Authority whose certificates are trusted.
    pub ca: Option<PathBuf>,
    /// Certificates that are not to be trusted any more.
    pub crl: Option<PathBuf>,
    /// Our certificate and its key, for sources that want one.
    pub cert: Option<PathBuf>,
    /// Key of `cert`.
    pub key: Option<PathBuf>,
    /// The certificate must be for the host that was asked for.
    pub verify_host: bool,
}

fn failed(path: &Path, what: impl std::fmt::Display) -> ClientError {
    ClientError::Tls(format!("{}: {what}", path.display()))
}

impl TlsSettings {
    /// A client for one connection to `host`.
    pub(super) fn client(&self, host: &str) -> Result<ClientConnection, ClientError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(Verifier {
            chain: self.ca.as_deref().map(|ca| self.chain(ca, &provider)).transpose()?,
            check_name: self.verify_host,
            provider: provider.clone(),
        });
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| ClientError::Tls(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let chain = CertificateDer::pem_file_iter(cert)
                    .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                    .map_err(|e| failed(cert, e))?;
                let private = PrivateKeyDer::from_pem_file(key).map_err(|e| failed(key, e))?;
                builder.with_client_auth_cert(chain, private).map_err(|e| failed(key, e))?
            }
            _ => builder.with_no_client_auth(),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|e| ClientError::Tls(e.to_string()))?;
        ClientConnection::new(Arc::new(config), name).map_err(|e| ClientError::Tls(e.to_string()))
    }

    fn chain(
        &self,
        ca: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<WebPkiServerVerifier>, ClientError> {
        let mut roots = RootCertStore::empty();
        for cert in CertificateDer::pem_file_iter(ca).map_err(|e| failed(ca, e))? {
            roots.add(cert.map_err(|e| failed(ca, e))?).map_err(|e| failed(ca, e))?;
        }
        let mut builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        if let Some(crl) = &self.crl {
            let list = CertificateRevocationListDer::pem_file_iter(crl)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|e| failed(crl, e))?;
            builder = builder.with_crls(list);
        }
        builder.build().map_err(|e| failed(ca, e))
    }
}

#[derive(Debug)]
struct Verifier {
    /// `None`: whoever it is.
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
