"""Installs packages of the distribution into a base; settings and certificates come over stdin and are not kept."""

import glob
import json
import os
import shutil
import subprocess
import sys

told = json.load(sys.stdin)
if shutil.which("apt-get") is None:
    sys.exit("the base has no apt-get; put %s into a base of your own" % ", ".join(told["packages"]))
environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", **told["variables"])
options = ["-o", "APT::Sandbox::User=root", "-o", "Dpkg::Use-Pty=0", "-o", "Acquire::Retries=3"]
if told["certificates"]:
    bundle = "/run/certificates/bundle.crt"
    with open(bundle, "w") as file:
        file.write(told["certificates"])
    options += ["-o", "Acquire::https::CaInfo=" + bundle]
for command in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends"] + told["packages"]):
    code = subprocess.call(["apt-get"] + options + command, env=environment, stdin=subprocess.DEVNULL, stdout=2)
    if code:
        sys.exit(code)
for pattern in ("/var/lib/apt/lists/*", "/var/cache/apt/*", "/var/log/*", "/tmp/*", "/var/tmp/*"):
    for path in glob.glob(pattern):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
