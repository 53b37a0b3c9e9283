package csds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// These tests do not run grpcdebug; they read a response as its source does. Release
// 1.0.5, and its source of March 2025, show a coordinator with one client as these tests
// say, and refuse any other. It calls FetchClientStatus without a matcher, so its users
// cannot choose a client.

// row is a line of `grpcdebug xds status`.
func row(name string, client adminv3.ClientResourceStatus, version, typeURL string, updated *timestamppb.Timestamp) string {
	when := "-"
	if updated != nil {
		when = updated.AsTime().Format(time.TimeOnly)
	}
	return fmt.Sprintf("%s %s %s %s %s\n", name, client, version, typeURL[strings.LastIndex(typeURL, ".")+1:], when)
}

// releasesUntil102 reads what releases up to 1.0.2 show: the deprecated form, in which
// each entry needs a configuration and a time.
func releasesUntil102(c *statusv3.ClientConfig) string {
	var text strings.Builder
	line := func(client adminv3.ClientResourceStatus, version string, body *anypb.Any, updated *timestamppb.Timestamp) {
		m, err := body.UnmarshalNew()
		if err != nil || updated == nil {
			text.WriteString("it cannot read this\n")
			return
		}
		name := ""
		switch m := m.(type) {
		case *clusterv3.Cluster:
			name = m.GetName()
		case *endpointv3.ClusterLoadAssignment:
			name = m.GetClusterName()
		}
		text.WriteString(row(name, client, version, body.GetTypeUrl(), updated))
	}
	for _, x := range c.GetXdsConfig() {
		for _, d := range x.GetClusterConfig().GetDynamicActiveClusters() {
			line(d.GetClientStatus(), d.GetVersionInfo(), d.GetCluster(), d.GetLastUpdated())
		}
		for _, d := range x.GetEndpointConfig().GetDynamicEndpointConfigs() {
			line(d.GetClientStatus(), d.GetVersionInfo(), d.GetEndpointConfig(), d.GetLastUpdated())
		}
	}
	return text.String()
}

// releasesFrom103 reads what releases from 1.0.3 on show: the generic form, or else the
// deprecated one.
func releasesFrom103(c *statusv3.ClientConfig) string {
	if len(c.GetGenericXdsConfigs()) == 0 {
		return releasesUntil102(c)
	}
	var text strings.Builder
	for _, g := range c.GetGenericXdsConfigs() {
		text.WriteString(row(g.GetName(), g.GetClientStatus(), g.GetVersionInfo(), g.GetTypeUrl(), g.GetLastUpdated()))
	}
	return text.String()
}

// statusShown returns what `xds status` shows of a response.
func statusShown(all []*statusv3.ClientConfig) string {
	if len(all) != 1 {
		return fmt.Sprintf("Received unexpected number of ClientConfig %d\n", len(all))
	}
	return releasesFrom103(all[0])
}

func TestGrpcdebugShowsOneClient(t *testing.T) {
	all := fleet(t)
	for i, want := range []string{
		`web ACKED 01 Cluster 03:04:05
bad NACKED 02 Cluster 03:04:05
web ACKED 03 ClusterLoadAssignment 03:04:05
api REQUESTED 04 ClusterLoadAssignment 03:04:05
gone DOES_NOT_EXIST  ClusterLoadAssignment -
`,
		"gone DOES_NOT_EXIST  ClusterLoadAssignment -\n",
		"checker-1 ACKED 05 HealthCheckSpecifier 03:04:05\n",
	} {
		if got := statusShown(answered(t, &statusv3.ClientStatusRequest{}, all[i])); got != want {
			t.Errorf("of client %d it shows\n%s\nwant\n%s", i, got, want)
		}
	}
	if got, want := releasesUntil102(answered(t, &statusv3.ClientStatusRequest{}, all[0])[0]), `web ACKED 01 Cluster 03:04:05
bad NACKED 02 Cluster 03:04:05
web ACKED 03 ClusterLoadAssignment 03:04:05
api REQUESTED 04 ClusterLoadAssignment 03:04:05
`; got != want {
		t.Errorf("up to 1.0.2:\n%s\nwant\n%s", got, want)
	}
	if got := releasesUntil102(answered(t, &statusv3.ClientStatusRequest{}, all[2])[0]); got != "" {
		t.Errorf("in the deprecated form, which has no place for a specifier: %q", got)
	}
}

// TestGrpcdebugRefusesSeveralClients; a request that names one client gets a response
// that grpcdebug would show.
func TestGrpcdebugRefusesSeveralClients(t *testing.T) {
	all := fleet(t)
	if got, want := statusShown(answered(t, &statusv3.ClientStatusRequest{}, all...)), "Received unexpected number of ClientConfig 4\n"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	if got, want := statusShown(answered(t, &statusv3.ClientStatusRequest{})), "Received unexpected number of ClientConfig 0\n"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	if got, want := statusShown(answered(t, request(t, `{"node_id":{"exact":"checker-1"}}`), all...)), "checker-1 ACKED 05 HealthCheckSpecifier 03:04:05\n"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// TestGrpcdebugPrintsConfigurations: `xds config` prints everything as JSON, for which it
// has to know the type of each configuration. With --type=cds,eds it prints each
// configuration alone.
func TestGrpcdebugPrintsConfigurations(t *testing.T) {
	got, err := NewServer(Options{}, fleet(t)).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := protojson.Marshal(got); err != nil || !strings.Contains(string(text), "UNHEALTHY") {
		t.Errorf("%v: %s", err, text)
	}
	// The types hdsd shows that its main package links.
	linked := []string{resourcev3.ClusterType, resourcev3.EndpointType, "type.googleapis.com/envoy.service.health.v3.HealthCheckSpecifier"}
	seen := map[string]bool{}
	for _, c := range got.GetConfig() {
		for _, g := range c.GetGenericXdsConfigs() {
			if _, err := protojson.Marshal(g.GetXdsConfig()); err != nil {
				t.Errorf("%s alone: %v", g.GetName(), err)
			}
			seen[g.GetXdsConfig().GetTypeUrl()] = true
		}
	}
	for _, typeURL := range linked {
		if !seen[typeURL] {
			t.Errorf("no %s is shown", typeURL)
		}
		delete(seen, typeURL)
	}
	if delete(seen, ""); len(seen) > 0 {
		t.Errorf("it does not know %v", seen)
	}
}
