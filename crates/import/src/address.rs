//! Addresses of servers: `mysql://user:password@host:port/?ssl-mode=..&socket=..`.

use crate::error::ImportError;
use omnibus_replication::client::{CompressionChoice, Endpoint, TlsSettings, percent_decoded as decoded};
use std::path::PathBuf;
use std::time::Duration;

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest silence of a server: a checksum of a large table without a key is computed in silence.
const NET_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A server's address, with the account and how to encrypt.
#[derive(Clone, Debug, Default)]
pub struct Address {
    /// Host, port, account, TLS.
    pub endpoint: Endpoint,
    /// Continue without TLS if the server has none.
    pub may_be_plain: bool,
}

impl Address {
    /// Parses an address. A password that it lacks is `password`.
    ///
    /// # Errors
    /// It is no address, or a parameter is unknown.
    pub fn parse(text: &str, password: Option<String>) -> Result<Address, ImportError> {
        let bad = |why: &str| ImportError::Usage(format!("'{}': {why}", without_password(text)));
        let rest = ["mysql://", "mariadb://", "omnibus://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .ok_or_else(|| bad("an address is mysql://user:password@host:port"))?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may have an @ that nobody encoded; a host has none.
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (login, place),
            None => ("", rest),
        };
        let place = place.trim_end_matches('/');
        if place.contains('/') {
            return Err(bad("databases are chosen with --databases and not in the address"));
        }
        let (user, given) = match login.split_once(':') {
            Some((user, secret)) => (user, Some(decoded(secret).ok_or_else(|| bad("a wrong %-code"))?)),
            None => (login, None),
        };
        let (host, port) = host_and_port(place).ok_or_else(|| bad("a wrong port"))?;
        let mut address = Address {
            endpoint: Endpoint {
                host: if host.is_empty() { "127.0.0.1".into() } else { host },
                port,
                user: decoded(user).filter(|user| !user.is_empty()).unwrap_or_else(|| "root".into()),
                password: given.or(password).unwrap_or_default(),
                compression: CompressionChoice::default(),
                connect_timeout: CONNECT_TIMEOUT,
                net_timeout: NET_TIMEOUT,
                ..Endpoint::default()
            },
            may_be_plain: true,
        };
        address.endpoint.tls.required = true;
        for parameter in parameters.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value).ok_or_else(|| bad("a wrong %-code"))?;
            address.set(name, value).map_err(|why| bad(&why))?;
        }
        if address.endpoint.socket.is_some() {
            address.endpoint.tls.required = false;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let endpoint = &mut self.endpoint;
        let tls: &mut TlsSettings = &mut endpoint.tls;
        let path = || Some(PathBuf::from(&value));
        match name {
            "socket" => endpoint.socket = path(),
            "ssl-ca" => {
                tls.ca = path();
                self.may_be_plain = false;
            }
            "ssl-cert" => tls.cert = path(),
            "ssl-key" => tls.key = path(),
            "get-server-public-key" => endpoint.ask_public_key = value != "0",
            "server-public-key-path" => endpoint.public_key = path(),
            "compress" => {
                endpoint.compression = value.parse().map_err(|error| format!("compress: {error}"))?;
            }
            "ssl-mode" => {
                let mode = value.to_ascii_lowercase().replace('_', "-");
                tls.required = mode != "disabled";
                self.may_be_plain = matches!(mode.as_str(), "disabled" | "preferred");
                tls.verify_host = mode == "verify-identity";
                if !matches!(
                    mode.as_str(),
                    "disabled" | "preferred" | "required" | "verify-ca" | "verify-identity"
                ) {
                    return Err(
                        "ssl-mode is disabled, preferred, required, verify-ca or verify-identity".into()
                    );
                }
            }
            _ => {
                return Err(format!(
                    "'{name}' is none of ssl-mode, ssl-ca, ssl-cert, ssl-key, socket, compress, \
                     get-server-public-key, server-public-key-path"
                ));
            }
        }
        Ok(())
    }

    /// The server's place, for people.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.endpoint.socket {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.endpoint.host, self.endpoint.port),
        }
    }
}

/// Splits `host:port` and `[::1]:port`; the port is 3306 where none is said.
fn host_and_port(place: &str) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':').unwrap_or(port))
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let port = if port.is_empty() { 3306 } else { port.parse().ok()? };
    Some((decoded(host)?, port))
}

/// The address without its secret, for messages.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, place)) => {
            format!("{scheme}://{}:***@{place}", login.split(':').next().unwrap_or_default())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(text: &str) -> Address {
        Address::parse(text, Some("from-env".into())).unwrap()
    }

    #[test]
    fn addresses_have_their_parts() {
        let a = parsed("mysql://ann:p%40ss@db1:3307");
        let e = &a.endpoint;
        assert_eq!((&*e.user, &*e.password, &*e.host, e.port), ("ann", "p@ss", "db1", 3307));
        assert!(e.tls.required && a.may_be_plain);
        let a = parsed("mysql://ann:p@ss:word@db1/");
        assert_eq!((&*a.endpoint.password, &*a.endpoint.host, a.endpoint.port), ("p@ss:word", "db1", 3306));
        let a = parsed("mysql://[::1]:5/?ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca.pem");
        assert_eq!((&*a.endpoint.host, a.endpoint.port, &*a.endpoint.user), ("::1", 5, "root"));
        assert_eq!(a.endpoint.password, "from-env");
        assert!(a.endpoint.tls.verify_host && !a.may_be_plain && a.endpoint.tls.ca.is_some());
        let a = parsed("mysql://root@?socket=/run/my.sock");
        assert_eq!((a.place(), a.endpoint.tls.required), ("/run/my.sock".into(), false));
    }

    #[test]
    fn wrong_addresses_are_named_without_their_password() {
        for text in [
            "http://x",
            "mysql://u:secret@h:99999",
            "mysql://u:secret@h/db",
            "mysql://u:secret@h?ssl=1",
            "mysql://u:%zz@h",
            "mysql://u:secret@h?ssl-mode=on",
        ] {
            let error = Address::parse(text, None).unwrap_err().to_string();
            assert!(!error.contains("secret") && !error.contains("%zz"), "{error}");
        }
    }
}
