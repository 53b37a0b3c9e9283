package rest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// lists are the paths of what is paged.
var lists = []string{"endpoints", "transitions", "availability", "clusters", "checkers", "clients"}

// TestFieldsThereAndAbsent looks at what is promised to be absent, and when.
func TestFieldsThereAndAbsent(t *testing.T) {
	s, up, down := newFleet(t)
	has := func(o any, want string, not ...string) {
		t.Helper()
		o1, _ := o.(map[string]any)
		for name := range strings.FieldsSeq(want) {
			if _, ok := o1[name]; !ok {
				t.Errorf("%s is absent in %v", name, o)
			}
		}
		for _, name := range not {
			if value, ok := o1[name]; ok {
				t.Errorf("%s is %v in %v", name, value, o)
			}
		}
	}
	one := func(path string) map[string]any {
		t.Helper()
		all := items(s.get(path))
		if len(all) != 1 {
			t.Fatalf("%s: %v", path, all)
		}
		return all[0].(map[string]any)
	}
	sick := one("/v1/endpoints?cluster=web&address=" + down)
	has(sick, "cluster address locality health since reason observations", "published", "publishedReason")
	has(sick["locality"], "region zone subZone")
	if votes := sick["observations"].([]any); len(votes) != 3 {
		t.Errorf("votes %v", votes)
	} else {
		has(votes[0], "checker status httpStatusCode time disbelieved")
	}
	for _, vote := range items(map[string]any{"o": one("/v1/endpoints?cluster=tcp&address=" + up)["observations"]}) {
		has(vote, "checker status time", "httpStatusCode")
	}
	has(one("/v1/endpoints?cluster=unchecked"), "cluster address health reason observations", "since")
	has(one("/v1/transitions?cluster=web&address="+down), "time cluster address locality from to reason observations")
	has(one("/v1/availability?cluster=web&address="+down), "healthySeconds unhealthySeconds unknownSeconds degradedSeconds drainingSeconds healthyRatio transitions")
	has(one("/v1/availability?cluster=unchecked"), "unknownSeconds transitions", "healthyRatio")
	if plain := s.clusterNamed("unchecked"); plain["checked"] != false || len(plain["quarantined"].([]any)) != 0 {
		t.Errorf("without a health check: %v", plain)
	}
	if odd := s.clusterNamed("aside"); odd["quarantined"].([]any)[0].(map[string]any)["address"] != "db.internal:5432" {
		t.Errorf("quarantined: %v", odd)
	}
	web := s.clusterNamed("web")
	if web["endpoints"] != 3.0 || web["healthy"] != 2.0 || web["unhealthy"] != 1.0 || web["unknown"] != 0.0 || web["source"] != "local" {
		t.Errorf("counted %v", web)
	}
	// The same address in two localities is two endpoints.
	if twice := items(s.get("/v1/endpoints?cluster=web&address=" + up)); len(twice) != 2 {
		t.Errorf("%v", twice)
	}
	if ip6 := one("/v1/endpoints?cluster=tcp&address=" + url.QueryEscape("[::1]:1")); ip6["health"] != "UNHEALTHY" && ip6["health"] != "TIMEOUT" {
		t.Errorf("%v", ip6)
	}
}

func (s *site) clusterNamed(name string) map[string]any {
	s.t.Helper()
	for _, c := range items(s.get("/v1/clusters")) {
		if c := c.(map[string]any); c["name"] == name {
			return c
		}
	}
	s.t.Fatalf("no cluster %s", name)
	return nil
}

func TestTimesOfTransitions(t *testing.T) {
	s, _, down := newFleet(t)
	only := "cluster=web&address=" + down
	all := items(s.get("/v1/transitions?" + only))
	first := all[0].(map[string]any)
	if first["from"] != "UNKNOWN" || first["to"] != "UNHEALTHY" {
		t.Errorf("the first verdict is %v", first)
	}
	at := first["time"].(string)
	if found := items(s.get("/v1/transitions?" + only + "&startTime=" + at)); len(found) != 1 {
		t.Error("startTime is not included")
	}
	if found := items(s.get("/v1/transitions?" + only + "&endTime=" + at)); len(found) != 0 {
		t.Error("endTime is included")
	}
	oldest, newest := items(s.get("/v1/transitions")), items(s.get("/v1/transitions?newestFirst=true"))
	slices.Reverse(newest)
	if fmt.Sprint(oldest) != fmt.Sprint(newest) {
		t.Error("newest first is not the other way round")
	}
	then := items(s.get("/v1/endpoints?asOf=2001-01-01T00:00:00Z&" + only))[0].(map[string]any)
	if reason, _ := then["reason"].(string); then["health"] != "UNKNOWN" || !strings.Contains(reason, "history began") {
		t.Errorf("before the history: %v", then)
	}
	past, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	later := items(s.get("/v1/endpoints?asOf=" + at + "&" + only))[0].(map[string]any)
	earlier := items(s.get("/v1/endpoints?asOf=" + past.Add(-1).Format(time.RFC3339Nano) + "&" + only))[0].(map[string]any)
	if later["health"] != "UNHEALTHY" || earlier["health"] != "UNKNOWN" {
		t.Errorf("as of the transition %v, before it %v", later, earlier)
	}
}

// TestPages: each list by single items is the whole of it, though clusters come
// in front of and behind what was shown, and others go.
func TestPages(t *testing.T) {
	s, up, _ := newFleet(t)
	for list, least := range map[string]int{"endpoints": 7, "transitions": 5, "availability": 7, "checkers": 3, "clients": 4, "clusters": 4} {
		seen := s.pages("/v1/"+list, func(int) {})
		if once := slices.Compact(slices.Sorted(slices.Values(seen))); len(once) != len(seen) || len(seen) < least {
			t.Errorf("%s: %d items, of which %d differ; at least %d are there: %v", list, len(seen), len(once), least, seen)
		}
	}
	seen := s.pages("/v1/clusters", func(page int) { // aside, tcp, unchecked, web
		if page == 2 {
			s.say(static("a-new", tcpCheck, up), static("web", httpCheck, up), static("z-new", tcpCheck, up), aside)
			s.eventually("the new clusters", func() bool { return strings.Contains(fmt.Sprint(items(s.get("/v1/clusters"))), "a-new") })
		}
	})
	if want := []string{"aside", "tcp", "web", "z-new"}; !slices.Equal(seen, want) {
		t.Errorf("while clusters came and went: %v, want %v", seen, want)
	}
	// What was known once is, and that it is gone.
	s.eventually("the history of a cluster that is gone to end", func() bool {
		gone := items(s.get("/v1/transitions?cluster=tcp"))
		return len(gone) == 4 && gone[3].(map[string]any)["to"] == "UNKNOWN"
	})
	if gone := items(s.get("/v1/endpoints?cluster=tcp")); len(gone) != 0 {
		t.Errorf("a cluster that is gone has %v", gone)
	}
}

// pages reads a list item by item, and tells what it has shown.
func (s *site) pages(path string, before func(page int)) (seen []string) {
	s.t.Helper()
	for token, page := "", 0; ; page++ {
		before(page)
		answer := s.get(path + "?pageSize=1&pageToken=" + url.QueryEscape(token))
		for _, item := range items(answer) {
			seen = append(seen, identity(item))
		}
		if token = answer["nextPageToken"].(string); token == "" {
			return seen
		}
	}
}

// identity is what tells items of a list apart.
func identity(item any) string {
	o := item.(map[string]any)
	var parts []string
	for _, key := range []string{"id", "kind", "typeUrl", "name", "cluster", "address", "locality", "time"} {
		if o[key] != nil {
			parts = append(parts, fmt.Sprint(o[key]))
		}
	}
	return strings.Join(parts, " ")
}

func TestBadPages(t *testing.T) {
	s, up, _ := newFleet(t)
	tokens := map[string]string{}
	for _, list := range lists {
		tokens[list] = s.get("/v1/" + list + "?pageSize=1")["nextPageToken"].(string)
		for _, size := range []string{"-1", "10001", "many", "1.5", "1e3", "0x10", "2147483648", "%20"} {
			s.refused("/v1/"+list+"?pageSize="+size, http.StatusBadRequest)
		}
		if first := items(s.get("/v1/" + list + "?pageSize=0")); len(first) < 2 {
			t.Errorf("%s: pageSize=0 shows %d", list, len(first))
		}
	}
	for _, list := range lists {
		for other, token := range tokens {
			if other != list {
				s.refused("/v1/"+list+"?pageToken="+token, http.StatusBadRequest)
			}
		}
		for _, token := range []string{"x", "!!", "AAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("A", 20_000), tokens[list] + "A"} {
			message := s.refused("/v1/"+list+"?pageToken="+token, http.StatusBadRequest)
			if !strings.Contains(message, "without it") {
				t.Errorf("%s: %s", list, message)
			}
		}
		s.get("/v1/" + list + "?pageSize=2&pageToken=" + tokens[list]) // a page may have another size
	}
	for _, narrower := range []string{"endpoints?cluster=web", "endpoints?address=" + up, "endpoints?health=HEALTHY", "endpoints?asOf=2030-01-01T00:00:00Z"} {
		s.refused("/v1/"+narrower+"&pageToken="+tokens["endpoints"], http.StatusBadRequest)
	}
	for _, narrower := range []string{"cluster=web", "address=" + up, "startTime=2001-01-01T00:00:00Z"} {
		s.refused("/v1/availability?"+narrower+"&pageToken="+tokens["availability"], http.StatusBadRequest)
		s.refused("/v1/transitions?"+narrower+"&pageToken="+tokens["transitions"], http.StatusBadRequest)
	}
	s.refused("/v1/transitions?newestFirst=true&pageToken="+tokens["transitions"], http.StatusBadRequest)
}

// TestTheSameOverGRPC: the codes that REST gives in its errors.
func TestTheSameOverGRPC(t *testing.T) {
	s, _, _ := newFleet(t)
	query := hdsdv1.NewQueryClient(s.dial())
	ctx := t.Context()
	whole, err := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{})
	if err != nil || len(whole.GetEndpoints()) != len(items(s.get("/v1/endpoints"))) {
		t.Errorf("%v, %v", whole, err)
	}
	watched := func(r *hdsdv1.WatchRequest) error {
		stream, err := query.Watch(ctx, r)
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	second := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		err  error
		want codes.Code
	}{
		"unknown cluster of endpoints":    {second(query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: "nowhere"})), codes.NotFound},
		"unknown cluster of transitions":  {second(query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: "nowhere"})), codes.NotFound},
		"unknown cluster of availability": {second(query.ListAvailability(ctx, &hdsdv1.ListAvailabilityRequest{Cluster: "nowhere"})), codes.NotFound},
		"unknown cluster of a watch":      {watched(&hdsdv1.WatchRequest{Cluster: "nowhere"}), codes.NotFound},
		"bad token of endpoints":          {second(query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{PageToken: "x"})), codes.InvalidArgument},
		"bad token of transitions":        {second(query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{PageToken: "x"})), codes.InvalidArgument},
		"bad token of clients":            {second(query.ListClients(ctx, &hdsdv1.ListClientsRequest{PageToken: "x"})), codes.InvalidArgument},
		"bad token of a watch":            {watched(&hdsdv1.WatchRequest{ResumeToken: "x"}), codes.InvalidArgument},
		"bad size":                        {second(query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: -1})), codes.InvalidArgument},
		"too large a size":                {second(query.ListCheckers(ctx, &hdsdv1.ListCheckersRequest{PageSize: 10_001})), codes.InvalidArgument},
	} {
		if status.Code(c.err) != c.want {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

// TestALostCheckerIsShown: with what it last did, while its seat is kept.
func TestALostCheckerIsShown(t *testing.T) {
	s := newSite(t, static("web", httpCheck, upstream(t, http.StatusOK)))
	stop := s.checker("checker-0")
	find := func() map[string]any {
		for _, c := range items(s.get("/v1/checkers")) {
			return c.(map[string]any)
		}
		return nil
	}
	s.eventually("a report", func() bool { return find()["lastReport"] != nil && find()["specifier"] == "SYNCED" })
	stop()
	s.eventually("the loss", func() bool { return find()["connected"] == false })
	lost := find()
	if lost["lastReport"] == nil || lost["assignedEndpoints"] != 1.0 {
		t.Errorf("lost, it is %v", lost)
	}
	if names := slices.Sorted(maps.Keys(lost)); !slices.Contains(names, "abilities") {
		t.Errorf("%v", names)
	}
}
