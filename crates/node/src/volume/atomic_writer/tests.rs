use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use coffer_types::SecretBytes;

use super::*;
use crate::files::RealFiles;
use crate::volume::payload::FileProjection;

fn payload(files: &[(&str, &str)]) -> Payload {
    files
        .iter()
        .map(|(path, content)| {
            let content = SecretBytes::from((*content).to_owned());
            ((*path).to_owned(), FileProjection { content, mode: 0o644, owner: None })
        })
        .collect()
}

fn writer<'a>(files: &'a dyn Files, directory: &'a Path) -> AtomicWriter<'a> {
    AtomicWriter { files, directory, group: None, retired: &NONE }
}

/// Writes, and removes the old version when its readers have arrived; whether the volume was flipped.
fn settle(writer: &AtomicWriter<'_>, payload: &Payload, now: Timestamp, suffix: u32) -> bool {
    match writer.write(payload, now, suffix).expect("written") {
        Written::Unchanged => false,
        Written::Flipped { retired } => {
            if let Some(old) = retired {
                writer.remove_retired(&old).expect("removed");
            }
            true
        }
    }
}

static NONE: BTreeSet<String> = BTreeSet::new();

/// What a reader finds through the names of the volume.
fn read(directory: &Path) -> BTreeMap<String, String> {
    fn below(root: &Path, path: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(path).expect("a directory") {
            let path = entry.expect("an entry").path();
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                below(root, &path, found);
            } else {
                let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
                found.insert(name, std::fs::read_to_string(&path).expect("text"));
            }
        }
    }
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.file_name().to_string_lossy().starts_with("..") {
            continue;
        }
        let Ok(metadata) = std::fs::metadata(entry.path()) else { continue };
        if metadata.is_dir() {
            below(directory, &entry.path(), &mut found);
        } else {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.insert(name, std::fs::read_to_string(entry.path()).expect("text"));
        }
    }
    found
}

fn texts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

fn entries(directory: &Path) -> Vec<String> {
    RealFiles.list(directory).expect("a directory").into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_path_is_refused_in_upstreams_words() {
    let long = "a".repeat(256);
    let deep = "a/".repeat(2049);
    let cases: &[(&str, Option<&str>)] = &[
        ("", Some("must not be empty: \"\"")),
        ("/a", Some("must be relative path: /a")),
        (&deep, Some("must be less than or equal to 4096 characters")),
        ("a/../b", Some("must not contain '..': a/../b")),
        ("..", Some("must not contain '..': ..")),
        (&long, Some("filenames must be less than or equal to 255 characters")),
        ("..a", Some("must not start with '..': ..a")),
        ("...", Some("must not start with '..': ...")),
        ("a/..b", None),
        ("./a", None),
        ("a//b", None),
        (".a", None),
    ];
    for (path, expected) in cases {
        let found = check_path(path);
        assert_eq!(found.err().as_deref(), *expected, "{path:?}");
    }
}

#[test]
fn a_bad_path_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = Timestamp::UNIX_EPOCH;
    let write = writer(&RealFiles, directory.path()).write(&payload(&[("a", "1"), ("../x", "2")]), now, 1);
    assert_eq!(write.expect_err("a bad path").to_string(), "invalid path: must not contain '..': ../x");
    assert!(entries(directory.path()).is_empty());
}

#[test]
fn the_layout_is_the_kubelets() {
    let directory = tempfile::tempdir().expect("a directory");
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
    let writer = writer(&RealFiles, directory.path());
    let first = payload(&[("a", "1"), ("sub/b", "2"), ("sub/deep/c", "3")]);
    assert!(settle(&writer, &first, now, 7), "flipped");
    assert_eq!(entries(directory.path()), ["..2026_01_02_03_04_05.7", "..data", "a", "sub"]);
    assert_eq!(
        RealFiles.read_link(&directory.path().join("..data")).expect("a link"),
        Path::new("..2026_01_02_03_04_05.7")
    );
    assert_eq!(RealFiles.read_link(&directory.path().join("a")).expect("a link"), Path::new("..data/a"));
    assert_eq!(RealFiles.read_link(&directory.path().join("sub")).expect("a link"), Path::new("..data/sub"));
    assert!(!settle(&writer, &first, now, 8), "unchanged");
    assert_eq!(read(directory.path()), texts(&[("a", "1"), ("sub/b", "2"), ("sub/deep/c", "3")]));

    let second = payload(&[("a", "1"), ("sub/deep/c", "4"), ("z", "5")]);
    assert!(settle(&writer, &second, now, 9), "flipped");
    assert_eq!(entries(directory.path()), ["..2026_01_02_03_04_05.9", "..data", "a", "sub", "z"]);
    assert_eq!(read(directory.path()), texts(&[("a", "1"), ("sub/deep/c", "4"), ("z", "5")]));

    assert!(settle(&writer, &Payload::new(), now, 10), "flipped");
    assert_eq!(entries(directory.path()), ["..2026_01_02_03_04_05.10", "..data"]);
}

#[test]
fn modes_are_exact_whatever_the_umask() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut files = payload(&[("a", "1"), ("b", "2")]);
    files.get_mut("a").expect("a").mode = 0o400;
    files.get_mut("b").expect("b").mode = 0o777;
    writer(&RealFiles, directory.path()).write(&files, Timestamp::UNIX_EPOCH, 1).expect("written");
    let mode =
        |name| std::fs::metadata(directory.path().join(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("b")), (0o400, 0o777));
}

#[test]
fn what_others_put_into_the_volume_is_left() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("nested")).expect("made");
    let writer = writer(&RealFiles, directory.path());
    assert!(settle(&writer, &payload(&[("nested", "1"), ("b", "1")]), Timestamp::UNIX_EPOCH, 1));
    assert!(settle(&writer, &payload(&[("c", "1")]), Timestamp::UNIX_EPOCH, 2));
    assert_eq!(entries(directory.path()), ["..1970_01_01_00_00_00.2", "..data", "c", "nested"]);
}

/// A machine that stops before step `last`: that step and all later ones do nothing.
struct Crash {
    steps: AtomicUsize,
    last: usize,
}

impl Crash {
    fn step(&self) -> io::Result<()> {
        if self.steps.fetch_add(1, Ordering::Relaxed) < self.last {
            Ok(())
        } else {
            Err(io::Error::other("crashed"))
        }
    }
}

impl Files for Crash {
    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.step()?;
        RealFiles.make_dir(path, mode)
    }

    fn write_new(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        if self.step().is_err() {
            // A write that was cut: half of the content is there.
            let _ = RealFiles.write_new(path, &content[..content.len() / 2], mode);
            return Err(io::Error::other("crashed"));
        }
        RealFiles.write_new(path, content, mode)
    }

    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.symlink(target, path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.remove_file(path)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealFiles.remove_tree(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        RealFiles.read_link(path)
    }

    fn holds(&self, path: &Path, content: &[u8]) -> io::Result<bool> {
        RealFiles.holds(path, content)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<(String, bool)>> {
        RealFiles.list(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        RealFiles.read(path)
    }

    fn set_owner(&self, path: &Path, owner: u32) -> io::Result<()> {
        self.step()?;
        RealFiles.set_owner(path, owner)
    }

    fn set_group(&self, path: &Path, group: u32, is_dir: bool) -> io::Result<()> {
        self.step()?;
        RealFiles.set_group(path, group, is_dir)
    }
}

/// Field case N17: at every crash point a reader sees all old or all new content of the names
/// that both versions have, and the next write makes the volume exact, with nothing left over.
#[test]
fn n17_a_crash_at_each_step_leaves_old_or_new_and_is_repaired() {
    let old = [("a", "old-a"), ("gone", "old-gone"), ("sub/b", "old-b"), ("sub/gone", "old-x")];
    let new = [("a", "new-a"), ("fresh", "new-fresh"), ("sub/b", "new-b"), ("other/c", "new-c")];
    let mut crashes = 0;
    for last in 0.. {
        let directory = tempfile::tempdir().expect("a directory");
        let now = Timestamp::UNIX_EPOCH;
        writer(&RealFiles, directory.path()).write(&payload(&old), now, 1).expect("written");
        let crash = Crash { steps: AtomicUsize::new(0), last };
        let done = writer(&crash, directory.path()).write(&payload(&new), now, 2);

        let seen = read(directory.path());
        let version = if seen["a"] == "old-a" { &old[..] } else { &new[..] };
        for (path, content) in version {
            // A new name appears, and a gone one vanishes, right after the flip.
            if let Some(found) = seen.get(*path) {
                assert_eq!(found, content, "step {last}, {path}");
            } else {
                assert!(["fresh", "other/c"].contains(path), "step {last}: {path} is missing");
            }
        }
        assert_eq!(seen["sub/b"] == "old-b", seen["a"] == "old-a", "step {last}: a mix");

        settle(&writer(&RealFiles, directory.path()), &payload(&new), now, 3);
        assert_eq!(read(directory.path()), texts(&new), "step {last}");
        assert_eq!(entries(directory.path()).len(), 6, "step {last}: {:?}", entries(directory.path()));
        if done.is_ok() {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 10, "only {crashes} steps were tried");
}

/// Field case N17: a reader loop sees one version at a time, and never misses a name that all versions
/// have, however often the volume flips while it resolves a path.
#[test]
fn n17_a_reader_loop_sees_no_mix_and_misses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let version = |number: usize| {
        let text = number.to_string();
        payload(&[("a", &text), ("b", &text)])
    };
    settle(&writer(&RealFiles, directory.path()), &version(0), Timestamp::UNIX_EPOCH, 0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    // How many reads a reader has finished: an old version goes once a read began and ended after its flip.
    let reads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let a = std::fs::read_to_string(directory.path().join("a")).expect("never missing");
                // Through one resolution of `..data`, as an application that wants a consistent pair reads.
                let at =
                    directory.path().join(std::fs::read_link(directory.path().join(DATA)).expect("..data"));
                let pair =
                    ["a", "b"].map(|name| std::fs::read_to_string(at.join(name)).expect("never missing"));
                assert_eq!(pair[0], pair[1]);
                assert!(a.parse::<usize>().expect("a number") <= pair[0].parse().expect("a number"));
                reads.fetch_add(1, Ordering::Release);
            }
        });
        let mut retired: Vec<(String, usize)> = Vec::new();
        for number in 1_usize.. {
            let seen = reads.load(Ordering::Acquire);
            if (number > 1_000 && seen > 100) || reader.is_finished() {
                break;
            }
            let (gone, kept): (Vec<_>, Vec<_>) =
                retired.into_iter().partition(|(_, since)| *since + 2 <= seen);
            retired = kept;
            let names: BTreeSet<String> = retired.iter().map(|(name, _)| name.clone()).collect();
            let writer =
                AtomicWriter { files: &RealFiles, directory: directory.path(), group: None, retired: &names };
            for (name, _) in gone {
                writer.remove_retired(&name).expect("removed");
            }
            let suffix = u32::try_from(number).expect("small");
            let written = writer.write(&version(number), Timestamp::UNIX_EPOCH, suffix).expect("written");
            let Written::Flipped { retired: Some(old) } = written else { panic!("not flipped") };
            retired.push((old, reads.load(Ordering::Acquire)));
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("the reader saw no mix and missed nothing");
    });
}

/// Field case S15 (CVE-2021-25741): whoever may write into the volume puts links that lead outside in the place
/// of `..data`, of a directory and of a file, 100,000 times, while versions are written and removed. Outside
/// nothing is made, changed or removed.
#[test]
fn s15_100_000_swapped_links_lead_to_nothing_outside() {
    const SWAPS: usize = 100_000;
    let base = tempfile::tempdir().expect("a directory");
    let (volume, outside) = (base.path().join("volume"), base.path().join("outside"));
    for directory in [&volume, &outside, &outside.join("sub")] {
        std::fs::create_dir(directory).expect("made");
    }
    let theirs = texts(&[("a", "theirs"), ("sub/b", "theirs"), ("kept", "theirs")]);
    for (path, content) in &theirs {
        std::fs::write(outside.join(path), content).expect("written");
    }
    let version = |number: u32| {
        let text = number.to_string();
        payload(&[("a", &text), ("sub/b", &text)])
    };
    settle(&writer(&RealFiles, &volume), &version(0), Timestamp::UNIX_EPOCH, 0);
    let done = std::sync::atomic::AtomicBool::new(false);
    let (mut flips, mut next) = (0, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let spare = base.path().join("spare");
            let targets = ["../outside", outside.to_str().expect("text"), "../volume/../outside/sub"];
            for swap in 0..SWAPS {
                let name = [DATA, "a", "sub"][swap % 3];
                std::os::unix::fs::symlink(targets[swap / 3 % 3], &spare).expect("linked");
                // A directory in its place stays there.
                if std::fs::rename(&spare, volume.join(name)).is_err() {
                    std::fs::remove_file(&spare).expect("removed");
                }
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let writer = writer(&RealFiles, &volume);
            // A step may fail under its feet; the next write starts afresh.
            if let Ok(Written::Flipped { retired }) =
                writer.write(&version(next), Timestamp::UNIX_EPOCH, next)
            {
                flips += 1;
                if let Some(old) = retired {
                    let _ = writer.remove_retired(&old);
                }
            }
            next += 1;
        }
    });
    assert!(100 < flips, "only {flips} versions were written in the race");
    assert_eq!(read(&outside), theirs, "something outside was changed");
    assert_eq!(entries(&outside), ["a", "kept", "sub"]);
    for name in ["a", "sub"] {
        let _ = std::fs::remove_file(volume.join(name));
    }
    settle(&writer(&RealFiles, &volume), &version(next), Timestamp::UNIX_EPOCH, next);
    let last = next.to_string();
    assert_eq!(read(&volume), texts(&[("a", &last), ("sub/b", &last)]), "the volume is exact again");
}

/// The same without a race: each of these was once followed.
#[test]
fn s15_a_data_link_that_leads_outside_is_replaced_and_what_is_behind_it_stays() {
    for target in
        ["../outside", "..", ".", "/", "ABSOLUTE", "..1/../../outside", "../volume/..old", DATA, NEW_DATA]
    {
        let base = tempfile::tempdir().expect("a directory");
        let (volume, outside) = (base.path().join("volume"), base.path().join("outside"));
        for directory in [&volume, &outside, &volume.join("..old")] {
            std::fs::create_dir(directory).expect("made");
        }
        std::fs::write(outside.join("a"), "theirs").expect("written");
        let target = if target == "ABSOLUTE" { outside.to_str().expect("text") } else { target };
        std::os::unix::fs::symlink(target, volume.join(DATA)).expect("linked");
        let written = writer(&RealFiles, &volume).write(&payload(&[("a", "ours")]), Timestamp::UNIX_EPOCH, 1);
        assert_eq!(written.expect("written"), Written::Flipped { retired: None }, "{target}");
        assert_eq!(read(&volume), texts(&[("a", "ours")]), "{target}");
        assert_eq!(read(&outside), texts(&[("a", "theirs")]), "{target}");
    }
}
