//! REQUIRE: what a connection has to be like for an account.

use crate::net::Transport;
use omnibus_parser::ast::Require;
use omnibus_value::json::Json;
use omnibus_value::literal::doubled as quote;
use std::fmt::Write;

/// The condition of REQUIRE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Requirement {
    /// NONE.
    #[default]
    Nothing,
    /// SSL.
    Tls,
    /// X509: a certificate that the server's authority has signed.
    Certificate,
    /// SUBJECT, ISSUER and CIPHER: such a certificate, and what is not empty is exactly so.
    Specified(Specified),
}

/// Names of a certificate and of a cipher suite, as OpenSSL writes them. Empty is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the words of the statement
pub struct Specified {
    pub subject: String,
    pub issuer: String,
    pub cipher: String,
}

impl Requirement {
    /// From a statement.
    #[must_use]
    pub fn of(require: &Require) -> Requirement {
        match require {
            Require::None => Requirement::Nothing,
            Require::Ssl => Requirement::Tls,
            Require::X509 => Requirement::Certificate,
            Require::Specified(list) => {
                let mut own = Specified::default();
                for (name, value) in list {
                    let place = match name.as_str() {
                        "SUBJECT" => &mut own.subject,
                        "ISSUER" => &mut own.issuer,
                        _ => &mut own.cipher,
                    };
                    *place = String::from_utf8_lossy(value).into_owned();
                }
                Requirement::Specified(own)
            }
        }
    }

    /// Whether a connection is as it should be.
    #[must_use]
    pub fn is_met(&self, transport: &Transport) -> bool {
        let fits = |wanted: &str, own: &str| wanted.is_empty() || wanted == own;
        match self {
            Requirement::Nothing => true,
            Requirement::Tls => transport.cipher.is_some(),
            Requirement::Certificate => transport.certificate.is_some(),
            Requirement::Specified(own) => match (&transport.cipher, &transport.certificate) {
                (Some(cipher), Some((subject, issuer))) => {
                    fits(&own.cipher, cipher) && fits(&own.subject, subject) && fits(&own.issuer, issuer)
                }
                _ => false,
            },
        }
    }

    /// The text behind REQUIRE, in the order of MySQL, or of MariaDB.
    #[must_use]
    pub fn clause(&self, mariadb: bool) -> String {
        match self {
            Requirement::Nothing => "NONE".to_owned(),
            Requirement::Tls => "SSL".to_owned(),
            Requirement::Certificate => "X509".to_owned(),
            Requirement::Specified(own) => {
                let mut text = String::new();
                let mut names = [("SUBJECT", &own.subject), ("ISSUER", &own.issuer), ("CIPHER", &own.cipher)];
                if mariadb {
                    names.swap(0, 1);
                }
                for (word, value) in names {
                    if !value.is_empty() {
                        let space = if text.is_empty() { "" } else { " " };
                        let _ = write!(text, "{space}{word} '{}'", quote(value));
                    }
                }
                text
            }
        }
    }

    /// The `ssl_type` of `mysql.user`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Requirement::Nothing => "",
            Requirement::Tls => "ANY",
            Requirement::Certificate => "X509",
            Requirement::Specified(_) => "SPECIFIED",
        }
    }

    /// From that, and from the names that stand in `Attributes`.
    #[must_use]
    pub fn read(kind: &str, names: Option<&Json>) -> Requirement {
        let name = |name: &str| match names.and_then(|names| names.get(name)) {
            Some(Json::String(text)) => text.clone(),
            _ => String::new(),
        };
        match kind {
            "" | "NONE" => Requirement::Nothing,
            "X509" => Requirement::Certificate,
            "SPECIFIED" => Requirement::Specified(Specified {
                subject: name("subject"),
                issuer: name("issuer"),
                cipher: name("cipher"),
            }),
            _ => Requirement::Tls,
        }
    }

    /// The names, if it has some.
    #[must_use]
    pub fn specified(&self) -> Specified {
        match self {
            Requirement::Specified(own) => own.clone(),
            _ => Specified::default(),
        }
    }

    /// For `Attributes`.
    #[must_use]
    pub fn names(&self) -> Option<Json> {
        let Requirement::Specified(own) = self else { return None };
        let member = |name: &str, value: &str| (name.to_owned(), Json::String(value.to_owned()));
        Some(Json::object([
            member("subject", &own.subject),
            member("issuer", &own.issuer),
            member("cipher", &own.cipher),
        ]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_connection_has_to_be_as_it_is_told() {
        let plain = Transport::default();
        let tls = Transport { cipher: Some("TLS_AES_256_GCM_SHA384".into()), certificate: None };
        let shown = Transport { certificate: Some(("/CN=ann".into(), "/O=us/CN=ca".into())), ..tls.clone() };
        let own = |subject: &str, issuer: &str, cipher: &str| {
            let [subject, issuer, cipher] = [subject, issuer, cipher].map(str::to_owned);
            Requirement::Specified(Specified { subject, issuer, cipher })
        };
        let met = |requirement: &Requirement| [&plain, &tls, &shown].map(|t| requirement.is_met(t));
        assert_eq!(met(&Requirement::Nothing), [true, true, true]);
        assert_eq!(met(&Requirement::Tls), [false, true, true]);
        assert_eq!(met(&Requirement::Certificate), [false, false, true]);
        assert_eq!(met(&own("/CN=ann", "/O=us/CN=ca", "TLS_AES_256_GCM_SHA384")), [false, false, true]);
        for wrong in [own("/CN=bob", "", ""), own("", "/CN=ca", ""), own("", "", "TLS_AES_128_GCM_SHA256")] {
            assert_eq!(met(&wrong), [false; 3]);
        }
        for kept in [Requirement::Tls, Requirement::Certificate, own("/CN=it's", "", "x")] {
            assert_eq!(Requirement::read(kept.kind(), kept.names().as_ref()), kept);
        }
        assert_eq!(own("/CN=it's", "", "x").clause(false), "SUBJECT '/CN=it''s' CIPHER 'x'");
    }
}
