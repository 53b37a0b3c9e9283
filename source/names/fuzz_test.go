package names

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	"github.com/miekg/dns"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
	"hdsd/source"
)

// FuzzBook does anything to a book: what is needed is asked for in time, and no answer but
// a lasting "none" takes the last addresses away.
func FuzzBook(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("need, ask, answer, fail, forget, and again"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		b, now := newBook(time.Time{}, nil), time.Unix(1_700_000_000, 0)
		var names []Question
		for i := range 4 {
			names = append(names, Question{Host: string(rune('a' + i)), Family: clusterv3.Cluster_V4_ONLY, Refresh: time.Second, Keep: i%2 == 0, Retain: i%2 != 0})
		}
		asked := map[Question]bool{}
		for _, step := range steps {
			q := names[step%4]
			before, needed := b.states[q]
			had := needed && len(before.answer.Addresses) > 0
			switch step >> 2 % 8 {
			case 0:
				b.need(now, "one", names[:step%4])
			case 1:
				b.need(now, "two", names[step%4:])
			case 2:
				for _, due := range b.due(now, int(step%3)) {
					if b.states[due] == nil || !b.states[due].pending {
						t.Fatal("a name is asked for that is not needed")
					}
					asked[due] = true
				}
			case 3:
				v4, standings := half{addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, step})}}, map[netip.Addr]Standing{}
				for i, address := range b.missing(now, q, v4, half{}) {
					standings[address] = Standing((int(step>>5) + i) % 3)
				}
				_, after, ok := b.record(now, q, v4, half{}, standings, 0)
				if ok && (!slices.Contains(after.Addresses, v4.addresses[0]) || len(after.Addresses) != 1+len(before.retained) || len(after.Addresses) > 1 && !q.Retain) {
					t.Fatalf("DNS says %v: %v is in use, with %v", v4.addresses, after.Addresses, before.retained)
				}
			case 4, 5:
				_, after, ok := b.record(now, q, half{failure: "x"}, half{}, nil, float64(step)/256)
				if ok && had && len(after.Addresses) == 0 {
					t.Fatal("a failure took addresses away")
				}
			case 6:
				_, after, ok := b.record(now, q, half{noneReason: "x"}, half{}, nil, 0)
				if ok && had && len(after.Addresses) == 0 && (q.Keep || now.Sub(before.noneSince) < lasting) {
					t.Fatal("addresses were taken away too early")
				}
			default:
				now = now.Add(time.Duration(step) * time.Second)
			}
			next := b.next(true)
			for q, s := range b.states {
				if s.users < 1 || s.users > 2 {
					t.Fatalf("%d sources need %s", s.users, q.Host)
				}
				if !s.pending && (next.IsZero() || next.After(s.due) || s.due.After(now.Add(q.Refresh))) {
					t.Fatalf("%s is due at %s, and next is %s", q.Host, s.due, next)
				}
			}
		}
	})
}

// FuzzRewrite translates any cluster: what Envoy takes stays acceptable, and no name is left.
func FuzzRewrite(f *testing.F) {
	seed := cluster(f, "web", strictText)
	data, err := proto.Marshal(seed.Config)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, []byte{1, 2})
	extension := proto.CloneOf(seed.Config)
	settings, err := anypb.New(&dnsv3.DnsCluster{RespectDnsTtl: true, DnsMinRefreshRate: durationpb.New(time.Hour)})
	if err != nil {
		f.Fatal(err)
	}
	extension.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "dns", TypedConfig: settings}}
	if data, err = proto.Marshal(extension); err != nil {
		f.Fatal(err)
	}
	f.Add(data, []byte{1, 2})
	f.Fuzz(func(t *testing.T, data, last []byte) {
		config := &clusterv3.Cluster{}
		if proto.Unmarshal(data, config) != nil || len(rules.Violations(config)) > 0 {
			return
		}
		from := &source.Cluster{Source: "local", Name: config.GetName(), ServiceName: config.GetName(), Config: config, Assignment: source.TakeEndpoints(config)}
		before := proto.CloneOf(config)
		var found []netip.Addr
		for _, b := range last[:min(len(last), 5)] {
			found = append(found, netip.AddrFrom4([4]byte{10, 0, 0, b}))
		}
		set := (&Rewriter{}).Apply(setOf(from), func(q Question) Answer {
			if q.Refresh <= 0 || q.wait(outcome{failure: "x"}, 1, 1) < leastWait || q.wait(outcome{addresses: found}, 0, 1) > mostWait {
				t.Fatalf("waits are out of bounds: %+v", q)
			}
			return Answer{Addresses: found, Known: true}
		})
		if !proto.Equal(before, config) && proto.Equal(before, before) {
			t.Fatal("the source's cluster was changed")
		}
		got := set.Clusters[0]
		if got == from {
			return
		}
		for _, group := range got.Assignment.Message().GetEndpoints() {
			for _, e := range group.GetLbEndpoints() {
				if isName(e.GetEndpoint().GetAddress()) {
					t.Fatalf("a name is left in %v", got.Assignment.Message())
				}
			}
		}
		if !got.EDS() || len(rules.Violations(got.Config)) > 0 {
			t.Fatalf("no Envoy takes %v", got.Config)
		}
	})
}

// FuzzResponse reads any response: it gives addresses of the kind that was asked for.
func FuzzResponse(f *testing.F) {
	record, err := dns.NewRR("web.test. 1 IN A 10.0.0.1")
	if err != nil {
		f.Fatal(err)
	}
	seed, err := (&dns.Msg{Answer: []dns.RR{record}}).Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed, "web.test.")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		response := &dns.Msg{}
		if response.Unpack(data) != nil {
			return
		}
		for kind, is := range map[uint16]func(netip.Addr) bool{dns.TypeA: netip.Addr.Is4, dns.TypeAAAA: netip.Addr.Is6} {
			found := addressesIn(response, name, kind)
			if found.failure != "" || (len(found.addresses) == 0) == (found.noneReason == "") || found.ttl < 0 {
				t.Fatalf("got %+v", found)
			}
			for _, address := range found.addresses {
				if !is(address) || address.IsUnspecified() || strings.Contains(address.String(), "%") {
					t.Fatalf("%s is no address to give", address)
				}
			}
			if len(found.addresses) > len(response.Answer) {
				t.Fatal("there are more addresses than records")
			}
		}
	})
}
