/// The servers that the tests talk to, in Python's standard library: what they do is chosen by the request's path.
///
/// Written on sockets, because most of what a client must survive is nothing that a server library would send. It
/// prints its port, then a line for each connection and each request that it read in full. A line on its standard input
/// comes back in that order, as "seen"; it ends when its standard input does.
let serverScript = #"""
    import argparse, os, signal, socket, ssl, sys, threading, time

    arguments = argparse.ArgumentParser()
    for name in ["cert", "key", "client-ca", "tls", "h2"]:
        arguments.add_argument("--" + name)
    arguments = arguments.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    context = None
    if arguments.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if arguments.tls == "1.1":
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        if arguments.tls == "1.2":
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(arguments.cert, arguments.key)
        if arguments.client_ca:
            context.load_verify_locations(arguments.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        if arguments.h2:
            context.set_alpn_protocols(["h2", "http/1.1"])
    counts = {"connections": 0, "requests": 0}
    lock = threading.Lock()

    def say(line):
        with lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def read_request(stream):
        head = []
        while True:
            line = stream.readline(70000)
            if not line: return None
            if line == b"\r\n": break
            head.append(line.rstrip(b"\r\n"))
        method, target, _ = head[0].decode().split(" ")
        fields = [line.split(b":", 1) for line in head[1:]]
        if target == "/early-error-unread": return method, target, head, b""
        lengths = [int(value) for name, value in fields if name.lower() == b"content-length"]
        body = stream.read(lengths[0]) if lengths else b""
        if lengths and len(body) < lengths[0]: return None
        return method, target, head, body

    def answer(body, extra=b"", status=b"200 OK", length=None):
        length = len(body) if length is None else length
        return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, length, extra) + body

    def serve(connection):
        stream = connection.makefile("rb")
        while True:
            request = read_request(stream)
            if request is None: return
            method, target, head, body = request
            path, _, query = target.partition("?")
            with lock: counts["requests"] += 1
            say("request %s %s" % (method, path))
            send = connection.sendall
            if path == "/echo":
                send(answer(b"\n".join(head) + b"\n\n" + body, b"X-First: one\r\nX-First: two\r\nX-Empty:\r\n"))
            elif path == "/head": send(answer(b"", length=50000000))
            elif path.startswith("/status/"):
                code = path.split("/")[2]
                send(b"HTTP/1.1 " + code.encode() + b" X\r\n" + (b"\r\n" if code in ("204", "304") else b"Content-Length: 0\r\n\r\n"))
            elif path == "/counts": send(answer(("%(connections)d %(requests)d" % counts).encode()))
            elif path == "/slow":
                time.sleep(int(query) / 1000); send(answer(b"slow"))
            elif path == "/silent": time.sleep(60)
            elif path == "/close": return
            elif path == "/die":
                listener.shutdown(socket.SHUT_RDWR); listener.close(); return
            elif path == "/once-then-close":
                send(answer(b"ok"))
                read_request(stream); say("request again"); return
            elif path == "/half": send(answer(b"half", length=1000)); return
            elif path == "/half-chunked":
                send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhalf"); return
            elif path == "/bad-chunk":
                send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf"); return
            elif path == "/half-header": send(b"HTTP/1.1 200 OK\r\nX-Half: ye"); return
            elif path == "/garbage": send(b"SSH-2.0-OpenSSH_9.2\r\n"); return
            elif path == "/bad-length": send(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"); return
            elif path == "/long":
                send(answer(b"x" * int(query)))
            elif path in ("/endless", "/endless-chunked"):
                chunked = path == "/endless-chunked"
                send(b"HTTP/1.1 200 OK\r\n" + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Connection: close\r\n\r\n"))
                sent = 0
                try:
                    while sent < 500000000:
                        send((b"1000\r\n" + b"x" * 4096 + b"\r\n") if chunked else b"x" * 4096); sent += 4096
                except OSError: pass
                say("sent %d" % sent); return
            elif path == "/drip":
                send(answer(b"", length=100000))
                while True: send(b"."); time.sleep(0.02)
            elif path == "/many-fields":
                send(b"HTTP/1.1 200 OK\r\n" + b"X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 2000 + b"\r\n"); return
            elif path == "/long-field": send(b"HTTP/1.1 200 OK\r\nX-Long: " + b"y" * 300000 + b"\r\n\r\n"); return
            elif path == "/redirect":
                send(answer(b"", b"Location: /echo\r\n", b"302 Found"))
            elif path == "/interim":
                send(b"HTTP/1.1 100 Continue\r\nX-Interim: a\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Interim: b\r\n\r\n")
                send(answer(b"final", b"X-Final: c\r\n"))
            elif path == "/trailers":
                send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n5\r\nfinal\r\n0\r\n"
                     b"X-Trailer: t\r\nHTTP/1.1 500: no\r\n\r\n")
            elif path == "/bad-trailer":
                send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n")
            elif path == "/folded": send(answer(b"", b"X-Folded: one\r\n  two\r\n"))
            elif path == "/until-close": send(b"HTTP/1.0 200 OK\r\n\r\nuntil the end"); return
            elif path == "/early-error-unread":
                send(answer(b"too much", b"Connection: close\r\n", b"413 Content Too Large")); return
            else: send(answer(b"", status=b"404 Not Found"))

    # HTTP/2, as little of it as a client needs: RFC 9113, with header blocks of literals only (RFC 7541).
    def literal(name, value): return bytes([0, len(name)]) + name + bytes([len(value)]) + value
    def status(code): return bytes([8, 3]) + code

    def serve_h2(connection):
        stream = connection.makefile("rb")
        if stream.read(24) != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": return
        def frame(kind, flags, stream_id, payload):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload
        send = connection.sendall
        send(frame(4, 0, 0, b""))
        bodies, refused = {}, 0
        while True:
            head = stream.read(9)
            if len(head) < 9: return
            length, kind, flags, stream_id = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = stream.read(length)
            if kind == 4 and not flags & 1: send(frame(4, 1, 0, b""))
            if kind == 6 and not flags & 1: send(frame(6, 1, 0, payload))
            if kind == 0: bodies[stream_id] = bodies.get(stream_id, b"") + payload
            if kind not in (0, 1) or not flags & 1: continue
            with lock: counts["requests"] += 1
            say("request h2 %d" % stream_id)
            body = bodies.pop(stream_id, b"")
            if arguments.h2 == "silent": continue
            if arguments.h2 == "reset": send(frame(3, 0, stream_id, (2).to_bytes(4, "big"))); continue
            if arguments.h2 == "refuse": send(frame(3, 0, stream_id, (7).to_bytes(4, "big"))); continue
            if arguments.h2 == "goaway": send(frame(7, 0, 0, (0).to_bytes(4, "big") + (2).to_bytes(4, "big"))); return
            if arguments.h2 == "half":
                send(frame(1, 4, stream_id, status(b"200"))); send(frame(0, 0, stream_id, b"half")); return
            send(frame(1, 4, stream_id, status(b"103") + literal(b"x-interim", b"a")))
            send(frame(1, 4, stream_id, status(b"200") + literal(b"x-final", b"c")))
            send(frame(0, 0, stream_id, b"two:" + body))
            send(frame(1, 5, stream_id, literal(b"x-trailer", b"t")))

    def run(connection):
        try:
            if context: connection = context.wrap_socket(connection, server_side=True)
            with lock: counts["connections"] += 1
            say("connection")
            serve_h2(connection) if arguments.h2 and connection.selected_alpn_protocol() == "h2" else serve(connection)
            # A reset would take away what the client has not read yet.
            connection.shutdown(socket.SHUT_RDWR) if not context else None
        except OSError as error: say("failed %s" % error)
        finally: connection.close()

    def watch():
        for line in sys.stdin: say("seen " + line.strip())
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    say(str(listener.getsockname()[1]))
    while True:
        try: connection, _ = listener.accept()
        except OSError: break
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=run, args=(connection,), daemon=True).start()
    signal.pause()
    """#
