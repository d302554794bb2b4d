//! The static token file: `token,user,uid[,"group1,group2"]`, read once at start.

use std::collections::HashMap;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};

use super::{TokenAuthenticator, TokenUser, audiences_of_server};
use crate::ports::{AuthenticationSource, UserInfo};

/// The users of a token file, by the hash of their token.
pub struct TokenFile {
    users: HashMap<[u8; 32], UserInfo>,
    api_audiences: Vec<String>,
}

impl TokenFile {
    /// Reads the file's text. `path` is only for messages.
    ///
    /// # Errors
    /// Upstream's text for a malformed line; never holds a token.
    pub fn parse(path: &str, text: &str, api_audiences: Vec<String>) -> Result<Self, String> {
        let mut users = HashMap::new();
        for (number, record) in records(text)?.into_iter().enumerate() {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(format!(
                    "token file '{path}' must have at least 3 columns (token, user name, user uid), found {}",
                    record.len()
                ));
            };
            let number = number + 1;
            if token.is_empty() {
                tracing::warn!(path, record = number, "empty token has been found in token file");
                continue;
            }
            let groups =
                rest.first().map(|groups| groups.split(',').map(str::to_owned).collect()).unwrap_or_default();
            let user = UserInfo { name: name.clone(), uid: uid.clone(), groups, ..UserInfo::default() };
            if users.insert(hash(token), user).is_some() {
                tracing::warn!(path, record = number, "duplicate token has been found in token file");
            }
        }
        Ok(Self { users, api_audiences })
    }
}

#[async_trait]
impl TokenAuthenticator for TokenFile {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let Some(audiences) = audiences_of_server(&self.api_audiences, audiences) else { return Ok(None) };
        let user = self.users.get(&hash(token)).cloned();
        Ok(user.map(|user| TokenUser {
            user,
            source: AuthenticationSource::TokenFile,
            audiences,
            warnings: Vec::new(),
        }))
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// CSV as Go's `encoding/csv` reads it: quoted fields may hold commas, line breaks and doubled quotes.
fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let mut record = Vec::new();
        loop {
            let (field, after, lines) = field(rest, line)?;
            record.push(field);
            line += lines;
            rest = after;
            if let Some(next) = rest.strip_prefix(',') {
                rest = next;
                continue;
            }
            rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
            line += 1;
            break;
        }
        if record != [""] {
            records.push(record);
        }
    }
    Ok(records)
}

/// One field, what follows it, and how many line breaks it holds.
fn field(text: &str, line: usize) -> Result<(String, &str, usize), String> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\n']).unwrap_or(text.len());
        let (field, after) = text.split_at(end);
        let (field, after) = match field.strip_suffix('\r') {
            Some(shorter) if !after.starts_with(',') => (shorter, &text[shorter.len()..]),
            _ => (field, after),
        };
        if field.contains('"') {
            return Err(format!("parse error on line {line}: bare \" in non-quoted-field"));
        }
        return Ok((field.to_owned(), after, 0));
    };
    let mut field = String::new();
    loop {
        let Some(end) = rest.find('"') else {
            return Err(format!(
                "record on line {line}: parse error: extraneous or missing \" in quoted-field"
            ));
        };
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => break,
        }
    }
    if !(rest.is_empty() || rest.starts_with([',', '\n']) || rest.starts_with("\r\n")) {
        return Err(format!("parse error on line {line}: extraneous or missing \" in quoted-field"));
    }
    let lines = field.matches('\n').count();
    Ok((field, rest, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_as_go_reads_it() {
        for (text, expected) in [
            ("a,b,c\n", Ok(vec![vec!["a", "b", "c"]])),
            ("a,b,c,\"g1,g2\"\r\n\r\nd,e,f", Ok(vec![vec!["a", "b", "c", "g1,g2"], vec!["d", "e", "f"]])),
            ("\"a\"\"b\",\"x\ny\",\n", Ok(vec![vec!["a\"b", "x\ny", ""]])),
            ("", Ok(vec![])),
            ("a\"b,c\n", Err(())),
            ("\"a\n", Err(())),
            ("\"a\"b,c\n", Err(())),
        ] {
            let expected: Result<Vec<Vec<String>>, ()> = expected.map(|records| {
                records.into_iter().map(|record| record.into_iter().map(str::to_owned).collect()).collect()
            });
            assert_eq!(records(text).map_err(|_| ()), expected, "{text:?}");
        }
    }

    #[test]
    fn a_short_line_is_refused_without_its_token() {
        let error = TokenFile::parse("F", "hunter2,u\n", Vec::new()).err().expect("too short");
        assert_eq!(
            error,
            "token file 'F' must have at least 3 columns (token, user name, user uid), found 2"
        );
    }
}
