#!/usr/bin/env python3
"""Writes the container images that the tests ask for as archives: pause.tar, busybox.tar and agnhost.tar.

    images.py OUT UNPACKED_DEBS AGNHOST AGNHOST_SOURCE

AGNHOST is the program, AGNHOST_SOURCE its folder in the Kubernetes module, which has two certificates.
curl, which agnhost calls, comes from this machine with its libraries.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile

REGISTRY = "registry.k8s.io/"
TESTS = REGISTRY + "e2e-test-images/"
USERS = """root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/sh
user-defined-in-image:x:1000:1000::/home:/bin/sh
"""
GROUPS = """root:x:0:
nobody:x:65534:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
"""
FOLDERS = ["bin", "tmp", "etc", "proc", "sys", "dev", "root", "home", "usr", "usr/bin", "var", "var/run"]


class Layer:
    """The files of an image."""

    def __init__(self, debs):
        self.busybox = os.path.join(debs, "bin/busybox")
        self.bash = os.path.join(debs, "bin/bash-static")
        self.buffer = io.BytesIO()
        self.archive = tarfile.open(fileobj=self.buffer, mode="w")
        for folder in FOLDERS:
            self.add(folder, kind=tarfile.DIRTYPE, mode=0o1777 if folder == "tmp" else 0o755)
        self.add("etc/passwd", USERS.encode(), mode=0o644)
        self.add("etc/group", GROUPS.encode(), mode=0o644)
        self.file("bin/busybox", self.busybox)
        # busybox's own sh drops names of variables such as data-1.
        self.file("bin/sh", self.bash)
        for applet in subprocess.check_output([self.busybox, "--list"], text=True).split():
            if applet not in ("busybox", "sh"):
                self.add(f"bin/{applet}", kind=tarfile.SYMTYPE, to="busybox")

    def add(self, name, data=b"", kind=tarfile.REGTYPE, mode=0o755, to=""):
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.size, info.linkname = kind, mode, len(data), to
        self.archive.addfile(info, io.BytesIO(data))

    def file(self, name, path, mode=0o755):
        with open(path, "rb") as content:
            self.add(name, content.read(), mode=mode)

    def program(self, path):
        """A program with its libraries, at their places."""
        self.file(path.lstrip("/"), path)
        for line in subprocess.check_output(["ldd", path], text=True).splitlines():
            for library in [word for word in line.split() if word.startswith("/")]:
                self.file(library.lstrip("/"), os.path.realpath(library))

    def content(self):
        self.archive.close()
        return self.buffer.getvalue()


def image(path, tags, layer, entrypoint=None, command=None):
    content = layer.content()
    config = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
    if entrypoint:
        config["Entrypoint"] = entrypoint
    if command:
        config["Cmd"] = command
    described = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]},
            "history": [{"created_by": "peers/node/images.py"}],
        }
    ).encode()
    name = hashlib.sha256(described).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": tags, "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as archive:
        for member, data in ((name, described), ("layer.tar", content), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def main(out, debs, agnhost, source):
    image(
        f"{out}/pause.tar",
        [REGISTRY + "pause:3.10.2"],
        Layer(debs),
        entrypoint=["/bin/busybox", "sleep", "2147483647"],
    )
    tags = [TESTS + "busybox:1.37.0-2", TESTS + "busybox:1.36.1-1"]
    image(f"{out}/busybox.tar", tags, Layer(debs), command=["sh"])
    layer = Layer(debs)
    layer.file("agnhost", agnhost)
    layer.add("agnhost-2", kind=tarfile.SYMTYPE, to="agnhost")
    layer.add("uploads", kind=tarfile.DIRTYPE)
    for ending in ("crt", "key"):
        layer.file(f"localhost.{ending}", f"{source}/porter/localhost.{ending}", mode=0o644)
    layer.program(shutil.which("curl"))
    tags = [TESTS + "agnhost:2.66.1", TESTS + "agnhost:2.55"]
    image(f"{out}/agnhost.tar", tags, layer, entrypoint=["/agnhost"], command=["pause"])


main(*sys.argv[1:])
