//! Unmounting a tmpfs that somebody may still look at (field case N15).
//!
//! | attempt | the system says | then |
//! |---|---|---|
//! | any | done | done |
//! | below the last | busy | wait, twice as long each time, and try again |
//! | the last | busy | wipe what is left, detach lazily, and tell who holds it |
//! | any | anything else | an error |

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coffer_types::time::Clock;

use super::holders::Holder;
use super::mounter::Mounter;
use crate::files::wipe;

/// How often a busy mount is tried before it is detached: for a second and a half in all.
const ATTEMPTS: u32 = 5;
/// How long after the first attempt the second comes.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A mount that was busy to the end: it is out of sight, and goes when its holders do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// Where it was.
    pub path: PathBuf,
    /// Who held it.
    pub holders: Vec<Holder>,
}

impl fmt::Display for Detached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} was busy after {ATTEMPTS} attempts to unmount it: its Secret files were wiped and it was detached; ",
            self.path.display()
        )?;
        if self.holders.is_empty() {
            return formatter.write_str("who holds it could not be found out");
        }
        let holders: Vec<String> =
            self.holders.iter().map(|holder| format!("process {} ({})", holder.pid, holder.name)).collect();
        write!(formatter, "it goes when {} let it go", holders.join(", "))
    }
}

/// What comes after an attempt.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Again(Duration),
    Detach,
    Fail,
}

/// The table.
fn next(attempt: u32, outcome: Result<(), io::ErrorKind>) -> Next {
    match outcome {
        Ok(()) => Next::Done,
        Err(io::ErrorKind::ResourceBusy) if attempt < ATTEMPTS => {
            Next::Again(FIRST_PAUSE.saturating_mul(1 << (attempt - 1)))
        }
        Err(io::ErrorKind::ResourceBusy) => Next::Detach,
        Err(_) => Next::Fail,
    }
}

/// Unmounts `path`; detaches it when it stays busy.
pub async fn unmount(mounter: &dyn Mounter, clock: &dyn Clock, path: &Path) -> io::Result<Option<Detached>> {
    for attempt in 1.. {
        let outcome = mounter.unmount(path);
        match next(attempt, outcome.as_ref().copied().map_err(io::Error::kind)) {
            Next::Done => return Ok(None),
            Next::Again(pause) => clock.sleep(pause).await,
            Next::Detach => break,
            Next::Fail => return outcome.map(|()| None),
        }
    }
    let holders = mounter.holders(path);
    // Whoever holds it sees the mount for as long as it likes: nothing may be left in it.
    wipe(path)?;
    mounter.detach(path)?;
    Ok(Some(Detached { path: path.to_owned(), holders }))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use coffer_sim::clock::SimClock;
    use parking_lot::Mutex;

    use super::*;
    use crate::files::wipe_and_remove;

    #[test]
    fn n15_every_attempt_has_one_next_step() {
        use io::ErrorKind::{PermissionDenied, ResourceBusy};
        for attempt in 1..=ATTEMPTS {
            assert_eq!(next(attempt, Ok(())), Next::Done);
            assert_eq!(next(attempt, Err(PermissionDenied)), Next::Fail);
            let busy = next(attempt, Err(ResourceBusy));
            let expected = [100, 200, 400, 800].get(attempt as usize - 1);
            match expected {
                Some(pause) => assert_eq!(busy, Next::Again(Duration::from_millis(*pause))),
                None => assert_eq!(busy, Next::Detach),
            }
        }
    }

    /// A mount that is busy for some attempts, and notes what is done to it.
    struct Busy {
        attempts: Mutex<u32>,
        error: io::ErrorKind,
        log: Mutex<Vec<String>>,
    }

    impl Mounter for Busy {
        fn mount_tmpfs(&self, _: &Path, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn unmount(&self, _: &Path) -> io::Result<()> {
            self.log.lock().push("unmount".to_owned());
            let mut left = self.attempts.lock();
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
            Err(self.error.into())
        }

        fn detach(&self, path: &Path) -> io::Result<()> {
            let sizes: Vec<u64> = walk(path);
            self.log.lock().push(format!("detach, files of {sizes:?} bytes"));
            Ok(())
        }

        fn holders(&self, _: &Path) -> Vec<Holder> {
            self.log.lock().push("holders".to_owned());
            vec![Holder { pid: 42, name: "scanner".to_owned() }]
        }

        fn in_memory(&self, _: &Path) -> io::Result<bool> {
            Ok(true)
        }

        fn is_mount_point(&self, _: &Path) -> io::Result<bool> {
            Ok(true)
        }
    }

    fn walk(path: &Path) -> Vec<u64> {
        let mut sizes = Vec::new();
        for entry in std::fs::read_dir(path).expect("a directory").flatten() {
            let metadata = entry.metadata().expect("metadata");
            if metadata.is_dir() { sizes.extend(walk(&entry.path())) } else { sizes.push(metadata.len()) }
        }
        sizes
    }

    async fn run(
        attempts: u32,
        error: io::ErrorKind,
    ) -> (io::Result<Option<Detached>>, Vec<String>, Duration) {
        let mount = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(mount.path().join("late")).expect("made");
        std::fs::write(mount.path().join("late/password"), "hunter2").expect("written");
        let busy = Busy { attempts: Mutex::new(attempts), error, log: Mutex::default() };
        let clock = SimClock::default();
        let done = {
            let done = unmount(&busy, &clock, mount.path());
            tokio::pin!(done);
            loop {
                tokio::select! {
                    biased;
                    done = &mut done => break done,
                    () = tokio::task::yield_now() => {
                        if let Some(due) = clock.next_wake() {
                            clock.advance(due - clock.monotonic());
                        }
                    }
                }
            }
        };
        (done, busy.log.into_inner(), clock.monotonic())
    }

    #[tokio::test]
    async fn n15_a_busy_mount_is_wiped_and_detached_and_its_holder_told() {
        let (done, log, waited) = run(0, io::ErrorKind::ResourceBusy).await;
        assert_eq!(
            (done.expect("unmounted"), log, waited),
            (None, vec!["unmount".to_owned()], Duration::ZERO)
        );

        // Busy for a while: no more than patience is needed.
        let (done, log, waited) = run(ATTEMPTS - 1, io::ErrorKind::ResourceBusy).await;
        assert_eq!(done.expect("unmounted"), None);
        assert_eq!((log, waited), (vec!["unmount".to_owned(); 5], Duration::from_millis(1_500)));

        // Busy for days.
        let (done, log, _) = run(u32::MAX, io::ErrorKind::ResourceBusy).await;
        let detached = done.expect("detached").expect("told");
        assert_eq!(log[..5], vec!["unmount".to_owned(); 5]);
        assert_eq!(log[5..], ["holders", "detach, files of [0] bytes"]);
        let text = detached.to_string();
        assert!(text.ends_with("it goes when process 42 (scanner) let it go"), "{text}");
        assert!(text.contains("busy after 5 attempts"), "{text}");

        let (done, log, _) = run(1, io::ErrorKind::PermissionDenied).await;
        assert_eq!(done.expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(log, ["unmount"]);
    }

    /// A process that has a file open reads nothing from it after the wipe, also when it is read-only.
    #[test]
    fn n15_an_open_file_is_empty_after_the_wipe() {
        use std::os::unix::fs::PermissionsExt as _;
        let base = tempfile::tempdir().expect("a directory");
        let volume = base.path().join("volume");
        std::fs::create_dir(&volume).expect("made");
        let file = volume.join("password");
        std::fs::write(&file, "hunter2").expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).expect("read-only");
        let mut open = std::fs::File::open(&file).expect("open");
        wipe_and_remove(&volume).expect("wiped");
        let mut read = String::new();
        open.read_to_string(&mut read).expect("read");
        assert_eq!(read, "");
        assert!(!volume.exists());
    }
}
