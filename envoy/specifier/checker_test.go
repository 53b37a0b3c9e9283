package specifier

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"

	"hdsd/health"
)

const claims = `id: "c" extensions {name: "envoy.health_checkers.grpc"} extensions {name: "envoy.health_checkers.redis"} extensions {name: "envoy.health_checkers.thrift" disabled: true}
	extensions {name: "envoy.transport_sockets.tls"} extensions {name: "envoy.filters.http.router"} extensions {name: "SEVERAL_CHECKS"} `

func TestAbilitiesDependOnTheRelease(t *testing.T) {
	capability := &healthv3.Capability{HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP, healthv3.Capability_TCP}}
	always := []health.Ability{health.HTTP, health.TCP, "envoy.health_checkers.grpc", "envoy.health_checkers.redis", "envoy.transport_sockets.tls"}
	for node, want := range map[string]struct {
		version string
		more    []health.Ability
	}{
		`user_agent_name: "envoy" user_agent_build_version {version {major_number: 1 minor_number: 40}}`:          {"envoy/1.40.0", []health.Ability{health.FreshCodes, health.GRPC, health.Redis, health.SeveralChecks, secretDiscovery, signatureAlgorithms}},
		`user_agent_name: "envoy" user_agent_build_version {version {major_number: 1 minor_number: 38 patch: 3}}`: {"envoy/1.38.3", []health.Ability{health.GRPC, secretDiscovery, signatureAlgorithms}},
		`user_agent_name: "envoy" user_agent_build_version {version {major_number: 1 minor_number: 36 patch: 4}}`: {"envoy/1.36.4", []health.Ability{signatureAlgorithms}},
		`user_agent_name: "envoy" user_agent_version: "2.0.1"`:                                                    {"envoy/2.0.1", []health.Ability{health.FreshCodes, health.GRPC, health.Redis, health.SeveralChecks, secretDiscovery, signatureAlgorithms}},
		`user_agent_name: "envoy" user_agent_version: "custom"`:                                                   {"envoy/custom", []health.Ability{signatureAlgorithms}},
		`user_agent_name: "hdsd" user_agent_version: "0.1.0"`:                                                     {"hdsd/0.1.0", []health.Ability{health.FreshCodes, health.GRPC, health.Redis, health.SeveralChecks}},
	} {
		c, err := CheckerFromNode(parse(t, claims+node, &corev3.Node{}), capability)
		if err != nil {
			t.Fatal(err)
		}
		got, all := slices.Sorted(maps.Keys(c.Abilities)), append(slices.Clone(always), want.more...)
		slices.Sort(all)
		if c.Version != want.version || !slices.Equal(got, all) {
			t.Errorf("%s: version %q, abilities %v, want %v", node, c.Version, got, all)
		}
	}
}

// TestOtherCheckersCapabilitiesAreBelieved, unless it is an Envoy that is known to
// end by them; what has no name here is of no interest.
func TestOtherCheckersCapabilitiesAreBelieved(t *testing.T) {
	const http, tcp, redis, tomorrow = healthv3.Capability_HTTP, healthv3.Capability_TCP, healthv3.Capability_REDIS, 77
	for _, test := range []struct {
		node  string
		says  []healthv3.Capability_Protocol
		kinds []health.Ability
	}{
		{``, nil, nil},
		{``, []healthv3.Capability_Protocol{http}, []health.Ability{health.HTTP}},
		{``, []healthv3.Capability_Protocol{tomorrow}, nil},
		{``, []healthv3.Capability_Protocol{http, tomorrow}, []health.Ability{health.HTTP}},
		{``, []healthv3.Capability_Protocol{redis, http, redis}, []health.Ability{health.HTTP, health.Redis}},
		{`user_agent_name: "envoy" user_agent_version: "1.40.1"`, []healthv3.Capability_Protocol{redis}, []health.Ability{health.Redis}},
		{`user_agent_name: "envoy" user_agent_version: "1.39.0"`, []healthv3.Capability_Protocol{redis, tcp}, []health.Ability{health.TCP}},
		{`extensions {name: "envoy.health_checkers.thrift"}`, []healthv3.Capability_Protocol{tcp}, []health.Ability{health.TCP, health.Thrift}},
	} {
		c, err := CheckerFromNode(parse(t, `id: "c" `+test.node, &corev3.Node{}), &healthv3.Capability{HealthCheckProtocols: test.says})
		if err != nil {
			t.Fatal(err)
		}
		var kinds []health.Ability
		for _, kind := range health.Kinds {
			if c.Abilities.Has(kind) {
				kinds = append(kinds, kind)
			}
		}
		if !slices.Equal(kinds, test.kinds) {
			t.Errorf("%q that says %v is able to do %v, want %v", test.node, test.says, kinds, test.kinds)
		}
	}
}

func TestNodeSaysWhoAndWhere(t *testing.T) {
	c, err := CheckerFromNode(parse(t, `id: "c" locality {region: "r" zone: "z" sub_zone: "s"}
		metadata {fields {key: "vpc" value {string_value: "blue"}} fields {key: "n" value {number_value: 1}}}`, &corev3.Node{}), nil)
	if err != nil || c.ID != "c" || c.Locality != (health.Locality{Region: "r", Zone: "z", SubZone: "s"}) || !maps.Equal(c.Metadata, map[string]string{"vpc": "blue"}) {
		t.Errorf("%+v, %v", c, err)
	}
	for _, id := range []string{"", "a\nb"} {
		if _, err := CheckerFromNode(&corev3.Node{Id: id}, nil); !errors.Is(err, ErrNode) {
			t.Errorf("a node called %q: %v", id, err)
		}
	}
}

func TestWeightFromMetadata(t *testing.T) {
	for metadata, want := range map[string]float64{
		``: 0,
		`fields {key: "hdsd.weight" value {number_value: 2.5}}`:     2.5,
		`fields {key: "hdsd.weight" value {string_value: "0.5"}}`:   0.5,
		`fields {key: "hdsd.weight" value {string_value: "heavy"}}`: 0,
		`fields {key: "hdsd.weight" value {number_value: -1}}`:      0,
		`fields {key: "hdsd.weight" value {string_value: "NaN"}}`:   0,
		`fields {key: "hdsd.weight" value {string_value: "+Inf"}}`:  0,
		`fields {key: "hdsd.weight" value {bool_value: true}}`:      0,
		`fields {key: "hdsd.weights" value {number_value: 3}}`:      0,
	} {
		node := parse(t, `id: "c" metadata {`+metadata+`}`, &corev3.Node{})
		c, err := CheckerFromNode(node, nil)
		if err != nil || c.Weight != want {
			t.Errorf("%s: weight %g, %v", metadata, c.Weight, err)
		}
		if ignores := strings.Contains(metadata, `"hdsd.weight"`) && want == 0; IgnoresWeight(node) != ignores {
			t.Errorf("%s: it is said to be ignored: %t", metadata, !ignores)
		}
	}
}
