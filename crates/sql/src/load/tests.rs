//! Files as bytes, and the fields that come out of them.
#![allow(clippy::unwrap_used)]

use super::reader::{Field, FieldReader};
use super::{LoadInput, Spool};
use crate::text_file::Format;
use omnibus_parser::ast::FileFormat;

fn format(parts: [&str; 5]) -> Format {
    let part = |at: usize| Some(bytes::Bytes::copy_from_slice(parts[at].as_bytes()));
    let tree = FileFormat {
        fields_terminated: part(0),
        fields_enclosed: part(1),
        fields_escaped: part(2),
        lines_starting: part(3),
        lines_terminated: part(4),
        ..FileFormat::default()
    };
    Format::new(&tree, false).unwrap()
}

fn reader(text: &[u8], format: Format) -> FieldReader {
    FieldReader::new(LoadInput::Memory(bytes::Bytes::copy_from_slice(text)).reader(), format, 1 << 20)
}

/// All lines; NULL is `None`.
fn lines(text: &[u8], format: Format) -> Vec<Vec<Option<String>>> {
    let mut reader = reader(text, format);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        loop {
            match reader.field().unwrap() {
                Field::None => break,
                Field::Null => line.push(None),
                Field::Text => line.push(Some(String::from_utf8_lossy(reader.text()).into_owned())),
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
        if !reader.next_line().unwrap() {
            return lines;
        }
    }
}

fn texts(lines: &[Vec<Option<String>>]) -> Vec<Vec<&str>> {
    lines.iter().map(|line| line.iter().map(|f| f.as_deref().unwrap_or("<NULL>")).collect()).collect()
}

#[test]
fn tabs_lines_and_escapes() {
    let default = Format::new(&FileFormat::default(), false).unwrap();
    let found = lines(b"a\tb\\tc\n\\N\t\\\\N\nx\\\ny\t\\0\\Z\\q\nNULL\tlast", default);
    assert_eq!(
        texts(&found),
        [vec!["a", "b\tc"], vec!["<NULL>", "\\N"], vec!["x\ny", "\0\x1aq"], vec!["NULL", "last"]]
    );
}

#[test]
fn quotes_double_and_may_hold_anything() {
    let csv = format([",", "\"", "\\", "", "\r\n"]);
    let found = lines(b"\"a,\"\"b\"\"\",c\r\n\"x\r\ny\",NULL,\"NULL\"\r\n\"open", csv);
    assert_eq!(texts(&found), [vec!["a,\"b\"", "c"], vec!["x\r\ny", "<NULL>", "NULL"], vec!["\"open"]]);
    let own = format([",", "\"", "\"", "", "\n"]);
    assert_eq!(texts(&lines(b"\"fie\"\"ld1\",\"f2\"\n", own)), [vec!["fie\"ld1", "f2"]]);
    // A quote within a field, or not before a separator, is a character.
    let csv = format([",", "\"", "\\", "", "\n"]);
    assert_eq!(texts(&lines(b"a\"b,\"c\"d\"\n", csv)), [vec!["a\"b", "c\"d"]]);
}

#[test]
fn separators_of_several_bytes_and_a_prefix() {
    let odd = format(["<->", "", "", "xxxy", "||"]);
    let found = lines(b"junk xxxxyone<-<->two|x||no prefix||xxxythree||", odd);
    assert_eq!(texts(&found), [vec!["one<-", "two|x"], vec!["three"]]);
}

#[test]
fn fixed_widths() {
    let mut reader = reader(b"abcd\\nfgh\nij\nklmnop", format(["", "", "\\", "", "\n"]));
    let mut found = Vec::new();
    loop {
        if !reader.fixed_line(6).unwrap() {
            break;
        }
        found.push((String::from_utf8_lossy(reader.text()).into_owned(), reader.cut));
        if !reader.next_line().unwrap() {
            break;
        }
        if let Some(last) = found.last_mut() {
            last.1 = reader.cut;
        }
    }
    assert_eq!(found, [("abcd\nf".into(), true), ("ij".into(), false), ("klmnop".into(), false)]);
}

#[test]
fn a_long_file_in_chunks() {
    let mut spool = Spool::default();
    for n in 0..200_000 {
        spool.write(format!("{n}\tvalue {n}\n").as_bytes()).unwrap();
    }
    let input = spool.finish();
    assert!(matches!(input, LoadInput::File(_)));
    for _ in 0..2 {
        let default = Format::new(&FileFormat::default(), false).unwrap();
        let mut reader = FieldReader::new(input.reader(), default, 1 << 20);
        for n in 0..200_000 {
            assert_eq!(reader.field().unwrap(), Field::Text);
            assert_eq!(reader.text(), n.to_string().as_bytes());
            assert_eq!(reader.field().unwrap(), Field::Text);
            assert_eq!(reader.text(), format!("value {n}").as_bytes());
            assert!(reader.next_line().unwrap() || n == 199_999);
        }
    }
}

#[test]
fn a_field_longer_than_a_packet_is_refused() {
    let default = Format::new(&FileFormat::default(), false).unwrap();
    let input = LoadInput::Memory(vec![b'a'; 300_000].into());
    let mut reader = FieldReader::new(input.reader(), default, 100_000);
    assert_eq!(reader.field().unwrap_err().code, 1153);
}

proptest::proptest! {
    /// Whatever the bytes are, reading ends, and gives no more than there was.
    #[test]
    fn any_bytes(text: Vec<u8>, seps in proptest::collection::vec("[,\"a\\\\|\n]{0,2}", 5)) {
        let one = |at: usize| seps[at].chars().next().map(String::from).unwrap_or_default();
        let (enclosed, escape) = (one(1), one(2));
        let format = format([&seps[0], &enclosed, &escape, &seps[3], &seps[4]]);
        let mut reader = reader(&text, format);
        let mut bytes = 0;
        for _ in 0..=text.len() {
            while reader.field().unwrap() != Field::None {
                bytes += reader.text().len();
            }
            if !reader.next_line().unwrap() {
                break;
            }
        }
        proptest::prop_assert!(bytes <= text.len() + 1);
    }
}
