package relay

import (
	"bytes"
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy"
	"hdsd/envoy/fields"
	"hdsd/envoy/rules"
	"hdsd/source"
)

// kind is one of the two types that hdsd puts health into.
type kind uint8

const (
	clusters kind = iota
	assignments
	kinds
)

func (k kind) typeURL() string {
	if k == clusters {
		return resourcev3.ClusterType
	}
	return resourcev3.EndpointType
}

// kindOf returns the kind of a type, and false for one that passes as it came.
func kindOf(typeURL string) (kind, bool) {
	switch typeURL {
	case resourcev3.ClusterType:
		return clusters, true
	case resourcev3.EndpointType:
		return assignments, true
	}
	return 0, false
}

// body is a resource as the control plane sent it, kept once however many nodes have it.
type body struct {
	kind     kind
	name     string
	wire     []byte
	hash     uint64 // of name
	identity uint64 // hash of all three

	// What hdsd makes of it to learn what to check. Set once.
	origin
	lists      *source.Assignment // what it says of endpoints; nil: nothing, or it is wrong
	endpoints  int
	lease      time.Duration // of an assignment: see envoy.Lease
	places     uint64        // equal for those with the same endpoints
	wrong      string        // why it cannot be checked
	group      uint64        // of a cluster: equal for those that are checked the same way, after a restart, too; never 0
	shape      uint64        // of a cluster: equal for those that differ in their names only
	remembered bool          // of a cluster: hdsd may know health of it

	kept atomic.Pointer[clusterv3.Cluster] // a cluster without its endpoints, if the catalogue uses it

	stocked

	last last
}

// stocked is how a resource stands in the stock.
type stocked struct {
	// Guarded by stock.mu.
	items  int       // how many ways in which it stands in responses nodes have
	apart  []portion // of these, those of nodes with a panel
	place  int       // in its roster
	moment uint64    // when it came

	crowded atomic.Bool   // there is no room for it in limits.max_source_endpoints; written with stock.mu held
	turn    *list.Element // in stock.waiting; guarded by stock.mu
}

// portion is how many of the items of a resource are for nodes with a panel.
type portion struct {
	panel *panel
	items int
}

// count counts an item that comes (1) or goes (-1). It reports whether that changes which nodes have
// the resource.
func (x *body) count(p *panel, change int) bool {
	x.items += change
	if p == nil {
		common := x.common()
		return common == 0 || common == change
	}
	index := slices.IndexFunc(x.apart, func(s portion) bool { return s.panel.is(p) })
	if index < 0 {
		x.apart = append(x.apart, portion{p, change})
		return true
	}
	if x.apart[index].items += change; x.apart[index].items > 0 {
		return false
	}
	x.apart = slices.Delete(x.apart, index, index+1)
	return true
}

// common returns how many items are for nodes whose panel is not known.
func (x *body) common() int {
	rest := x.items
	for _, s := range x.apart {
		rest -= s.items
	}
	return rest
}

// belongs reports whether nodes have the resource that may have a version of a cluster.
func (x *body) belongs(v version) bool {
	return x.common() > 0 || slices.ContainsFunc(x.apart, func(s portion) bool { return slices.Contains(s.panel.versions, v) })
}

// origin is where the endpoints of a cluster come from.
type origin struct {
	service   string // the name of the assignment that has them
	byEDS     bool   // they come by EDS
	elsewhere bool   // not from who sent the cluster, so that hdsd does not see them
}

// last is a resource with the health that it had when it was last sent. Its lock also guards
// what hdsd expects of the resource.
type last struct {
	mu sync.Mutex // guards what follows
	outcome
	apart    map[string]*outcome // of an assignment: for nodes with a panel, by its key
	expected expectation
}

// outcome is a resource with health.
type outcome struct {
	edition uint64 // of the health in out; 0: none yet
	judges  string // whose verdicts are in out
	decided bool   // of a cluster: hdsd knew endpoints of it when out was made
	out     []byte
	change  uint64 // hash of out; 0: out is wire
}

// of returns what nodes with a panel get.
func (l *last) of(p *panel) *outcome {
	if p == nil {
		return &l.outcome
	}
	if l.apart[p.key] == nil {
		if l.apart == nil || len(l.apart) >= maxPanels {
			l.apart = map[string]*outcome{}
		}
		l.apart[p.key] = &outcome{}
	}
	return l.apart[p.key]
}

// expectation is whether hdsd will check a cluster.
type expectation uint8

const (
	notKnown expectation = iota // Options.Checks was not asked
	willCheck
	wontCheck
)

// newBody makes a body. It keeps wire.
func newBody(k kind, name string, wire []byte, maxEndpoints int) *body {
	x := &body{kind: k, name: name, wire: wire, origin: origin{service: name}, hash: maphash.String(seed, name), identity: identityOf(k, name, wire)}
	if k == assignments {
		x.lease = envoy.Lease(wire)
	}
	if x.endpoints = rules.CountEncoded(k.typeURL(), wire); x.endpoints > maxEndpoints {
		x.wrong = rules.TooMany(x.endpoints, maxEndpoints)
		return x
	}
	if x.wrong = rules.Excess(k.typeURL(), wire); x.wrong != "" {
		return x
	}
	config, listed, err := x.decode()
	if err != nil {
		x.wrong = fmt.Sprintf("it cannot be decoded: %s", err)
	} else {
		x.wrong = violationOf(k, config, listed)
	}
	if k == clusters {
		x.service, x.byEDS = cmp.Or(envoy.AssignmentName(config), name), envoy.IsEDS(config)
		x.elsewhere = x.byEDS && !sameServer(config.GetEdsClusterConfig().GetEdsConfig())
		x.group, x.shape = groupOf(wire, x.service)
		x.lists = source.TakeEndpoints(config)
		x.kept.Store(config)
	} else {
		x.lists = source.EncodeAssignmentAs(wire, listed)
	}
	if x.wrong != "" {
		x.lists = nil
	} else {
		x.places = placesOf(listed)
	}
	return x
}

// decode decodes a resource, and returns what it lists of endpoints, too.
func (x *body) decode() (config *clusterv3.Cluster, lists *endpointv3.ClusterLoadAssignment, err error) {
	if x.kind == assignments {
		lists = &endpointv3.ClusterLoadAssignment{}
		return nil, lists, proto.Unmarshal(x.wire, lists)
	}
	config = &clusterv3.Cluster{}
	err = proto.Unmarshal(x.wire, config)
	return config, config.GetLoadAssignment(), err
}

const noRoom = "the nodes of the relay have more endpoints, or resources without any, than limits.max_source_endpoints allows: raise it and restart hdsd"

// refusal returns why it cannot be checked; empty if it can.
func (x *body) refusal() string {
	if x.crowded.Load() {
		return noRoom
	}
	return x.wrong
}

// violationOf returns which of Envoy's own rules a resource breaks first; empty if none.
func violationOf(k kind, config *clusterv3.Cluster, listed *endpointv3.ClusterLoadAssignment) string {
	var message proto.Message = listed
	if k == clusters {
		message = config
	}
	violations := rules.Violations(message)
	if len(violations) == 0 {
		return ""
	}
	return violations[0].Field + ": " + violations[0].Reason
}

// cluster returns a cluster without the endpoints that it lists.
func (x *body) cluster() *clusterv3.Cluster {
	if c := x.kept.Load(); c != nil {
		return c
	}
	c, _, _ := x.decode() // it was decoded once
	source.TakeEndpoints(c)
	return c
}

// keep returns the same and keeps it: there is one message while it is kept.
func (x *body) keep() *clusterv3.Cluster {
	c := x.cluster()
	x.kept.Store(c)
	return c
}

// thin gives up the decoded cluster, which takes more room than all else of a body.
func (x *body) thin() { x.kept.Store(nil) }

func identityOf(k kind, name string, wire []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(byte(k)) // never fails, nor do the others
	_, _ = h.WriteString(name)
	_ = h.WriteByte(0)
	_, _ = h.Write(wire)
	return h.Sum64()
}

// placesOf is a hash of the endpoints of an assignment, in any order.
func placesOf(a *endpointv3.ClusterLoadAssignment) (sum uint64) {
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			key := keyOf(group, e)
			at := key.Locality
			sum += maphash.String(seed, strings.Join([]string{at.Region, at.Zone, at.SubZone, key.Address}, "\x00"))
		}
	}
	return sum
}

// weight is how many endpoints a resource counts as: one without any takes memory, too.
func (x *body) weight() int { return max(x.endpoints, 1) }

// sameServer reports whether a client takes what has this source from the server that it takes
// clusters from.
func sameServer(c *corev3.ConfigSource) bool { return c.GetAds() != nil || c.GetSelf() != nil }

// warms adds the assignment for which a client waits before it uses a changed cluster.
func (x *body) warms(names []string) []string {
	if x.byEDS && !x.elsewhere {
		return append(names, x.service)
	}
	return names
}

// latest returns the resource with the latest health in it, and what stands for the
// change; 0: it is as it came.
func (x *body) latest(s *Server, p *panel) (out []byte, change uint64) {
	x.last.mu.Lock()
	defer x.last.mu.Unlock()
	kept := x.last.of(p)
	edition := s.book.current(subject{x.kind, x.name}) + 1
	own, judges := s.book.judgment(x, p)
	decided := x.kind == clusters && s.stock.decided(own, x.name) // the book may never know the cluster
	if kept.edition == edition && kept.judges == judges && kept.decided == decided {
		return kept.out, kept.change
	}
	out, err := s.book.apply(x, p, own, func() (bool, bool) { return s.expects(x, own) })
	if err != nil { // the client will judge it
		out = x.wire
	}
	kept.edition, kept.judges, kept.decided, kept.out, kept.change = edition, judges, decided, out, 0
	if !bytes.Equal(out, x.wire) {
		kept.change = max(xxhash.Sum64(out), 1) // the same after a restart: clients bring it back
	} else {
		kept.out = x.wire
	}
	return kept.out, kept.change
}

// Fields of a Cluster that say how to check its endpoints: type, health_checks,
// transport_socket, typed_extension_protocol_options, cluster_type, transport_socket_matches
// and transport_socket_matcher.
var checkFields = map[protowire.Number]bool{2: true, 8: true, 24: true, 36: true, 38: true, 43: true, 59: true}

// Fields of a Cluster that name it: name, eds_cluster_config and alt_stat_name.
func isName(number protowire.Number) bool { return number == 1 || number == 3 || number == 28 }

// groupOf is a hash of what a cluster says of how to check it, and one of all but its names.
func groupOf(wire []byte, service string) (group, shape uint64) {
	var rest maphash.Hash
	rest.SetSeed(seed)
	checks := sha256.New() // the same after a restart, and nobody can choose it
	_, _ = checks.Write([]byte(service))
	_ = fields.Each(wire, func(f *fields.Field) bool { // it was decoded
		if checkFields[f.Number] {
			_, _ = checks.Write(f.Raw)
		}
		if !isName(f.Number) {
			_, _ = rest.Write(f.Raw)
		}
		return true
	})
	return max(binary.BigEndian.Uint64(checks.Sum(nil)), 1), rest.Sum64()
}
