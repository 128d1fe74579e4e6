"""Notes attempted connections and name look-ups that leave the machine, by way of an audit hook."""

import sys

_LIMIT = 20
_addaudithook = sys.addaudithook


def watch():
    """Start to watch this process, for good. Returns the list that fills with ``host:port`` texts."""
    seen = []

    def hook(event, arguments):
        if event == "socket.connect" or event == "socket.getaddrinfo":
            if len(seen) < _LIMIT:
                try:
                    note(event, arguments)
                except Exception:
                    pass

    def note(event, arguments):
        if event == "socket.connect":
            address = arguments[1]
            if not isinstance(address, tuple):
                return
            host, port = address[0], address[1]
        else:
            host, port = arguments[0], arguments[1]
        if isinstance(host, bytes):
            host = host.decode("ascii", "backslashreplace")
        if not host or is_loopback(host):
            return
        text = "%s:%s" % (host, port)
        if text not in seen:
            seen.append(text)

    _addaudithook(hook)
    return seen


def is_loopback(host):
    """Whether a name or address certainly stays on this machine."""
    return host in ("localhost", "::1", "::", "0.0.0.0") or host.startswith("127.") or host.startswith("::ffff:127.")
