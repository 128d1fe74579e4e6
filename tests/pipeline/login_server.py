"""HTTPS on the loopback behind a login: git repositories below a folder, and a package index.

    python login_server.py FOLDER CERTIFICATE KEY USER PASSWORD INDEX

Prints its port. `/git/…` is served by git itself; `/simple/…` leads on to INDEX. The file `asked` gets a line for each
request: its path, and the login that came with it or `-`.
"""

import base64
import http.server
import os
import ssl
import subprocess
import sys

FOLDER, CERTIFICATE, KEY, USER, PASSWORD, INDEX = sys.argv[1:]
EXPECTED = "Basic " + base64.b64encode(("%s:%s" % (USER, PASSWORD)).encode()).decode()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *ignored):
        pass

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        with open("asked", "a") as log:
            log.write("%s %s\n" % (self.path.partition("?")[0], self.headers.get("Authorization") or "-"))
        if self.headers.get("Authorization") != EXPECTED:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.startswith("/simple/"):
            self.send_response(302)
            self.send_header("Location", INDEX.rstrip("/") + self.path[len("/simple") :])
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.git(body)

    do_GET = do_POST = do_HEAD = answer

    def git(self, body):
        path, _, query = self.path[len("/git") :].partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": FOLDER,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
        }
        output = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=environment).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
        status = next((value for name, value in headers if name == "Status"), "200")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
