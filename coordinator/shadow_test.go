package coordinator

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"

	"hdsd/api"
	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/machine"
	"hdsd/source/sample"
)

// reload applies changed rules.
func (l *lab) reload(change func(*configv1.Config)) {
	change(l.rules)
	l.intake.restart(l.sets, catalog.NewRules(l.rules))
}

// shadowing returns a policy with a mode for a glob.
func shadowing(glob string, mode configv1.Mode) *configv1.Policy {
	return &configv1.Policy{ClusterNameGlob: glob, Mode: &mode}
}

// saying sets the health of the first endpoint in the source.
func saying(k *sourceCluster, status corev3.HealthStatus) *sourceCluster {
	sample.Change(k, func(a *endpointv3.ClusterLoadAssignment) { a.Endpoints[0].LbEndpoints[0].HealthStatus = status })
	return k
}

// wantTold asks for what is published of an address in place of its verdict;
// an empty reason stands for nothing.
func (l *lab) wantTold(cluster, address string, verdict, told health.Status, reason string) {
	l.t.Helper()
	shown := l.queryEndpoint(cluster, address)
	if shown.Verdict.Status != verdict {
		l.t.Errorf("%s %s: the verdict is %v, want %v", cluster, address, shown.Verdict.Status, verdict)
	}
	l.wantPublished(l.core.Rulings.Cluster(cluster).Source.ServiceName, address, told)
	switch {
	case shown.Published == nil && reason != "":
		l.t.Errorf("%s %s: nothing is said to be published, want %v: %s", cluster, address, told, reason)
	case shown.Published != nil && (shown.Published.Status != told || shown.Published.Reason != reason):
		l.t.Errorf("%s %s: %+v is said to be published, want %v: %s", cluster, address, *shown.Published, told, reason)
	}
}

// wantOwnChecks tells whether data planes get a cluster with its own checks.
func (l *lab) wantOwnChecks(cluster string, want bool) {
	l.t.Helper()
	got, given := l.clusters[cluster], l.core.Rulings.Cluster(cluster).Source.Message()
	if want && !proto.Equal(got, given) {
		l.t.Errorf("%s goes out as %v, want it as it came", cluster, got)
	}
	if !want && len(got.GetHealthChecks()) > 0 {
		l.t.Errorf("%s goes out with its own health checks", cluster)
	}
}

// wantProbed tells whether the data planes of a cluster that hdsd decides go on checking it.
func (l *lab) wantProbed(cluster string, want bool) {
	l.t.Helper()
	if got := l.clusters[cluster]; got.GetType() != clusterv3.Cluster_EDS || len(got.GetHealthChecks()) > 0 != want {
		l.t.Errorf("%s goes out as %v, want it with its health checks: %t", cluster, got, want)
	}
}

const (
	a1, a2 = "10.0.0.1:80", "10.0.0.2:80"
	up     = health.Healthy
	down   = health.Unhealthy
	never  = health.Unknown
)

func TestShadowedClusterIsRecordedOnly(t *testing.T) {
	l := newLab(t)
	l.rules.Policies = []*configv1.Policy{shadowing("pay", configv1.Mode_SHADOW)}
	l.serve(web("web", a1), saying(web("pay", a2), corev3.HealthStatus_DRAINING))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.truth[a1], l.truth[a2] = down, down
	l.pass(3 * report)
	l.wantTransitions(4)
	l.wantTold("web", a1, down, down, "")
	l.wantTold("pay", a2, down, health.Draining, "shadow: the source says DRAINING")
	l.wantOwnChecks("web", false)
	l.wantOwnChecks("pay", true)
	if l.describe("pay").Mode != api.Shadow || l.describe("web").Mode != api.Publish {
		t.Error("the modes are others")
	}

	// Back again: nobody has to check anew.
	sent := l.sent["checker-a"]
	l.reload(func(c *configv1.Config) { c.Policies = nil })
	l.wantTold("pay", a2, down, down, "")
	l.wantOwnChecks("pay", false)
	l.reload(func(c *configv1.Config) {
		c.Mode, c.Policies = configv1.Mode_SHADOW, []*configv1.Policy{shadowing("web", configv1.Mode_PUBLISH)}
	})
	l.wantTold("pay", a2, down, health.Draining, "shadow: the source says DRAINING")
	l.wantTold("web", a1, down, down, "")
	l.pass(10 * report)
	l.wantTransitions(4)
	if l.sent["checker-a"] != sent {
		t.Errorf("a change of mode sent %d specifiers", l.sent["checker-a"]-sent)
	}
}

// TestShadowedCountsCheckedClusters covers clusters without checks, which have no verdicts to withhold.
func TestShadowedCountsCheckedClusters(t *testing.T) {
	l := newLab(t)
	l.rules.Mode = configv1.Mode_SHADOW
	plain := web("plain", a2)
	plain.HealthChecks = nil
	l.serve(web("web", a1), plain)
	for _, step := range []struct {
		clusters []*sourceCluster
		want     float64
	}{{[]*sourceCluster{web("web", a1), plain}, 1}, {[]*sourceCluster{plain}, 0}, {[]*sourceCluster{web("web", a1), web("plain", a2)}, 2}, {nil, 0}} {
		l.setClusters(step.clusters...)
		if got := testutil.ToFloat64(l.core.metrics.rulings.shadowed); got != step.want {
			t.Errorf("of %d clusters %g count, want %g", len(step.clusters), got, step.want)
		}
	}
}

func TestSharedServiceNameCountsPublishedClusters(t *testing.T) {
	shared := func(name string) *sourceCluster {
		k := withPath(name, "/"+name, a1)
		k.ServiceName = "shared"
		sample.Change(k, func(a *endpointv3.ClusterLoadAssignment) { a.ClusterName = "shared" })
		return k
	}
	l := newLab(t)
	l.serve(shared("one"), shared("two"))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.voteAll("one", a1, down)
	l.wantTold("one", a1, down, down, "")
	l.wantTold("two", a1, up, down, "cluster one, which has the same service name, has it UNHEALTHY")
	l.reload(func(c *configv1.Config) { c.Policies = []*configv1.Policy{shadowing("one", configv1.Mode_SHADOW)} })
	l.wantTold("two", a1, up, up, "")
	l.wantTold("one", a1, down, up, "shadow: cluster two, which has the same service name, has it HEALTHY")
	l.reload(func(c *configv1.Config) { c.Policies = []*configv1.Policy{shadowing("*", configv1.Mode_SHADOW)} })
	l.wantTold("one", a1, down, never, "shadow: the source says UNKNOWN")
	l.reload(func(c *configv1.Config) { c.Policies = []*configv1.Policy{shadowing("two", configv1.Mode_SHADOW)} })
	l.wantTold("two", a1, up, down, "shadow: cluster one, which has the same service name, has it UNHEALTHY")
}

// TestOriginalClusterOmitsRejectedEndpoints covers a cluster in the form of its source, without the endpoints
// that no Envoy takes.
func TestOriginalClusterOmitsRejectedEndpoints(t *testing.T) {
	for _, checked := range []bool{true, false} {
		l := newLab(t)
		l.rules.Mode = configv1.Mode_SHADOW
		k := web("web", a1, "db.internal:80")
		if !checked {
			k.Config.HealthChecks, k.HealthChecks = nil, nil
		}
		l.serve(k)
		endpoints := l.clusters["web"].GetLoadAssignment().GetEndpoints()
		if len(endpoints) != 1 || len(endpoints[0].GetLbEndpoints()) != 1 || len(l.clusters["web"].GetHealthChecks()) != len(k.HealthChecks) {
			t.Errorf("checked %t: the cluster goes out as %v", checked, l.clusters["web"])
		}
	}
}

// voteAll makes all checkers report one status of an endpoint.
func (l *lab) voteAll(cluster, address string, status health.Status) {
	id := l.idOf(keyOf(cluster, address))
	for _, k := range l.checkers {
		l.step(machine.Reported{Checker: k.ID, Votes: []health.Vote{{Endpoint: id, Status: status}}})
	}
	l.step(machine.Tick{})
}

func TestPublishedExplainsSourceHealth(t *testing.T) {
	l := newLab(t)
	l.rules.Verdict.InitialHealth = corev3.HealthStatus_UNHEALTHY
	plain := saying(web("plain", a2), corev3.HealthStatus_DRAINING)
	plain.HealthChecks, plain.Config.HealthChecks = nil, nil
	l.serve(saying(web("web", a1, a2), corev3.HealthStatus_DRAINING), plain)
	l.wantTold("web", a2, never, down, "there is no verdict yet, and initial_health is UNHEALTHY")
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(settle + 10*report)
	l.wantTold("web", a1, up, health.Draining, "the source says DRAINING")
	l.wantTold("web", a2, up, up, "")
	l.wantTold("plain", a2, never, health.Draining, "the source says DRAINING")
	if got := l.queryEndpoint("plain", a2).Verdict.Reason; !strings.HasPrefix(got, "not checked") {
		t.Error(got)
	}
}
