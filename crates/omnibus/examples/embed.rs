//! A program with a database in it: counts how often it was started. `cargo run -p omnibus --example embed -- DIR`
#![allow(missing_docs)]

use omnibus::{Options, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "embedded.data".to_owned());
    let server = Server::start(&Options::new(folder))?;
    let mut session = server.session("root", "")?;
    session.query("CREATE DATABASE IF NOT EXISTS program")?;
    session.query("USE program")?;
    session.query(
        "CREATE TABLE IF NOT EXISTS starts (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME NOT NULL)",
    )?;
    session.query("INSERT INTO starts (at) VALUES (NOW())")?;
    let rows = session.query("SELECT COUNT(*) FROM starts")?;
    println!("start number {}", rows.text(0, 0).unwrap_or("?"));
    server.stop()?;
    Ok(())
}
