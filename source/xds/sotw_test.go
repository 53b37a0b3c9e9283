package xds

import (
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
)

// scripted runs a source against a script at "one", in a bubble.
func scripted(t *testing.T, from *corev3.ConfigSource, test func(t *testing.T, s *script, r *running), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, s := newNetwork(t), newScript(t)
		stop := n.serve("one", s.register)
		r := n.run(from, change...)
		defer func() {
			r.stop()
			stop()
			synctest.Wait()
		}()
		test(t, s, r)
	})
}

// state makes a response of clusters or assignments.
func state(typeURL, version, nonce string, messages ...proto.Message) *discoveryv3.DiscoveryResponse {
	response := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: version, Nonce: nonce}
	for _, m := range messages {
		response.Resources = append(response.Resources, pack(m))
	}
	return response
}

const (
	clustersURL = `"type_url":"type.googleapis.com/envoy.config.cluster.v3.Cluster"`
	endpointURL = `"type_url":"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"`
	nodeField   = `"node":{"id":"hdsd-test","client_features":["xds.config.resource-in-sotw"]}`
)

func TestStateOfTheWorldRequests(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		equal(t, "first", text(p.next()), `{`+nodeField+`,`+clustersURL+`}`)
		p.quiet() // no names to ask for yet: an empty list would ask for all

		p.send(state(rules.Cluster, "c1", "n1", eds("web", ""), eds("api", "svc")))
		equal(t, "ack", text(p.next()), `{"version_info":"c1",`+nodeField+`,`+clustersURL+`,"response_nonce":"n1"}`)
		equal(t, "names", text(p.next()), `{`+nodeField+`,"resource_names":["svc","web"],`+endpointURL+`}`)
		r.nothing() // endpoints are waited for

		p.send(state(rules.Assignment, "e1", "n2", endpoints("web", "10.0.0.1"), endpoints("other", "10.0.0.9")))
		equal(t, "ack", text(p.next()), `{"version_info":"e1",`+nodeField+`,"resource_names":["svc","web"],`+endpointURL+`,"response_nonce":"n2"}`)
		r.nothing()
		p.send(state(rules.Assignment, "e2", "n3", endpoints("svc", "10.0.0.2")))
		equal(t, "nonce", p.next().GetResponseNonce(), "n3")
		equal(t, "in part", said(r.latest()), "api=10.0.0.2 web=10.0.0.1")

		p.send(state(rules.Cluster, "c2", "n4", eds("api", "svc")))
		equal(t, "ack", text(p.next()), `{"version_info":"c2",`+nodeField+`,`+clustersURL+`,"response_nonce":"n4"}`)
		equal(t, "unsubscribed", text(p.next()), `{"version_info":"e2",`+nodeField+`,"resource_names":["svc"],`+endpointURL+`,"response_nonce":"n3"}`)
		equal(t, "missing is removed", said(r.latest()), "api=10.0.0.2")
		p.send(state(rules.Cluster, "c3", "n5"))
		p.next()
		p.quiet() // an empty list would ask for everything
		p.send(state(rules.Assignment, "e3", "n6", endpoints("svc", "10.0.0.3")))
		equal(t, "ack", text(p.next()), `{"version_info":"e3",`+nodeField+`,"resource_names":["svc"],`+endpointURL+`,"response_nonce":"n6"}`)
		p.send(state(rules.Cluster, "c4", "n7", eds("api", "svc")))
		p.next()
		p.quiet() // the names are those of the last request
		equal(t, "still known", said(r.latest()), "api=10.0.0.3")
		p.send(state(rules.Cluster, "c5", "n8", eds("new", "")))
		p.next()
		equal(t, "another", text(p.next()), `{"version_info":"e3",`+nodeField+`,"resource_names":["new"],`+endpointURL+`,"response_nonce":"n6"}`)
		equal(t, "known", len(r.Status().Types[1].Resources), 1)
	})
}

func TestStateOfTheWorldRejection(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", inline("a", "10.0.0.1"), inline("b", "10.0.0.2"), inline("c", "10.0.0.3")))
		p.next()
		before := r.latest()

		bad := inline("b", "10.0.0.8")
		bad.LoadAssignment.ClusterName = "" // its own rules ask for one
		response := state(rules.Cluster, "c2", "n2", inline("a", "10.0.0.7"), bad, inline("d"), inline("d", "10.0.0.4"))
		response.Resources = append(response.Resources, &anypb.Any{TypeUrl: rules.Assignment, Value: pack(endpoints("e")).GetValue()},
			&anypb.Any{TypeUrl: rules.Cluster, Value: []byte("\n\x01f\xff")})
		p.send(response)
		nack := p.next()
		equal(t, "version", nack.GetVersionInfo(), "c1")
		equal(t, "nonce", nack.GetResponseNonce(), "n2")
		equal(t, "code", nack.GetErrorDetail().GetCode(), 3)
		has(t, "detail", nack.GetErrorDetail().GetMessage(), "4 of 6 resources refused: ", "b (load_assignment.cluster_name: ",
			"d (its name is there more than once)", `e (its type is "`, "f (it cannot be decoded: ")
		p.quiet()

		set := r.latest()
		equal(t, "set", said(set), "a=10.0.0.7 b=10.0.0.2 !d=none !e=none !f=none") // c is gone
		equal(t, "last good", set.Clusters[1], before.Clusters[1])
		has(t, "problem", set.Problems[0].String(), "b: what the management server says of it is refused: load_assignment.cluster_name")
		has(t, "problem", set.Problems[0].String(), "(its last valid version stays in use)")
		equal(t, "warning", set.Problems[0].Warning, false)

		status := r.Status().Types[0]
		equal(t, "version", status.Version, "c1")
		equal(t, "rejected", status.RejectedVersion, "c2")
		equal(t, "details", status.Rejected, nack.GetErrorDetail().GetMessage())
		equal(t, "error state", status.Resources[1].Error.GetVersionInfo(), "c2")
		equal(t, "kept", status.Resources[1].Version, "c1")

		p.send(state(rules.Cluster, "c3", "n3", inline("a", "10.0.0.7"), inline("b", "10.0.0.8")))
		ack := p.next()
		equal(t, "version", ack.GetVersionInfo(), "c3")
		equal(t, "detail", ack.GetErrorDetail() == nil, true)
		equal(t, "set", said(r.latest()), "a=10.0.0.7 b=10.0.0.8")
		equal(t, "no error", r.Status().Types[0].LastError, "")
	})
}

// TestNamelessResourceRemovesNothing: it may be any of those that are missing.
func TestNamelessResourceRemovesNothing(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", inline("a", "10.0.0.1")))
		p.next()
		r.latest()
		p.send(state(rules.Cluster, "c2", "n2", &clusterv3.Cluster{}, inline("b", "10.0.0.2")))
		has(t, "detail", p.next().GetErrorDetail().GetMessage(), "1 of 2 resources refused: resources[0] (it has no name)")
		set := r.latest()
		equal(t, "set", said(set), "a=10.0.0.1 b=10.0.0.2")
		has(t, "problem", set.Problems[0].String(), "resources[0] (it has no name)")
	})
}

func TestTypeOfResponse(t *testing.T) {
	t.Run("not asked for", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(_ *testing.T, s *script, r *running) {
			p := next(t, s.state)
			p.next()
			p.send(state("type.googleapis.com/envoy.config.listener.v3.Listener", "1", "n1"))
			p.send(state("", "1", "n2", inline("a")))
			p.quiet()
			r.nothing()
		})
	})
	t.Run("implied", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_GRPC, "one"), func(t *testing.T, s *script, r *running) {
			p := next(t, s.state)
			p.next()
			p.send(state("", "1", "n1", inline("a", "10.0.0.1")))
			equal(t, "ack", p.next().GetVersionInfo(), "1")
			equal(t, "set", said(r.latest()), "a=10.0.0.1")
		})
	})
	t.Run("of another stream", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_GRPC, "one"), func(t *testing.T, s *script, r *running) {
			p := next(t, s.state)
			p.next()
			p.send(state(rules.Assignment, "1", "n1", endpoints("a")))
			nack := p.next()
			equal(t, "nonce", nack.GetResponseNonce(), "n1")
			has(t, "detail", nack.GetErrorDetail().GetMessage(), "its type_url is", "and this stream is for")
			r.nothing()
		})
	})
}

// TestStreamForEachType: each has its own, and that of endpoints begins when
// there is something to ask for.
func TestStreamForEachType(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		c := next(t, s.state)
		equal(t, "clusters", c.next().GetTypeUrl(), rules.Cluster)
		equal(t, "streams", len(s.state), 0)
		c.send(state(rules.Cluster, "c1", "n1", eds("web", "")))
		c.next()
		e := next(t, s.state)
		equal(t, "endpoints", text(e.next()), `{`+nodeField+`,"resource_names":["web"],`+endpointURL+`}`)
		e.send(state(rules.Assignment, "e1", "n1", endpoints("web", "10.0.0.1")))
		e.next()
		c.quiet()
		equal(t, "set", said(r.latest()), "web=10.0.0.1")
	})
}

func TestNodeOnFirstMessageOnly(t *testing.T) {
	from := grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one")
	from.GetApiConfigSource().SetNodeOnFirstMessageOnly = true
	scripted(t, from, func(t *testing.T, s *script, _ *running) {
		p := next(t, s.state)
		equal(t, "first", p.next().GetNode().GetId(), "hdsd-test")
		p.send(state(rules.Cluster, "c1", "n1", eds("web", "")))
		equal(t, "ack", p.next().GetNode() == nil, true)
		equal(t, "next type", p.next().GetNode() == nil, true)
		p.end(errEnough)
		s2 := reconnect(t, s.state)
		equal(t, "first of the next stream", s2.next().GetNode().GetId(), "hdsd-test")
	})
}

// TestStateOfTheWorldReconnects: a new stream asks for everything anew. A server that
// restarted may have other content under the same version.
func TestStateOfTheWorldReconnects(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", eds("web", ""), eds("api", "")))
		p.next()
		p.next()
		p.send(state(rules.Assignment, "e1", "n2", endpoints("web", "10.0.0.1")))
		p.next()
		p.end(errEnough)

		p = reconnect(t, s.state)
		equal(t, "clusters", text(p.next()), `{`+nodeField+`,`+clustersURL+`}`)
		equal(t, "endpoints", text(p.next()), `{`+nodeField+`,"resource_names":["api","web"],`+endpointURL+`}`)
		p.send(state(rules.Assignment, "e1", "n1", endpoints("web", "10.0.0.1"), endpoints("api", "10.0.0.2")))
		p.next()
		equal(t, "set", said(r.latest()), "api=10.0.0.2 web=10.0.0.1")
		p.end(errEnough)

		p = reconnect(t, s.state)
		p.next()
		equal(t, "endpoints", text(p.next()), `{`+nodeField+`,"resource_names":["api","web"],`+endpointURL+`}`)
		r.nothing() // what is known stays
		p.send(state(rules.Assignment, "e1", "n1", endpoints("web", "10.0.0.1"), endpoints("api", "10.0.0.3")))
		equal(t, "other content", said(r.latest()), "api=10.0.0.3 web=10.0.0.1")
	})
}

// TestStateOfTheWorldTakenUpLater: what a server was told of has to come again.
func TestStateOfTheWorldTakenUpLater(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.next()
		p.send(state(rules.Cluster, "c1", "n1", eds("web", ""), eds("api", "")))
		p.next()
		p.next()
		p.send(state(rules.Assignment, "e1", "n2", endpoints("web", "10.0.0.1"), endpoints("api", "10.0.0.2")))
		p.next()
		p.send(state(rules.Cluster, "c2", "n3", eds("api", "")))
		p.next()
		equal(t, "names", strings.Join(p.next().GetResourceNames(), " "), "api")
		equal(t, "set", said(r.latest()), "api=10.0.0.2")
		p.send(state(rules.Cluster, "c3", "n4", eds("web", ""), eds("api", "")))
		p.next()
		equal(t, "names", strings.Join(p.next().GetResourceNames(), " "), "api web")
		r.nothing()
		p.send(state(rules.Assignment, "e1", "n5", endpoints("web", "10.0.0.1"), endpoints("api", "10.0.0.2")))
		equal(t, "set", said(r.latest()), "api=10.0.0.2 web=10.0.0.1")
	})
}

// TestNobodyWaitsForAbandonedResources: not even while the server still counts them as
// subscribed.
func TestNobodyWaitsForAbandonedResources(t *testing.T) {
	scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
		p := next(t, s.state)
		p.send(state(rules.Cluster, "c1", "n1", eds("web", "")))
		synctest.Wait()
		p.send(state(rules.Cluster, "c2", "n2", inline("a", "10.0.0.1")))
		equal(t, "set", said(r.latest()), "a=10.0.0.1")
	})
}
