//! Private payloads.

use crate::LogPrivate;
use crate::group::{ChainStart, GroupHead};
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
    LogPrivate::Filler(94).encode(&mut out);
    assert_eq!(
        (out.len(), Private::decode(&out).unwrap()),
        (100, Some(Private::Log(LogPrivate::Filler(94))))
    );
}

#[test]
fn what_the_commit_path_writes_has_a_name() {
    let elsewhere: crate::GtidSet = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".parse().unwrap();
    let (gtid, none) = (elsewhere.clone(), crate::GtidSet::new());
    for said in [
        LogPrivate::FileStart { first: 7, elsewhere: elsewhere.clone(), chain: None },
        LogPrivate::FileStart {
            first: 7,
            elsewhere,
            chain: Some(ChainStart { salt: 1, before_end: 2, before_chain: 3, crc: 4 }),
        },
        LogPrivate::Group {
            head: GroupHead { len: 1, durable: 2, previous: 3, chain: 4, seal: 5 },
            spare: 6,
        },
        LogPrivate::CommitMark { no: 7, len: 100, gtid },
        LogPrivate::CommitMark { no: 7, len: 100, gtid: none },
    ] {
        let mut body = Vec::new();
        said.encode(&mut body);
        // A group head's spare bytes are zeros of any number.
        let spare = if let LogPrivate::Group { spare, .. } = &said { *spare } else { 0 };
        assert!(
            (0..body.len() - spare)
                .all(|cut| !matches!(Private::decode(&body[..cut]), Ok(Some(Private::Log(_)))))
        );
        assert_eq!(Private::decode(&body).unwrap(), Some(Private::Log(said)));
    }
    // As the first version wrote it.
    let old = [b"OMNI", &[201, 1][..], &7u64.to_le_bytes(), &9u64.to_le_bytes()].concat();
    let start = LogPrivate::FileStart { first: 7, elsewhere: crate::GtidSet::new(), chain: None };
    assert_eq!(Private::decode(&old).unwrap(), Some(Private::Log(start)));
    let later = Private::Unknown { kind: 201, version: 9 };
    assert_eq!(Private::decode(b"OMNI\xc9\x09....").unwrap(), Some(later));
}

#[test]
fn foreign_and_future_payloads_are_told_apart() {
    assert_eq!(Private::decode(b"other").unwrap(), None);
    let future = Private::Unknown { kind: 1, version: 2 };
    assert_eq!(Private::decode(b"OMNI\x01\x02....").unwrap(), Some(future));
    assert!(Private::decode(b"OMNI\x01\x01\x07").is_err());
}
