package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/check"
	hdsdv1 "hdsd/gen/hdsd/v1"
)

// happened is what REST lists of the events: kind, what it is about, who did it, and the text.
func (s *site) happened(parameters string) (all []string) {
	s.t.Helper()
	code, text := s.get("/v1/events?" + parameters)
	var answer struct {
		Events []struct{ Kind, Cluster, Address, Checker, Author, Text string }
	}
	if err := json.Unmarshal([]byte(text), &answer); code != http.StatusOK || err != nil {
		s.t.Fatalf("%d %s: %v", code, text, err)
	}
	for _, e := range answer.Events {
		all = append(all, strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", e.Cluster, " ", e.Address, " ", e.Checker, " ", e.Author, ": ", e.Text)), " "))
	}
	return all
}

// has waits for an event of a kind, and returns it.
func (s *site) has(kind string) string {
	s.t.Helper()
	var found []string
	s.eventually("event "+kind, func() bool { found = s.happened("kind=" + kind); return len(found) > 0 })
	return found[0]
}

// TestHistoryHasEvents covers events with their authors, and a restart.
func TestHistoryHasEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:1"))
	s.ready()
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		left <- check.Run(ctx, check.Options{Server: s.GRPCAddress(), NodeID: "c1", Log: zerolog.Nop()})
	}()
	want := map[string]string{}
	wants := func(kind, text string) {
		t.Helper()
		if got := s.has(kind); !strings.HasPrefix(got, kind+" "+text) {
			t.Errorf("%s: %q, want %q", kind, got, text)
		} else {
			want[kind] = got
		}
	}
	wants("CLUSTER_ADDED", "web : from source local, with 1 endpoint")
	wants("COORDINATOR_STARTED", ": hdsd unknown")
	wants("CHECKER_JOINED", "c1 : connected, ")
	leave()
	<-left
	wants("CHECKER_LOST", "c1 : disconnected")
	s.change("POST", "/v1/freeze", `{"reason": "moving", "author": "ann"}`)
	s.change("DELETE", "/v1/freeze?author=bob", "")
	wants("FROZEN", "ann: moving")
	wants("UNFROZEN", "bob: was frozen: moving")
	s.change("POST", "/v1/overrides", `{"cluster": "web", "address": "127.0.0.1:1", "health": "DRAINING", "reason": "kernel", "author": "ann"}`)
	s.change("DELETE", "/v1/overrides?cluster=web&address=127.0.0.1:1&author=bob", "")
	wants("OVERRIDE_SET", "web 127.0.0.1:1 ann: drain: kernel")
	wants("OVERRIDE_CLEARED", "web 127.0.0.1:1 bob: drain: kernel")
	s.change("POST", "/v1/overrides", `{"cluster": "web", "health": "HEALTHY", "reason": "short", "author": "ann", "duration": "0.1s"}`)
	wants("OVERRIDE_EXPIRED", "web ")
	s.change("POST", "/v1/trust", `{"checker": "c1", "word": "DISTRUSTED", "reason": "odd", "author": "ann"}`)
	s.change("POST", "/v1/trust", `{"checker": "c1", "word": "TRUSTED", "reason": "fine", "author": "ann"}`)
	s.change("DELETE", "/v1/trust?checker=c1&author=bob", "")
	wants("CHECKER_DISTRUSTED", "c1 ann: odd")
	wants("CHECKER_TRUSTED", "c1 ann: fine")
	wants("CHECKER_TRUST_CLEARED", "c1 bob:")
	move(t, s.dir, "clusters.yaml", "resources:\n"+static("web", "127.0.0.1:2", "127.0.0.1:3"))
	wants("ENDPOINTS_ADDED", "web : by source local: 2 endpoints: 127.0.0.1:2, 127.0.0.1:3")
	wants("ENDPOINTS_REMOVED", "web 127.0.0.1:1 : by source local: 1 endpoint: 127.0.0.1:1")
	move(t, s.dir, "clusters.yaml", "resources:\n"+strings.Replace(static("web", "127.0.0.1:2"), "timeout: 1s", "timeout: 0s", 1))
	wants("QUARANTINED", "web : "+filepath.Join(s.dir, "clusters.yaml")+":6: resources[0].connect_timeout: ")
	move(t, s.dir, "clusters.yaml", "resources:\n"+static("api", "127.0.0.1:2"))
	wants("CLUSTER_REMOVED", "web : no longer in source local; it had ")
	s.change("POST", "/v1/annotations", `{"text": "rolled out v7", "cluster": "api", "author": "ann", "time": "2026-01-02T03:04:05Z"}`)
	wants("NOTE", "api ann: rolled out v7")
	if first := s.happened("pageSize=1"); len(first) != 1 || first[0] != want["NOTE"] {
		t.Errorf("a note of long ago is not the first: %q", first)
	}
	if code, text := s.get("/v1/audit"); code != http.StatusOK || !strings.Contains(text, `"action":"Annotate"`) || !strings.Contains(text, "rolled out v7") {
		t.Errorf("the audit: %d %s", code, text)
	}
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s = newSite(t, s.dir, quick, static("api", "127.0.0.1:2"))
	s.ready()
	wants("COORDINATOR_STOPPED", ": stopping")
	s.eventually("the second start", func() bool { return len(s.happened("kind=COORDINATOR_STARTED")) == 2 })
	for kind, text := range want {
		if got := s.has(kind); got != text {
			t.Errorf("after a restart: %q, was %q", got, text)
		}
	}
	if added := s.happened("kind=CLUSTER_ADDED"); len(added) != 2 { // web and api, before
		t.Errorf("a start adds what was there: %q", added)
	}
	if diff := cmp.Diff([]string{want["CLUSTER_ADDED"], want["OVERRIDE_SET"]}, s.happened("cluster=web&pageSize=2")); diff != "" {
		t.Error(diff)
	}
	for parameters, code := range map[string]int{"cluster=nowhere": 404, "kind=NOTHING": 400, "pageToken=x": 400, "startTime=2026-01-02T00:00:00Z&endTime=2026-01-01T00:00:00Z": 400} {
		if got, text := s.get("/v1/events?" + parameters); got != code {
			t.Errorf("%s: %d %s", parameters, got, text)
		}
	}
	if _, err := hdsdv1.NewControlClient(s.dial()).Annotate(t.Context(), &hdsdv1.AnnotateRequest{Text: "x", Cluster: "nowhere"}); status.Code(err) != codes.NotFound {
		t.Errorf("a note on no cluster: %v", err)
	}
}

// TestEventsOfGrantedClusters covers that other clusters seem not to exist.
func TestEventsOfGrantedClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	s := newSite(t, dir, withGrants(grantsByCluster), twoClusters())
	s.served(ca)
	ask := func(name, path string) (int, string) { return s.tell(ca.named(name), "GET", path, "") }
	s.eventually("the events", func() bool {
		_, text := ask("all.internal", "/v1/events")
		return strings.Contains(text, "pay-a") && strings.Contains(text, "secret") && strings.Contains(text, "COORDINATOR_STARTED")
	})
	for _, parameters := range []string{"", "?pageSize=1&newestFirst=true", "?kind=CLUSTER"} {
		if code, text := ask("pay.internal", "/v1/events"+parameters); code != 200 || strings.Contains(text, "secret") {
			t.Errorf("%s: %d %s", parameters, code, text)
		}
	}
	_, hidden := ask("pay.internal", "/v1/events?cluster=secret")
	if code, absent := ask("pay.internal", "/v1/events?cluster=absent"); code != 404 || strings.ReplaceAll(hidden, "secret", "absent") != absent {
		t.Errorf("%q is told from %q", hidden, absent)
	}
	note := func(name, cluster string) (int, string) {
		return s.tell(ca.named(name), "POST", "/v1/annotations", `{"text": "x", "cluster": "`+cluster+`"}`)
	}
	for cluster, want := range map[string]int{"pay-a": 200, "secret": 404, "absent": 404, "": 403} {
		if code, text := note("pay.internal", cluster); code != want {
			t.Errorf("a note on %q: %d %s, want %d", cluster, code, text, want)
		}
	}
	if code, text := note("all.internal", ""); code != 200 || !strings.Contains(text, "all.internal") {
		t.Errorf("a note on all: %d %s", code, text)
	}
}
