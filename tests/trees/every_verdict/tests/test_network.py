import http.server
import socket
import threading
import urllib.request

from pantry import area

DOCUMENTATION_ADDRESS = ("192.0.2.1", 80)


def test_needs_the_network():
    assert area(1, 1) == 1
    socket.create_connection(DOCUMENTATION_ADDRESS, timeout=2).close()


def test_copes_without_the_network():
    try:
        socket.create_connection(DOCUMENTATION_ADDRESS, timeout=2).close()
        size = 0
    except OSError:
        size = area(1, 1)
    assert size == 1


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(area(4, 4)).encode())

    def log_message(self, *arguments):
        pass


def test_serves_itself_over_the_loopback():
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_address[1]) as answer:
            assert answer.read() == b"16"
        thread.join()
