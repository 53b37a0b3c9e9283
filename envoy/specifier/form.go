package specifier

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// wireForm is a cluster in a specifier. A source's cluster has several if its endpoints use
// different sockets.
type wireForm struct {
	name    string
	checks  []*corev3.HealthCheck
	sockets []*clusterv3.Cluster_TransportSocketMatch
}

func (f *wireForm) start() *healthv3.ClusterHealthCheck {
	return &healthv3.ClusterHealthCheck{
		ClusterName: f.name, HealthChecks: f.checks, TransportSocketMatches: f.sockets,
	}
}

// criterion is the key with which a check selects its socket.
const criterion = "hdsd"

// newForm makes the form of a cluster whose checks use these sockets, one for each
// check.
func newForm(name string, checks []*corev3.HealthCheck, chosen []*socket) *wireForm {
	f := &wireForm{checks: make([]*corev3.HealthCheck, len(checks))}
	numbers := map[*socket]string{}
	for _, s := range chosen {
		if s.wire == nil || numbers[s] != "" {
			continue
		}
		numbers[s] = strconv.Itoa(len(f.sockets))
		match := &clusterv3.Cluster_TransportSocketMatch{
			Name: criterion + "-" + numbers[s], Match: criteria(numbers[s]), TransportSocket: s.wire,
		}
		if slices.ContainsFunc(checks, isRedis) && alike(chosen) {
			match.Match = nil // for Redis, which uses no criteria
		}
		f.sockets = append(f.sockets, match)
	}
	for i, check := range checks {
		f.checks[i] = proto.CloneOf(check)
		f.checks[i].TransportSocketMatchCriteria = nil
		switch {
		case chosen[i].wire != nil:
			f.checks[i].TransportSocketMatchCriteria = criteria(numbers[chosen[i]])
		case len(f.sockets) > 0: // matches none: without criteria Envoy would use those of another check
			f.checks[i].TransportSocketMatchCriteria = criteria("plain")
		}
	}
	f.name = f.wireName(name)
	return f
}

func isRedis(check *corev3.HealthCheck) bool { return check.GetCustomHealthCheck() != nil }

func alike(chosen []*socket) bool {
	return !slices.ContainsFunc(chosen, func(s *socket) bool { return s != chosen[0] })
}

// unreachable names the check that cannot use the socket chosen for it. Envoy connects for a
// Redis check without criteria.
func unreachable(checks []*corev3.HealthCheck, chosen []*socket) string {
	for i, check := range checks {
		if isRedis(check) && chosen[i].wire != nil && !alike(chosen) {
			return fmt.Sprintf("health_checks[%d]: a Redis check through TLS would go out in plaintext beside checks that use other sockets; give all of the cluster's checks the same transport_socket_match_criteria", i)
		}
	}
	return ""
}

func criteria(value string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{criterion: structpb.NewStringValue(value)}}
}

// hashed matches names that end like those with a hash.
var hashed = regexp.MustCompile("#[0-9a-f]{10}$")

// wireName returns the cluster's own name, unless Envoy cannot apply a change in place.
// For gRPC checks and sockets, the name has a hash, so that a change
// makes another cluster for Envoy. So has a name that ends as one with a hash: no two
// clusters have the same.
func (f *wireForm) wireName(name string) string {
	fixed := healthv3.ClusterHealthCheck{TransportSocketMatches: f.sockets}
	for _, check := range f.checks {
		if check.GetGrpcHealthCheck() != nil {
			fixed.HealthChecks = append(fixed.HealthChecks, check)
		}
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(&fixed)
	if err != nil || len(text) == 0 && !hashed.MatchString(name) {
		return name // a cluster that cannot be encoded cannot be sent either
	}
	sum := sha256.Sum256(text)
	return name + "#" + hex.EncodeToString(sum[:5])
}
