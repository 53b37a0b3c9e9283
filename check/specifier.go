package check

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
)

// specifier is a parsed HealthCheckSpecifier.
type specifier struct {
	interval time.Duration // between reports; 0 is never
	clusters []clusterSpec
}

type clusterSpec struct {
	name       string
	sockets    string // a change makes all hosts new
	checks     []*checkSpec
	localities []localitySpec
}

type localitySpec struct {
	locality *corev3.Locality
	hosts    []hostSpec
}

// hostSpec is an endpoint to check.
type hostSpec struct {
	key      string // same key, same host
	target   target // of probes
	traffic  target // of Redis probes, which Envoy sends to the traffic address
	source   net.Addr
	hostname string // overrides the check's host if not empty
	reported *endpointv3.Endpoint
}

// checkSpec is a health check; one of http, tcp, grpc and redis is set.
type checkSpec struct {
	key    string // same key, same check
	policy Policy
	reuse  bool
	tls    *tls.Config // nil is plaintext
	https  bool        // the scheme in requests
	http   *httpCheck
	tcp    *tcpCheck
	grpc   *grpcCheck
	redis  *redisCheck
}

// stable returns the same bytes for equal messages, for comparison.
func stable(m proto.Message) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return string(b), err
}

// parseSpecifier parses a specifier as a whole, or returns an error for the part that cannot be
// applied.
func parseSpecifier(m *healthv3.HealthCheckSpecifier) (*specifier, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	s := &specifier{interval: time.Second}
	if i := m.GetInterval(); i != nil {
		if err := i.CheckValid(); err != nil {
			return nil, fmt.Errorf("interval: %w", err)
		}
		if s.interval = min(i.AsDuration(), longest); s.interval < 0 {
			return nil, fmt.Errorf("interval %s is negative", s.interval)
		}
	}
	seen := map[string]bool{}
	for i, c := range m.GetClusterHealthChecks() {
		name := c.GetClusterName()
		if seen[name] {
			continue // as in Envoy, the first one counts
		}
		seen[name] = name != ""
		cluster, err := parseCluster(c)
		if err != nil {
			return nil, fmt.Errorf("cluster_health_checks[%d] %q: %w", i, name, err)
		}
		s.clusters = append(s.clusters, cluster)
	}
	return s, nil
}

func parseCluster(c *healthv3.ClusterHealthCheck) (clusterSpec, error) {
	s := clusterSpec{name: c.GetClusterName()}
	source, err := sourceAddress(c.GetUpstreamBindConfig())
	if err != nil {
		return s, err
	}
	if s.sockets, err = stable(&healthv3.ClusterHealthCheck{
		UpstreamBindConfig: c.GetUpstreamBindConfig(), TransportSocketMatches: c.GetTransportSocketMatches(),
	}); err != nil {
		return s, err
	}
	if s.checks, err = parseChecks(c); err != nil {
		return s, err
	}
	for i, l := range c.GetLocalityEndpoints() {
		locality, err := parseLocality(l, source)
		if err != nil {
			return s, fmt.Errorf("locality_endpoints[%d]: %w", i, err)
		}
		s.localities = append(s.localities, locality)
	}
	return s, nil
}

func parseLocality(l *healthv3.LocalityEndpoints, source net.Addr) (localitySpec, error) {
	s := localitySpec{locality: l.GetLocality()}
	if s.locality == nil {
		s.locality = &corev3.Locality{}
	}
	prefix, err := stable(s.locality)
	if err != nil {
		return s, err
	}
	s.hosts = make([]hostSpec, 0, len(l.GetEndpoints()))
	for i, e := range l.GetEndpoints() {
		if e.GetHealthCheckConfig().GetDisableActiveHealthCheck() {
			continue // neither checked nor reported
		}
		host, err := parseHost(e, prefix, source)
		if err != nil {
			return s, fmt.Errorf("endpoints[%d]: %w", i, err)
		}
		s.hosts = append(s.hosts, host)
	}
	return s, nil
}

func parseHost(e *endpointv3.Endpoint, prefix string, source net.Addr) (hostSpec, error) {
	key, err := stable(e)
	if err != nil {
		return hostSpec{}, err
	}
	address, err := parseAddress(e.GetAddress())
	if err != nil {
		return hostSpec{}, err
	}
	checked, err := checkedAt(address, e.GetHealthCheckConfig())
	if err != nil {
		return hostSpec{}, err
	}
	return hostSpec{
		// The length separates the parts.
		key:      fmt.Sprint(len(prefix), " ", prefix, key),
		target:   checked.target(),
		traffic:  address.target(),
		source:   source,
		hostname: e.GetHealthCheckConfig().GetHostname(),
		reported: address.reported(),
	}, nil
}

// parseChecks parses the checks of a cluster. Equal ones count once, as in Envoy.
func parseChecks(c *healthv3.ClusterHealthCheck) ([]*checkSpec, error) {
	sockets, err := parseSockets(c.GetTransportSocketMatches())
	if err != nil {
		return nil, err
	}
	// Envoy counts the connections of Redis checks as traffic.
	traffic := slices.ContainsFunc(c.GetHealthChecks(), func(h *corev3.HealthCheck) bool { return h.GetCustomHealthCheck() != nil })
	var checks []*checkSpec
	for i, h := range c.GetHealthChecks() {
		check, err := parseCheck(h, c.GetClusterName(), traffic)
		if err != nil {
			return nil, fmt.Errorf("health_checks[%d]: %w", i, err)
		}
		check.setSocket(h, sockets)
		if !slices.ContainsFunc(checks, func(other *checkSpec) bool { return other.key == check.key }) {
			checks = append(checks, check)
		}
	}
	return checks, nil
}

func parseCheck(h *corev3.HealthCheck, cluster string, traffic bool) (*checkSpec, error) {
	policy, err := newPolicy(h, traffic)
	if err != nil {
		return nil, err
	}
	s := &checkSpec{policy: policy, reuse: h.GetReuseConnection() == nil || h.GetReuseConnection().GetValue()}
	if s.key, err = stable(h); err != nil {
		return nil, err
	}
	s.key += fmt.Sprint(traffic)
	switch c := h.GetHealthChecker().(type) {
	case *corev3.HealthCheck_HttpHealthCheck_:
		s.http, err = newHTTPCheck(c.HttpHealthCheck, cluster)
		return s, prefixed("http_health_check", err)
	case *corev3.HealthCheck_TcpHealthCheck_:
		s.tcp, err = newTCPCheck(c.TcpHealthCheck)
		return s, prefixed("tcp_health_check", err)
	case *corev3.HealthCheck_GrpcHealthCheck_:
		s.grpc, err = newGRPCCheck(c.GrpcHealthCheck, cluster, policy.Timeout)
		return s, prefixed("grpc_health_check", err)
	case *corev3.HealthCheck_CustomHealthCheck_:
		s.redis, err = newRedisCheck(c.CustomHealthCheck)
		return s, prefixed("custom_health_check", err)
	default:
		return nil, fmt.Errorf("no health checker")
	}
}

func prefixed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
