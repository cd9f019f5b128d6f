//! Names of a client's certificate, as OpenSSL's one-line form has them, which accounts are told in: `/C=DE/O=Example/CN=ann`.

use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::FromDer;
use x509_parser::x509::X509Name;

/// Short names of the attributes that certificates have; others stand there by number.
const SHORT: [(&str, &str); 17] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
];

/// Subject and issuer. `None`: it is no certificate.
#[must_use]
pub fn names(der: &[u8]) -> Option<(String, String)> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some((one_line(certificate.subject()), one_line(certificate.issuer())))
}

fn one_line(name: &X509Name<'_>) -> String {
    let mut text = String::new();
    for attribute in name.iter_attributes() {
        let number = attribute.attr_type().to_id_string();
        let word = SHORT.iter().find(|(own, _)| *own == number).map_or(number.as_str(), |(_, word)| word);
        text.push('/');
        text.push_str(word);
        text.push('=');
        for byte in attribute.attr_value().data {
            match byte {
                b' '..=b'~' => text.push(char::from(*byte)),
                other => text.push_str(&format!("\\x{other:02X}")),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};

    fn named(parts: &[(DnType, &str)]) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params
    }

    #[test]
    fn names_are_written_as_openssl_does() {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let ca = named(&[(DnType::CountryName, "DE"), (DnType::CommonName, "Own CA")]);
        let client = named(&[(DnType::OrganizationName, "Müll & Co"), (DnType::CommonName, "ann")]);
        let made = client.signed_by(&key, &Issuer::new(ca, &ca_key)).unwrap();
        let found = names(made.der()).unwrap();
        assert_eq!(found, ("/O=M\\xC3\\xBCll & Co/CN=ann".to_owned(), "/C=DE/CN=Own CA".to_owned()));
    }
}
