package coordinator

import (
	"context"
	"crypto/x509"
	"testing"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/peer"
	"hdsd/peer/access"
)

// granted is the permit of a caller for the clusters of a glob.
type granted struct {
	access.Permit
	clusters access.Clusters
}

// Clusters implements access.Permit.
func (g granted) Clusters() access.Clusters { return g.clusters }

// grantedWeb returns the context of a caller with a grant for the cluster web.
func grantedWeb(t *testing.T) context.Context {
	t.Helper()
	policy, problems := access.Compile(&configv1.Access{Grants: []*configv1.Grant{{San: "web.internal", Roles: []access.Role{access.Viewer}, ClusterNameGlob: "web"}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	authority := policy.Judge(access.Facts{Caller: peer.Caller{Identity: "web.internal", Names: []string{"web.internal"}, Leaf: &x509.Certificate{DNSNames: []string{"web.internal"}}}, Mutual: true})
	return access.With(t.Context(), granted{access.FromContext(t.Context()), authority.Clusters(access.Need{Role: access.Viewer})})
}
