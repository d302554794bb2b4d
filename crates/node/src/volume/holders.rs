//! Who keeps a mount busy.

use std::path::Path;

/// How many holders are told.
const MAX_HOLDERS: usize = 16;

/// A process that keeps a mount busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Process ID.
    pub pid: u32,
    /// The command's name, as `/proc/PID/comm` has it.
    pub name: String,
}

/// Who holds `mount`, from a `/proc`: processes that have their working directory, their root, their
/// program, an open or a mapped file in it, and those of other mount namespaces that have it mounted.
/// Processes that may not be looked into are passed over.
pub fn holders_in(proc: &Path, mount: &Path, device: Option<(u32, u32)>) -> Vec<Holder> {
    let mut pids: Vec<u32> = std::fs::read_dir(proc)
        .map(|entries| {
            let names = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            names.collect()
        })
        .unwrap_or_default();
    pids.sort_unstable();
    let ours = std::fs::read_link(proc.join("self/ns/mnt")).ok();
    let mut holders = Vec::new();
    for pid in pids {
        let process = proc.join(pid.to_string());
        if uses(&process, mount) || device.is_some_and(|device| mounts(&process, device, ours.as_deref())) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            holders.push(Holder { pid, name: name.trim().to_owned() });
            if holders.len() == MAX_HOLDERS {
                break;
            }
        }
    }
    holders
}

fn uses(process: &Path, mount: &Path) -> bool {
    let inside = |link: &Path| std::fs::read_link(link).is_ok_and(|target| target.starts_with(mount));
    let any = |directory: &str| {
        let entries = std::fs::read_dir(process.join(directory));
        entries.is_ok_and(|entries| entries.flatten().any(|entry| inside(&entry.path())))
    };
    ["cwd", "root", "exe"].iter().any(|link| inside(&process.join(link))) || any("fd") || any("map_files")
}

/// Whether a process of another mount namespace has the device mounted.
fn mounts(process: &Path, (major, minor): (u32, u32), ours: Option<&Path>) -> bool {
    let Ok(namespace) = std::fs::read_link(process.join("ns/mnt")) else { return false };
    if Some(namespace.as_path()) == ours {
        return false;
    }
    let device = format!("{major}:{minor}");
    let table = std::fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
    // ID, parent, device, …
    table.lines().any(|line| line.split(' ').nth(2) == Some(&device))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn n15_holders_are_found_under_proc() {
        let base = tempfile::tempdir().expect("a directory");
        let proc = base.path().join("proc");
        let mount = base.path().join("mount");
        let process = |pid: &str, name: &str, namespace: &str, mountinfo: &str| {
            let directory = proc.join(pid);
            for below in ["fd", "map_files", "ns"] {
                std::fs::create_dir_all(directory.join(below)).expect("made");
            }
            std::fs::write(directory.join("comm"), format!("{name}\n")).expect("written");
            std::fs::write(directory.join("mountinfo"), mountinfo).expect("written");
            symlink(namespace, directory.join("ns/mnt")).expect("linked");
            symlink("/elsewhere", directory.join("cwd")).expect("linked");
            directory
        };
        let ours = "mnt:[1]";
        let line = "36 35 0:77 / /mnt rw - tmpfs tmpfs rw\n";
        process("self", "coffer", ours, "");
        process("1", "init", ours, line);
        let shell = process("20", "bash", ours, "");
        std::fs::remove_file(shell.join("cwd")).expect("removed");
        symlink(mount.join("pods"), shell.join("cwd")).expect("linked");
        let reader = process("21", "tail", ours, "");
        symlink(mount.join("pods/u/password (deleted)"), reader.join("fd/3")).expect("linked");
        let mapper = process("22", "java", ours, "");
        symlink(mount.join("x"), mapper.join("map_files/0-1")).expect("linked");
        let near = process("23", "near", ours, "");
        symlink(base.path().join("mount2/x"), near.join("fd/3")).expect("linked");
        process("30", "container", "mnt:[2]", line);
        process("31", "other", "mnt:[2]", "36 35 0:78 / /mnt rw - tmpfs tmpfs rw\n");
        std::fs::create_dir_all(proc.join("32")).expect("a process that is already gone");
        let found = holders_in(&proc, &mount, Some((0, 77)));
        let pids: Vec<u32> = found.iter().map(|holder| holder.pid).collect();
        assert_eq!(pids, [20, 21, 22, 30]);
        assert_eq!(found[1].name, "tail");
        assert_eq!(holders_in(&base.path().join("none"), &mount, None), []);
    }

    /// The real `/proc`: this test holds a file itself.
    #[test]
    fn n15_a_real_holder_is_found() {
        let base = tempfile::tempdir().expect("a directory");
        let path = base.path().canonicalize().expect("a path");
        let held = std::fs::File::create(path.join("held")).expect("made");
        let found = holders_in(Path::new("/proc"), &path, None);
        assert!(found.iter().any(|holder| holder.pid == std::process::id()), "{found:?}");
        drop(held);
    }
}
