//! OMNIBUS_OLD_VERSIONS.

use crate::monitoring::{Row, text, text_or_null, time};
use crate::old_versions::{Held, behind, held, oldest_number};
use crate::server::Server;
use omnibus_engine::CommitNo;
use omnibus_value::Value;

/// `OMNIBUS_OLD_VERSIONS`: the snapshots for which versions are kept, the oldest first. One that is the server's own, for a definition or a
/// backup, has no connection.
pub(crate) fn old_versions(server: &Server) -> Vec<Row> {
    let Some(coordinator) = server.log.coordinator() else { return Vec::new() };
    let now = crate::clock::now_us();
    let (held, published) = (held(&server.processes), coordinator.published());
    let snapshot = |number: CommitNo| {
        let kept = coordinator.engine().kept_since(number);
        let figures = [number.0, behind(published, number), kept.bytes, kept.files];
        let names = ["SNAPSHOT", "COMMITS_BEHIND", "KEPT_BYTES", "KEPT_FILES"];
        names.into_iter().zip(figures.map(Value::UInt))
    };
    let of_connection = |held: &Held| {
        let line = held.process.line(now);
        let mut row = vec![
            ("CONNECTION_ID", Value::UInt(line.id.into())),
            ("USER", text(&line.identity.user)),
            ("HOST", text(&line.identity.host)),
            ("SINCE", time(held.since_us)),
            ("SECONDS", Value::UInt(held.seconds(now))),
            ("STATE", text_or_null(line.state)),
            ("QUERY", line.info.as_deref().map_or(Value::Null, text)),
        ];
        row.extend(snapshot(held.number));
        row
    };
    let any = oldest_number(published, &held);
    let own = held.first().is_none_or(|held| any < held.number) && any < published.number();
    let of_server = own.then(|| snapshot(any).collect());
    of_server.into_iter().chain(held.iter().map(of_connection)).collect()
}
