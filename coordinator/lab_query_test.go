package coordinator

import (
	"context"

	"hdsd/api"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/query"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
)

// Ask implements query.Core on the test's goroutine.
func (l *lab) Ask(_ context.Context, question func(query.State)) error {
	question(view{l.core})
	return nil
}

// Done implements query.Core.
func (l *lab) Done() <-chan struct{} { return nil }

// backend answers queries about the lab.
func (l *lab) backend() *query.Backend {
	l.t.Helper()
	none, err := feed.Open(&configv1.Config{}, feed.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return query.New(query.Options{Core: l, HDS: hds.NewServer(hds.Options{}, sink{l.core}), Feed: none, Process: func() query.Process { return query.Process{Version: "1.2.3"} }})
}

// asked is what /v1/endpoints shows of an address.
func (l *lab) asked(cluster, address string) api.EndpointHealth {
	l.t.Helper()
	found, _, err := l.backend().Endpoints(l.t.Context(), api.EndpointQuery{Cluster: cluster, Address: address, Limit: 1})
	if err != nil || len(found) != 1 {
		l.t.Fatalf("%s %s is not there: %v", cluster, address, err)
	}
	return found[0]
}

// describe is what /v1/clusters shows of a cluster.
func (l *lab) describe(name string) api.Cluster {
	l.t.Helper()
	all, _, err := l.backend().Clusters(l.t.Context(), api.ClusterQuery{Limit: 1000})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	l.t.Fatalf("there is no cluster %s", name)
	return api.Cluster{}
}
