#!/usr/bin/env bash
# @grpc/grpc-js-xds never takes a cluster again that was gone for a moment.
#
# Packages:  @grpc/grpc-js-xds 1.14.1, @grpc/grpc-js 1.14.5 (npm); xds-protos 1.85.0 (PyPI).
# Seen:      a response of clusters lacks the cluster that a target leads to, and the next one has it again,
#            unchanged. The client acknowledges both, and all its calls go on failing. With
#            "ignore_resource_deletion" in server_features of its bootstrap, none fails.
# Surprise:  in xDS a server may send a removed resource again. grpc-go 1.85.0, C-core 1.85.3 and grpc-java
#            1.85.1 go on calling then.
# In hdsd:   bootstraps in docs/guides/grpc.md have ignore_resource_deletion.
#            test/proxyless, TestClientsOverChanges (with PROXYLESS=all).
#
# Exits 0 if that is seen. Needs python3, node and npm.
set -euo pipefail
folder=$(mktemp -d)
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install -q --disable-pip-version-check xds-protos==1.85.0 grpcio==1.85.0 protobuf==7.36.2
echo '{"private": true, "dependencies": {"@grpc/grpc-js": "1.14.5", "@grpc/grpc-js-xds": "1.14.1"}}' > package.json
npm install --ignore-scripts --no-audit --no-fund --silent

# For each line of its input, the client makes a call and prints what becomes of it.
cat > client.js <<'JS'
const grpc = require('@grpc/grpc-js');

require('@grpc/grpc-js-xds').register();

const client = new grpc.Client('xds:///shop', grpc.credentials.createInsecure());
const same = (bytes) => bytes;

require('readline').createInterface({input: process.stdin}).on('line', () => {
  client.makeUnaryRequest('/grpc.health.v1.Health/Check', same, same, Buffer.alloc(0), {deadline: Date.now() + 2000},
    (error) => console.log(error ? `fails: ${grpc.status[error.code]}` : 'answered'));
}).on('close', () => process.exit(0));
JS

cat > finding.py <<'PY'
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401, of the listener
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2  # noqa: F401
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2
from google.protobuf import json_format

FILTERS = 'type.googleapis.com/envoy.extensions.filters.'
CLUSTERS = 'type.googleapis.com/envoy.config.cluster.v3.Cluster'


def resources(port):
    """Returns what a target "xds:///shop" leads to: its resources by type."""
    manager = {
        '@type': FILTERS + 'network.http_connection_manager.v3.HttpConnectionManager',
        'route_config': {'name': 'all', 'virtual_hosts': [{
            'name': 'all', 'domains': ['*'], 'routes': [{'match': {'prefix': ''}, 'route': {'cluster': 'shop'}}]}]},
        'http_filters': [{'name': 'router', 'typed_config': {'@type': FILTERS + 'http.router.v3.Router'}}],
    }
    cluster = {'name': 'shop', 'type': 'EDS', 'eds_cluster_config': {'eds_config': {'ads': {}}}}
    endpoint = {'endpoint': {'address': {'socket_address': {'address': '127.0.0.1', 'port_value': port}}}}
    assignment = {'cluster_name': 'shop', 'endpoints': [
        {'locality': {'zone': 'a'}, 'load_balancing_weight': 1, 'lb_endpoints': [endpoint]}]}
    messages = [
        json_format.ParseDict({'name': 'shop', 'api_listener': {'api_listener': manager}}, listener_pb2.Listener()),
        json_format.ParseDict(cluster, cluster_pb2.Cluster()),
        json_format.ParseDict(assignment, endpoint_pb2.ClusterLoadAssignment()),
    ]
    return {'type.googleapis.com/' + m.DESCRIPTOR.full_name: m for m in messages}


class Plane(ads_pb2_grpc.AggregatedDiscoveryServiceServicer):
    """A control plane with at most one resource of each type, all named shop."""

    def __init__(self, has):
        self.has, self.version, self.acknowledged, self.changes = has, 1, {}, []

    def change(self, has):
        self.has, self.version = has, self.version + 1
        for events in self.changes:
            events.put('change')

    def StreamAggregatedResources(self, requests, _):
        events, asked = queue.Queue(), {}
        self.changes.append(events)
        threading.Thread(target=self.read, args=(requests, events), daemon=True).start()
        while (event := events.get()) != 'end':
            if event == 'change':
                due = [url for url, names in asked.items() if names]
            else:
                url, names = event.type_url, list(event.resource_names)
                if event.HasField('error_detail'):
                    print('the client refuses:', event.error_detail.message)
                elif event.response_nonce:
                    self.acknowledged[url] = event.response_nonce
                due = [url] if names and asked.get(url) != names else []
                asked[url] = names
            for url in due:
                version = str(self.version)
                response = discovery_pb2.DiscoveryResponse(type_url=url, version_info=version, nonce=version)
                if url in self.has:
                    response.resources.add().Pack(self.has[url])
                yield response

    @staticmethod
    def read(requests, events):
        try:
            for request in requests:
                events.put(request)
        except grpc.RpcError:
            pass
        events.put('end')


def serve(add):
    server = grpc.server(futures.ThreadPoolExecutor(4))
    add(server)
    port = server.add_insecure_port('127.0.0.1:0')
    server.start()
    return server, port


def run(features):
    """Returns what calls do while the cluster is there, is gone, and is back."""
    health = grpc.method_handlers_generic_handler('grpc.health.v1.Health', {
        'Check': grpc.unary_unary_rpc_method_handler(lambda request, _: request)})
    backend, port = serve(lambda server: server.add_generic_rpc_handlers([health]))
    everything = resources(port)
    plane = Plane(everything)
    server, port = serve(lambda server: ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(plane, server))
    bootstrap = {'node': {'id': 'client', 'locality': {}}, 'xds_servers': [{
        'server_uri': f'127.0.0.1:{port}', 'channel_creds': [{'type': 'insecure'}], 'server_features': features}]}
    client = subprocess.Popen(['node', 'client.js'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=os.environ | {'GRPC_XDS_BOOTSTRAP_CONFIG': json.dumps(bootstrap)})

    def calls(seconds):
        seen, deadline = {}, time.monotonic() + seconds
        while time.monotonic() < deadline:
            client.stdin.write('\n')
            client.stdin.flush()
            line = client.stdout.readline().strip()
            seen[line] = seen.get(line, 0) + 1
            time.sleep(0.1)
        return seen

    def change(has):
        plane.change(has)
        deadline = time.monotonic() + 10
        while plane.acknowledged.get(CLUSTERS) != str(plane.version):
            if time.monotonic() > deadline:
                sys.exit('NOT SEEN: the client does not take a response of clusters')
            time.sleep(0.05)
        calls(0.5)  # until the channel has it

    try:
        calls(0.5)
        there = calls(1)
        change({url: message for url, message in everything.items() if url != CLUSTERS})
        gone = calls(2)
        change(everything)
        return there, gone, calls(8)
    finally:
        client.kill()
        client.wait()
        server.stop(None).wait()
        backend.stop(None).wait()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print('node', subprocess.check_output(['node', '--version'], text=True).strip())
    for package in '@grpc/grpc-js-xds', '@grpc/grpc-js':
        with open(f'node_modules/{package}/package.json') as file:
            print(package, json.load(file)['version'])
    plain = run(['xds_v3'])
    print('calls while the cluster is there, while it is gone, for 8 s after it is back:', *plain, sep='\n  ')
    kept = run(['xds_v3', 'ignore_resource_deletion'])
    print('the same with ignore_resource_deletion:', *kept, sep='\n  ')
    answers = [[set(seen) == {'answered'} for seen in phases] for phases in (plain, kept)]
    if answers != [[True, False, False], [True, True, True]] or 'answered' in plain[2]:
        sys.exit('NOT SEEN: calls that go on failing without ignore_resource_deletion, and none that fails with it')
    print('SEEN: the client does not take the cluster again')


main()
PY
timeout 110 python/bin/python finding.py &
program=$!
wait "$program"
