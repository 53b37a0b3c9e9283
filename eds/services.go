package eds

import (
	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"google.golang.org/grpc"
)

// Register adds the aggregated, the endpoint and the cluster discovery service
// to a gRPC server, which has to use wire.Codec.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, aggregatedService{s})
	endpoints, clusters := endpointservice.EndpointDiscoveryService_ServiceDesc, clusterservice.ClusterDiscoveryService_ServiceDesc
	r.RegisterService(s.fetcher.unary(endpoints, "FetchEndpoints", s.published.assignments), endpointService{server: s})
	r.RegisterService(s.fetcher.unary(clusters, "FetchClusters", s.published.clusters), clusterService{server: s})
}

type aggregatedService struct{ server *Server }

// StreamAggregatedResources is state of the world, all types.
func (a aggregatedService) StreamAggregatedResources(s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return a.server.serve(s, false, nil)
}

// DeltaAggregatedResources is delta, all types.
func (a aggregatedService) DeltaAggregatedResources(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.server.serve(s, true, nil)
}

// endpointService serves streams; fetches go to fetcher.answer, never to the
// embedded server.
type endpointService struct {
	endpointservice.UnimplementedEndpointDiscoveryServiceServer
	server *Server
}

// StreamEndpoints is state of the world.
func (e endpointService) StreamEndpoints(s endpointservice.EndpointDiscoveryService_StreamEndpointsServer) error {
	return e.server.serve(s, false, e.server.published.assignments)
}

// DeltaEndpoints is delta.
func (e endpointService) DeltaEndpoints(s endpointservice.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return e.server.serve(s, true, e.server.published.assignments)
}

// clusterService serves streams; fetches go to fetcher.answer, never to the
// embedded server.
type clusterService struct {
	clusterservice.UnimplementedClusterDiscoveryServiceServer
	server *Server
}

// StreamClusters is state of the world.
func (c clusterService) StreamClusters(s clusterservice.ClusterDiscoveryService_StreamClustersServer) error {
	return c.server.serve(s, false, c.server.published.clusters)
}

// DeltaClusters is delta.
func (c clusterService) DeltaClusters(s clusterservice.ClusterDiscoveryService_DeltaClustersServer) error {
	return c.server.serve(s, true, c.server.published.clusters)
}
