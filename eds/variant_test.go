package eds

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clusterservice "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/fields"
	"hdsd/health"
	"hdsd/peer/access"
	"hdsd/publish"
)

var zoned = Options{ZoneVariants: true}

// zoneNamed returns all zones of a name, or the one in a region: "eu/a".
func zoneNamed(text string) health.Locality {
	region, zone, both := strings.Cut(text, "/")
	if !both {
		return health.Locality{Zone: text}
	}
	return health.Locality{Region: region, Zone: zone}
}

// locator asks for a variant by parameters, given in pairs.
func locator(name string, pairs ...string) *discoveryv3.ResourceLocator {
	l := &discoveryv3.ResourceLocator{Name: name, DynamicParameters: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		l.DynamicParameters[pairs[i]] = pairs[i+1]
	}
	return l
}

func locate(locators ...*discoveryv3.ResourceLocator) *discoveryv3.DeltaDiscoveryRequest {
	m := subscribe(resourcev3.EndpointType)
	m.ResourceLocatorsSubscribe = locators
	return m
}

// meets tells whether parameters meet constraints, as clients and caches do.
func meets(c *discoveryv3.DynamicParameterConstraints, parameters map[string]string) bool {
	switch c := c.GetType().(type) {
	case *discoveryv3.DynamicParameterConstraints_Constraint:
		value, given := parameters[c.Constraint.GetKey()]
		if _, exists := c.Constraint.GetConstraintType().(*discoveryv3.DynamicParameterConstraints_SingleConstraint_Exists_); exists {
			return given
		}
		return given && value == c.Constraint.GetValue()
	case *discoveryv3.DynamicParameterConstraints_NotConstraints:
		return !meets(c.NotConstraints, parameters)
	case *discoveryv3.DynamicParameterConstraints_AndConstraints:
		for _, each := range c.AndConstraints.GetConstraints() {
			if !meets(each, parameters) {
				return false
			}
		}
		return true
	default:
		return c == nil
	}
}

// variantsIn describes a response, as "a{zone=x}=HE". It checks that exactly the locator
// that asks for a variant meets its constraints.
func variantsIn(t *testing.T, r *discoveryv3.DeltaDiscoveryResponse, asked ...*discoveryv3.ResourceLocator) string {
	t.Helper()
	named := func(n *discoveryv3.ResourceName) string {
		met := ""
		for _, l := range asked {
			if l.GetName() == n.GetName() && meets(n.GetDynamicParameterConstraints(), l.GetDynamicParameters()) {
				met += "{" + l.GetDynamicParameters()[ZoneParameter] + "}"
			}
		}
		return n.GetName() + met
	}
	var all []string
	for _, resource := range r.GetResources() {
		if resource.GetName() != "" && resource.GetResourceName() != nil {
			t.Errorf("both names: %v", resource)
		}
		name := resource.GetName()
		if name == "" {
			name = named(resource.GetResourceName())
		}
		all = append(all, name+"="+summary(resourcev3.EndpointType, resource.GetResource().GetValue()))
	}
	for _, n := range r.GetRemovedResourceNames() {
		all = append(all, "-"+named(n))
	}
	for _, name := range r.GetRemovedResources() {
		all = append(all, "-"+name)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// publishPairs publishes assignments of two endpoints, ids 0 and 1, 2 and 3, ...,
// all HEALTHY.
func (b *bench) publishPairs(names ...string) {
	u := publish.Update{}
	for i, name := range names {
		for id := range 2 {
			b.server.setHealth(health.EndpointID(2*i+id), health.Healthy)
		}
		u.Assignments = append(u.Assignments, assignment(name, health.EndpointID(2*i), 2))
	}
	b.server.Update(u)
}

func down(ids ...health.EndpointID) (all []publish.Health) {
	for _, id := range ids {
		all = append(all, publish.Health{ID: id, Status: health.Unhealthy})
	}
	return all
}

// whole takes all responses of a change: the sender may split it.
func whole(p *deltaPeer) *discoveryv3.DeltaDiscoveryResponse {
	p.b.t.Helper()
	r := p.next()
	p.send(ack(r))
	for synctest.Wait(); len(p.received) > 0; synctest.Wait() {
		more := p.next()
		p.send(ack(more))
		proto.Merge(r, more)
	}
	return r
}

func TestLocatorsChooseTheHealthOfAZone(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		asked := []*discoveryv3.ResourceLocator{
			locator("a", "zone", "x"), locator("a", "zone", "y"), locator("a"), locator("b", "zone", "x", "other", "1"), locator("none", "zone", "x"),
		}
		p := b.delta()
		p.send(locate(asked...))
		says := func(what, want string) {
			t.Helper()
			equal(t, what, variantsIn(t, whole(p), asked...), want)
			p.nothing()
		}
		says("first", "-none{x} a{x}=UNHE a{y}=HEHE a{}=HEHE b{x}=HEHE")

		b.server.setHealth(1, health.Timeout)
		says("what no zone has of its own changes for all", "a{x}=UNTI a{y}=HETI a{}=HETI")
		b.server.setHealth(0, health.Timeout)
		says("what a zone has of its own stays", "a{y}=TITI a{}=TITI")
		b.server.SetZoneHealth(zoneNamed("y"), down(1), nil)
		says("of one zone", "a{y}=TIUN")
		b.server.SetZoneHealth(zoneNamed("y"), down(1), nil)
		b.server.SetZoneHealth(zoneNamed("z"), down(1), nil)
		p.nothing() // nobody asks for that
		b.server.SetZoneHealth(zoneNamed("x"), nil, []health.EndpointID{0, 1})
		says("unset", "a{x}=TITI")

		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		says("set again", "a{x}=UNTI")
		b.server.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 1, 3), assignment("none", 0, 1)}})
		says("other endpoints", "a{x}=TIHEHE a{y}=UNHEHE a{}=TIHEHE none{x}=UN")
		b.server.Update(publish.Update{RemovedAssignments: []string{"a"}})
		says("removed", "-a{x} -a{y} -a{}")
		p.cancel()
		synctest.Wait()
		equal(t, "slots", len(b.server.published.assignments.slots), 2)
		equal(t, "variants", b.server.published.assignments.chosen.Load(), int64(0))
	})
}

func TestVariantsAreUnsubscribedOneByOne(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a")
		x, y := locator("a", "zone", "x"), locator("a", "zone", "y")
		p := b.delta()
		m := locate(x, y)
		m.ResourceNamesSubscribe = []string{"a"}
		p.send(m)
		equal(t, "first", variantsIn(t, whole(p), x, y), "a=HEHE a{x}=HEHE a{y}=HEHE")
		p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.EndpointType, ResourceLocatorsUnsubscribe: []*discoveryv3.ResourceLocator{x}})
		p.nothing()
		b.server.setHealth(0, health.Unhealthy)
		equal(t, "without x", variantsIn(t, whole(p), x, y), "a=UNHE a{y}=UNHE")
		p.send(unsubscribe(resourcev3.EndpointType, "a"))
		p.nothing()
		b.server.setHealth(0, health.Healthy)
		equal(t, "without the plain one", variantsIn(t, whole(p), x, y), "a{y}=HEHE")
		p.cancel()
	})
}

func TestStateLocators(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		asked := []*discoveryv3.ResourceLocator{locator("a", "zone", "x"), locator("a")}
		p := b.state()
		m := want(resourcev3.EndpointType, "b")
		m.ResourceLocators = asked
		p.send(m)
		// A change of two variants may come in two responses: the client goes on asking for both until it has
		// them, and for the locators of its next request from then on.
		requested := asked
		expect := func(what, want string, next ...*discoveryv3.ResourceLocator) {
			t.Helper()
			wrapped, plain, text := new(discoveryv3.DiscoveryResponse), new(discoveryv3.DiscoveryResponse), ""
			for responses := 0; responses < 2 && text != want; responses++ {
				r := p.next()
				for _, resource := range r.GetResources() {
					if resource.GetTypeUrl() == fields.WrapperType {
						wrapped.Resources = append(wrapped.Resources, resource)
					} else {
						plain.Resources = append(plain.Resources, resource)
					}
				}
				text = variantsIn(t, unwrapped(t, wrapped), asked...) + " " + describeState(plain)
				if text == want {
					requested = next
				}
				m := ackState(r, "b")
				m.ResourceLocators = requested
				p.send(m)
			}
			equal(t, what, text, want)
		}
		expect("first", "a{x}=UNHE a{}=HEHE [b=HEHE]", asked...)
		p.nothing()
		b.server.setHealth(1, health.Timeout)
		expect("changed", "a{x}=UNTI a{}=HETI []", asked[1])
		p.nothing()
		b.server.SetZoneHealth(zoneNamed("x"), nil, []health.EndpointID{0})
		p.nothing()
		b.server.Update(publish.Update{RemovedAssignments: []string{"a"}})
		expect("removed", "a{}= []", asked[1])
		p.cancel()
	})
}

func TestReconnectWithLocators(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		asked := []*discoveryv3.ResourceLocator{locator("a", "zone", "x"), locator("b", "zone", "x"), locator("b", "zone", "y")}
		p := b.delta()
		p.send(locate(asked...))
		had := map[string]string{}
		for _, resource := range p.next().GetResources() {
			had[resource.GetResourceName().GetName()] = resource.GetVersion()
		}
		p.cancel()
		again := b.delta()
		m := locate(asked...)
		m.InitialResourceVersions = had
		again.send(m)
		equal(t, "only what it cannot say which of it has", variantsIn(t, again.next(), asked...), "b{x}=HEHE b{y}=HEHE")
		again.cancel()
	})
}

func TestLocatorsAreNamesWhereThereAreNoVariants(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, b *bench) {
		b.publishPairs("a")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		p := b.delta()
		p.send(locate(locator("a", "zone", "x")))
		equal(t, "by its name", describe(p.next()), "[a=HEHE]")
		p.cancel()
	})
}

func TestFetchOfVariants(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.SetZoneHealth(zoneNamed("x"), down(0), nil)
		x, none := locator("a", "zone", "x"), locator("none", "zone", "x")
		m := want("", "b")
		m.ResourceLocators = []*discoveryv3.ResourceLocator{x, none}
		byGRPC, err := b.fetchEndpoints(m)
		if err != nil {
			t.Fatal(err)
		}
		code, byREST := pollREST(t, b.server, EndpointsPath, m)
		equal(t, "status", code, http.StatusOK)
		for how, r := range map[string]*discoveryv3.DiscoveryResponse{"gRPC": byGRPC, "REST": byREST} {
			var located, plain []*anypb.Any
			for _, resource := range r.GetResources() {
				if resource.GetTypeUrl() == fields.WrapperType {
					located = append(located, resource)
				} else {
					plain = append(plain, resource)
				}
			}
			got := variantsIn(t, unwrapped(t, &discoveryv3.DiscoveryResponse{Resources: located}), x)
			equal(t, how, fmt.Sprint(got, describeState(&discoveryv3.DiscoveryResponse{Resources: plain})), "a{x}=UNHE[b=HEHE]")
			m.VersionInfo = r.GetVersionInfo()
		}
		code, _ = pollREST(t, b.server, EndpointsPath, m)
		equal(t, "known", code, http.StatusNotModified)
		b.server.SetZoneHealth(zoneNamed("x"), nil, []health.EndpointID{0})
		code, _ = pollREST(t, b.server, EndpointsPath, m)
		equal(t, "changed", code, http.StatusOK)
		equal(t, "nothing is kept", b.server.published.assignments.chosen.Load(), int64(0))
	})
}

func TestSubscribersShowTheZone(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a")
		p := b.delta()
		p.send(locate(locator("a", "zone", "x"), locator("a")))
		p.next()
		for c := range b.server.Subscribers() {
			all := c.Resources()
			equal(t, "resources", fmt.Sprint(all[0].Name, all[0].Zone.Zone, all[1].Name, all[1].Zone.Zone), "aax")
		}
		p.cancel()
	})
}

func TestClustersHaveNoVariants(t *testing.T) {
	inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
		b.server.Update(publish.Update{Clusters: clusters("a", "1")})
		m := want("")
		m.ResourceLocators = []*discoveryv3.ResourceLocator{locator("a", "zone", "x")}
		r, err := b.fetchClusters(m)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "fetched", describeState(r), "[a=1]")
		p := newPeer(b, clusterservice.NewClusterDiscoveryServiceClient(b.conn).DeltaClusters)
		d := locate(m.GetResourceLocators()...)
		d.TypeUrl = ""
		p.send(d)
		equal(t, "delta", describe(p.next()), "[a=1]")
		p.cancel()
	})
}

func TestAChangedClusterGetsItsVariantsAgain(t *testing.T) {
	inBubble(t, zoned, func(t *testing.T, b *bench) {
		b.publishPairs("a", "b")
		b.server.Update(publish.Update{Clusters: clusters("a", "1", "b", "1")})
		x := locator("a", "zone", "x")
		p := b.delta()
		p.send(subscribe(resourcev3.ClusterType, "*"))
		p.send(ack(p.next()))
		p.send(locate(x, locator("b")))
		p.send(ack(p.next()))
		p.nothing()
		b.server.Update(publish.Update{Clusters: clusters("a", "2")})
		r := p.next()
		equal(t, "cluster", describe(r), "[a=2]")
		p.send(ack(r))
		equal(t, "what it waits for", variantsIn(t, p.next(), x), "a{x}=HEHE")
		p.cancel()
	})
}

// TestManyVariantsOfAName leaves nothing behind. BenchmarkVariantsOfAName measures the
// cost.
func TestManyVariantsOfAName(t *testing.T) {
	s, come := manyVariants(t, 5_000)
	come()
	equal(t, "variants left", s.published.assignments.chosen.Load(), int64(0))
	equal(t, "slots left", len(s.published.assignments.slots), 0)
}

// BenchmarkVariantsOfAName lets a client watch an assignment for each of many zones, and
// leave. The cost of a zone does not depend on how many are watched.
func BenchmarkVariantsOfAName(b *testing.B) {
	const few, many = 1_000, 100_000
	each := func(zones int) (nanoseconds float64) {
		_, come := manyVariants(b, zones)
		began := time.Now()
		come()
		return float64(time.Since(began)) / float64(zones)
	}
	var ofFew, ofMany float64
	for b.Loop() {
		for range many / few {
			ofFew += each(few) * few / many
		}
		ofMany += each(many)
	}
	b.ReportMetric(ofMany/float64(b.N), "ns/zone")
	b.ReportMetric(ofMany/ofFew, "ratio-to-few")
}

// manyVariants lets a client ask for one name in many zones, and leave.
func manyVariants(t testing.TB, zones int) (s *Server, come func()) {
	s = NewServer(Options{MaxNames: zones, ZoneVariants: true})
	u := newSubscription(&stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}, s.published.assignments)
	all := make([]string, zones)
	for i := range all {
		all[i] = "a" + separator + choiceOf(strconv.Itoa(i))
	}
	return s, func() {
		if err := u.requests.process(&request{names: all}); err != nil {
			t.Fatal(err)
		}
		s.published.assignments.forget(u)
	}
}
