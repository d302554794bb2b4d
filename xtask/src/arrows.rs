//! `cargo xtask check-arrows`: which crate may use which, and which habits are kept out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::peers::{cargo, root};

/// What each crate may use inside. The same table stands in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("crypto", &["types"]),
    ("lang", &["types"]),
    ("config", &["types", "crypto", "lang"]),
    ("store", &["types", "crypto"]),
    ("runtime", &["types"]),
    ("server", &["types", "crypto", "lang", "config", "store", "runtime"]),
    ("node", &["types", "runtime"]),
    ("keys", &["types", "crypto", "config", "store", "runtime"]),
    ("providers", &["types", "lang"]),
    ("operator", &["types", "lang", "runtime", "providers"]),
    (
        "coffer",
        &[
            "types",
            "crypto",
            "lang",
            "config",
            "store",
            "runtime",
            "server",
            "node",
            "keys",
            "providers",
            "operator",
        ],
    ),
    (
        "sim",
        &[
            "types",
            "crypto",
            "lang",
            "config",
            "store",
            "runtime",
            "server",
            "node",
            "keys",
            "providers",
            "operator",
        ],
    ),
];

/// Crates without an async runtime, files, clock, network or logging.
const PURE: &[&str] = &["types", "crypto", "lang"];

/// Dependencies that would bring those in.
const IMPURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "hyper",
    "hyper-util",
    "kube",
    "tonic",
    "tracing",
    "rustix",
    "notify",
    "getrandom",
];

/// Words in library code, outside of tests, and where they are allowed.
const HABITS: &[(&str, &[&str], &str)] = &[
    ("env::var", &["coffer"], "only the binary reads the environment"),
    ("env::args", &["coffer"], "only the binary reads arguments"),
    ("env::current_dir", &["coffer"], "only the binary reads the environment"),
    ("env::temp_dir", &["coffer"], "only the binary reads the environment"),
    ("std::process::exit", &["coffer"], "only the binary exits"),
    ("Instant::now", &["runtime"], "time comes in through Clock"),
    ("SystemTime::now", &["runtime"], "time comes in through Clock"),
    ("Timestamp::now", &["runtime"], "time comes in through Clock"),
    ("Zoned::now", &["runtime"], "time comes in through Clock"),
    ("tokio::time", &["runtime", "sim"], "time comes in through Clock"),
    ("getrandom::", &["runtime"], "randomness comes in through Random"),
    ("aws_lc_rs::rand", &["crypto", "server"], "randomness comes in through Random"),
    ("rand::rng", &[], "randomness comes in through Random"),
    ("thread_rng", &[], "randomness comes in through Random"),
    // Field case S19: a controller of one namespace must not list all of them.
    ("Api::all_with", &["runtime", "coffer", "keys"], "reflectors list, with the scope that they are given"),
    ("Api<Secret> = Api::all", &[], "nobody lists the Secrets of all namespaces"),
    ("Api::<Secret>::all", &[], "nobody lists the Secrets of all namespaces"),
];

/// Words that a pure crate's code must not hold.
const IMPURE_WORDS: &[&str] = &["std::fs", "std::net", "std::thread", "std::time::Instant", "SystemTime"];

/// Fails with every wrong arrow and habit.
pub(crate) fn check() -> anyhow::Result<()> {
    let mut wrong = dependencies()?;
    let document = root().join("ARCHITECTURE.md");
    wrong.extend(documented(&std::fs::read_to_string(&document).context("ARCHITECTURE.md")?));
    wrong.extend(habits()?);
    for line in &wrong {
        eprintln!("check-arrows: {line}");
    }
    anyhow::ensure!(wrong.is_empty(), "{} wrong arrows or habits", wrong.len());
    eprintln!("check-arrows: {} crates hold", ARROWS.len());
    Ok(())
}

/// Rows of the document's table of crates that say something else than [`ARROWS`].
fn documented(text: &str) -> Vec<String> {
    let mut rows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", name, _, uses, ""] = cells.as_slice() else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else { continue };
        let uses = match uses.strip_prefix("all but ") {
            Some(other) => {
                let all = ARROWS.iter().map(|(crate_name, _)| *crate_name);
                all.filter(|used| *used != name && *used != other).map(str::to_owned).collect()
            }
            None => uses.split(", ").filter(|used| *used != "–").map(str::to_owned).collect(),
        };
        rows.insert(name, uses);
    }
    ARROWS
        .iter()
        .filter_map(|(name, uses)| {
            let uses: BTreeSet<String> = uses.iter().map(|used| (*used).to_owned()).collect();
            match rows.get(name) {
                None => Some(format!("ARCHITECTURE.md has no row for {name}")),
                Some(told) if *told != uses => Some(format!(
                    "ARCHITECTURE.md says that {name} may use {told:?}, the check says {uses:?}"
                )),
                Some(_) => None,
            }
        })
        .collect()
}

fn dependencies() -> anyhow::Result<Vec<String>> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    anyhow::ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        // Neither is a part of the product.
        if matches!(name, "xtask" | "coffer-fuzz") {
            continue;
        }
        let short = name.strip_prefix("coffer-").unwrap_or(name);
        let Some(uses) = allowed.get(short) else {
            wrong.push(format!("{name} has no row in the table of arrows"));
            continue;
        };
        seen.insert(short.to_owned());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let used = dependency["name"].as_str().unwrap_or_default();
            match used.strip_prefix("coffer-") {
                Some(inside) if !uses.contains(inside) => wrong.push(format!("{short} may not use {inside}")),
                None if PURE.contains(&short) && IMPURE.contains(&used) => {
                    wrong.push(format!("{short} is pure and may not use {used}"));
                }
                _ => {}
            }
        }
    }
    for (name, _) in ARROWS {
        if !seen.contains(*name) {
            wrong.push(format!("the crate {name} of the table is missing"));
        }
    }
    Ok(wrong)
}

fn habits() -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    // `sim` is test only: it starts processes and measures.
    for (short, _) in ARROWS.iter().filter(|(short, _)| *short != "sim") {
        let source = root().join("crates").join(short).join("src");
        for file in rust_files(&source)? {
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            for (index, line) in code(&text).lines().enumerate() {
                let line = line.split("//").next().unwrap_or_default();
                let place =
                    || format!("{}:{}", file.strip_prefix(root()).unwrap_or(&file).display(), index + 1);
                for (word, allowed, why) in HABITS {
                    if line.contains(word) && !allowed.contains(short) {
                        wrong.push(format!("{}: {word}: {why}", place()));
                    }
                }
                if PURE.contains(short) {
                    for word in IMPURE_WORDS.iter().filter(|word| line.contains(**word)) {
                        wrong.push(format!("{}: {word} in a pure crate", place()));
                    }
                }
            }
        }
    }
    Ok(wrong)
}

/// The text without its unit tests, which stand at the end of a file and may do as they like.
/// A declaration, `mod tests;`, says nothing of the lines after it.
fn code(text: &str) -> &str {
    const TESTS: &str = "#[cfg(test)]\nmod ";
    let inline = text.match_indices(TESTS).find(|(start, _)| {
        text[start + TESTS.len()..].lines().next().is_some_and(|declaration| declaration.ends_with('{'))
    });
    inline.map_or(text, |(start, _)| &text[..start])
}

fn rust_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let test = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !test {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !test {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::{ARROWS, code, documented};

    #[test]
    fn the_document_must_say_the_same() {
        let row = |(name, uses): &(&str, &[&str])| {
            let uses = if uses.is_empty() { "–".to_owned() } else { uses.join(", ") };
            format!("| `{name}` | words | {uses} |\n")
        };
        let good: String = ARROWS.iter().map(row).collect();
        assert!(documented(&good).is_empty(), "{:?}", documented(&good));
        assert!(documented(&good.replace("| `sim`", "| `sym`"))[0].contains("no row for sim"));
        let other = good.replacen("types, crypto |", "types |", 1);
        assert!(documented(&other)[0].contains("may use"), "{:?}", documented(&other));
    }

    #[test]
    fn only_unit_tests_are_left_out() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected, "{text}");
        check("fn a() {}\n", "fn a() {}\n");
        check("fn a() {}\n#[cfg(test)]\nmod tests {\n}\n", "fn a() {}\n");
        let declared = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
        check(declared, declared);
        check(&format!("{declared}#[cfg(test)]\nmod more {{\n}}\n"), declared);
    }
}
