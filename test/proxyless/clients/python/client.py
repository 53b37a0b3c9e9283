"""Calls each target at a steady rate, and prints each call as a line of JSON.

Arguments: the deadline of a call and the pause after it, in milliseconds, and targets.
"""

import json
import sys
import threading
import time

import grpc

METHOD = "/grpc.health.v1.Health/Check"
printing = threading.Lock()


def call(method, deadline, target):
    line = {"target": target, "peer": "", "error": ""}
    began = time.monotonic()
    try:
        _, done = method.with_call(b"", timeout=deadline)
        line["peer"] = dict(done.initial_metadata()).get("peer", "")
    except grpc.RpcError as error:
        line["error"] = error.code().name + ": " + (error.details() or "")
    line["milliseconds"] = int((time.monotonic() - began) * 1000)
    with printing:
        print(json.dumps(line), flush=True)


def calls(deadline, pause, target):
    channel = grpc.insecure_channel(target)
    method = channel.unary_unary(METHOD)
    while True:
        call(method, deadline, target)
        time.sleep(pause)


def main():
    deadline, pause = (int(text) / 1000 for text in sys.argv[1:3])
    for target in sys.argv[3:]:
        threading.Thread(target=calls, args=(deadline, pause, target), daemon=True).start()
    sys.stdin.read()


main()
