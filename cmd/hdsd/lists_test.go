package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/table"
)

// bigFake has names as fleets have them, and so many endpoints.
func bigFake(endpoints int) *fake {
	f := newFake()
	f.endpoints[1].Cluster, f.endpoints[1].Address = "payments-api", "192.168.100.101:8080"
	f.endpoints[1].Locality = &corev3.Locality{Region: "eu-central-1", Zone: "eu-central-1a"}
	f.endpoints[1].Held = true
	for i := range endpoints - len(f.endpoints) {
		e := proto.CloneOf(f.endpoints[0])
		e.Address = fmt.Sprintf("10.0.1.%d:8080", i+1)
		f.endpoints = append(f.endpoints, e)
	}
	f.status = someStatus(0)
	return f
}

// TestListsFitOn80Columns: a line each, and nothing wraps, also where nobody looks.
func TestListsFitOn80Columns(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	address := serveFake(t, bigFake(5))
	for name, want := range map[string]int{"endpoints": 5, "history": 2, "availability": 2, "clusters": 4, "checkers": 2, "clients": 3, "incidents": 3, "history --kind all": 5} {
		status, out, errors := hdsd(t, append(strings.Fields(name), "--server", address)...)
		if status != exitDone || strings.Count(out, "\n") != want+1 {
			t.Errorf("%s: exit status %d, want %d rows; %s\n%s", name, status, want, errors, out)
		}
		for line := range strings.Lines(out) {
			if table.TextWidth(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s has a line of %d columns: %s", name, table.TextWidth(line)-1, line)
			}
		}
	}
	_, out, _ := hdsd(t, "endpoints", "--server", address)
	if lines := strings.Split(out, "\n"); !strings.Contains(lines[1], "UNHEALTHY") || !strings.Contains(lines[1], "HELD") || !strings.Contains(lines[2], "UNKNOWN") {
		t.Errorf("the worst do not come first:\n%s", out)
	}
	if _, out, _ := hdsd(t, "endpoints", "--limit", "1", "--server", address); strings.Count(out, "\n") != 2 || !strings.Contains(out, "UNHEALTHY") {
		t.Errorf("the worst one:\n%s", out)
	}
	t.Setenv("COLUMNS", "200")
	_, wide, _ := hdsd(t, "endpoints", "-o", "wide", "--server", address)
	if !strings.Contains(wide, "OBSERVATIONS") || !strings.Contains(wide, "checker-2=TIMEOUT") {
		t.Errorf("-o wide shows\n%s", wide)
	}
}

// TestTheWorstClientsAndIncidentsComeFirst in tables; for programs, they stay in the order of names and times.
func TestTheWorstClientsAndIncidentsComeFirst(t *testing.T) {
	address := serveFake(t, newFake())
	for command, want := range map[string]string{
		"clients": "dp-1 dp-2 checker-1", "clients --limit 1": "dp-1", "clients --unhealthy": "dp-1 dp-2", "clients -o csv": "checker-1 dp-1 dp-2",
		"incidents": "dkz1x dkz1y dkz1w", "incidents --limit 2": "dkz1x dkz1y", "incidents --open": "dkz1x", "incidents -o csv": "dkz1y dkz1x dkz1w",
	} {
		status, out, errors := hdsd(t, append(strings.Fields(command), "--server", address)...)
		if got := strings.Join(idsIn.FindAllString(out, -1), " "); status != exitDone || got != want {
			t.Errorf("%s: %s, want %s; exit status %d, %s", command, got, want, status, errors)
		}
	}
}

// idsIn finds the ids of the fake's clients and incidents.
var idsIn = regexp.MustCompile(`\b(dkz1[wxy]|dp-\d|checker-1)\b`)

// TestWorstFirstIsComplete though health changes between its two questions, and says what fails.
func TestWorstFirstIsComplete(t *testing.T) {
	unhealthy, healthy := corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_HEALTHY
	endpoint := func(address string, is corev3.HealthStatus) *hdsdv1.Endpoint {
		return &hdsdv1.Endpoint{Address: address, Health: is}
	}
	list := func(bad bool) lister[*hdsdv1.Endpoint] {
		return func(token string, _ int32) ([]*hdsdv1.Endpoint, string, error) {
			switch {
			case bad:
				return []*hdsdv1.Endpoint{endpoint("a", corev3.HealthStatus_TIMEOUT), endpoint("b", unhealthy)}, "", nil
			case token == "":
				return []*hdsdv1.Endpoint{endpoint("a", healthy), endpoint("b", unhealthy)}, "1", nil // a has recovered
			}
			return []*hdsdv1.Endpoint{endpoint("c", unhealthy), endpoint("d", healthy)}, "", nil // c has gone down
		}
	}
	all, err := collect(worstFirst(0, list, endpointKey, worse))
	got := ""
	for _, e := range all {
		got += e.GetAddress()
	}
	if got != "bacd" || err != nil {
		t.Errorf("lists %s, %v", got, err)
	}
}

// TestNotCheckedCountsEndpoints: what nobody checks as a whole counts with all its endpoints.
func TestNotCheckedCountsEndpoints(t *testing.T) {
	whole := []*hdsdv1.Quarantine{{Address: "10.0.0.1:80", Reason: "no IP address"}, {Reason: "no checker is able to"}}
	for _, test := range []struct {
		cluster *hdsdv1.Cluster
		want    string
	}{
		{&hdsdv1.Cluster{Endpoints: 4, Quarantined: whole}, "4"},
		{&hdsdv1.Cluster{Endpoints: 4, Quarantined: whole[:1]}, "1"},
		{&hdsdv1.Cluster{Quarantined: whole[1:]}, "1"},
		{&hdsdv1.Cluster{Endpoints: 4}, "0"},
	} {
		column := slices.Index(clustersHeader, "exclusions")
		if cells := clusterCells(test.cluster); cells[column] != test.want {
			t.Errorf("NOT CHECKED of %v is %s, want %s", test.cluster, cells[column], test.want)
		}
	}
}
