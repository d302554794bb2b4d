//! PEM as Go's `encoding/pem` reads it: bad blocks are skipped, not reported.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::SecretBytes;

/// One block.
pub struct Block {
    /// What stands after `BEGIN`.
    pub label: String,
    /// The decoded content, which may be a private key.
    pub der: SecretBytes,
}

/// The well-formed blocks of `input`, in order.
pub fn blocks(input: &[u8]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut label: Option<String> = None;
    let mut body: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::new());
    for line in input.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii_end();
        if let Some(name) = between(line, b"-----BEGIN ") {
            label = Some(name);
            body.clear();
        } else if let Some(name) = between(line, b"-----END ") {
            let opened = label.take().filter(|label| *label == name);
            if let (Some(label), Ok(der)) = (opened, STANDARD.decode(body.as_slice())) {
                found.push(Block { label, der: SecretBytes::new(der) });
            }
            body.clear();
        } else if label.is_some() && !line.contains(&b':') {
            body.extend(line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()));
        }
    }
    found
}

fn between(line: &[u8], prefix: &[u8]) -> Option<String> {
    let name = line.strip_prefix(prefix)?.strip_suffix(b"-----")?;
    std::str::from_utf8(name).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_and_bad_ones_are_skipped() {
        let check = |input: &str, expected: &[(&str, &[u8])]| {
            let blocks = blocks(input.as_bytes());
            let found: Vec<_> =
                blocks.iter().map(|block| (block.label.as_str(), block.der.expose())).collect();
            assert_eq!(found, expected, "{input}");
        };
        check("", &[]);
        check("text", &[]);
        check("-----BEGIN A-----\nYWJj\n-----END A-----", &[("A", b"abc")]);
        check("junk\r\n-----BEGIN A-----\r\nYW\r\nJj\r\n-----END A-----\r\n", &[("A", b"abc")]);
        check("-----BEGIN A-----\nK: v\n\nYWJj\n-----END A-----\n", &[("A", b"abc")]);
        check(
            "-----BEGIN A-----\n!!\n-----END A-----\n-----BEGIN B-----\nYQ==\n-----END B-----\n",
            &[("B", b"a")],
        );
        check("-----BEGIN A-----\nYWJj\n-----END B-----\n", &[]);
        check("-----BEGIN A-----\nYWJj\n", &[]);
    }
}
