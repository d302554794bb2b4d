//! Just enough plain HTTP to ask a peer on loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Status code and body.
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Body.
    pub body: String,
}

/// Sends one request to `http://HOST:PORT` and reads the answer; `None` when nobody answers.
pub fn request(base: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
    let address = base.strip_prefix("http://")?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let mut text =
        format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    stream.write_all(text.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}
