package query

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/peer/access"
)

// TestACoordinatorAlone is the one replica, and leads.
func TestACoordinatorAlone(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		started := time.Now()
		b := New(Options{ID: "hdsd-1", HDS: w.hds, EDS: w.eds, Process: func() Process { return Process{Version: "1.2.3", Started: started} }})
		w.answer(w.subscribe(t.Context(), "dp-1"), "")
		w.check(t.Context(), "checker-1")
		replicas, epoch, err := b.Replicas(t.Context())
		want := []api.Replica{{ID: "hdsd-1", Self: true, Leader: true, Connected: true, Version: "1.2.3", Checkers: 1, DataPlanes: 1, Since: started}}
		if err != nil || epoch != 0 || !slices.Equal(replicas, want) {
			t.Errorf("%+v, epoch %d, %v", replicas, epoch, err)
		}
	})
}

// TestReplicasAreThoseOfTheOption, whose own row gets the counts of this one.
func TestReplicasAreThoseOfTheOption(t *testing.T) {
	b := New(Options{HDS: hds.NewServer(hds.Options{}, deaf{}), Replicas: func(context.Context) ([]api.Replica, int64, error) {
		return []api.Replica{{ID: "hdsd-1", Checkers: 7}, {ID: "hdsd-2", Self: true, Checkers: 7}}, 42, nil
	}})
	replicas, epoch, err := b.Replicas(t.Context())
	if err != nil || epoch != 42 || len(replicas) != 2 || replicas[0].Checkers != 7 || replicas[1].Checkers != 0 {
		t.Errorf("%+v, epoch %d, %v", replicas, epoch, err)
	}
	failing := errors.New("etcd is away")
	b.Options.Replicas = func(context.Context) ([]api.Replica, int64, error) { return nil, 0, failing }
	if _, _, err := b.Replicas(t.Context()); !errors.Is(err, failing) {
		t.Error(err)
	}
}

// TestTroublesOfReplicasNeedAttention; reasons may name what only some may see.
func TestTroublesOfReplicasNeedAttention(t *testing.T) {
	b := backendOf(t, newFake())
	lost := []attention.Named{{Name: "hdsd-3", Reason: "secret"}}
	b.Process = func() Process {
		return Process{Replication: attention.Replication{NoLeader: attention.Named{Reason: "secret"}, EngineLost: attention.Named{Reason: "secret"}, Lost: lost}}
	}
	for limited, ctx := range map[bool]context.Context{false: t.Context(), true: access.With(t.Context(), some{})} {
		status, err := b.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		kinds := ""
		for _, a := range status.Attention {
			if kinds += a.Kind + " "; strings.Contains(a.Text, "secret") == limited {
				t.Errorf("limited %t: %s", limited, a.Text)
			}
		}
		if kinds != "NO_LEADER ENGINE_LOST REPLICA_LOST " {
			t.Errorf("limited %t: %s", limited, kinds)
		}
	}
	if lost[0].Reason != "secret" {
		t.Error("hiding changes what is shared")
	}
}

// some permits the clusters of no name.
type some struct{ access.Permit }

func (some) Clusters() access.Clusters { return access.Clusters{} }

// TestACheckerOfAnotherReplica has the stream that this one is told of.
func TestACheckerOfAnotherReplica(t *testing.T) {
	f, reported := newFake(), time.Now()
	elsewhere := Checker{Stream: &hds.State{Connected: true, Specifier: hds.Synced, LastReport: reported}}
	elsewhere.Checker = api.Checker{Checker: health.Checker{ID: "a"}, Connected: true, Replica: "hdsd-2"}
	f.checkers = []Checker{elsewhere, {Checker: api.Checker{Checker: health.Checker{ID: "b"}}}}
	found, err := backendOf(t, f).Checkers(t.Context())
	if err != nil || found[0].Specifier != hds.Synced || !found[0].LastReport.Equal(reported) || found[0].Replica != "hdsd-2" || found[1].Specifier != hds.NotSent {
		t.Errorf("%+v, %v", found, err)
	}
}
