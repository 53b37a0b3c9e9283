package xds

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
)

// change makes a delta response.
func change(typeURL, nonce string, resources ...*discoveryv3.Resource) *discoveryv3.DeltaDiscoveryResponse {
	return &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typeURL, Nonce: nonce, Resources: resources}
}

func removal(typeURL, nonce string, names ...string) *discoveryv3.DeltaDiscoveryResponse {
	return &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typeURL, Nonce: nonce, RemovedResources: names}
}

var deltaSource = grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one")

func TestDeltaRequests(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		equal(t, "first", text(p.next()), `{`+nodeField+`,`+clustersURL+`}`)
		p.quiet()

		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", "")), wrap("api", "1", eds("api", "svc"))))
		equal(t, "ack", text(p.next()), `{`+nodeField+`,`+clustersURL+`,"response_nonce":"n1"}`)
		equal(t, "names", text(p.next()), `{`+nodeField+`,`+endpointURL+`,"resource_names_subscribe":["svc","web"]}`)
		p.send(change(rules.Assignment, "n2", wrap("web", "5", endpoints("web", "10.0.0.1")), wrap("other", "5", endpoints("other"))))
		equal(t, "ack", text(p.next()), `{`+nodeField+`,`+endpointURL+`,"response_nonce":"n2"}`)
		r.nothing()
		p.send(removal(rules.Assignment, "n3", "svc", "nobody"))
		p.next()
		set := r.latest()
		equal(t, "removed", said(set), "api=none web=10.0.0.1")
		has(t, "problem", set.Problems[0].String(), `api: it has no endpoints: the management server has no ClusterLoadAssignment "svc"`)

		response := removal(rules.Cluster, "n4")
		response.RemovedResourceNames = []*discoveryv3.ResourceName{{Name: "api"}}
		response.Resources = []*discoveryv3.Resource{{ResourceName: &discoveryv3.ResourceName{Name: "new"}, Version: "1", Resource: pack(eds("new", ""))}}
		p.send(response)
		p.next()
		equal(t, "names", text(p.next()), `{`+nodeField+`,`+endpointURL+`,"resource_names_subscribe":["new"],"resource_names_unsubscribe":["svc"]}`)
		equal(t, "new waits for its endpoints", said(r.latest()), "web=10.0.0.1")
		p.send(change(rules.Assignment, "n5", wrap("new", "1", endpoints("new", "10.0.0.3"))))
		p.next()
		equal(t, "set", said(r.latest()), "new=10.0.0.3 web=10.0.0.1")
	})
}

// TestSharedAssignment: it is asked for as long as one cluster needs it.
func TestSharedAssignment(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("a", "1", eds("a", "svc")), wrap("b", "1", eds("b", "svc"))))
		p.next()
		equal(t, "names", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[svc]")
		p.send(change(rules.Assignment, "n2", wrap("svc", "1", endpoints("svc", "10.0.0.1"))))
		p.next()
		equal(t, "set", said(r.latest()), "a=10.0.0.1 b=10.0.0.1")
		p.send(removal(rules.Cluster, "n3", "a"))
		p.next()
		p.quiet()
		equal(t, "set", said(r.latest()), "b=10.0.0.1")
		p.send(change(rules.Cluster, "n4", wrap("b", "2", inline("b", "10.0.0.2"))))
		p.next()
		equal(t, "names", fmt.Sprint(p.next().GetResourceNamesUnsubscribe()), "[svc]")
		equal(t, "known", len(r.Status().Types[1].Resources), 0)
	})
}

func TestDeltaRejection(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1")), wrap("b", "1", inline("b", "10.0.0.2")), wrap("c", "1", inline("c", "10.0.0.3"))))
		p.next()
		before := r.latest()
		response := change(rules.Cluster, "n2", wrap("a", "2", inline("a", "10.0.0.7")), wrap("b", "2", inline("other")), wrap("c", "2", inline("c")),
			wrap("d", "2", endpoints("d")), &discoveryv3.Resource{Name: "e", ResourceName: &discoveryv3.ResourceName{Name: "e"}, Resource: pack(inline("e"))},
			&discoveryv3.Resource{Name: "f", Version: "2"}, &discoveryv3.Resource{ResourceName: &discoveryv3.ResourceName{Name: "g"}, Resource: pack(inline("a"))})
		response.RemovedResources = []string{"c"}
		p.send(response)
		nack := p.next()
		equal(t, "nonce", nack.GetResponseNonce(), "n2")
		has(t, "detail", nack.GetErrorDetail().GetMessage(), "6 of 7 resources refused: ", `b (it calls itself "other")`, "c (it is there and removed at once)",
			"d (its type is", "e (it has a name and a resource_name: ", `f (it has no body, and its version "2" is not known here)`, `g (it calls itself "a")`)
		set := r.latest()
		equal(t, "set", said(set), "a=10.0.0.7 b=10.0.0.2 c=10.0.0.3 !d=none !e=none !f=none !g=none")
		equal(t, "last good", set.Clusters[1], before.Clusters[1])

		p.end(errEnough)
		p = reconnect(t, s.delta)
		equal(t, "versions", fmt.Sprint(p.next().GetInitialResourceVersions()), "map[a:2 b:1 c:1]")
	})
}

// TestGivenUpWhileAway: a new stream does not tell of it.
func TestGivenUpWhileAway(t *testing.T) {
	from := grpcSource(corev3.ApiConfigSource_DELTA_GRPC, "one")
	scripted(t, from, func(t *testing.T, s *script, r *running) {
		c := next(t, s.delta)
		c.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", "")), wrap("api", "1", eds("api", ""))))
		e := next(t, s.delta)
		e.next()
		e.send(change(rules.Assignment, "n2", wrap("web", "5", endpoints("web", "10.0.0.1")), wrap("api", "6", endpoints("api", "10.0.0.2"))))
		r.latest()
		e.end(errEnough)
		synctest.Wait()
		c.send(removal(rules.Cluster, "n3", "web"))
		equal(t, "set", said(r.latest()), "api=10.0.0.2")
		request := reconnect(t, s.delta).next()
		equal(t, "names", fmt.Sprint(request.GetResourceNamesSubscribe()), "[api]")
		equal(t, "versions", fmt.Sprint(request.GetInitialResourceVersions()), "map[api:6]")
	})
}

func TestDeltaReconnects(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		equal(t, "first session", len(p.next().GetInitialResourceVersions()), 0)
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", "")), wrap("api", "2", eds("api", ""))))
		p.next()
		p.next()
		p.send(change(rules.Assignment, "n2", wrap("web", "5", endpoints("web", "10.0.0.1")), wrap("api", "6", endpoints("api", "10.0.0.2"))))
		p.next()
		first := r.latest()
		p.end(errEnough)

		p = reconnect(t, s.delta)
		equal(t, "clusters", fmt.Sprint(p.next().GetInitialResourceVersions()), "map[api:2 web:1]")
		request := p.next()
		equal(t, "endpoints", fmt.Sprint(request.GetInitialResourceVersions()), "map[api:6 web:5]")
		equal(t, "names", fmt.Sprint(request.GetResourceNamesSubscribe()), "[api web]")
		equal(t, "nonce", request.GetResponseNonce(), "")
		p.send(removal(rules.Cluster, "n1", "api"))
		p.next()
		equal(t, "later messages", len(p.next().GetInitialResourceVersions()), 0)
		set := r.latest()
		equal(t, "set", said(set), "web=10.0.0.1")
		equal(t, "pointer", set.Clusters[0], first.Clusters[1])
	})
}

// TestTakenUpAgain: of a name that was given up and taken up again before the
// server was told, the server sends nothing, so what it has sent still counts.
func TestTakenUpAgain(t *testing.T) {
	from := grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one")
	from.GetApiConfigSource().RateLimitSettings = rateSettings(4, 1)
	scripted(t, from, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", ""))))
		p.next()
		p.next()
		p.send(change(rules.Assignment, "n2", wrap("web", "5", endpoints("web", "10.0.0.1"))))
		p.next() // and no token is left
		equal(t, "set", said(r.latest()), "web=10.0.0.1")
		p.send(removal(rules.Cluster, "n3", "web"))
		equal(t, "set", said(r.latest()), "")
		p.send(change(rules.Assignment, "n4", wrap("web", "6", endpoints("web", "10.0.0.2"))))
		p.send(change(rules.Cluster, "n5", wrap("web", "1", eds("web", ""))))
		equal(t, "set", said(r.latest()), "web=10.0.0.2")
		p.quiet()
		time.Sleep(10 * time.Second)
		for range 3 {
			equal(t, "an answer", p.next().GetResponseNonce() != "", true)
		}
		p.quiet()
	})
}

// TestTakenUpLater: a server that was told has to be asked again.
func TestTakenUpLater(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", ""))))
		p.next()
		p.next()
		p.send(change(rules.Assignment, "n2", wrap("web", "5", endpoints("web", "10.0.0.1"))))
		p.next()
		p.send(removal(rules.Cluster, "n3", "web"))
		p.next()
		equal(t, "names", fmt.Sprint(p.next().GetResourceNamesUnsubscribe()), "[web]")
		equal(t, "set", said(r.latest()), "")
		p.send(change(rules.Cluster, "n4", wrap("web", "1", eds("web", ""))))
		p.next()
		equal(t, "names", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[web]")
		r.nothing()
		p.send(change(rules.Assignment, "n5", wrap("web", "5", endpoints("web", "10.0.0.1"))))
		equal(t, "set", said(r.latest()), "web=10.0.0.1")
	})
}

// TestDeltaAnswersEach: each response has its own answer, however many come.
func TestDeltaAnswersEach(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, _ *running) {
		p := next(t, s.delta)
		p.next()
		for i := range 200 {
			p.send(change(rules.Cluster, fmt.Sprint(i), wrap("a", fmt.Sprint(i), inline("a"))))
		}
		for i := range 200 {
			equal(t, "nonce", p.next().GetResponseNonce(), fmt.Sprint(i))
		}
	})
}

func TestTimeToLive(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		mortal := func(r *discoveryv3.Resource, ttl time.Duration) *discoveryv3.Resource {
			r.Ttl = durationpb.New(ttl)
			return r
		}
		heartbeat := func(name, version string) *discoveryv3.Resource {
			return mortal(&discoveryv3.Resource{Name: name, Version: version}, 10*time.Second)
		}
		p.send(change(rules.Cluster, "n1", mortal(wrap("a", "1", inline("a", "10.0.0.1")), 10*time.Second), wrap("web", "1", eds("web", ""))))
		p.next()
		p.next()
		p.send(change(rules.Assignment, "n2", mortal(wrap("web", "1", endpoints("web", "10.0.0.2")), 30*time.Second)))
		p.next()
		first := r.latest()
		equal(t, "set", said(first), "a=10.0.0.1 web=10.0.0.2")

		time.Sleep(8 * time.Second)
		p.send(change(rules.Cluster, "n3", heartbeat("a", "1")))
		equal(t, "heartbeat", p.next().GetErrorDetail() == nil, true)
		time.Sleep(8 * time.Second)
		r.nothing()
		time.Sleep(2 * time.Second)
		equal(t, "expired", said(r.latest()), "web=10.0.0.2")

		p.send(change(rules.Cluster, "n4", heartbeat("a", "1")))
		has(t, "too late", p.next().GetErrorDetail().GetMessage(), `a (it has no body, and its version "1" is not known here)`)
		p.send(change(rules.Cluster, "n5", wrap("a", "1", inline("a", "10.0.0.1"))))
		p.next()
		equal(t, "back", said(r.latest()), "a=10.0.0.1 web=10.0.0.2")
		time.Sleep(12 * time.Second)
		set := r.latest()
		equal(t, "endpoints expired", said(set), "a=10.0.0.1 web=none")
		has(t, "problem", set.Problems[0].String(), `the TTL of the ClusterLoadAssignment "web" is over`)
		equal(t, "asked for again", fmt.Sprint(p.next().GetResourceNamesSubscribe()), "[web]")
		time.Sleep(time.Hour)
		r.nothing() // a has no time to live any more

		p.send(change(rules.Cluster, "n6", heartbeat("a", "2")))
		has(t, "of another version", p.next().GetErrorDetail().GetMessage(), `a (it has no body, and its version "2" is not known here)`)
	})
}

// TestTimeToLiveInStateOfTheWorld: resources come wrapped there, and heartbeats
// alone remove nothing.
func TestTimeToLiveInStateOfTheWorld(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		mortal := wrap("a", "5", inline("a", "10.0.0.1"))
		mortal.Ttl = durationpb.New(10 * time.Second)
		unversioned := &discoveryv3.Resource{Name: "b", Resource: pack(inline("b", "10.0.0.2"))}
		p.send(state(rules.Cluster, "1", "n1", mortal, unversioned, inline("c", "10.0.0.3")))
		equal(t, "ack", p.next().GetErrorDetail() == nil, true)
		equal(t, "set", said(r.latest()), "a=10.0.0.1 b=10.0.0.2 c=10.0.0.3")
		status := r.Status().Types[0]
		equal(t, "versions", status.Resources[0].Version+status.Resources[1].Version+status.Resources[2].Version, "511")

		time.Sleep(8 * time.Second)
		p.send(state(rules.Cluster, "1", "n2", &discoveryv3.Resource{Name: "a", Version: "5", Ttl: durationpb.New(10 * time.Second)}))
		equal(t, "heartbeat", p.next().GetErrorDetail() == nil, true)
		time.Sleep(8 * time.Second)
		r.nothing()
		p.send(state(rules.Cluster, "1", "n3", &discoveryv3.Resource{Name: "a", Version: "5"}, inline("c", "10.0.0.3")))
		equal(t, "heartbeat among others", p.next().GetErrorDetail() == nil, true)
		equal(t, "set", said(r.latest()), "a=10.0.0.1 c=10.0.0.3")
		time.Sleep(time.Hour)
		r.nothing()
	})
}

func TestResourceErrors(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("a", "1", eds("a", "")), wrap("b", "1", eds("b", "")), wrap("c", "1", eds("c", ""))))
		p.next()
		p.next()
		response := change(rules.Assignment, "n2", wrap("c", "1", endpoints("c", "10.0.0.1")))
		fault := func(name string, code int32) *discoveryv3.ResourceError {
			return &discoveryv3.ResourceError{ResourceName: &discoveryv3.ResourceName{Name: name}, ErrorDetail: &statuspb.Status{Code: code, Message: "not for you"}}
		}
		response.ResourceErrors = []*discoveryv3.ResourceError{fault("a", 7), fault("b", 5), fault("c", 7)}
		p.send(response)
		equal(t, "ack", p.next().GetErrorDetail() == nil, true)
		set := r.latest()
		equal(t, "set", said(set), "a=none b=none c=10.0.0.1")
		has(t, "problem", set.Problems[0].String(), `a: the management server says of the ClusterLoadAssignment "a": PermissionDenied: not for you`)
		has(t, "problem", set.Problems[1].String(), `b: it has no endpoints: the management server has no ClusterLoadAssignment "b"`)
		equal(t, "problems", len(set.Problems), 3)

		p.send(change(rules.Assignment, "n3", wrap("c", "1", endpoints("c", "10.0.0.1"))))
		equal(t, "cleared when it comes", len(r.latest().Problems), 2)
	})
}
