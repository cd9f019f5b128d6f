//! Private payloads.

use crate::private::*;

#[test]
fn every_kind_round_trips() {
    let mut out = Vec::new();
    let writes: [(&[u8], Option<&[u8]>); 3] = [(b"k1", Some(b"v")), (b"k2", None), (b"", Some(b""))];
    encode_write_set(&mut out, writes);
    let Some(Private::WriteSet(set)) = Private::decode(&out).unwrap() else { panic!() };
    assert_eq!(set.iter().collect::<Vec<_>>(), writes);
    for cut in 7..out.len() {
        let whole = Private::decode(&out[..cut]).ok().flatten();
        assert!(!matches!(whole, Some(Private::WriteSet(s)) if s.len() == 3), "cut {cut}");
    }

    out.clear();
    begin_all_writes(&mut out);
    writes.iter().for_each(|(key, value)| put_write(&mut out, key, *value));
    let Some(Private::AllWrites(set)) = Private::decode(&out).unwrap() else { panic!() };
    assert_eq!(set.iter().collect::<Vec<_>>(), writes);

    out.clear();
    let ids = [5, 6, 7, u64::MAX, 0, 1 << 40];
    encode_row_ids(&mut out, &ids);
    let Some(Private::RowIds(found)) = Private::decode(&out).unwrap() else { panic!() };
    assert_eq!(found.iter().collect::<Vec<_>>(), ids);

    out.clear();
    encode_build_index(&mut out, 3, 4);
    assert_eq!(Private::decode(&out).unwrap(), Some(Private::BuildIndex { table_id: 3, index_id: 4 }));
    out.clear();
    encode_drop_spaces(&mut out, &[1, u32::MAX]);
    assert_eq!(Private::decode(&out).unwrap(), Some(Private::DropSpaces(vec![1, u32::MAX])));
    out.clear();
    encode_filler(&mut out, 100);
    assert_eq!((out.len(), Private::decode(&out).unwrap()), (100, Some(Private::Filler(94))));
}

#[test]
fn what_the_commit_path_writes_has_a_name() {
    let number = 7u64.to_le_bytes();
    for (kind, expected) in
        [(200, Private::Filler(8)), (201, Private::FileStart(7)), (202, Private::CommitMark(7))]
    {
        let body = [b"OMNI", &[kind, 1][..], &number].concat();
        assert_eq!(Private::decode(&body).unwrap(), Some(expected));
    }
}

#[test]
fn foreign_and_future_payloads_are_told_apart() {
    assert_eq!(Private::decode(b"other").unwrap(), None);
    let future = Private::Unknown { kind: 1, version: 2 };
    assert_eq!(Private::decode(b"OMNI\x01\x02....").unwrap(), Some(future));
    assert!(Private::decode(b"OMNI\x01\x01\x07").is_err());
}
