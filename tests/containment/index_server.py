"""A package index behind a login, on the loopback.

    python index_server.py FOLDER USER PASSWORD

Serves the files of FOLDER with their hashes and a time of upload long ago. Prints its port.
"""

import base64
import hashlib
import http.server
import json
import os
import re
import sys

FOLDER, USER, PASSWORD = sys.argv[1:]
EXPECTED = "Basic " + base64.b64encode(("%s:%s" % (USER, PASSWORD)).encode()).decode()


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def project(filename):
    stem = filename[: -len(".tar.gz")] if filename.endswith(".tar.gz") else filename
    return normalized(stem.rsplit("-", 1)[0] if filename.endswith(".tar.gz") else stem.split("-")[0])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        if self.headers.get("Authorization") != EXPECTED:
            return self.answer(401, "text/plain", b"", WWW_Authenticate='Basic realm="x"')
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[0] == "files" and parts[-1] in os.listdir(FOLDER):
            with open(os.path.join(FOLDER, parts[-1]), "rb") as file:
                return self.answer(200, "application/octet-stream", file.read())
        names = [name for name in sorted(os.listdir(FOLDER)) if parts[0] == "simple" and project(name) == parts[-1]]
        if not names:
            return self.answer(404, "text/plain", b"")
        return self.answer(200, "application/vnd.pypi.simple.v1+json", json.dumps(self.listing(parts[-1], names)).encode())

    do_HEAD = do_GET

    @staticmethod
    def listing(name, names):
        files = []
        for one in names:
            with open(os.path.join(FOLDER, one), "rb") as file:
                content = file.read()
            files.append(
                {
                    "filename": one,
                    "url": "/files/" + one,
                    "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                    "size": len(content),
                    "upload-time": "2025-01-01T00:00:00Z",
                }
            )
        return {"meta": {"api-version": "1.1"}, "name": name, "versions": ["1.0"], "files": files}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
