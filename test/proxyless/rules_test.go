package proxyless_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3" // of the texts below

	"hdsd/test/proxyless"
	"hdsd/validate"
)

// names are those of the clients in the rules.
var names = map[proxyless.Language]string{
	proxyless.Golang: validate.GRPCGo, proxyless.Python: validate.GRPCCore, proxyless.Java: validate.GRPCJava, proxyless.NodeJS: validate.GRPCNode,
}

// group is a LocalityLbEndpoints in JSON.
func group(zone, more string, endpoints ...string) string {
	return fmt.Sprintf(`{"locality": {"zone": %q}, "load_balancing_weight": 1 %s, "lb_endpoints": [%s]}`, zone, more, strings.Join(endpoints, ","))
}

// example is a service to which a rule is about.
type example struct {
	cluster string // JSON fields; with "load_assignment": the localities
	groups  string // JSON; empty: one of the server
}

// examples returns one for each rule, by its field. Their calls have to reach the first server.
func examples(one, other *proxyless.Backend) map[string]example {
	first, second := endpoint(one.Address), endpoint(other.Address)
	degraded := strings.TrimSuffix(first, "}") + `, "health_status": "DEGRADED"}`
	plain := group("a", "", first)
	raw := `{"name": "raw", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"}}`
	return map[string]example{
		"nothing":            {byEDS, plain},
		"`type: STATIC`":     {`"type": "STATIC"`, plain},
		"`type: STRICT_DNS`": {`"type": "STRICT_DNS"`, plain},
		"`type: LOGICAL_DNS` with several endpoints": {`"type": "LOGICAL_DNS"`, group("a", "", first, second)},
		"`lb_policy: RANDOM`":                        {byEDS + `, "lb_policy": "RANDOM"`, plain},
		"`lb_policy: MAGLEV`":                        {byEDS + `, "lb_policy": "MAGLEV"`, plain},
		"`lb_policy: LEAST_REQUEST`":                 {byEDS + `, "lb_policy": "LEAST_REQUEST"`, plain},
		"`transport_socket` of raw_buffer":           {byEDS + `, "transport_socket": ` + raw, plain},
		"`transport_socket_matches`":                 {byEDS + `, "transport_socket_matches": [{"name": "raw", "match": {"a": "b"}, "transport_socket": ` + raw + `}]`, plain},
		"a `priority` without the one before it":     {byEDS, plain + "," + group("b", `, "priority": 2`, second)},
		"a `locality` twice in a priority":           {byEDS, plain + "," + group("a", "", second)},
		"an address twice":                           {byEDS, group("a", "", first, first)},
		"a `pipe` among the addresses":               {byEDS, group("a", "", first, `{"endpoint": {"address": {"pipe": {"path": "/none"}}}}`)},
		"a `locality` in two priorities":             {byEDS, plain + "," + group("a", `, "priority": 1`, second)},
		"`health_status: DEGRADED`":                  {byEDS, group("a", "", degraded)},
	}
}

// TestClientsFollowTheRules: each rule of validate is about its example, the clients that it names
// do not reach the server with that, and the others do.
func TestClientsFollowTheRules(t *testing.T) {
	t.Parallel()
	one, other := proxyless.NewBackend(t), proxyless.NewBackend(t)
	rules := map[string]validate.GRPCRule{"nothing": {}}
	for _, r := range validate.GRPCRules() {
		rules[r.Field] = r
	}
	all := examples(one, other)
	services, fields, targets := map[string]proxyless.Service{}, map[string]string{}, []string{}
	for field, r := range rules {
		e, known := all[field]
		if !known {
			t.Fatalf("no example of %s", field)
		}
		name := fmt.Sprintf("service-%d", len(services))
		s := serviceOf(t, name, e)
		services[name], fields["xds:///"+name] = s, field
		targets = append(targets, "xds:///"+name)
		if field != "nothing" && !r.Concerns(s.Cluster, s.Assignment) {
			t.Errorf("the rule of %s is not about its example", field)
		}
	}
	plane := proxyless.NewPlane(t)
	plane.Say(services)
	forEach(t, func(t *testing.T, language proxyless.Language) {
		p := proxyless.Start(t, language, proxyless.Bootstrap{
			Node: proxyless.Node{ID: "rules-" + string(language)}, Servers: []proxyless.Server{{Address: plane.Address}},
		}, proxyless.Calls{Deadline: 5 * time.Second, Pause: 50 * time.Millisecond, Targets: targets})
		p.Await("calls of all targets", 2, func(proxyless.Call) bool { return true }, targets...)
		for _, target := range targets {
			c, _ := p.Latest(target)
			concerned := slices.Contains(rules[fields[target]].Clients, names[language])
			if reached := reach(one)(c); reached == concerned {
				t.Errorf("%s: a call reached its server: %v, against the rule: %+v", fields[target], reached, c)
			}
		}
	})
}

// serviceOf makes a service of an example.
func serviceOf(t *testing.T, name string, e example) proxyless.Service {
	t.Helper()
	text := fmt.Sprintf(`{"cluster_name": %q, "endpoints": [%s]}`, name, e.groups)
	s := proxyless.Service{Cluster: parse(t, &clusterv3.Cluster{}, fmt.Sprintf(`{"name": %q, %s}`, name, e.cluster))}
	a := parse(t, &endpointv3.ClusterLoadAssignment{}, text)
	if s.Cluster.GetType() == clusterv3.Cluster_EDS {
		s.Assignment = a
	} else {
		s.Cluster.LoadAssignment = a
	}
	return s
}

// TestTheGuideHasTheRules: docs/guides/grpc.md has a row for each rule.
func TestTheGuideHasTheRules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "grpc.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range validate.GRPCRules() {
		row := fmt.Sprintf("| %s | %s | %s |", r.Field, strings.Join(r.Clients, ", "), r.Effect)
		if len(r.Clients) == len(names) {
			row = fmt.Sprintf("| %s | all four | %s |", r.Field, r.Effect)
		}
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/guides/grpc.md lacks this row:\n%s", row)
		}
	}
}

// TestClientsOverChanges: what clients make of an assignment that has no endpoint left to call, and
// of a cluster that was gone for a moment, as docs/guides/grpc.md says.
func TestClientsOverChanges(t *testing.T) {
	t.Parallel()
	one := proxyless.NewBackend(t)
	well := example{byEDS, group("a", "", endpoint(one.Address))}
	drained := example{byEDS, group("a", "", strings.TrimSuffix(endpoint(one.Address), "}")+`, "health_status": "DRAINING"}`)}
	forEach(t, func(t *testing.T, language proxyless.Language) {
		for _, features := range [][]string{nil, {"ignore_resource_deletion"}} {
			plane := proxyless.NewPlane(t)
			services := func(drains, goes example, gone bool) map[string]proxyless.Service {
				all := map[string]proxyless.Service{"drains": serviceOf(t, "drains", drains), "goes": serviceOf(t, "goes", goes)}
				if gone {
					all["goes"] = proxyless.Service{}
				}
				return all
			}
			plane.Say(services(well, well, false))
			targets := []string{"xds:///drains", "xds:///goes"}
			p := proxyless.Start(t, language, proxyless.Bootstrap{
				Node: proxyless.Node{ID: "changes"}, Servers: []proxyless.Server{{Address: plane.Address, Features: features}},
			}, proxyless.Calls{Deadline: 3 * time.Second, Pause: 50 * time.Millisecond, Targets: targets})
			p.Await("answers", 2, proxyless.Answered, targets...)

			plane.Say(services(drained, well, false))
			if language == proxyless.Java { // it keeps calling
				p.Await("answers of a drained endpoint", 60, proxyless.Answered, "xds:///drains")
			} else {
				p.Await("no call at a drained endpoint", 5, failed, "xds:///drains")
			}
			plane.Say(services(well, well, true))
			if len(features) > 0 {
				p.Await("answers although the cluster is gone", 40, proxyless.Answered, "xds:///goes")
			} else {
				p.Await("calls to fail without a cluster", 2, failed, "xds:///goes")
			}
			plane.Say(services(well, well, false))
			if language == proxyless.NodeJS && len(features) == 0 { // it never gets it back
				p.Await("calls to fail although the cluster is back", 40, failed, "xds:///goes")
			} else {
				p.Await("answers when the cluster is back", 5, proxyless.Answered, "xds:///goes")
			}
		}
	})
}

func failed(c proxyless.Call) bool { return !proxyless.Answered(c) }
