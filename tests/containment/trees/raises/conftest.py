raise RuntimeError(
    "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x9b2J\r\x08 <script>alert(1)</script> ![x](http://evil.example/x.png)"
)
