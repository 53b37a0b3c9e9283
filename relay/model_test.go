package relay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

// model is a client and its control plane, with a stream of the relay in between. The client
// takes the good resources of a response that it refuses. What is on its way may be late.
type model struct {
	*testing.T
	seed   uint64
	random *rand.Rand
	kind   kind
	delta  bool
	server *Server
	stream *stream
	health []health.Status // of the endpoint of each name

	// The control plane. A resource is its version; one of a version in bad is refused.
	wanted, sent map[int]int  // of what it has now; of what it sent last, of names in sees
	bad          map[int]bool // versions
	version      int
	nonces       int
	named        map[int]bool // names of its last response that the client did not give up since
	subscribed   map[int]bool // what the client asks for, as far as it has heard
	pending      bool         // state of the world: it has heard of more names
	requests     []*subscriptionChange

	// The client.
	wants     map[int]bool
	resources map[int]*heldResource
	answers   []*answer
	accepted  string // sotw: the version that it accepted
	nonce     string
}

// heldResource is a resource of the client: its version, and the health of its endpoint.
type heldResource struct {
	version int
	health  health.Status
}

// answer is what the client has to say of a response.
type answer struct {
	nonce, version string
	refuses        bool
}

// subscriptionChange has the names of a request to the control plane: all, or changes.
type subscriptionChange struct{ names, unsubscribed []int }

const modelNames = 5

type openStream struct{ grpc.ClientStream }

func newModel(t *testing.T, seed uint64, k kind, delta bool) *model {
	m := &model{
		T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), kind: k, delta: delta, server: benchServer(), health: make([]health.Status, modelNames),
		wanted: map[int]int{}, sent: map[int]int{}, bad: map[int]bool{}, subscribed: map[int]bool{}, wants: map[int]bool{}, resources: map[int]*heldResource{},
	}
	m.stream = &stream{server: m.server, method: method{delta: delta}, nodeID: "n", wake: make(chan struct{}, 1), upstream: openStream{}}
	m.server.add(m.stream)
	var list []publish.Assignment
	for i := range modelNames {
		a := m.assignment(i, 0)
		list = append(list, publish.Assignment{Name: nameOf(i), Wire: source.EncodeAssignment(a).Wire(), IDs: [][][]health.EndpointID{{{health.EndpointID(i)}}}})
		m.health[i] = health.Unknown
	}
	m.server.book.Update(publish.Update{Assignments: list})
	return m
}

func nameOf(i int) string { return fmt.Sprintf("name-%d", i) }

func (m *model) assignment(i, version int) *endpointv3.ClusterLoadAssignment {
	a := assignmentOf(fmt.Sprintf("10.0.0.%d", i))
	a.ClusterName, a.Policy = nameOf(i), &endpointv3.ClusterLoadAssignment_Policy{OverprovisioningFactor: wrapperspb.UInt32(uint32(version + 1))}
	return a
}

// resource is a version of a name: an assignment, or a cluster that lists its endpoint.
func (m *model) resource(i, version int) *anypb.Any {
	var resource proto.Message = m.assignment(i, version)
	if m.kind == clusters {
		k := checkedCluster(clusterv3.Cluster_STATIC, "/")
		k.Name, k.LoadAssignment = nameOf(i), m.assignment(i, version)
		resource = k
	}
	packed, err := anypb.New(resource)
	if err != nil {
		m.Fatal(err)
	}
	return packed
}

// read returns the name, version and health of a resource that the client is sent.
func (m *model) read(packed *anypb.Any) (int, *heldResource) {
	a := &endpointv3.ClusterLoadAssignment{}
	if m.kind == clusters {
		k := &clusterv3.Cluster{}
		if err := packed.UnmarshalTo(k); err != nil {
			m.Fatal(err)
		}
		a = k.GetLoadAssignment()
	} else if err := packed.UnmarshalTo(a); err != nil {
		m.Fatal(err)
	}
	var i int
	if _, err := fmt.Sscanf(a.GetClusterName(), "name-%d", &i); err != nil {
		m.Fatal(err)
	}
	return i, &heldResource{int(a.GetPolicy().GetOverprovisioningFactor().GetValue()) - 1, health.Status(a.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus())}
}

// isWhole reports whether a response has to have everything.
func (m *model) isWhole() bool { return !m.delta && m.kind == clusters }

// push has the control plane send what the client asks for and does not have the latest of.
func (m *model) push() {
	m.nonces++
	nonce := fmt.Sprint(m.nonces)
	delta, state := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: m.kind.typeURL(), Nonce: nonce}, &discoveryv3.DiscoveryResponse{TypeUrl: m.kind.typeURL(), Nonce: nonce, VersionInfo: fmt.Sprint(m.version)}
	changed := m.pending
	m.pending = false
	for i := range modelNames {
		version, exists := m.wanted[i]
		previous, known := m.sent[i]
		if !m.subscribed[i] || !exists {
			if known {
				delta.RemovedResources, changed = append(delta.RemovedResources, nameOf(i)), changed || m.subscribed[i]
			}
			delete(m.sent, i)
			continue
		}
		if m.sent[i] = version; previous != version || !known {
			changed = true
		} else if !m.isWhole() {
			continue
		}
		delta.Resources = append(delta.Resources, &discoveryv3.Resource{Name: nameOf(i), Version: fmt.Sprint(version), Resource: m.resource(i, version)})
		state.Resources = append(state.Resources, m.resource(i, version))
	}
	if !changed || !m.delta && !m.isWhole() && len(state.Resources) == 0 {
		return
	}
	var wire []byte
	var err error
	if m.delta {
		delta.RemovedResources = slices.DeleteFunc(delta.RemovedResources, func(name string) bool {
			var i int
			_, _ = fmt.Sscanf(name, "name-%d", &i)
			return !m.subscribed[i]
		})
		wire, err = proto.Marshal(delta)
	} else {
		wire, err = proto.Marshal(state)
	}
	if err != nil {
		m.Fatal(err)
	}
	if m.named = map[int]bool{}; m.isWhole() {
		for i := range m.sent {
			m.named[i] = m.wants[i]
		}
		maps.DeleteFunc(m.named, func(_ int, asked bool) bool { return !asked })
	}
	if wire, err = m.stream.respond(arrival{typeURL: m.kind.typeURL(), wire: wire}); err != nil {
		m.Fatal(err)
	}
	m.receive(wire, false)
}

// flip has hdsd send what it has to say, if anything.
func (m *model) flip() bool {
	wire := m.stream.nextPush()
	if wire != nil {
		m.receive(wire, true)
	}
	return wire != nil
}

// receive has the client take a response, and answer it later.
func (m *model) receive(wire []byte, byHdsd bool) {
	var resources []*anypb.Any
	var removed []string
	reply := &answer{}
	if m.delta {
		r := &discoveryv3.DeltaDiscoveryResponse{}
		if err := proto.Unmarshal(wire, r); err != nil {
			m.Fatal(err)
		}
		for _, resource := range r.GetResources() {
			resources = append(resources, resource.GetResource())
		}
		reply.nonce, removed = r.GetNonce(), r.GetRemovedResources()
	} else {
		r := &discoveryv3.DiscoveryResponse{}
		if err := proto.Unmarshal(wire, r); err != nil {
			m.Fatal(err)
		}
		resources, reply.nonce, reply.version = r.GetResources(), r.GetNonce(), r.GetVersionInfo()
	}
	present := map[int]bool{}
	for _, packed := range resources {
		i, latest := m.read(packed)
		present[i] = true
		if m.bad[latest.version] {
			reply.refuses = true
			continue
		}
		if !m.wants[i] {
			continue
		}
		if previous := m.resources[i]; previous != nil && previous.version > latest.version {
			m.Fatalf("seed %d: %s has version %d, and is sent %d by hdsd: %t", m.seed, nameOf(i), previous.version, latest.version, byHdsd)
		}
		m.resources[i] = latest
	}
	for _, name := range removed {
		var i int
		_, _ = fmt.Sscanf(name, "name-%d", &i)
		delete(m.resources, i)
		if byHdsd && m.sent[i] != 0 && m.subscribed[i] {
			m.Fatalf("seed %d: hdsd removes %s, which the control plane sent", m.seed, name)
		}
	}
	if m.isWhole() {
		for i := range m.resources {
			if !present[i] {
				delete(m.resources, i)
			}
		}
		for i := range m.named {
			if byHdsd && !present[i] {
				m.Fatalf("seed %d: a response of hdsd's lacks %s, which the control plane's last one had", m.seed, nameOf(i))
			}
		}
	}
	m.answers = append(m.answers, reply)
}

// names returns the names that the client asks for.
func (m *model) names() (names []string) {
	for _, i := range slices.Sorted(maps.Keys(m.wants)) {
		names = append(names, nameOf(i))
	}
	return names
}

// say sends a request of the client: an answer, or what it asks for from now on.
func (m *model) say(a *answer, subscribed, unsubscribed []int) {
	var refusal *status.Status
	if a != nil {
		if m.nonce = a.nonce; a.refuses {
			refusal = &status.Status{Message: "no"}
		} else {
			m.accepted = a.version
		}
	}
	var request proto.Message
	if m.delta {
		r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.kind.typeURL(), ErrorDetail: refusal}
		if a != nil {
			r.ResponseNonce = a.nonce
		}
		for _, i := range subscribed {
			r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, nameOf(i))
		}
		for _, i := range unsubscribed {
			r.ResourceNamesUnsubscribe = append(r.ResourceNamesUnsubscribe, nameOf(i))
		}
		request = r
	} else {
		request = &discoveryv3.DiscoveryRequest{TypeUrl: m.kind.typeURL(), ErrorDetail: refusal, ResponseNonce: m.nonce, VersionInfo: m.accepted, ResourceNames: m.names()}
	}
	wire, err := proto.Marshal(request)
	if err == nil {
		wire, err = m.stream.sendRequest(wire)
	}
	if err != nil {
		m.Fatal(err)
	}
	if wire == nil {
		return
	}
	names := &subscriptionChange{}
	if m.delta {
		r := &discoveryv3.DeltaDiscoveryRequest{}
		if err := proto.Unmarshal(wire, r); err != nil {
			m.Fatal(err)
		}
		names.names, names.unsubscribed = numbersIn(r.GetResourceNamesSubscribe()), numbersIn(r.GetResourceNamesUnsubscribe())
	} else {
		r := &discoveryv3.DiscoveryRequest{}
		if err := proto.Unmarshal(wire, r); err != nil {
			m.Fatal(err)
		}
		names.names = numbersIn(r.GetResourceNames())
	}
	m.requests = append(m.requests, names)
}

func numbersIn(names []string) (numbers []int) {
	for _, name := range names {
		var i int
		_, _ = fmt.Sscanf(name, "name-%d", &i)
		numbers = append(numbers, i)
	}
	return numbers
}

// hear has the control plane hear the oldest request.
func (m *model) hear() {
	if len(m.requests) == 0 {
		return
	}
	h := m.requests[0]
	m.requests = m.requests[1:]
	previous := maps.Clone(m.subscribed)
	if !m.delta {
		clear(m.subscribed)
	}
	for _, i := range h.names {
		m.pending = m.pending || m.isWhole() && !previous[i]
		if m.subscribed[i] = true; m.delta {
			m.sent[i] = 0 // it is sent again, or that there is none
		}
	}
	for _, i := range h.unsubscribed {
		delete(m.subscribed, i)
		delete(m.sent, i)
	}
	for i := range m.sent {
		if !m.subscribed[i] {
			delete(m.sent, i)
		}
	}
}

// toggle has the client ask for a name, or give it up.
func (m *model) toggle(i int) {
	if m.wants[i] {
		delete(m.wants, i)
		delete(m.resources, i)
		delete(m.named, i)
		m.say(nil, nil, []int{i})
	} else {
		m.wants[i] = true
		m.say(nil, []int{i}, nil)
	}
}

func (m *model) answer() {
	if len(m.answers) > 0 {
		a := m.answers[0]
		m.answers = m.answers[1:]
		m.say(a, nil, nil)
	}
}

// change has the control plane change names: one of them may be bad.
func (m *model) change(bad bool) {
	for range 1 + m.random.IntN(2) {
		i := m.random.IntN(modelNames)
		if m.random.IntN(4) == 0 {
			delete(m.wanted, i)
			continue
		}
		m.version++
		m.wanted[i], m.bad[m.version] = m.version, bad && m.random.IntN(3) == 0
	}
}

func (m *model) setHealth(i int) {
	m.health[i] = []health.Status{health.Healthy, health.Unhealthy, health.Draining}[m.random.IntN(3)]
	m.server.book.SetHealth([]publish.Health{{ID: health.EndpointID(i), Status: m.health[i]}})
}

// settle lets all that is on its way arrive.
func (m *model) settle() {
	for step := 0; ; step++ {
		if step > 1000 {
			m.Fatalf("seed %d: it does not come to rest", m.seed)
		}
		m.hear()
		m.push()
		m.answer()
		if len(m.requests)+len(m.answers) == 0 && !m.flip() {
			return
		}
	}
}

// check holds what the client has against what it should have. A name whose latest version is bad
// has an older one.
func (m *model) check() {
	m.Helper()
	l := m.stream.ledgers[m.kind]
	for i := range modelNames {
		version, exists := m.wanted[i]
		latest := m.resources[i]
		switch {
		case m.wants[i] && !exists && !m.delta && m.kind == assignments: // that one is gone, nothing says
		case !m.wants[i] || !exists:
			if latest != nil {
				m.Fatalf("seed %d: %s is there", m.seed, nameOf(i))
			}
			if l.holdings.get(nameOf(i)) != nil {
				m.Fatalf("seed %d: %s is kept, and the client does not have it", m.seed, nameOf(i))
			}
		case m.bad[version]:
			if latest != nil && latest.health != m.health[i] && !m.isWhole() {
				m.Fatalf("seed %d: of %s the client has version %d with health %s, want %s", m.seed, nameOf(i), latest.version, latest.health, m.health[i])
			}
		case latest == nil || latest.version != version:
			m.Fatalf("seed %d: of %s the client has %v, want version %d", m.seed, nameOf(i), latest, version)
		case latest.health != m.health[i]:
			m.Fatalf("seed %d: %s is %s, want %s", m.seed, nameOf(i), latest.health, m.health[i])
		}
		if latest != nil && !slices.ContainsFunc(m.server.stock.byName[m.kind][nameOf(i)].list(), func(x *body) bool { return m.versionOf(x) == latest.version }) {
			m.Fatalf("seed %d: the client has version %d of %s, and hdsd does not know it", m.seed, latest.version, nameOf(i))
		}
	}
}

func (m *model) versionOf(x *body) int {
	_, latest := m.read(&anypb.Any{TypeUrl: m.kind.typeURL(), Value: x.wire})
	return latest.version
}
