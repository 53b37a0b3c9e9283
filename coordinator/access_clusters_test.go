package coordinator_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/etcd"
)

const grantsByCluster = `
access:
  grants:
  - {roles: [CHECKER], san: "checker.internal"}
  - {roles: [VIEWER, OPERATOR, DATA_PLANE], san: "pay.internal", cluster_name_glob: "pay-*"}
  - {roles: [OPERATOR], san: "drains.internal", cluster_name_glob: "pay-*"}
  - {roles: [VIEWER, OPERATOR, DATA_PLANE], san: "all.internal"}
`

func twoClusters() string { return static("pay-a", "127.0.0.1:1") + static("secret", "127.0.0.1:2") }

// TestViewerSeesGrantedClusters covers that other clusters seem not to exist.
func TestViewerSeesGrantedClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), twoClusters())
	s.served(ca)
	ask := func(name, path string) (int, string) { return s.tell(ca.named(name), "GET", path, "") }
	// Both clusters have history: an operator overrides their health.
	for _, cluster := range []string{"pay-a", "secret"} {
		if code, text := s.tell(ca.named("all.internal"), "POST", "/v1/overrides", `{"cluster": "`+cluster+`", "health": "UNHEALTHY", "reason": "x"}`); code != 200 {
			t.Fatal(code, text)
		}
	}
	asOf := "/v1/endpoints?asOf=" + time.Now().UTC().Format(time.RFC3339Nano)
	for _, path := range []string{"/v1/endpoints", asOf, "/v1/transitions", "/v1/transitions?pageSize=1&newestFirst=true", "/v1/availability", "/v1/clusters", "/v1/overrides"} {
		if code, text := ask("all.internal", path); code != 200 || !strings.Contains(text, "secret") {
			t.Errorf("%s of all: %d %s", path, code, text)
		}
		code, text := ask("pay.internal", path)
		if code != 200 || strings.Contains(text, "secret") || !strings.Contains(text, "pay-a") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for name, shown := range map[string]bool{"all.internal": true, "pay.internal": false} {
		if code, text := ask(name, "/v1/clusters"); code != 200 || strings.Contains(text, `"local"`) != shown {
			t.Errorf("the source of a cluster, for %s: %d %s", name, code, text)
		}
	}
	for _, path := range []string{"/v1/endpoints", "/v1/transitions", "/v1/availability", "/v1/watch"} {
		hidden, missing := "", ""
		for name, to := range map[string]*string{"secret": &hidden, "absent": &missing} {
			code, text := ask("pay.internal", path+"?cluster="+name)
			if *to = strings.ReplaceAll(text, name, "NAME"); code != 404 {
				t.Errorf("%s of %s: %d %s", path, name, code, text)
			}
		}
		if hidden != missing {
			t.Errorf("%s tells %q from %q", path, hidden, missing)
		}
	}
	for _, path := range []string{"/v1/clients", "/v1/audit", "/v1/sources", "/metrics"} {
		if code, text := ask("pay.internal", path); code != 403 || !strings.Contains(text, "all clusters") {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if code, text := ask("all.internal", path); code != 200 {
			t.Errorf("%s of all: %d %s", path, code, text)
		}
	}
	if _, err := statusv3.NewClientStatusDiscoveryServiceClient(s.as(ca, "pay.internal")).FetchClientStatus(t.Context(), &statusv3.ClientStatusRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("CSDS: %v", err)
	}
}

// TestWatchShowsGrantedClusters covers the list at the beginning and later changes.
func TestWatchShowsGrantedClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), twoClusters())
	s.served(ca)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.HTTPAddress()+"/v1/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.named("pay.internal"), DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	until := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), "secret") {
				t.Errorf("shown: %s", lines.Text())
			}
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the watch ended before %s: %v", what, lines.Err())
	}
	until("synced")
	control := hdsdv1.NewControlClient(s.as(ca, "all.internal"))
	for _, cluster := range []string{"secret", "pay-a"} { // what is not shown comes first
		if _, err := control.SetOverride(t.Context(), &hdsdv1.SetOverrideRequest{Cluster: cluster, Health: corev3.HealthStatus_DRAINING, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	until("DRAINING")
}

// TestOperatorChangesGrantedClusters covers that an operator cannot change other clusters.
func TestOperatorChangesGrantedClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), twoClusters())
	s.served(ca)
	control, ctx := hdsdv1.NewControlClient(s.as(ca, "pay.internal")), t.Context()
	override := func(cluster, zone string) error {
		_, err := control.SetOverride(ctx, &hdsdv1.SetOverrideRequest{Cluster: cluster, Locality: &corev3.Locality{Zone: zone}, Health: corev3.HealthStatus_DRAINING, Reason: "x"})
		return err
	}
	clear := func(cluster string, all bool) error {
		_, err := control.ClearOverrides(ctx, &hdsdv1.ClearOverridesRequest{Cluster: cluster, All: all})
		return err
	}
	_, freezing := control.Freeze(ctx, &hdsdv1.FreezeRequest{Reason: "x"})
	_, listing := hdsdv1.NewControlClient(s.as(ca, "drains.internal")).ListSources(ctx, &hdsdv1.ListSourcesRequest{})
	_, trusting := control.SetTrust(ctx, &hdsdv1.SetTrustRequest{Checker: "a", Reason: "x"})
	for what, c := range map[string]struct {
		err  error
		want codes.Code
	}{
		"its own":         {override("pay-a", ""), codes.OK},
		"another":         {override("secret", ""), codes.NotFound},
		"a zone":          {override("", "z1"), codes.PermissionDenied},
		"clear another":   {clear("secret", false), codes.NotFound},
		"clear all":       {clear("", true), codes.PermissionDenied},
		"clear all of it": {clear("pay-a", true), codes.OK},
		"freeze":          {freezing, codes.PermissionDenied},
		"trust":           {trusting, codes.PermissionDenied},
		"sources":         {listing, codes.PermissionDenied},
	} {
		if status.Code(c.err) != c.want {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
}

// TestPreviewCountsGrantedClusters covers the share that needs a confirmation: it is a share of the clusters
// that the caller may change.
func TestPreviewCountsGrantedClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), twoClusters())
	s.served(ca)
	for name, want := range map[string]uint32{"pay.internal": 1, "drains.internal": 1, "all.internal": 2} {
		would, err := hdsdv1.NewControlClient(s.as(ca, name)).PreviewOverride(t.Context(), &hdsdv1.SetOverrideRequest{
			Cluster: "pay-a", Health: corev3.HealthStatus_DRAINING, Reason: "x",
		})
		if err != nil || would.GetOverride().GetEndpoints() != 1 || would.GetTotalEndpoints() != want {
			t.Errorf("%s: %v, %v, want 1 of %d endpoints", name, would, err, want)
		}
	}
}

// TestDataPlaneGetsGrantedClusters covers streams, delta streams and fetches, by name and by wildcard.
func TestDataPlaneGetsGrantedClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), twoClusters())
	s.served(ca)
	plane := s.as(ca, "pay.internal")
	for _, typeURL := range []string{resourcev3.ClusterType, resourcev3.EndpointType} {
		for what, names := range map[string][]string{"everything": nil, "by name": {"pay-a", "secret"}} {
			if got := taken(t, plane, typeURL, names); !slices.Equal(got, []string{"pay-a"}) {
				t.Errorf("%s %s: %v", typeURL, what, got)
			}
			if got := taken(t, s.as(ca, "all.internal"), typeURL, names); len(got) != 2 {
				t.Errorf("%s %s, of all: %v", typeURL, what, got)
			}
		}
	}
	for path, body := range map[string]string{
		"/v3/discovery:clusters": `{}`, "/v3/discovery:endpoints": `{"resourceNames": ["pay-a", "secret"]}`,
	} {
		if code, text := s.tell(ca.named("pay.internal"), "POST", path, body); code != 200 || strings.Contains(text, "secret") || !strings.Contains(text, "pay-a") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	// Of what appears later it gets its own, and is not told of others.
	stream, first := follows(t, plane, resourcev3.ClusterType, nil)
	if len(first.GetResources()) != 1 {
		t.Fatalf("begins with %v", first)
	}
	more := static("secret-2", "127.0.0.1:2") + static("pay-b", "127.0.0.1:1")
	if _, err := s.Reload(configuration(t, dir, withGrants(grantsByCluster), twoClusters()+more)); err != nil {
		t.Fatal(err)
	}
	if next, err := stream.Recv(); err != nil || len(next.GetResources()) != 1 || next.GetResources()[0].GetName() != "pay-b" {
		t.Errorf("then gets %v, %v", next, err)
	}
	// Grants for other clusters end the stream, so that it begins again.
	wider := strings.Replace(grantsByCluster, `"pay-*"`, `"*"`, 1)
	if _, err := s.Reload(configuration(t, dir, withGrants(wider), twoClusters()+more)); err != nil {
		t.Fatal(err)
	}
	if next, err := stream.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "grants have changed") {
		t.Errorf("under other grants it gets %v, %v", next, err)
	}
	if got := taken(t, plane, resourcev3.ClusterType, nil); len(got) != 4 {
		t.Errorf("then it gets %v", got)
	}
}

// follows subscribes by delta, and acknowledges the first response.
func follows(t *testing.T, c *grpc.ClientConn, typeURL string, names []string) (discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, *discoveryv3.DeltaDiscoveryResponse) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c).DeltaAggregatedResources(ctx)
	if err == nil {
		if names == nil {
			names = []string{"*"}
		}
		err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node("d", ""), TypeUrl: typeURL, ResourceNamesSubscribe: names})
	}
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err == nil {
		err = stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: first.GetNonce()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream, first
}

// taken gives the resources that a data plane gets by delta, which are those that it gets
// by state of the world.
func taken(t *testing.T, c *grpc.ClientConn, typeURL string, names []string) (got []string) {
	t.Helper()
	_, first := follows(t, c, typeURL, names)
	for _, r := range first.GetResources() {
		got = append(got, r.GetName())
	}
	slices.Sort(got)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c).StreamAggregatedResources(ctx)
	if err == nil {
		err = stream.Send(&discoveryv3.DiscoveryRequest{Node: node("d", ""), TypeUrl: typeURL, ResourceNames: names})
	}
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, r := range answer.GetResources() {
		if len(r.GetValue()) > 20 { // an assignment that is no more than its name says that there is none
			whole++
		}
	}
	if whole != len(got) {
		t.Errorf("%s %v: by delta %v, by state of the world %d of %v", typeURL, names, got, whole, answer.GetResources())
	}
	return got
}

// TestGrantsOfReplicas covers a caller's limits when the replica that it asks is not the one that answers.
func TestGrantsOfReplicas(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	sites := map[string]*site{}
	authorities := map[string]*authority{}
	for _, id := range []string{"r1", "r2"} {
		dir := t.TempDir()
		authorities[id] = newAuthority(t, dir)
		replication := fmt.Sprintf("node_id: %s\nreplication: {etcd: {endpoints: [%q]}, peer: {address: \"127.0.0.1:0\"}}\n", id, server.URL)
		sites[id] = newSite(t, dir, withGrants(grantsByCluster)+replication, twoClusters())
		sites[id].served(authorities[id])
	}
	for _, cluster := range []string{"pay-a", "secret"} {
		if code, text := sites["r1"].tell(authorities["r1"].named("all.internal"), "POST", "/v1/overrides", `{"cluster": "`+cluster+`", "health": "UNHEALTHY", "reason": "x"}`); code != 200 {
			t.Fatal(code, text)
		}
	}
	for id, s := range sites {
		pay, all := authorities[id].named("pay.internal"), authorities[id].named("all.internal")
		s.eventually("both overrides on "+id, func() bool {
			_, text := s.tell(all, "GET", "/v1/overrides", "")
			return strings.Count(text, `"cluster"`) == 2
		})
		for _, path := range []string{"/v1/endpoints", "/v1/transitions", "/v1/clusters", "/v1/overrides", "/v1/overview", "/v1/status", "/v1/replicas", "/v1/events"} {
			if code, text := s.tell(pay, "GET", path, ""); code != 200 || strings.Contains(text, "secret") {
				t.Errorf("%s at %s: %d %s", path, id, code, text)
			}
		}
		for _, path := range []string{"/v1/clients", "/v1/audit"} {
			if code, text := s.tell(pay, "GET", path, ""); code != 403 {
				t.Errorf("%s at %s: %d %s", path, id, code, text)
			}
		}
		for _, order := range [][2]string{{"/v1/overrides", `{"cluster": "secret", "health": "HEALTHY", "reason": "x"}`}, {"/v1/freeze", `{"reason": "x"}`}} {
			if code, text := s.tell(pay, "POST", order[0], order[1]); code != 403 && code != 404 {
				t.Errorf("%v at %s: %d %s", order, id, code, text)
			}
		}
	}
}
