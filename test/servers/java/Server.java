import io.envoyproxy.controlplane.cache.v3.SimpleCache;
import io.envoyproxy.controlplane.cache.v3.Snapshot;
import io.envoyproxy.controlplane.server.DiscoveryServerCallbacks;
import io.envoyproxy.controlplane.server.V3DiscoveryServer;
import io.envoyproxy.envoy.config.cluster.v3.Cluster;
import io.envoyproxy.envoy.config.core.v3.Address;
import io.envoyproxy.envoy.config.core.v3.AggregatedConfigSource;
import io.envoyproxy.envoy.config.core.v3.ApiVersion;
import io.envoyproxy.envoy.config.core.v3.ConfigSource;
import io.envoyproxy.envoy.config.core.v3.SocketAddress;
import io.envoyproxy.envoy.config.endpoint.v3.ClusterLoadAssignment;
import io.envoyproxy.envoy.config.endpoint.v3.Endpoint;
import io.envoyproxy.envoy.config.endpoint.v3.LbEndpoint;
import io.envoyproxy.envoy.config.endpoint.v3.LocalityLbEndpoints;
import io.envoyproxy.envoy.service.discovery.v3.DeltaDiscoveryRequest;
import io.envoyproxy.envoy.service.discovery.v3.DiscoveryRequest;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

/** java-control-plane's server. Each line of its input is what it has: a version, then NAME=PORT of clusters. */
public class Server {
  public static void main(String[] arguments) throws Exception {
    SimpleCache<String> cache = new SimpleCache<>(node -> "all");
    DiscoveryServerCallbacks callbacks = new DiscoveryServerCallbacks() {
      @Override
      public void onV3StreamRequest(long stream, DiscoveryRequest request) {
        System.out.println("request");
      }

      @Override
      public void onV3StreamDeltaRequest(long stream, DeltaDiscoveryRequest request) {
        System.out.println("request");
      }
    };
    V3DiscoveryServer server = new V3DiscoveryServer(callbacks, cache);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    cache.setSnapshot("all", snapshot(input.readLine()));
    NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])))
        .addService(server.getAggregatedDiscoveryServiceImpl())
        .addService(server.getClusterDiscoveryServiceImpl())
        .addService(server.getEndpointDiscoveryServiceImpl())
        .build()
        .start();
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      cache.setSnapshot("all", snapshot(line));
    }
    System.exit(0);
  }

  private static Snapshot snapshot(String line) {
    String[] words = line.split(" ");
    List<Cluster> clusters = new ArrayList<>();
    List<ClusterLoadAssignment> assignments = new ArrayList<>();
    for (int i = 1; i < words.length; i++) {
      String[] parts = words[i].split("=");
      ConfigSource ads = ConfigSource.newBuilder().setResourceApiVersion(ApiVersion.V3).setAds(AggregatedConfigSource.getDefaultInstance()).build();
      clusters.add(Cluster.newBuilder().setName(parts[0]).setType(Cluster.DiscoveryType.EDS)
          .setEdsClusterConfig(Cluster.EdsClusterConfig.newBuilder().setEdsConfig(ads)).build());
      SocketAddress address = SocketAddress.newBuilder().setAddress("127.0.0.1").setPortValue(Integer.parseInt(parts[1])).build();
      LbEndpoint endpoint = LbEndpoint.newBuilder()
          .setEndpoint(Endpoint.newBuilder().setAddress(Address.newBuilder().setSocketAddress(address))).build();
      assignments.add(ClusterLoadAssignment.newBuilder().setClusterName(parts[0])
          .addEndpoints(LocalityLbEndpoints.newBuilder().addLbEndpoints(endpoint)).build());
    }
    return Snapshot.create(clusters, assignments, List.of(), List.of(), List.of(), words[0]);
  }
}
