package scale

import (
	"context"
	"slices"
	"testing"
	"time"

	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/grpc"

	"hdsd/test/fleet"
)

// World is the truth about the endpoints of a simulated fleet.
type World = world

// Simulate starts hdsd for a world, with so many simulated checkers in three zones that
// report every second. It returns once all endpoints are healthy.
func Simulate(t testing.TB, w *World, checkers int) *fleet.Coordinator {
	t.Helper()
	s := simulate(t, w, checkers, 3, time.Second, "")
	s.Start()
	s.connect()
	s.until("all to be healthy", s.allHealthy)
	return s.Coordinator
}

// Report is a checker's full report on one specifier, in the bytes that Envoy would send.
type Report = report

// NewWorld returns so many clusters of so many endpoints each, all of them well.
func NewWorld(clusters, each int) *World { return newWorld(clusters, each) }

// Name is that of a cluster.
func (w *world) Name(cluster int) string { return clusterName(cluster) }

// ClusterOf is the cluster of an endpoint.
func (w *world) ClusterOf(endpoint int) int { return endpoint / (len(w.addresses) / w.clusters) }

// Find is the endpoint at an address.
func (w *world) Find(address string) (int, bool) {
	endpoint, found := w.index[address]
	return endpoint, found
}

// Size is the number of endpoints.
func (w *world) Size() int { return len(w.addresses) }

// Address is that of an endpoint.
func (w *world) Address(endpoint int) string { return w.addresses[endpoint] }

// File is the cluster file of all.
func (w *world) File() string { return w.file() }

// Set makes an endpoint fail, or recover. Reports say so from then on.
func (w *world) Set(endpoint int, failing bool) { w.failing[endpoint].Store(failing) }

// NewReport returns the report that follows a specifier.
func NewReport(w *World, s *healthv3.HealthCheckSpecifier) (*Report, error) { return newReport(w, s) }

// Next says how things are now. Nobody changes the bytes later.
func (r *report) Next() []byte { return r.next() }

// Toggled is a report that says the opposite of the last one about some entries. Next says
// the truth again.
func (r *report) Toggled(entries ...int) []byte { return r.patch(slices.Values(entries)) }

// Len is the number of endpoints that it is about.
func (r *report) Len() int { return len(r.entries) }

// Endpoint is what one of its entries is about.
func (r *report) Endpoint(entry int) int { return r.entries[entry].endpoint }

// Hello is the first message of a simulated checker.
func Hello(id, zone string) *healthv3.HealthCheckRequestOrEndpointHealthResponse {
	return (&checker{id: id, zone: zone}).hello()
}

// Dial opens a stream on a connection of its own. What is received and sent as
// wire.Bytes is neither decoded nor encoded. The function closes the connection.
func Dial(ctx context.Context, server, method string, more ...grpc.DialOption) (grpc.ClientStream, func() error, error) {
	return dial(ctx, server, method, more...)
}
