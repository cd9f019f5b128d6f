//! Times the parser on the statements of the benchmarks: `cargo run --release -p omnibus-parser --example parse_speed`.

use std::hint::black_box;
use std::time::Instant;

use omnibus_parser::{ParseOptions, parse_first};

fn time(name: &str, sql: &[u8], rounds: u32) {
    let options = ParseOptions::default();
    let best = (0..7)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                let _ = black_box(parse_first(black_box(sql), &options));
            }
            start.elapsed() / rounds
        })
        .min()
        .unwrap_or_default();
    let rate = sql.len() as f64 / best.as_secs_f64() / 1e6;
    println!(
        "{name:<28} {:>9.2} us {rate:>8.0} MB/s  {:?}",
        best.as_secs_f64() * 1e6,
        parse_first(sql, &options).is_ok()
    );
}

fn main() {
    time("point select", b"SELECT c FROM sbtest1 WHERE id=1", 100_000);
    time("update", b"UPDATE sbtest1 SET k=k+1 WHERE id=1", 100_000);
    time("insert sysbench", b"INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, 4992833, '83868641912-28773972837-60736120486-75162659906-27563526494-20381887404-41576422241-93426793964-56405065102-33518432330', '67847967377-48000963322-62604785301-91415491898-96926520291')", 100_000);
    time("insert mysqlslap", b"INSERT INTO t1 VALUES (1804289383,'mxvtvmC9127qJNm06sGB8R92q2j7vTiiITRDGXM9ZLzkdekbWtmXKwZ2qG1llkRw5m9DHOFilEREk3q7oce8O3BEJC0woJsm6uzFAEynLH2xCsw1KQ1lT4zg9rdxBL')", 100_000);
    time(
        "distinct between",
        b"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 100 AND 200 ORDER BY c",
        100_000,
    );
    time("begin", b"BEGIN", 100_000);
    let row = "(501,'68487932199-96439406143-93774651418-41631865787-96406072701-20604855487-25459966574-28203206787-41238978918-19503783441','22195207048-70116052123-74140395089-76317954521-98694025897')";
    let big = format!("INSERT INTO sbtest1(k, c, pad) VALUES{}", vec![row; 5000].join(","));
    time("1 MB sysbench rows", big.as_bytes(), 20);
    let small = format!("INSERT INTO t VALUES{}", vec!["(1,2,'abc',NULL,3.5)"; 50_000].join(","));
    time("1 MB small rows", small.as_bytes(), 20);
}
