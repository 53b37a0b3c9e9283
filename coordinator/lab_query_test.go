package coordinator

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hdsd/api"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/query"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds"
)

// Ask implements query.Core on the goroutine of the test.
func (l *lab) Ask(_ context.Context, question func(query.State)) error {
	question(view{l.core})
	return nil
}

// Snapshot implements query.Core. It makes an incremental snapshot, and compares it with a full one.
func (l *lab) Snapshot(ctx context.Context) (*query.Snapshot, error) {
	l.t.Helper()
	made, err := newer(ctx, l.core.snapshots, l.core.updateSnapshot)
	if _, isTest := l.t.(*testing.T); isTest {
		fresh := query.NewSnapshots()
		all, _ := newer(ctx, fresh, func() { fresh.Step(view{l.core}) })
		if diff := cmp.Diff(rowsOf(all), rowsOf(made)); diff != "" {
			l.t.Fatalf("the snapshot is not as one that looks at everything:\n%s", diff)
		}
	}
	return made, err
}

// NextSnapshot implements query.Core.
func (l *lab) NextSnapshot(ctx context.Context) (*query.Snapshot, error) { return l.Snapshot(ctx) }

// newer makes a snapshot.
func newer(ctx context.Context, s *query.Snapshots, step func()) (made *query.Snapshot, err error) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		made, err = s.Next(ctx, nil) // however busy the machine is
	}()
	for {
		select {
		case <-s.Due():
			step()
		case <-over:
			return made, err
		}
	}
}

// rowsOf returns a text for each cluster of a snapshot.
func rowsOf(s *query.Snapshot) (all []string) {
	rows := reflect.ValueOf(s).Elem().FieldByName("rows")
	for i := range rows.Len() {
		all = append(all, fmt.Sprintf("%+v", rows.Index(i).Elem()))
	}
	return all
}

// Done implements query.Core.
func (l *lab) Done() <-chan struct{} { return nil }

// backend answers queries about the lab.
func (l *lab) backend() *query.Backend { return l.backendOn(l) }

// backendOn answers queries with the core of the lab.
func (l *lab) backendOn(core query.Core) *query.Backend {
	l.t.Helper()
	none, err := feed.Open(&configv1.Config{}, feed.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return query.New(query.Options{Core: core, Outside: queryCore{l.core}.Outside, Version: queryCore{l.core}.Version, HDS: hds.NewServer(hds.Options{}, sink{l.core}), Feed: none, Process: func() query.Process { return query.Process{Version: "1.2.3"} }})
}

// queryEndpoint returns the row of an address in /v1/endpoints.
func (l *lab) queryEndpoint(cluster, address string) api.EndpointHealth {
	l.t.Helper()
	found, _, err := l.backend().Endpoints(l.t.Context(), api.EndpointQuery{Cluster: cluster, Address: address, Limit: 1})
	if err != nil || len(found) != 1 {
		l.t.Fatalf("%s %s is not there: %v", cluster, address, err)
	}
	return found[0]
}

// describe returns the row of a cluster in /v1/clusters.
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
