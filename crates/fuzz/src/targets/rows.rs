//! Row images: a table's TABLE_MAP, then rows of it.

use bytes::Bytes;
use omnibus_format::EventType;
use omnibus_format::events::{Rows, TableMap};
use omnibus_format::row::{Images, RowImage, RowShape, project};

const TYPES: [EventType; 8] = [
    EventType::WRITE_ROWS,
    EventType::UPDATE_ROWS,
    EventType::DELETE_ROWS,
    EventType::PARTIAL_UPDATE_ROWS,
    EventType::WRITE_ROWS_V1,
    EventType::UPDATE_ROWS_V1,
    EventType::DELETE_ROWS_V1,
    EventType::PRE_GA_UPDATE_ROWS,
];

/// The first byte says which event and whose table map, two more how long that is.
pub(super) fn images(input: &[u8]) {
    let [how, low, high, rest @ ..] = input else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (map, body) = rest.split_at(len);
    let Ok(map) = TableMap::decode_dialect(map, how & 0x80 != 0) else { return };
    let shape = RowShape::of_table_map(&map);
    let Ok(rows) = Rows::decode(TYPES[usize::from(how & 7)], body) else { return };
    let Ok(images) = Images::new(rows, &shape) else { return };
    for change in images {
        let Ok(change) = change else { return };
        for image in [change.before, change.after].into_iter().flatten() {
            check(&shape, &image);
        }
    }
}

fn check(shape: &RowShape, image: &RowImage<'_>) {
    let _ = image.json_diffs(shape);
    let decoded = image.decode(shape);
    if !image.is_full(shape) {
        return;
    }
    let row = Bytes::copy_from_slice(image.bytes);
    let Ok(values) = shape.decode_row(&row) else {
        assert!(decoded.is_err(), "one decoder reads what the other one does not");
        return;
    };
    let decoded: Vec<_> = decoded.expect("the other decoder read it").into_iter().flatten().collect();
    assert_eq!(format!("{decoded:?}"), format!("{values:?}"));
    for (at, value) in values.iter().enumerate() {
        let one = shape.column(&row, at).expect("a column of a row that decodes");
        assert_eq!(format!("{one:?}"), format!("{value:?}"));
    }
    if let Ok(bytes) = shape.encode_row(&values) {
        let again = shape.decode_row(&Bytes::from(bytes)).expect("what was encoded");
        assert_eq!(format!("{again:?}"), format!("{values:?}"));
    }
    let mut projected = Vec::new();
    project(shape, image.bytes, image.columns, &mut projected).expect("all columns of a whole row");
    // Spare bits behind the last column's may be set in what another server wrote.
    let again = shape.decode_row(&Bytes::from(projected)).expect("a row of which nothing was left out");
    assert_eq!(format!("{again:?}"), format!("{values:?}"));
}
