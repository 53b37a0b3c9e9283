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

// kind is a type of resources that hdsd puts health into.
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

// kindOf returns the kind of a type; false: resources of the type pass unchanged.
func kindOf(typeURL string) (kind, bool) {
	switch typeURL {
	case resourcev3.ClusterType:
		return clusters, true
	case resourcev3.EndpointType:
		return assignments, true
	}
	return 0, false
}

// body is a resource of the control plane. Nodes with the same resource share it.
type body struct {
	kind     kind
	name     string
	wire     []byte
	hash     uint64 // of name
	identity uint64 // hash of kind, name and wire

	// Set once, from wire.
	origin
	assignment    *source.Assignment // its endpoints; nil: it has none, or a defect
	endpointCount int
	lease         time.Duration // of an assignment: see envoy.Lease
	endpointHash  uint64        // hash of the endpoints
	defect        string        // reason why hdsd cannot check it; empty: none
	group         uint64        // of a cluster: hash of its checks, the same after a restart; never 0
	shape         uint64        // of a cluster: hash of all but its names
	remembered    bool          // of a cluster: hdsd may know health of its endpoints

	decoded atomic.Pointer[clusterv3.Cluster] // a cluster without its endpoints; nil: the catalogue does not use it

	stockState

	overlays overlays
}

// stockState is the state of a resource in the stock.
type stockState struct {
	// Guarded by stock.mu.
	itemCount int       // number of its items
	portions  []portion // of these, the items of each panel
	index     int       // in its roster
	moment    uint64    // of its last change: see stock.learned

	excess  atomic.Bool   // limits.max_source_endpoints has no room for it; written with stock.mu held
	element *list.Element // in stock.waiting; guarded by stock.mu
}

// portion counts the items of a resource for nodes with a panel.
type portion struct {
	panel *panel
	count int
}

// countItem counts an added item (1) or a removed one (-1). It reports whether the panels that have the
// resource change.
func (x *body) countItem(p *panel, change int) bool {
	x.itemCount += change
	if p == nil {
		common := x.commonItems()
		return common == 0 || common == change
	}
	index := slices.IndexFunc(x.portions, func(s portion) bool { return s.panel.equal(p) })
	if index < 0 {
		x.portions = append(x.portions, portion{p, change})
		return true
	}
	if x.portions[index].count += change; x.portions[index].count > 0 {
		return false
	}
	x.portions = slices.Delete(x.portions, index, index+1)
	return true
}

// commonItems returns the number of items without a panel.
func (x *body) commonItems() int {
	rest := x.itemCount
	for _, s := range x.portions {
		rest -= s.count
	}
	return rest
}

// hasVersion reports whether a node with a version of a cluster may have the resource.
func (x *body) hasVersion(v version) bool {
	return x.commonItems() > 0 || slices.ContainsFunc(x.portions, func(s portion) bool { return slices.Contains(s.panel.versions, v) })
}

// origin says where the endpoints of a cluster come from.
type origin struct {
	service string // name of the assignment
	eds     bool   // they come by EDS
	foreign bool   // they come from another server than the cluster, so that hdsd does not see them
}

// overlays are the latest forms of a resource with health. The lock also guards expected.
type overlays struct {
	mu       sync.Mutex          // guards the fields below
	overlay                      // for nodes without a panel
	byPanel  map[string]*overlay // of an assignment: by the key of the panel
	expected expectation
}

// overlay is a resource with health.
type overlay struct {
	edition  uint64 // of the health; 0: there is no overlay yet
	deciders string // key of the clusters that decide the health
	decided  bool   // of a cluster: hdsd knew its endpoints
	wire     []byte
	change   uint64 // hash of wire; 0: the resource is unchanged
}

// forPanel returns the overlay for nodes with a panel.
func (l *overlays) forPanel(p *panel) *overlay {
	if p == nil {
		return &l.overlay
	}
	if l.byPanel[p.key] == nil {
		if l.byPanel == nil || len(l.byPanel) >= maxPanels {
			l.byPanel = map[string]*overlay{}
		}
		l.byPanel[p.key] = &overlay{}
	}
	return l.byPanel[p.key]
}

// expectation says whether hdsd will check a cluster.
type expectation uint8

const (
	notKnown expectation = iota // Options.Checks has yet to say
	willCheck
	wontCheck
)

// newBody makes a body. It keeps wire.
func newBody(k kind, name string, wire []byte, maxEndpoints int) *body {
	x := &body{kind: k, name: name, wire: wire, origin: origin{service: name}, hash: maphash.String(seed, name), identity: identityOf(k, name, wire)}
	if k == assignments {
		x.lease = envoy.Lease(wire)
	}
	if x.endpointCount = rules.CountEncoded(k.typeURL(), wire); x.endpointCount > maxEndpoints {
		x.defect = rules.TooMany(x.endpointCount, maxEndpoints)
		return x
	}
	if x.defect = rules.Excess(k.typeURL(), wire); x.defect != "" {
		return x
	}
	config, listed, err := x.decode()
	if err != nil {
		x.defect = fmt.Sprintf("it cannot be decoded: %s", err)
	} else {
		x.defect = violationOf(k, config, listed)
	}
	if k == clusters {
		x.service, x.eds = cmp.Or(envoy.AssignmentName(config), name), envoy.IsEDS(config)
		x.foreign = x.eds && !sameServer(config.GetEdsClusterConfig().GetEdsConfig())
		x.group, x.shape = groupOf(wire, x.service)
		x.assignment = source.TakeEndpoints(config)
		x.decoded.Store(config)
	} else {
		x.assignment = source.EncodeAssignmentAs(wire, listed)
	}
	if x.defect != "" {
		x.assignment = nil
	} else {
		x.endpointHash = hashEndpoints(listed)
	}
	return x
}

// decode decodes a resource: a cluster, and the assignment in it, or an assignment.
func (x *body) decode() (config *clusterv3.Cluster, lists *endpointv3.ClusterLoadAssignment, err error) {
	if x.kind == assignments {
		lists = &endpointv3.ClusterLoadAssignment{}
		return nil, lists, proto.Unmarshal(x.wire, lists)
	}
	config = &clusterv3.Cluster{}
	err = proto.Unmarshal(x.wire, config)
	return config, config.GetLoadAssignment(), err
}

const roomRefusal = "the nodes of the relay have more endpoints, or resources without any, than limits.max_source_endpoints allows: raise it and restart hdsd"

// refusal returns the reason why hdsd cannot check a resource; empty: it can.
func (x *body) refusal() string {
	if x.excess.Load() {
		return roomRefusal
	}
	return x.defect
}

// violationOf returns the first violation of Envoy's own rules; empty: there is none.
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

// cluster returns a cluster without its endpoints.
func (x *body) cluster() *clusterv3.Cluster {
	if c := x.decoded.Load(); c != nil {
		return c
	}
	c, _, _ := x.decode() // newBody has decoded it
	source.TakeEndpoints(c)
	return c
}

// retainDecoded returns the cluster without its endpoints, and keeps the message, so that there is only one.
func (x *body) retainDecoded() *clusterv3.Cluster {
	c := x.cluster()
	x.decoded.Store(c)
	return c
}

// releaseDecoded gives up the decoded cluster, which takes more memory than the rest of a body.
func (x *body) releaseDecoded() { x.decoded.Store(nil) }

func identityOf(k kind, name string, wire []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(byte(k)) // writes to a hash never fail
	_, _ = h.WriteString(name)
	_ = h.WriteByte(0)
	_, _ = h.Write(wire)
	return h.Sum64()
}

// hashEndpoints returns a hash of the endpoints of an assignment, in any order.
func hashEndpoints(a *endpointv3.ClusterLoadAssignment) (sum uint64) {
	for _, group := range a.GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			key := keyOf(group, e)
			locality := key.Locality
			sum += maphash.String(seed, strings.Join([]string{locality.Region, locality.Zone, locality.SubZone, key.Address}, "\x00"))
		}
	}
	return sum
}

// weight returns the number of endpoints that a resource counts as: one without endpoints takes memory, too.
func (x *body) weight() int { return max(x.endpointCount, 1) }

// sameServer reports whether a configuration source is the server that clusters come from.
func sameServer(c *corev3.ConfigSource) bool { return c.GetAds() != nil || c.GetSelf() != nil }

// warms adds the assignment that a client waits for before it uses a changed cluster.
func (x *body) warms(names []string) []string {
	if x.eds && !x.foreign {
		return append(names, x.service)
	}
	return names
}

// latest returns the resource with the latest health, and a hash that identifies the change; 0: it is
// unchanged.
func (x *body) latest(s *Server, p *panel) (wire []byte, change uint64) {
	x.overlays.mu.Lock()
	defer x.overlays.mu.Unlock()
	kept := x.overlays.forPanel(p)
	edition := s.book.current(subject{x.kind, x.name}) + 1
	own, judges := s.book.deciderKey(x, p)
	decided := x.kind == clusters && s.stock.decided(own, x.name) // the book may never get the cluster
	if kept.edition == edition && kept.deciders == judges && kept.decided == decided {
		return kept.wire, kept.change
	}
	wire, err := s.book.apply(x, p, own, func() (bool, bool) { return s.expects(x, own) })
	if err != nil { // the client gets it unchanged
		wire = x.wire
	}
	kept.edition, kept.deciders, kept.decided, kept.wire, kept.change = edition, judges, decided, wire, 0
	if !bytes.Equal(wire, x.wire) {
		kept.change = max(xxhash.Sum64(wire), 1) // clients bring it back after a restart
	} else {
		kept.wire = x.wire
	}
	return kept.wire, kept.change
}

// Fields of a Cluster that say how to check its endpoints: type, health_checks,
// transport_socket, typed_extension_protocol_options, cluster_type, transport_socket_matches
// and transport_socket_matcher.
var checkFields = map[protowire.Number]bool{2: true, 8: true, 24: true, 36: true, 38: true, 43: true, 59: true}

// Fields of a Cluster that name it: name, eds_cluster_config and alt_stat_name.
func isNameField(number protowire.Number) bool { return number == 1 || number == 3 || number == 28 }

// groupOf returns a hash of the fields of a cluster that say how to check it, and one of all fields but its
// names.
func groupOf(wire []byte, service string) (group, shape uint64) {
	var rest maphash.Hash
	rest.SetSeed(seed)
	checks := sha256.New() // stable over restarts, without chosen collisions
	_, _ = checks.Write([]byte(service))
	_ = fields.Each(wire, func(f *fields.Field) bool { // newBody has decoded it
		if checkFields[f.Number] {
			_, _ = checks.Write(f.Raw)
		}
		if !isNameField(f.Number) {
			_, _ = rest.Write(f.Raw)
		}
		return true
	})
	return max(binary.BigEndian.Uint64(checks.Sum(nil)), 1), rest.Sum64()
}
