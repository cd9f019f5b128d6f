//! The server's certificate: given by options, or made at first start in the data directory.
//!
//! A file made here has a checksum behind its end, where readers of PEM files look at nothing ([`sealed`]). File names are MySQL's: `ca.pem`,
//! `ca-key.pem`, `server-cert.pem`, `server-key.pem`, and `client-cert.pem` with `client-key.pem`, by which a client proves who it is. A
//! client that shows a certificate has to have one that the authority has signed; none is asked for.

use crate::sealed::{self, seal};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The files that the first start makes.
const OWN: [&str; 6] =
    ["ca-key.pem", "ca.pem", "client-key.pem", "client-cert.pem", "server-key.pem", "server-cert.pem"];

/// Where certificate, key and (for client certificates) authority are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authority that client certificates are checked against, when clients show one.
    pub ca: Option<PathBuf>,
}

fn invalid(path: &Path, what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
}

impl TlsFiles {
    /// The data directory's own files, made if they are not there. An empty one was not finished.
    pub fn generated(datadir: &Path) -> io::Result<TlsFiles> {
        let cert = datadir.join("server-cert.pem");
        let key = datadir.join("server-key.pem");
        if !has_text(&cert)? || !has_text(&key)? {
            generate(datadir).map_err(|e| invalid(&cert, e))?;
        }
        // A flipped bit in a certificate may leave one that can be read, and that every client refuses.
        if let Some(damaged) = damage(datadir) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, damaged));
        }
        let ca = datadir.join("ca.pem");
        let ca = has_text(&ca)?.then_some(ca);
        Ok(TlsFiles { cert, key, ca })
    }

    /// The fault of the data directory's own files, if they are there and have one.
    #[must_use]
    pub fn check(datadir: &Path) -> Option<String> {
        let ca = datadir.join("ca.pem");
        let files = TlsFiles {
            cert: datadir.join("server-cert.pem"),
            key: datadir.join("server-key.pem"),
            ca: has_text(&ca).unwrap_or(true).then_some(ca),
        };
        damage(datadir).or_else(|| {
            let made = [&files.cert, &files.key].into_iter().all(|path| has_text(path).unwrap_or(true));
            made.then(|| acceptor(&files).err())?.map(|error| error.to_string())
        })
    }
}

/// Checksums that are not right.
fn damage(datadir: &Path) -> Option<String> {
    OWN.into_iter().find_map(|name| sealed::damage(&datadir.join(name)))
}

fn has_text(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(data) => Ok(data.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The certificate comes last, and an old one goes first: where there is one, its key is beside it.
fn generate(datadir: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut ca_params = CertificateParams::default();
    ca_params.distinguished_name.push(DnType::CommonName, "Omnibus auto-generated CA certificate");
    ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate()?;
    let ca = ca_params.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca_params, &ca_key);

    let signed = |names: Vec<String>, whose: &str| -> Result<_, rcgen::Error> {
        let mut params = CertificateParams::new(names)?;
        let name = format!("Omnibus auto-generated {whose} certificate");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &issuer)?, key))
    };
    let (cert, key) = signed(vec!["localhost".to_owned()], "server")?;
    let (client_cert, client_key) = signed(Vec::new(), "client")?;

    match std::fs::remove_file(datadir.join("server-cert.pem")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => sync_folder(datadir)?,
    }
    write(&datadir.join("ca-key.pem"), &seal(&ca_key.serialize_pem()), true)?;
    write(&datadir.join("ca.pem"), &seal(&ca.pem()), false)?;
    write(&datadir.join("client-key.pem"), &seal(&client_key.serialize_pem()), true)?;
    write(&datadir.join("client-cert.pem"), &seal(&client_cert.pem()), false)?;
    write(&datadir.join("server-key.pem"), &seal(&key.serialize_pem()), true)?;
    write(&datadir.join("server-cert.pem"), &seal(&cert.pem()), false)?;
    Ok(())
}

/// Writes a file that is wholly there after a crash, or not at all; durable on return. A private one is readable by its
/// owner only from the first moment.
pub(crate) fn write(path: &Path, text: &str, private: bool) -> io::Result<()> {
    use std::io::Write;
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    // What a crash left may have other permissions.
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if private { 0o600 } else { 0o644 });
    let mut file = options.open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes the acceptor of TLS connections.
pub fn acceptor(files: &TlsFiles) -> io::Result<Arc<TlsAcceptor>> {
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| invalid(&files.cert, e))?;
    if chain.is_empty() {
        return Err(invalid(&files.cert, "it holds no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| invalid(&files.key, e))?;
    let builder =
        ServerConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| invalid(&files.cert, e))?;
    let builder = match &files.ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for cert in CertificateDer::pem_file_iter(path).map_err(|e| invalid(path, e))? {
                roots.add(cert.map_err(|e| invalid(path, e))?).map_err(|e| invalid(path, e))?;
            }
            let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|e| invalid(path, e))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|e| invalid(&files.key, e))?;
    Ok(Arc::new(TlsAcceptor::from(Arc::new(config))))
}
