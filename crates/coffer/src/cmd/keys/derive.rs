//! `coffer keys derive`.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_crypto::check_value::{KeyIdentity, key_check_value, root_check_value};
use coffer_crypto::derive::{Algorithm, Bundle, DeriveError, Profile, derive, to_base64};
use coffer_types::SecretBytes;
use serde::Serialize;

use crate::cli::{Derive, Global, Output};
use crate::exit::{Exit, Failure};
use crate::{print, put};

/// No root secret is larger, and every usual mistake is smaller.
const LARGEST_ROOT_FILE: u64 = 4096;

/// Bits of a file's mode that let others than its owner at it.
const OTHERS: u32 = 0o077;

/// What `-o json` shows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Derived<'a> {
    group: &'a str,
    dimension: &'a str,
    /// As text: a JSON number above 2^53 is not the same everywhere.
    revision: String,
    algorithm: &'static str,
    profile: String,
    key_check_value: String,
    root_check_value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

/// Prints the key, or its check value.
pub(super) fn run(global: &Global, flags: &Derive) -> Result<Exit, Failure> {
    let wrong_flag = |flag: &str, error: &DeriveError| Failure::usage(format!("{flag}: {error}"));
    let algorithm: Algorithm = flags.algorithm.parse().map_err(|error| {
        let names = Algorithm::ALL.map(Algorithm::name).join(" or ");
        wrong_flag("--algorithm", &error).next(format!("name {names}"))
    })?;
    let profile: Profile = flags.profile.parse().map_err(|error| {
        let names: Vec<String> = Profile::all().map(|profile| profile.to_string()).collect();
        wrong_flag("--profile", &error).next(format!("name one of {}", names.join(", ")))
    })?;
    let root = root_secret(&flags.root_file)?;
    let identity = KeyIdentity { group: &flags.group, dimension: &flags.dimension, revision: flags.revision };
    let bundle = Bundle { identity, seed: &flags.seed, algorithm };
    let key = derive(root.expose(), bundle, profile).map_err(|error| match &error {
        DeriveError::Root(_) => Failure::problem(format!("{}: {error}", flags.root_file.display()))
            .next("make one with: openssl rand -out FILE 32"),
        DeriveError::SeedText | DeriveError::SeedLength(_) => wrong_flag("--seed", &error)
            .next("write the seed as 64 hexadecimal digits, as the seed bundle holds it"),
        _ => Failure::usage(&error),
    })?;
    let check = key_check_value(key.expose(), identity).ok_or_else(|| Failure::problem("no check value"))?;
    let encoded = to_base64(&key);
    let encoded = std::str::from_utf8(encoded.expose()).map_err(Failure::problem)?;
    match global.output {
        Output::Table => put(&format!("{}\n", if flags.check_only { &check } else { encoded }))?,
        Output::Name => put(&format!("key_{}\n", flags.revision))?,
        Output::Json | Output::Yaml => {
            let root = root_check_value(root.expose(), &flags.group);
            let shown = Derived {
                group: &flags.group,
                dimension: &flags.dimension,
                revision: flags.revision.to_string(),
                algorithm: algorithm.name(),
                profile: profile.to_string(),
                key_check_value: check,
                root_check_value: root.ok_or_else(|| Failure::problem("no check value"))?,
                key: (!flags.check_only).then_some(encoded),
            };
            put(&print::document(&shown, global.output)?)?;
        }
    }
    Ok(Exit::Done)
}

/// The bytes of a file that only its owner can read.
fn root_secret(file: &Path) -> Result<SecretBytes, Failure> {
    let shown = file.display();
    let unreadable = |error| {
        Failure::unreachable(format!("cannot read {shown}: {error}"))
            .next("name a file that is there and that this user may read with --root-file")
    };
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    let metadata = opened.metadata().map_err(unreadable)?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & OTHERS != 0 {
        return Err(Failure::problem(format!(
            "{shown} holds a root secret, but others may use it (mode {mode:04o})"
        ))
        .next(format!("type: chmod 600 {shown}")));
    }
    let mut bytes = Vec::with_capacity(LARGEST_ROOT_FILE as usize);
    opened.take(LARGEST_ROOT_FILE).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(SecretBytes::new(bytes))
}
