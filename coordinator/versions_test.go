package coordinator

import (
	"crypto/x509"
	"slices"
	"testing"

	"hdsd/access"
	"hdsd/api"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/caller"
	"hdsd/source"
)

// granted is the permit of a caller that may see the clusters of a glob.
type granted struct {
	access.Permit
	clusters access.Clusters
}

// Clusters implements access.Permit.
func (g granted) Clusters() access.Clusters { return g.clusters }

// TestACallerSeesAllVersionsOfItsClusters: whatever hdsd calls a version, and no cluster whose name
// only looks like one.
func TestACallerSeesAllVersionsOfItsClusters(t *testing.T) {
	l := newLab(t)
	version := func(own, outside string) *source.Cluster {
		k := web(outside, "10.0.0.1:80")
		k.Name, k.ServiceName = own, own
		return k
	}
	l.serve(web("web", "10.0.0.1:80"), version("web#2", "web"), version("web#3", "web#3"), version("db#2", "db"))
	policy, problems := access.Compile(&configv1.Access{Grants: []*configv1.Grant{{San: "web.internal", Roles: []access.Role{access.Viewer}, ClusterNameGlob: "web"}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	authority := policy.Judge(access.Facts{Caller: caller.Caller{Identity: "web.internal", Names: []string{"web.internal"}, Leaf: &x509.Certificate{DNSNames: []string{"web.internal"}}}, Mutual: true})
	ctx := access.With(t.Context(), granted{access.FromContext(t.Context()), authority.Clusters(access.Need{Role: access.Viewer})})
	names := func() (all []string) {
		t.Helper()
		clusters, _, err := l.backend().Clusters(ctx, api.ClusterQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range clusters {
			all = append(all, clusters[i].Name)
		}
		found, _, err := l.backend().Endpoints(ctx, api.EndpointQuery{Limit: 10})
		if err != nil || len(found) != len(clusters) {
			t.Errorf("%d endpoints of %v, %v", len(found), all, err)
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"web", "web#2"}) {
		t.Errorf("it sees %v", got)
	}
	l.say(web("web", "10.0.0.1:80"), version("web#2", "web#2"))
	if got := names(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("web#2 is another cluster now, and it sees %v", got)
	}
}
