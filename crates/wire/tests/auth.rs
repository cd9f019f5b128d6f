//! Password hashes against published vectors and values that other servers print.
#![allow(clippy::unwrap_used)]

use omnibus_wire::auth::{caching_sha2, native, sha256_crypt};

#[test]
fn sha256_crypt_matches_the_published_vectors() {
    // What the C library's crypt() gives for `$5$` settings.
    let d = sha256_crypt::digest(b"Hello world!", b"saltstring", 5000);
    assert_eq!(std::str::from_utf8(&d).unwrap(), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
    let d = sha256_crypt::digest(b"Hello world!", b"saltstringsaltst", 10000);
    assert_eq!(std::str::from_utf8(&d).unwrap(), "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA");
    let d = sha256_crypt::digest(b"a short string", b"asaltof16chars..", 123456);
    assert_eq!(std::str::from_utf8(&d).unwrap(), "gP3VQ/6X7UUEW3HkBn2w1/Ptq2jxPyzV/cZKmF/wJvD");
}

#[test]
fn native_hash_is_what_mariadb_prints() {
    // SELECT PASSWORD('mypass') on any MariaDB.
    assert_eq!(native::hash_text(b"mypass"), "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4");
    assert_eq!(native::hash_text(b""), "");
    assert_eq!(
        native::parse_hash(b"*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4"),
        Some(native::hash(b"mypass"))
    );
    assert_eq!(native::parse_hash(b"*6C89"), None);
}

#[test]
fn native_answers_prove_the_password_and_nothing_else_does() {
    let salt = [7u8; 20];
    let stored = native::hash(b"secret");
    assert!(native::check(&stored, &salt, &native::answer(b"secret", &salt)));
    assert!(!native::check(&stored, &salt, &native::answer(b"Secret", &salt)));
    assert!(!native::check(&stored, &[8; 20], &native::answer(b"secret", &salt)));
    assert!(!native::check(&stored, &salt, b""));
    assert!(!native::check(&stored, &salt, &[0; 20]));
}

#[test]
fn caching_sha2_fast_and_full() {
    let salt = [9u8; 20];
    let stored = caching_sha2::hash_text(b"secret", &[200; 20]);
    assert_eq!(&stored[..7], b"$A$005$");
    assert_eq!(stored.len(), 70);
    assert!(caching_sha2::is_hash(&stored));
    assert!(caching_sha2::check_full(&stored, b"secret"));
    assert!(!caching_sha2::check_full(&stored, b"secret "));
    assert!(!caching_sha2::check_full(b"$A$FFF", b"secret"));
    let cached = caching_sha2::fast_hash(b"secret");
    assert!(caching_sha2::check_fast(&cached, &salt, &caching_sha2::answer(b"secret", &salt)));
    assert!(!caching_sha2::check_fast(&cached, &salt, &caching_sha2::answer(b"other", &salt)));
    assert!(!caching_sha2::check_fast(&cached, &salt, b""));
}
