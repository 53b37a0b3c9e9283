#!/usr/bin/env bash
# grpc-java keeps calling an endpoint that an update of EDS marks as DRAINING, if it leaves none usable.
#
# Packages:  io.grpc:grpc-xds 1.85.1 (Maven); xds-protos 1.85.0 (PyPI).
# Seen:      a cluster has one endpoint. An assignment marks it as DRAINING, and the client acknowledges it.
#            All its calls still reach the endpoint. If the first assignment that the client gets has the
#            endpoint as DRAINING, all its calls fail.
# Surprise:  the same assignment means two things, by what came before. grpc-go 1.85.0, C-core 1.85.3 and
#            grpc-js-xds 1.14.1 stop calling.
# In hdsd:   a drain of the last endpoints does not stop calls of such clients: docs/guides/grpc.md says so.
#            test/proxyless, TestClientsOverChanges (with PROXYLESS=all).
#
# Exits 0 if that is seen. Needs python3, mvn and java (17 or later).
set -euo pipefail
folder=$(mktemp -d)
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install -q --disable-pip-version-check xds-protos==1.85.0 grpcio==1.85.0 protobuf==7.36.2
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>findings</groupId>
  <artifactId>draining</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>io.grpc</groupId><artifactId>grpc-netty-shaded</artifactId><version>1.85.1</version></dependency>
    <dependency><groupId>io.grpc</groupId><artifactId>grpc-xds</artifactId><version>1.85.1</version></dependency>
    <dependency><groupId>io.grpc</groupId><artifactId>grpc-services</artifactId><version>1.85.1</version></dependency>
  </dependencies>
</project>
XML
mvn -q -B -Dstyle.color=never dependency:copy-dependencies -DoutputDirectory=jars

# For each line of its input, the client makes a call and prints what becomes of it.
cat > Client.java <<'JAVA'
import io.grpc.Channel;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import java.util.concurrent.TimeUnit;

public class Client {
  public static void main(String[] arguments) throws Exception {
    Channel channel = Grpc.newChannelBuilder("xds:///shop", InsecureChannelCredentials.create()).build();
    while (System.in.read() >= 0) {
      String line = "answered";
      try {
        HealthGrpc.newBlockingStub(channel).withDeadlineAfter(2, TimeUnit.SECONDS).check(HealthCheckRequest.getDefaultInstance());
      } catch (StatusRuntimeException e) {
        line = "fails: " + e.getStatus().getCode();
      }
      System.out.println(line);
    }
    System.exit(0);
  }
}
JAVA

cat > finding.py <<'PY'
import glob
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
ENDPOINTS = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'


def resources(port, health):
    """Returns what a target "xds:///shop" leads to: its resources by type."""
    manager = {
        '@type': FILTERS + 'network.http_connection_manager.v3.HttpConnectionManager',
        'route_config': {'name': 'all', 'virtual_hosts': [{
            'name': 'all', 'domains': ['*'], 'routes': [{'match': {'prefix': ''}, 'route': {'cluster': 'shop'}}]}]},
        'http_filters': [{'name': 'router', 'typed_config': {'@type': FILTERS + 'http.router.v3.Router'}}],
    }
    cluster = {'name': 'shop', 'type': 'EDS', 'eds_cluster_config': {'eds_config': {'ads': {}}}}
    endpoint = {'endpoint': {'address': {'socket_address': {'address': '127.0.0.1', 'port_value': port}}},
                'health_status': health}
    assignment = {'cluster_name': 'shop', 'endpoints': [
        {'locality': {'zone': 'a'}, 'load_balancing_weight': 1, 'lb_endpoints': [endpoint]}]}
    messages = [
        json_format.ParseDict({'name': 'shop', 'api_listener': {'api_listener': manager}}, listener_pb2.Listener()),
        json_format.ParseDict(cluster, cluster_pb2.Cluster()),
        json_format.ParseDict(assignment, endpoint_pb2.ClusterLoadAssignment()),
    ]
    return {'type.googleapis.com/' + m.DESCRIPTOR.full_name: m for m in messages}


class Plane(ads_pb2_grpc.AggregatedDiscoveryServiceServicer):
    """A control plane with one resource of each type, all named shop."""

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


def run(*phases):
    """Returns what calls do while the endpoint has the health of each phase."""
    health = grpc.method_handlers_generic_handler('grpc.health.v1.Health', {
        'Check': grpc.unary_unary_rpc_method_handler(lambda request, _: request)})
    backend, backend_port = serve(lambda server: server.add_generic_rpc_handlers([health]))
    plane = Plane(resources(backend_port, phases[0]))
    server, port = serve(lambda server: ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(plane, server))
    bootstrap = {'node': {'id': 'client', 'locality': {}}, 'xds_servers': [{
        'server_uri': f'127.0.0.1:{port}', 'channel_creds': [{'type': 'insecure'}], 'server_features': ['xds_v3']}]}
    client = subprocess.Popen(['java', '-XX:TieredStopAtLevel=1', '-cp', 'jars/*', 'Client.java'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=os.environ | {'GRPC_XDS_BOOTSTRAP_CONFIG': json.dumps(bootstrap)})

    def call():
        client.stdin.write('\n')
        client.stdin.flush()
        return client.stdout.readline().strip()

    def calls(seconds):
        seen, deadline = {}, time.monotonic() + seconds
        while time.monotonic() < deadline:
            line = call()
            seen[line] = seen.get(line, 0) + 1
            time.sleep(0.1)
        return seen

    def taken():
        """Waits until the client has the assignment and its channel has settled."""
        deadline = time.monotonic() + 30
        while plane.acknowledged.get(ENDPOINTS) != str(plane.version):
            if time.monotonic() > deadline:
                sys.exit('NOT SEEN: the client does not acknowledge an assignment')
            call()
        calls(1)

    try:
        seen = []
        for i, phase in enumerate(phases):
            if i > 0:
                plane.change(resources(backend_port, phase))
            taken()
            seen.append(calls(4))
            print(f'  acknowledged as {phase}, in 4 s: {seen[-1]}')
        return seen
    finally:
        client.kill()
        client.wait()
        server.stop(None).wait()
        backend.stop(None).wait()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(*glob.glob('grpc-xds-*.jar', root_dir='jars'))
    print('an endpoint that becomes DRAINING:')
    turned = run('HEALTHY', 'DRAINING')
    print('an endpoint that is DRAINING from the start:')
    fresh = run('DRAINING')
    if [set(seen) for seen in turned] != [{'answered'}] * 2 or 'answered' in fresh[0]:
        sys.exit('NOT SEEN: calls that reach a DRAINING endpoint if it was HEALTHY before, and otherwise fail')
    print('SEEN: the client keeps calling the endpoint that is DRAINING')


main()
PY
timeout 110 python/bin/python finding.py &
program=$!
wait "$program"
