package coordinator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hdsd/coordinator/attention"
	"hdsd/log/etcd"
	"hdsd/notify"
	"hdsd/replica/clusters"
)

// TestReplicasNotify of each trouble, and of none where there is one coordinator alone.
func TestReplicasNotify(t *testing.T) {
	if found := replicaTroubles(&attention.Replication{}); len(found) > 0 {
		t.Errorf("a coordinator alone has %v", found)
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cause := attention.Named{Reason: "why", Since: noon}
	found := replicaTroubles(&attention.Replication{NoLeader: cause, EngineLost: cause, Lost: []attention.Named{{Name: "hdsd-2", Reason: "why", Since: noon}, {Name: "hdsd-3", Reason: "why", Since: noon}}})
	want := []notify.Key{{Kind: notify.NoLeader}, {Kind: notify.EngineLost}, {Kind: notify.ReplicaLost, Name: "hdsd-2"}, {Kind: notify.ReplicaLost, Name: "hdsd-3"}}
	if len(found) != len(want) {
		t.Fatalf("%v", found)
	}
	for i, c := range found {
		if c.Key != want[i] || !c.Since.Equal(noon) || c.Command != "hdsd replicas" || !strings.Contains(c.Text, "why") {
			t.Errorf("%+v, want %v", c, want[i])
		}
	}
}

// TestLastingProblems are those that an operator has to know although etcd answers.
func TestLastingProblems(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	problems := []etcd.Problem{{Task: etcd.TaskView, Since: noon.Add(problemPatience), Err: etcd.ErrUnavailable}, {Task: etcd.TaskRegister, Since: noon, Err: etcd.ErrDuplicate}}
	if found := lasting(problems, noon.Add(problemPatience-1)); found != (attention.Named{}) {
		t.Errorf("at first: %+v", found)
	}
	if found := lasting(problems, noon.Add(problemPatience)); found.Reason != etcd.ErrDuplicate.Error() || !found.Since.Equal(noon) {
		t.Errorf("later: %+v", found)
	}
}

// TestLastingDifferences are those of which an operator should know, with the clusters.
func TestLastingDifferences(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	found := differing([]clusters.Difference{
		{Replica: "hdsd-2", Count: 2, Names: []string{"a", "b"}, Since: noon}, {Replica: "hdsd-3", Count: 9, Names: []string{"a", "b", "c"}, Since: noon},
		{Replica: "hdsd-4", Count: 1, Names: []string{"a"}, Since: noon.Add(1)},
	}, noon.Add(differencePatience))
	want := []attention.Named{{Name: "hdsd-2", Reason: "a, b", Since: noon}, {Name: "hdsd-3", Reason: "a, b, c and 6 more", Since: noon}}
	if !slices.Equal(found, want) {
		t.Errorf("%+v", found)
	}
}
