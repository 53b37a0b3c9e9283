#!/usr/bin/env bash
# java-control-plane does not tell a delta client that comes back what was removed meanwhile.
#
# Packages:  io.envoyproxy.controlplane:server 1.0.49 (Maven); xds-protos 1.85.0 (PyPI).
# Seen:      two clients know clusters a and b by delta xDS; one disconnects; b is removed. The client that
#            stayed is told in removed_resources. The other comes back and names a and b with their versions
#            in initial_resource_versions: it is sent a again, unchanged, and never hears that b is gone.
# Surprise:  the comments on initial_resource_versions in discovery.proto: they let a client go on with its
#            session after a reconnection. With this server they have no effect.
# In hdsd:   sources have first_delta_response_is_complete, and docs/reference/sources.md recommends GRPC for
#            this server. source/xds, TestTheFirstDeltaResponseIsComplete.
#
# Exits 0 if that is seen. Needs python3, mvn and java (11 or later).
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
  <artifactId>removal</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>io.envoyproxy.controlplane</groupId><artifactId>server</artifactId><version>1.0.49</version></dependency>
    <dependency><groupId>io.grpc</groupId><artifactId>grpc-netty-shaded</artifactId><version>1.62.2</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
XML
mvn -q -B -Dstyle.color=never dependency:copy-dependencies -DoutputDirectory=jars

# Each line of its input is what the server has: a version, then names of clusters. It prints its port.
cat > Server.java <<'JAVA'
import io.envoyproxy.controlplane.cache.v3.SimpleCache;
import io.envoyproxy.controlplane.cache.v3.Snapshot;
import io.envoyproxy.controlplane.server.V3DiscoveryServer;
import io.envoyproxy.envoy.config.cluster.v3.Cluster;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

public class Server {
  public static void main(String[] arguments) throws Exception {
    SimpleCache<String> cache = new SimpleCache<>(node -> "all");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    set(cache, input.readLine());
    System.out.println(NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
        .addService(new V3DiscoveryServer(cache).getClusterDiscoveryServiceImpl()).build().start().getPort());
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      set(cache, line);
    }
    System.exit(0);
  }

  private static void set(SimpleCache<String> cache, String line) {
    String[] words = line.split(" ");
    List<Cluster> clusters = new ArrayList<>();
    for (int i = 1; i < words.length; i++) {
      clusters.add(Cluster.newBuilder().setName(words[i]).setType(Cluster.DiscoveryType.STATIC).build());
    }
    cache.setSnapshot("all", Snapshot.create(clusters, List.of(), List.of(), List.of(), List.of(), words[0]));
  }
}
JAVA

cat > finding.py <<'PY'
import glob
import queue
import signal
import subprocess
import sys
import threading

import grpc
from envoy.service.cluster.v3 import cds_pb2_grpc
from envoy.service.discovery.v3 import discovery_pb2

CLUSTERS = 'type.googleapis.com/envoy.config.cluster.v3.Cluster'


class Client:
    """A stream of delta CDS that asks for all clusters."""

    def __init__(self, port, versions):
        """versions are those of the clusters that it knows, by name."""
        self.channel = grpc.insecure_channel(f'127.0.0.1:{port}')
        self.requests, self.responses = queue.Queue(), queue.Queue()
        first = discovery_pb2.DeltaDiscoveryRequest(
            type_url=CLUSTERS, resource_names_subscribe=['*'], initial_resource_versions=versions)
        first.node.id = 'client'
        self.requests.put(first)
        stream = cds_pb2_grpc.ClusterDiscoveryServiceStub(self.channel).DeltaClusters(iter(self.requests.get, None))
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        try:
            for response in stream:
                self.requests.put(discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTERS, response_nonce=response.nonce))
                self.responses.put(response)
        except grpc.RpcError:
            pass

    def next(self, seconds):
        """Returns the next response, or None if there is none in that time."""
        try:
            return self.responses.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self):
        self.requests.put(None)
        self.channel.close()


def told(response):
    if response is None:
        return 'nothing'
    return 'resources {}, removed_resources {}'.format([r.name for r in response.resources], list(response.removed_resources))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(*glob.glob('server-*.jar', root_dir='jars'))
    server = subprocess.Popen(['java', '-cp', 'jars/*', 'Server.java'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    clients = []

    def connect(versions):
        clients.append(Client(port, versions))
        return clients[-1]

    def has(line):
        server.stdin.write(line + '\n')
        server.stdin.flush()

    try:
        has('1 a b')
        port = int(server.stdout.readline())
        stays, leaves = connect({}), connect({})
        first, known = stays.next(20), leaves.next(20)
        print('the server has a and b; both clients are told:', told(known))
        leaves.close()
        has('2 a')
        removal = stays.next(20)
        print('the server has a; the client that stayed is told:', told(removal))
        if None in (first, known, removal):
            sys.exit('NOT SEEN: the server does not answer')
        versions = {r.name: r.version for r in known.resources}
        back = connect(versions)
        again, later = back.next(20), back.next(5)
        print(f'the other comes back with {versions}, and is told: {told(again)}; in 5 s more: {told(later)}')
    finally:
        for client in clients:
            client.close()
        server.kill()
        server.wait()
    removed = [list(r.removed_resources) if r else [] for r in (removal, again, later)]
    if sorted(versions) != ['a', 'b'] or removed != [['b'], [], []]:
        sys.exit('NOT SEEN: a removal that is told to the client that stayed alone')
    print('SEEN: the removal of b is not told to the client that comes back')


main()
PY
timeout 90 python/bin/python finding.py &
program=$!
wait "$program"
