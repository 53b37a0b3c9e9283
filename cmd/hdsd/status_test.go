package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

func someStatus(items int) *hdsdv1.GetStatusResponse {
	s := &hdsdv1.GetStatusResponse{
		Version: "1.2.3", Ready: true,
		Clusters:  &hdsdv1.GetStatusResponse_Clusters{Ok: 90, SomeDown: 3, AllDown: uint32(items)},
		Endpoints: &hdsdv1.GetStatusResponse_Endpoints{Healthy: 988, Degraded: 2, Unhealthy: 14, Timeout: 3, Voters: []uint32{0, 1, 1, 1000}},
		Checkers:  &hdsdv1.GetStatusResponse_Checkers{Connected: 6, Lost: 1},

		Started: timestamppb.New(noon.Add(-26 * time.Hour)), DataPlanes: &hdsdv1.GetStatusResponse_DataPlanes{Synced: 40, Behind: 2, Refusing: 1},
		History: &hdsdv1.GetStatusResponse_History{Oldest: timestamppb.New(noon.Add(-90 * 24 * time.Hour)), Bytes: 123 << 20, Pending: 3},
		CheckersByZone: []*hdsdv1.GetStatusResponse_CheckersOfZone{
			{Zone: "/", Connected: 1}, {Zone: "eu/a", Connected: 3, Troubled: 1, Lost: 1}, {Zone: "eu/b", Connected: 2}, {Zone: "eu/c"}, {Zone: "eu/d"},
		},
		Sources: []*hdsdv1.GetStatusResponse_SourceState{
			{Name: "local", Clusters: 1, Endpoints: 4, Broken: items > 0},
			{Name: "mesh", Clusters: 93, Endpoints: 998, Problem: "nothing listens at 10.0.0.5:18000: is a management server running there? It did yesterday"},
		},
	}
	for i := range items {
		name := fmt.Sprint("web-", i)
		s.Attention = append(s.Attention, &hdsdv1.Attention{
			Kind: "CLUSTER_DOWN", Cluster: name, Text: "cluster " + name + ": 4 of 4 endpoints down", Command: "hdsd endpoints " + name, Since: timestamppb.New(noon),
		})
	}
	return s
}

// someOverview has what someStatus counts, and clusters that are well.
func someOverview(down int) (rows []*hdsdv1.GetOverviewResponse_Row) {
	for i := range down {
		rows = append(rows, &hdsdv1.GetOverviewResponse_Row{Cluster: fmt.Sprint("web-", i), State: "ALL_DOWN", Endpoints: 4, Down: 4})
	}
	return append(rows,
		&hdsdv1.GetOverviewResponse_Row{Cluster: "pay", State: "SOME_DOWN", Endpoints: 10, Down: 1}, &hdsdv1.GetOverviewResponse_Row{Cluster: "new", State: "UNOBSERVED", Endpoints: 1},
		&hdsdv1.GetOverviewResponse_Row{Cluster: "well", State: "OK", Endpoints: 10})
}

// TestStatus: one screen, whatever is wrong; --check fails while something is.
func TestStatus(t *testing.T) {
	f := newFake()
	address := serveFake(t, f)
	for _, c := range []struct {
		name  string
		items int
		check int
	}{{"well", 0, exitDone}, {"down", 2, exitFailed}, {"many", 100, exitFailed}} {
		f.status = someStatus(c.items)
		f.overview = someOverview(c.items)
		if c.name == "many" {
			f.status.Further, f.status.Ready, f.status.Frozen, f.status.Endpoints.Held = 50, false, true, 7
			f.status.Attention[0].Kind = "NO_CHECKERS"
			f.status.Attention[0].Text = "no checker is connected: nothing is checked, and health stays what it was last; connect a checker, or see why those that were connected are gone"
		}
		status, out, errors := hdsd(t, "status", "--server", address)
		if status != exitDone || errors != "" {
			t.Errorf("%s: exit status %d, %s", c.name, status, errors)
		}
		if lines := strings.Count(out, "\n"); lines > 40 {
			t.Errorf("%s: %d lines", c.name, lines)
		}
		for line := range strings.Lines(out) {
			if len(line) > 81 {
				t.Errorf("%s: longer than 80: %s", c.name, line)
			}
		}
		golden(t, "status-"+c.name+".txt", out)
		status, checked, errors := hdsd(t, "status", "--check", "--server", address)
		if status != c.check || checked != out || (errors != "") != (c.items > 0) {
			t.Errorf("%s --check: exit status %d, want %d, and says %q", c.name, status, c.check, errors)
		}
	}
	f.status = someStatus(1)
	if _, out, _ := hdsd(t, "status", "-o", "json", "--server", address); !strings.Contains(out, `"ready":true`) || !strings.Contains(out, `"halfDown":0`) {
		t.Errorf("as json: %s", out)
	}
	if status, _, _ := hdsd(t, "status", "-o", "csv", "--server", address); status != exitUsage {
		t.Errorf("as csv: exit status %d", status)
	}
}
