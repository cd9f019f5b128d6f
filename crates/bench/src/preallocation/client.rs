//! The smallest client that can insert rows: logs in as `root` without a password over a unix socket and runs statements
//! that give no rows. For the benchmark only.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH.
const CAPABILITIES: u32 = 1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const UTF8MB4: u8 = 45;

/// A connection.
pub(super) struct Client {
    stream: UnixStream,
    sequence: u8,
    out: Vec<u8>,
}

impl Client {
    pub(super) fn connect(socket: &Path) -> io::Result<Client> {
        let mut client = Client { stream: UnixStream::connect(socket)?, sequence: 0, out: Vec::new() };
        client.receive()?;
        let mut answer = CAPABILITIES.to_le_bytes().to_vec();
        answer.extend_from_slice(&(16_u32 << 20).to_le_bytes());
        answer.push(UTF8MB4);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(b"root\0\0mysql_native_password\0");
        client.send(&answer)?;
        loop {
            let packet = client.receive()?;
            match packet.first() {
                Some(0) => return Ok(client),
                // Another authentication plugin: an empty password is an empty answer in each.
                Some(0xfe) => client.send(&[])?,
                Some(1) => {}
                _ => return Err(server_error(&packet)),
            }
        }
    }

    /// Runs a statement that gives no rows.
    pub(super) fn execute(&mut self, sql: &str) -> io::Result<()> {
        self.sequence = 0;
        let mut packet = Vec::with_capacity(sql.len() + 1);
        packet.push(3);
        packet.extend_from_slice(sql.as_bytes());
        self.send(&packet)?;
        let answer = self.receive()?;
        if answer.first() == Some(&0) { Ok(()) } else { Err(server_error(&answer)) }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.out.clear();
        self.out.extend_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
        self.out.push(self.sequence);
        self.out.extend_from_slice(packet);
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&self.out)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.sequence = head[3].wrapping_add(1);
        let mut packet = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut packet)?;
        Ok(packet)
    }
}

/// Code, SQLSTATE and text of an error packet.
fn server_error(packet: &[u8]) -> io::Error {
    let text = packet.get(3..).unwrap_or_default();
    io::Error::other(format!("the server says: {}", String::from_utf8_lossy(text)))
}
