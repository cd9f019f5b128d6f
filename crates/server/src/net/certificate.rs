//! Names of a client's certificate, as OpenSSL's one-line form has them, which accounts are told in: `/C=DE/O=Example/CN=ann`.

use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Decode, Reader, SliceReader, Tagged};

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
    let signed = parts(AnyRef::from_der(der).ok()?)?;
    let fields = parts(*signed.first()?)?;
    // Number, algorithm, issuer, validity, subject: RFC 5280, 4.1. The version in front is left out if it is the first.
    let number = usize::from(fields.first()?.tag().is_context_specific());
    Some((one_line(*fields.get(number + 4)?)?, one_line(*fields.get(number + 2)?)?))
}

/// The values inside of a sequence or set.
fn parts(whole: AnyRef<'_>) -> Option<Vec<AnyRef<'_>>> {
    let mut reader = SliceReader::new(whole.value()).ok()?;
    let mut parts = Vec::new();
    while !reader.is_finished() {
        parts.push(AnyRef::decode(&mut reader).ok()?);
    }
    Some(parts)
}

fn one_line(name: AnyRef<'_>) -> Option<String> {
    let mut text = String::new();
    for together in parts(name)? {
        for attribute in parts(together)? {
            let [kind, value] = parts(attribute)?[..] else { return None };
            let number = kind.decode_as::<ObjectIdentifier>().ok()?.to_string();
            let word = SHORT.iter().find(|(own, _)| *own == number).map_or(number.as_str(), |(_, word)| word);
            text.push('/');
            text.push_str(word);
            text.push('=');
            for byte in value.value() {
                match byte {
                    b' '..=b'~' => text.push(char::from(*byte)),
                    other => text.push_str(&format!("\\x{other:02X}")),
                }
            }
        }
    }
    Some(text)
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

        let whole = made.der();
        for end in 0..whole.len() {
            assert_eq!(names(&whole[..end]), None, "its first {end} bytes");
        }
        for at in 0..whole.len() {
            let mut other = whole.to_vec();
            other[at] ^= 0xff;
            // Whatever it says, it is no panic.
            let _ = names(&other);
        }
    }
}
