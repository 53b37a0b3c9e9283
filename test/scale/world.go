package scale

import (
	"fmt"
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/test/fleet"
)

// world is the truth: the endpoints, and which of them are down.
type world struct {
	clusters  int
	check     string         // how each endpoint is checked, as far as checkers are told
	addresses []string       // by endpoint
	index     map[string]int // of an address
	up, down  [][]byte       // by endpoint, what a report says of it
	failing   []atomic.Bool  // by endpoint
}

// port is where all endpoints listen, each at an address of its own.
const port = 8080

func encoded(h *healthv3.EndpointHealth) []byte {
	bytes, err := proto.Marshal(h)
	if err != nil {
		panic(err) // of a message that is all our own
	}
	return bytes
}

func newWorld(clusters, each int) *world {
	w := &world{clusters: clusters, check: slowCheck, index: map[string]int{}, failing: make([]atomic.Bool, clusters*each)}
	for i := range w.failing {
		at := addressOf(i)
		address := fmt.Sprintf("%s:%d", at.GetSocketAddress().GetAddress(), port)
		w.up = append(w.up, encoded(healthOf(at, corev3.HealthStatus_HEALTHY, answersUp)))
		w.down = append(w.down, encoded(healthOf(at, corev3.HealthStatus_UNHEALTHY, answersDown)))
		w.addresses = append(w.addresses, address)
		w.index[address] = i
	}
	return w
}

// addressOf is where an endpoint listens.
func addressOf(endpoint int) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       fmt.Sprintf("10.%d.%d.%d", endpoint>>16, endpoint>>8&255, endpoint&255),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// slowCheck is the check of most worlds.
const slowCheck = `{timeout: 1s, interval: 5s, unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {path: /healthz}}`

func clusterName(i int) string { return fmt.Sprintf("cluster-%04d", i) }

// file is the cluster file of it all.
func (w *world) file() string {
	each := len(w.addresses) / w.clusters
	all := make([]string, w.clusters)
	for i := range all {
		all[i] = fleet.StaticCluster(clusterName(i), w.check, w.addresses[i*each:(i+1)*each])
	}
	return fleet.ClusterFile(all...)
}

// flip makes an endpoint fail, or recover.
func (w *world) flip(endpoint int) { w.failing[endpoint].Store(!w.failing[endpoint].Load()) }
