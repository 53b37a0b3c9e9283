package relay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// lateNode is a data plane that takes what it is sent at once, and answers late. hdsd may take streams
// for alive that it has left. It has one resource of each kind, web.
type lateNode struct {
	tenants *tenants
	random  *rand.Rand
	id      byte
	types   [kinds]string
	streams [kinds]*lateStream // nil: it has none
	ghosts  []*lateStream      // it has left them, and hdsd has not heard

	// Its control plane.
	outage   *bool                   // it cannot be reached
	versions map[uint32]*lateVersion // of all nodes
	wanted   [kinds]*lateVersion     // nil: there is none
	version  int

	// What it has.
	gaveUp    bool // the assignment, since it has no cluster
	resources [kinds]*lateVersion
	claims    [kinds]string
	endpoints *endpointv3.ClusterLoadAssignment
}

// lateVersion is a version of web.
type lateVersion struct {
	number    int
	message   proto.Message
	path      string
	addresses []string
	bad       bool // data planes refuse it
}

type lateStream struct {
	*tenant
	subscribed [kinds]bool
	sent       [kinds]int // number of the version that it was sent last; 0: none
	accepted   [kinds]string
	pending    []lateAnswer
}

type lateAnswer struct {
	kind           kind
	nonce, version string
	refuses        bool
}

func (n *lateNode) open(k kind) {
	for !n.tenants.delta && len(n.ghosts) > 0 && slices.ContainsFunc(n.wanted[:], func(w *lateVersion) bool { return w != nil && w.bad }) { // what it had before, nobody can know while it is a ghost's
		n.bury()
	}
	st := &lateStream{tenant: n.tenants.open(n.id, n.types[k])}
	if !*n.outage {
		st.upstream = openStream{}
	}
	n.tenants.streams = n.tenants.streams[:len(n.tenants.streams)-1]
	for peer := range kinds {
		if n.types[peer] == n.types[k] {
			n.streams[peer] = st
			st.accepted[peer] = n.claims[peer]
			if peer == clusters || !n.gaveUp {
				n.subscribe(peer, true)
			}
		}
	}
}

// subscribe asks for web, or gives it up.
func (n *lateNode) subscribe(k kind, subscribe bool) {
	st := n.streams[k]
	if st == nil || st.subscribed[k] == subscribe {
		return
	}
	first := !st.subscribed[k] && st.sent[k] == 0
	st.subscribed[k] = subscribe
	names := []string{"web"}
	if !subscribe {
		names = nil
	}
	var ask proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: k.typeURL(), ResourceNames: names, VersionInfo: st.accepted[k]}
	if n.tenants.delta {
		r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: k.typeURL(), ResourceNamesSubscribe: names}
		if subscribe && first && n.resources[k] != nil {
			r.InitialResourceVersions = map[string]string{"web": n.claims[k]}
		}
		if !subscribe {
			r.ResourceNamesUnsubscribe = []string{"web"}
		}
		ask = r
	}
	wire := n.request(st, ask)
	if !subscribe {
		st.sent[k] = 0
		return
	}
	if *n.outage {
		return
	}
	version := ""
	var err error
	if n.tenants.delta {
		r := &discoveryv3.DeltaDiscoveryRequest{}
		err = proto.Unmarshal(wire, r)
		version = r.GetInitialResourceVersions()["web"]
	} else {
		r := &discoveryv3.DiscoveryRequest{}
		err = proto.Unmarshal(wire, r)
		version = r.GetVersionInfo()
	}
	if err != nil {
		n.tenants.Fatal(err)
	}
	switch w := n.wanted[k]; {
	case w != nil && version == fmt.Sprint(w.number):
		st.sent[k] = w.number
	case w != nil:
		n.send(st, k)
	case version != "" || first:
		n.sendNothing(st, k)
	}
}

func (n *lateNode) request(st *lateStream, request proto.Message) []byte {
	wire, err := proto.Marshal(request)
	if err == nil {
		wire, err = st.sendRequest(wire)
	}
	if err != nil {
		n.tenants.Fatal(err)
	}
	return wire
}

// announce has the control plane send its latest, if there is a stream.
func (n *lateNode) announce(k kind) {
	for _, st := range slices.Concat(n.streams[k:k+1], n.ghosts) {
		if st == nil || *n.outage || !st.subscribed[k] {
			continue
		}
		if n.wanted[k] == nil {
			n.sendNothing(st, k)
		} else {
			n.send(st, k)
		}
	}
}

func (n *lateNode) send(st *lateStream, k kind) {
	w := n.wanted[k]
	packed, err := anypb.New(w.message)
	if err != nil {
		n.tenants.Fatal(err)
	}
	version := fmt.Sprint(w.number)
	st.sent[k] = w.number
	n.respond(st, k, &discoveryv3.DiscoveryResponse{VersionInfo: version, Resources: []*anypb.Any{packed}},
		&discoveryv3.DeltaDiscoveryResponse{Resources: []*discoveryv3.Resource{{Name: "web", Version: version, Resource: packed}}})
}

// sendNothing has the control plane say that there is no web.
func (n *lateNode) sendNothing(st *lateStream, k kind) {
	if !n.tenants.delta && k == assignments {
		return // nothing says
	}
	n.version++
	st.sent[k] = 0
	n.respond(st, k, &discoveryv3.DiscoveryResponse{VersionInfo: fmt.Sprint(n.version)}, &discoveryv3.DeltaDiscoveryResponse{RemovedResources: []string{"web"}})
}

func (n *lateNode) respond(st *lateStream, k kind, whole *discoveryv3.DiscoveryResponse, delta *discoveryv3.DeltaDiscoveryResponse) {
	st.nonces++
	whole.Nonce, delta.Nonce = fmt.Sprint(st.nonces), fmt.Sprint(st.nonces)
	whole.TypeUrl, delta.TypeUrl = k.typeURL(), k.typeURL()
	var m proto.Message = whole
	if n.tenants.delta {
		m = delta
	}
	wire, err := proto.Marshal(m)
	if err == nil {
		wire, err = st.respond(arrival{typeURL: k.typeURL(), wire: wire})
	}
	if err != nil {
		n.tenants.Fatal(err)
	}
	if !slices.Contains(n.ghosts, st) {
		n.receive(st, wire)
	}
}

// receive takes a response, and has yet to answer it.
func (n *lateNode) receive(st *lateStream, wire []byte) {
	r, d := &discoveryv3.DiscoveryResponse{}, &discoveryv3.DeltaDiscoveryResponse{}
	var packed []*anypb.Any
	var a lateAnswer
	typeURL, version, gone := "", "", false
	var err error
	if n.tenants.delta {
		err = proto.Unmarshal(wire, d)
		typeURL, a.nonce = d.GetTypeUrl(), d.GetNonce()
		for _, resource := range d.GetResources() {
			packed, version = append(packed, resource.GetResource()), resource.GetVersion()
		}
		gone = len(d.GetRemovedResources()) > 0
	} else {
		err = proto.Unmarshal(wire, r)
		typeURL, packed, version, a.nonce = r.GetTypeUrl(), r.GetResources(), r.GetVersionInfo(), r.GetNonce()
		gone = len(packed) == 0
	}
	if err != nil {
		n.tenants.Fatal(err)
	}
	k, _ := kindOf(typeURL)
	a.kind, a.version = k, version
	gone = gone && (n.tenants.delta || k == clusters)
	for _, resource := range packed {
		v := n.read(resource)
		if v.bad {
			a.refuses = true
			continue
		}
		if !st.subscribed[k] {
			continue
		}
		n.resources[k], n.claims[k] = v, version
		if k == assignments {
			n.endpoints = &endpointv3.ClusterLoadAssignment{}
			if err := resource.UnmarshalTo(n.endpoints); err != nil {
				n.tenants.Fatal(err)
			}
		} else if n.gaveUp {
			n.gaveUp = false
			defer n.subscribe(assignments, true)
		}
	}
	if gone && n.resources[k] != nil {
		n.resources[k], n.claims[k] = nil, ""
		if k == assignments {
			n.endpoints = nil
		} else {
			n.gaveUp = true
			n.resources[assignments], n.claims[assignments], n.endpoints = nil, "", nil
			defer n.subscribe(assignments, false)
		}
	}
	if gone && !n.tenants.delta {
		n.claims[k] = version
	}
	st.pending = append(st.pending, a)
}

// read returns which version a resource is.
func (n *lateNode) read(packed *anypb.Any) *lateVersion {
	c, a := &clusterv3.Cluster{}, &endpointv3.ClusterLoadAssignment{}
	var err error
	number := uint32(0)
	if packed.MessageIs(c) {
		err = packed.UnmarshalTo(c)
		number = c.GetPerConnectionBufferLimitBytes().GetValue()
	} else {
		err = packed.UnmarshalTo(a)
		number = a.GetPolicy().GetOverprovisioningFactor().GetValue()
	}
	if err != nil {
		n.tenants.Fatal(err)
	}
	v, known := n.versions[number]
	if !known {
		n.tenants.Fatal("it is sent what its control plane never had", number)
	}
	return v
}

func (n *lateNode) answer(st *lateStream) {
	if len(st.pending) == 0 {
		return
	}
	a := st.pending[0]
	st.pending = st.pending[1:]
	var refusal *rpcstatus.Status
	if a.refuses {
		refusal = &rpcstatus.Status{Message: "no"}
	} else {
		st.accepted[a.kind] = a.version
	}
	var names []string
	if st.subscribed[a.kind] {
		names = []string{"web"}
	}
	var ack proto.Message = &discoveryv3.DiscoveryRequest{TypeUrl: a.kind.typeURL(), ResponseNonce: a.nonce, VersionInfo: st.accepted[a.kind], ErrorDetail: refusal, ResourceNames: names}
	if n.tenants.delta {
		ack = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: a.kind.typeURL(), ResponseNonce: a.nonce, ErrorDetail: refusal}
	}
	n.request(st, ack)
}

func (n *lateNode) live() (streams []*lateStream) {
	for _, st := range n.streams {
		if st != nil && !slices.Contains(streams, st) {
			streams = append(streams, st)
		}
	}
	return streams
}

// receivePushes takes hdsd's own responses.
func (n *lateNode) receivePushes() {
	for _, st := range slices.Concat(n.live(), n.ghosts) {
		select {
		case <-st.wake:
			for wire := st.nextPush(); wire != nil; wire = st.nextPush() {
				if !slices.Contains(n.ghosts, st) {
					n.receive(st, wire)
				}
			}
		default:
		}
	}
}

func (n *lateNode) leave(k kind, ghost bool) {
	st := n.streams[k]
	if st == nil {
		return
	}
	for peer := range kinds {
		if n.streams[peer] == st {
			n.streams[peer] = nil
		}
	}
	if ghost {
		n.ghosts = append(n.ghosts, st)
	} else {
		st.end()
	}
}

func (n *lateNode) bury() {
	if len(n.ghosts) > 0 {
		n.ghosts[0].end()
		n.ghosts = n.ghosts[1:]
	}
}

func (n *lateNode) step() string {
	k := kind(n.random.IntN(int(kinds)))
	switch n.random.IntN(10) {
	case 0:
		ghost := n.random.IntN(2) == 0
		n.leave(k, ghost)
		return fmt.Sprint("leaves ", k, " ghost ", ghost)
	case 1:
		n.bury()
		return "bury"
	case 2, 3:
		if n.streams[k] == nil {
			n.open(k)
			return fmt.Sprint("opens ", k)
		}
		fallthrough
	case 4, 5:
		if st := n.streams[k]; st != nil {
			n.answer(st)
		}
		return fmt.Sprint("answers ", k)
	case 6:
		n.receivePushes()
		return "hears"
	}
	if n.random.IntN(8) == 0 {
		if n.wanted[k] == nil || !n.tenants.delta && k == assignments { // nothing says that there is none
			return "none"
		}
		n.wanted[k] = nil
		n.announce(k)
		return fmt.Sprint("removes ", k)
	}
	n.version++
	v := &lateVersion{number: n.version, bad: n.random.IntN(6) == 0 && !*n.outage && (n.tenants.delta || len(n.ghosts) == 0) && n.streams[k] != nil}
	number := uint32(100*n.version + int(n.id))
	n.versions[number] = v
	if k == clusters {
		v.path = []string{"/a", "/b", "/c"}[n.random.IntN(3)]
		c := checkedCluster(clusterv3.Cluster_EDS, v.path)
		c.PerConnectionBufferLimitBytes = wrapperspb.UInt32(number)
		v.message = c
	} else {
		for range 1 + n.random.IntN(2) {
			v.addresses = append(v.addresses, fmt.Sprint(1+n.random.IntN(9)))
		}
		slices.Sort(v.addresses)
		v.addresses = slices.Compact(v.addresses)
		var addresses []string
		for _, end := range v.addresses {
			addresses = append(addresses, "10.0.0."+end)
		}
		a := assignmentOf(addresses...)
		a.Policy = &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(number)}
		v.message = a
	}
	n.wanted[k] = v
	n.announce(k)
	return fmt.Sprint(v.path, v.addresses, " bad ", v.bad)
}

// TestVersionsOfDataPlanesThatAnswerLate, refuse versions, lose streams of which hdsd does not hear, and
// come back with what they have, also while their control plane is away: in the end, each version judges
// the endpoints of its nodes, and no others.
func TestVersionsOfDataPlanesThatAnswerLate(t *testing.T) {
	t.Parallel()
	ways := [][kinds]string{{}, {clusters.typeURL(), assignments.typeURL()}, {clusters.typeURL(), ""}}
	for seed := range uint64(50) {
		withTenants(t, func(l *tenants) {
			l.server.memory.ttl = 40 * time.Second
			time.Sleep(time.Minute)
			random := rand.New(rand.NewPCG(seed, 7))
			outage, versions := false, map[uint32]*lateVersion{}
			nodes := make([]*lateNode, 3)
			for i := range nodes {
				nodes[i] = &lateNode{tenants: l, outage: &outage, versions: versions, random: random, id: byte('a' + i), gaveUp: true, types: ways[random.IntN(len(ways))]}
			}
			turn := func(away bool) {
				outage = away
				for _, n := range nodes {
					for k := range kinds {
						n.leave(k, false)
					}
				}
			}
			for steps := range 80 {
				i := random.IntN(len(nodes))
				if random.IntN(40) == 0 {
					turn(!outage)
					t.Log("outage ", outage)
				}
				t.Log(l.Name(), " step ", steps, ": ", i, " ", nodes[i].step())
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
				}
				if random.IntN(8) > 0 {
					continue
				}
				if outage {
					turn(false)
				}
				t.Log("quiet")
				for _, n := range nodes {
					for k := range kinds {
						if n.streams[k] == nil {
							n.open(k)
						}
					}
					for len(n.ghosts) > 0 {
						n.bury()
					}
				}
				for range 8 {
					time.Sleep(6 * time.Second)
					for _, n := range nodes {
						for range 5 {
							n.receivePushes()
							for _, st := range n.live() {
								for len(st.pending) > 0 {
									n.answer(st)
								}
							}
						}
					}
				}
				want := map[string][]string{}
				for _, n := range nodes {
					if c, a := n.resources[clusters], n.resources[assignments]; c != nil && a != nil {
						want[c.path] = append(want[c.path], a.addresses...)
					}
				}
				var lines []string
				for _, path := range slices.Sorted(maps.Keys(want)) {
					slices.Sort(want[path])
					lines = append(lines, path+" "+strings.Join(slices.Compact(want[path]), ","))
				}
				got := regexp.MustCompile(`/. ( |$)`).ReplaceAllString(l.checks(), "")
				if want := strings.Join(lines, " "); strings.TrimSpace(got) != want {
					l.Errorf("seed %d, step %d: %s, want %s", seed, steps, got, want)
				}
				for i, n := range nodes {
					c, a := n.resources[clusters], n.resources[assignments]
					if c == nil || a == nil {
						continue
					}
					health := "UNHEALTHY"
					if c.path == "/a" {
						health = "HEALTHY"
					}
					var got []string
					for _, e := range n.endpoints.GetEndpoints()[0].GetLbEndpoints() {
						got = append(got, e.GetHealthStatus().String())
					}
					if len(got) != len(a.addresses) || slices.ContainsFunc(got, func(g string) bool { return g != health }) {
						l.Errorf("seed %d, step %d: by %s, node %d sees %v, list %v", seed, steps, c.path, i, got, a.addresses)
					}
				}
				if l.Failed() {
					return
				}
			}
			for _, n := range nodes {
				for k := range kinds {
					n.leave(k, false)
				}
				for len(n.ghosts) > 0 {
					n.bury()
				}
			}
			time.Sleep(2 * time.Minute)
			l.wantChecks("all have gone", "")
			if n := len(l.server.stock.items) + len(l.server.catalogue.unions) + len(l.server.nodes.all); n != 0 {
				l.Errorf("seed %d: %d resources, unions and nodes are kept", seed, n)
			}
		})
		if t.Failed() {
			return
		}
	}
}
