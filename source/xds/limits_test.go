package xds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
)

// list makes a list of the same again and again.
func list[T any](count int, one T) []T {
	all := make([]T, count)
	for i := range all {
		all[i] = one
	}
	return all
}

// hosts makes an assignment of the same endpoint again and again.
func hosts(name string, count int, one *endpointv3.LbEndpoint) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: list(count, one)}}}
}

// wire returns the bytes of a field, again and again.
func wire(number protowire.Number, count int, data []byte) []byte {
	return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), data), count)
}

// TestExcess: what takes far more memory than it has bytes is not decoded.
func TestExcess(t *testing.T) {
	const locality, lbEndpoint, resource, removed, fault = 2, 2, 2, 6, 9
	of := func(m proto.Message) []byte { return pack(m).GetValue() }
	small := of(endpoints("", "1.1.1.1").GetEndpoints()[0].GetLbEndpoints()[0])
	named := of(&endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "name"}})
	assignment, delta := (&endpointv3.ClusterLoadAssignment{}).ProtoReflect().Descriptor(), (&discoveryv3.DeltaDiscoveryResponse{}).ProtoReflect().Descriptor()
	for what, c := range map[string]struct {
		of   protoreflect.MessageDescriptor
		data []byte
		want string
	}{
		"small":            {assignment, of(&endpointv3.ClusterLoadAssignment{ClusterName: "a", Policy: &endpointv3.ClusterLoadAssignment_Policy{}}), ""},
		"small endpoints":  {assignment, wire(locality, 1, wire(lbEndpoint, 10_000, small)), ""},
		"many endpoints":   {assignment, wire(locality, 2, wire(lbEndpoint, rules.MaxEndpoints/2, named)), ""},
		"one more":         {assignment, wire(locality, 1, wire(lbEndpoint, rules.MaxEndpoints+1, named)), "more than 1000000 endpoints"},
		"empty endpoints":  {assignment, wire(locality, 1, wire(lbEndpoint, 100_000, nil)), "it has 100000 endpoints in 200004 bytes"},
		"empty localities": {assignment, wire(locality, 1000, nil), "it has 1000 messages in 2000 bytes"},
		"removed names":    {delta, wire(removed, rules.MaxElements+1, nil), "more than 1000000 elements"},
		"resources":        {delta, wire(resource, rules.MaxElements+1, nil), "more than 1000000 elements"},
		"several lists":    {delta, append(wire(removed, rules.MaxElements, nil), wire(fault, 1, nil)...), "more than 1000000 elements"},
		"many resources":   {delta, wire(resource, 1000, of(&discoveryv3.Resource{Name: "a"})), ""},
		"broken":           {delta, []byte("\x12\x7f"), ""},
	} {
		t.Run(what, func(t *testing.T) {
			w := rules.Weigh(c.of, c.data)
			if got := w.Excess(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestTooManyResources: the response is refused as a whole without being
// decoded, and the next one is taken.
func TestTooManyResources(t *testing.T) {
	refusal := "refused as a whole: it has more than 1000000 elements, the limit for one response"
	t.Run("delta", func(t *testing.T) {
		scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
			p := next(t, s.delta)
			p.next()
			p.send(change(rules.Cluster, "n1", wrap("a", "1", inline("a", "10.0.0.1"))))
			p.next()
			r.latest()
			p.send(removal(rules.Cluster, "n2", list(rules.MaxElements+1, "a")...))
			nack := p.next()
			equal(t, "nonce", nack.GetResponseNonce(), "n2")
			equal(t, "detail", nack.GetErrorDetail().GetMessage(), refusal)
			equal(t, "what was there stays", len(r.Status().Types[0].Resources), 1)
			has(t, "problem", r.latest().Problems[0].String(), refusal)
			p.send(change(rules.Cluster, "n3", wrap("b", "1", inline("b", "10.0.0.2"))))
			equal(t, "accepted", p.next().GetErrorDetail() == nil, true)
			equal(t, "set", said(r.latest()), "a=10.0.0.1 b=10.0.0.2")
		})
	})
	t.Run("state of the world", func(t *testing.T) {
		scripted(t, grpcSource(corev3.ApiConfigSource_AGGREGATED_GRPC, "one"), func(t *testing.T, s *script, r *running) {
			p := next(t, s.state)
			p.next()
			p.send(state(rules.Cluster, "c1", "n1", inline("a", "10.0.0.1")))
			p.next()
			r.latest()
			p.send(&discoveryv3.DiscoveryResponse{TypeUrl: rules.Cluster, VersionInfo: "c2", Nonce: "n2", Resources: list(rules.MaxElements+1, &anypb.Any{})})
			nack := p.next()
			equal(t, "nonce and version", nack.GetResponseNonce()+nack.GetVersionInfo(), "n2c1")
			equal(t, "detail", nack.GetErrorDetail().GetMessage(), refusal)
			equal(t, "rejected", r.Status().Types[0].RejectedVersion, "c2")
			equal(t, "set", said(r.latest()), "a=10.0.0.1")
		})
	})
	t.Run("REST", func(t *testing.T) {
		inNetwork(t, func(t *testing.T, n *network) {
			w := newWeb()
			defer n.serveHTTP("web", w)()
			w.say(cds, `{"version_info":"c1","resources":[`+jsonCluster("a", "10.0.0.1")+`]}`)
			from := restSource("http://web")
			r := n.run(from)
			defer r.stop()
			r.latest()
			w.say(cds, `{"resources":[{}`+strings.Repeat(",{}", rules.MaxElements+1)+`]}`)
			time.Sleep(4 * time.Second)
			has(t, "told", w.last(t, cds), refusal, `"version_info":"c1"`)
			equal(t, "set", said(r.latest()), "a=10.0.0.1")
		})
	})
}

// TestTooManyEndpoints: the assignment is refused, and what it was stays.
func TestTooManyEndpoints(t *testing.T) {
	scripted(t, deltaSource, func(t *testing.T, s *script, r *running) {
		p := next(t, s.delta)
		p.next()
		p.send(change(rules.Cluster, "n1", wrap("web", "1", eds("web", "")), wrap("api", "1", eds("api", ""))))
		p.send(change(rules.Assignment, "n2", wrap("web", "1", endpoints("web", "10.0.0.1")), wrap("api", "1", endpoints("api", "10.0.0.2"))))
		r.latest()
		for len(p.requests) > 0 {
			p.next()
		}
		p.send(change(rules.Assignment, "n3", wrap("web", "2", hosts("web", 100_000, &endpointv3.LbEndpoint{})), wrap("api", "2", endpoints("api", "10.0.0.3"))))
		has(t, "detail", p.next().GetErrorDetail().GetMessage(), "1 of 2 resources refused: web (it has 100000 endpoints in 200009 bytes")
		equal(t, "set", said(r.latest()), "api=10.0.0.3 web=10.0.0.1")
	})
}

// TestExcessInJSON: the same over REST, where a text may hold as much.
func TestExcessInJSON(t *testing.T) {
	s := primed(t, ways["REST"])
	p := &poller{channel: &channel{source: s, node: &corev3.Node{}}, table: s.assignments}
	empty := strings.Replace(jsonEndpoints("10.0.0.7"), `"lb_endpoints":[`, `"lb_endpoints":[`+strings.Repeat(`{},`, 1000), 1)
	for what, body := range map[string]string{
		"1 of 1 resources refused: web (it has ": `{"resources":[` + empty + `]}`,
		"refused as a whole: it has ":            `{"resource_errors":[{"error_detail":{"details":[` + strings.Repeat(`{},`, 1000) + `{}]}}]}`,
	} {
		if err := p.accept([]byte(body), 0); err != nil {
			t.Fatal(err)
		}
		has(t, "refusal", p.refusal.GetMessage(), what, " messages in ", "nearly all of them must be empty")
	}
	if err := p.accept([]byte(`{"resources":[`+jsonEndpoints(`\",{[\\`)+`]}`), 0); err != nil || p.refusal != nil {
		t.Errorf("got %v, %v", err, p.refusal)
	}
}

// TestRefusedAreNamedInPart: of many, so many are.
func TestRefusedAreNamedInPart(t *testing.T) {
	r := &rejection{total: 5000}
	for i := range 3000 {
		r.add(fmt.Sprint(i), "")
	}
	equal(t, "kept", len(r.refused), maxRefused)
	has(t, "text", r.String(), "3000 of 5000 resources refused: ", " and ", " more")
	short := &rejection{total: maxRefused + 1}
	for range maxRefused + 1 {
		short.add("a", "b")
	}
	if text := short.String(); !strings.HasSuffix(text, " more") || len(text) > maxReasonBytes+maxNameBytes+100 {
		t.Error(text)
	}
}

// TestDecodingHoldsNoLock: while a response is decoded, others may ask.
func TestDecodingHoldsNoLock(t *testing.T) {
	s := primed(t, ways["AGGREGATED_DELTA_GRPC"])
	u := &update{items: []item{
		{version: "2", body: pack(inline("new", "10.0.0.3"))}, {version: "2", body: pack(inline("db", "10.0.0.9"))},
		{version: "2", body: &anypb.Any{TypeUrl: rules.Cluster, Value: bytes.Clone([]byte("\n\x01f\xff"))}},
	}}
	s.read(s.clusters, u)
	equal(t, "new is decoded", u.items[0].decoded != nil && u.items[0].name == "new", true)
	equal(t, "known is not", u.items[1].decoded == nil && u.items[1].wrong == "", true)
	has(t, "broken", u.items[2].wrong, "it cannot be decoded")
	refused := s.accept(s.clusters, u)
	has(t, "refused", refused.String(), "1 of 3 resources refused: f (")
	equal(t, "the message is that one", s.clusters.entries["new"].good.decoded, u.items[0].decoded)
}
