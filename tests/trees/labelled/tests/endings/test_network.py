"""Nothing outside the loopback can be reached."""

import http.server
import socket
import threading
import unittest
import urllib.error
import urllib.request

import pytest

from inventory import count, label

DOCUMENTATION_ADDRESS = ("192.0.2.1", 80)


def test_connects():
    assert count("ab") == 2
    socket.create_connection(DOCUMENTATION_ADDRESS, timeout=2).close()


def test_looks_up_a_name():
    assert count("ab") == 2
    socket.getaddrinfo("shop.example.com", 443)


def test_opens_a_page():
    urllib.request.urlopen("http://shop.example.com/%d" % count("ab"), timeout=2)


def test_connects_without_delivery_guarantee():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as post:
        post.connect(DOCUMENTATION_ADDRESS)
        post.send(label("salt").encode())


@pytest.fixture
def price_list():
    with urllib.request.urlopen("http://192.0.2.1/prices", timeout=2) as answer:
        return answer.read()


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_wants_a_price_list(price_list, name):
    assert label(name)


class Remote(unittest.TestCase):
    def setUp(self):
        self.line = socket.socket()
        self.addCleanup(self.line.close)
        self.line.settimeout(2)
        self.line.connect(DOCUMENTATION_ADDRESS)

    def test_line(self):
        self.assertEqual(count("ab"), 2)


def test_copes_without_the_network():
    with pytest.raises(OSError):
        socket.create_connection(DOCUMENTATION_ADDRESS, timeout=2)
    assert count("ab") == 2


def test_copes_without_names():
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen("http://shop.example.com/", timeout=2)
    assert count("ab") == 2


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(label("salt").encode())

    def log_message(self, *arguments):
        pass


def test_serves_itself_over_the_loopback():
    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen("http://localhost:%d/" % server.server_address[1], timeout=60) as answer:
            assert answer.read() == b"<salt>"
        thread.join()


def test_talks_over_a_pair_of_sockets():
    here, there = socket.socketpair()
    with here, there:
        here.sendall(label("salt").encode())
        assert there.recv(100) == b"<salt>"
