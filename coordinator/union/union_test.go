package union

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/health"
	"hdsd/internal/reason"
	"hdsd/peer/access"
)

// answers asks a replica all questions about the present, and returns the replicas that answered.
func answers(ctx context.Context, b *Backend) (replicas []string, err error) {
	endpoints, _, err1 := b.Endpoints(ctx, api.EndpointQuery{Limit: 1})
	clusters, _, err2 := b.Clusters(ctx, api.ClusterQuery{})
	checkers, err3 := b.Checkers(ctx)
	paths, err4 := b.Paths(ctx)
	overview, err5 := b.Overview(ctx, 7)
	preview, err6 := b.PreviewOverride(ctx, api.Override{})
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	return []string{endpoints[0].Endpoint.Cluster, clusters[0].Name, checkers[0].ID, paths[0].From, overview.Clusters[0].Cluster, preview.Override.Author}, nil
}

func withClusters(n *network) {
	for id, o := range n.own {
		o.clusters = []api.Cluster{{Name: id}}
	}
}

// TestTheLeaderAnswersAboutThePresent, whichever replica is asked; without a leader each one does itself.
func TestTheLeaderAnswersAboutThePresent(t *testing.T) {
	n := newNetwork()
	withClusters(n)
	for _, test := range []struct{ leader, asked, answered string }{{"a", "a", "a"}, {"a", "b", "a"}, {"c", "b", "c"}, {"", "b", "b"}} {
		n.leader = test.leader
		replicas, err := answers(t.Context(), n.replicas[test.asked])
		if err != nil || !slices.Equal(replicas, slices.Repeat([]string{test.answered}, 6)) {
			t.Errorf("%+v: answered by %v, %v", test, replicas, err)
		}
	}
}

// TestOverridesCountTheEndpointsOfTheLeader, and are those that the replica has: it may be ahead of the leader, or behind it.
func TestOverridesCountTheEndpointsOfTheLeader(t *testing.T) {
	n := newNetwork()
	of := func(cluster, version string, endpoints int) api.Override {
		return api.Override{Scope: health.Endpoint{Cluster: cluster}, Version: version, Endpoints: endpoints}
	}
	n.own["a"].overrides = []api.Override{of("web", "", 5), of("web", "1", 6), of("later", "", 7)}
	n.own["b"].overrides = []api.Override{of("web", "", 1), of("web", "1", 0), of("earlier", "", 2)}
	for leader, want := range map[string][]int{"a": {5, 6, 2}, "": {1, 0, 2}, "b": {1, 0, 2}} {
		n.leader = leader
		all, err := n.replicas["b"].Overrides(t.Context())
		var got []int
		for i := range all {
			got = append(got, all[i].Endpoints)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("led by %q: %v, %v", leader, got, err)
		}
	}
	n.leader, n.gone["a"] = "a", true
	if all, err := n.replicas["b"].Overrides(t.Context()); err != nil || len(all) != 3 || all[0].Endpoints != 1 {
		t.Errorf("without an answer: %v, %v", all, err)
	}
}

// TestThePastIsAnsweredByEach: it is the same.
func TestThePastIsAnsweredByEach(t *testing.T) {
	n := newNetwork()
	if found, _, err := n.replicas["b"].Endpoints(t.Context(), api.EndpointQuery{AsOf: noon, Limit: 1}); err != nil || found[0].Endpoint.Cluster != "b" {
		t.Errorf("%v, %v", found, err)
	}
}

// TestALeaderThatDoesNotAnswer costs the first question its patience; for a moment no other waits. Status says so
// until it answers.
func TestALeaderThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		withClusters(n)
		n.hangs["a"] = true
		b, began := n.replicas["b"], time.Now()
		replicas, err := answers(t.Context(), b)
		if err != nil || replicas[0] != "b" || replicas[4] != "b" || time.Since(began) != patience {
			t.Errorf("answered by %v after %v, %v", replicas, time.Since(began), err)
		}
		time.Sleep(rest)
		s, err := b.Status(t.Context())
		if err != nil || len(s.Attention) != 1 || s.Attention[0].Kind != "NO_LEADER" || !strings.Contains(s.Attention[0].Text, "the leader a does not answer this replica: it has not answered for 2s") {
			t.Fatalf("%+v, %v", s.Attention, err)
		}
		if since := s.Attention[0].Since; !since.Equal(began.Add(patience)) {
			t.Errorf("since %v, and it began %v", since, began)
		}
		n.hangs["a"] = false
		time.Sleep(rest)
		if s, err = b.Status(t.Context()); err != nil || len(s.Attention) != 0 {
			t.Errorf("it answers: %+v, %v", s.Attention, err)
		}
		if replicas, err := answers(t.Context(), b); err != nil || replicas[0] != "a" {
			t.Errorf("it answers: %v, %v", replicas, err)
		}
	})
}

// TestALeaderThatIsGone: without a connection, nothing waits.
func TestALeaderThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		withClusters(n)
		n.gone["a"] = true
		began := time.Now()
		if replicas, err := answers(t.Context(), n.replicas["b"]); err != nil || replicas[0] != "b" {
			t.Errorf("%v, %v", replicas, err)
		}
		s, err := n.replicas["b"].Status(t.Context())
		if err != nil || len(s.Attention) != 1 || !strings.Contains(s.Attention[0].Text, errUnlinked.Error()) || time.Since(began) != 0 {
			t.Errorf("%+v after %v, %v", s.Attention, time.Since(began), err)
		}
	})
}

// TestACallerThatGivesUp is no fault of the leader.
func TestACallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.hangs["a"] = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, ask := range []func() error{
			func() error { _, err := n.replicas["b"].Checkers(ctx); return err },
			func() error { _, err := n.replicas["b"].Clients(ctx, ""); return err },
			func() error { _, err := n.replicas["b"].Status(ctx); return err },
		} {
			if err := ask(); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		n.hangs["a"] = false
		if found, err := n.replicas["b"].Checkers(t.Context()); err != nil || found[0].ID != "a" {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// TestAReplicaThatLeadsNoMore does not answer as the leader.
func TestAReplicaThatLeadsNoMore(t *testing.T) {
	n := newNetwork()
	n.replicas["c"] = New("c", n.own["c"], late{end{n, "c"}})
	if found, err := n.replicas["c"].Checkers(t.Context()); err != nil || found[0].ID != "c" || len(n.own["b"].asked) > 0 {
		t.Errorf("%v, %v; b was asked %v", found, err, n.own["b"].asked)
	}
}

// late is a replica that holds b to be the leader still.
type late struct{ end }

func (late) Leader() (string, bool) { return "b", true }

// TestErrorsAboutTheQuestion reach the caller as from its own replica; others make that one answer.
func TestErrorsAboutTheQuestion(t *testing.T) {
	for _, test := range []struct {
		err   error
		final bool
	}{
		{fmt.Errorf("%w %q", api.ErrUnknownCluster, "wbe"), true}, {api.ErrBadToken, true}, {api.ErrTooOld, true},
		{reason.New(codes.NotFound, reason.UnknownSource, "no such source"), true}, {status.Error(codes.InvalidArgument, "limit"), true},
		{api.ErrStopping, false}, {errors.New("a bug"), false}, {context.DeadlineExceeded, false},
	} {
		n := newNetwork()
		n.own["a"].err = test.err
		found, err := n.replicas["b"].Checkers(t.Context())
		if !test.final {
			if err != nil || found[0].ID != "b" {
				t.Errorf("%v: %v, %v", test.err, found, err)
			}
			continue
		}
		if err == nil || err.Error() != test.err.Error() || status.Code(err) != status.Code(test.err) || reason.Of(err) != reason.Of(test.err) {
			t.Errorf("got %v, want %v", err, test.err)
		}
		for _, sentinel := range sentinels {
			if errors.Is(err, sentinel) != errors.Is(test.err, sentinel) {
				t.Errorf("%v is no %v", err, sentinel)
			}
		}
	}
}

// TestQuestionsCarryTheClustersOfTheirCaller.
func TestQuestionsCarryTheClustersOfTheirCaller(t *testing.T) {
	n := newNetwork()
	withClusters(n)
	for _, want := range []access.Clusters{access.AllClusters(), access.ClustersOf("pay-*", "web"), access.ClustersOf("*"), access.ClustersOf()} {
		n.own["a"].seen = nil
		ctx := access.With(t.Context(), permit{want})
		if _, err := answers(ctx, n.replicas["b"]); err != nil {
			t.Fatal(err)
		}
		if _, err := n.replicas["b"].Clients(ctx, "web"); err != nil {
			t.Fatal(err)
		}
		if _, err := n.replicas["b"].Status(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.replicas["b"].Replicas(ctx); err != nil {
			t.Fatal(err)
		}
		for i, got := range n.own["a"].seen {
			if !got.Equal(want) {
				t.Errorf("%s was asked for a caller of %v, not %v", n.own["a"].asked[i], got, want)
			}
		}
		if len(n.own["a"].seen) < 8 {
			t.Errorf("a was asked %v", n.own["a"].asked)
		}
	}
	limited := permit{access.ClustersOf("web")}
	if limited.Admit(access.Node{}) == nil || limited.Owns(access.Node{}) || limited.Over(access.Viewer).Has("web") {
		t.Error("the permit of a caller elsewhere permits more than to see")
	}
}

// TestClientsAreThoseOfAllReplicas, each with its replica. The leader lists checkers wherever they are.
func TestClientsAreThoseOfAllReplicas(t *testing.T) {
	n := newNetwork()
	n.own["a"].clients = []api.Client{{ID: "dp", Kind: api.KindSubscriber}, {ID: "checker", Kind: api.KindChecker, Replica: "b", Synced: 1}}
	n.own["b"].clients = []api.Client{{ID: "dp", Kind: api.KindSubscriber}, {ID: "checker", Kind: api.KindChecker}}
	n.own["c"].clients = []api.Client{{ID: "dp", Kind: api.KindSubscriber, TypeURL: "x"}, {ID: "dp", Kind: api.KindSubscriber, TypeURL: "y"}}
	for _, asked := range []string{"a", "b", "c"} {
		found, err := n.replicas[asked].Clients(t.Context(), "")
		var got []string
		for _, c := range found {
			got = append(got, fmt.Sprint(c.ID, "/", c.TypeURL, "@", c.Replica, " ", c.Synced))
		}
		slices.Sort(got)
		if want := []string{"checker/@b 1", "dp/@a 0", "dp/@b 0", "dp/x@c 0", "dp/y@c 0"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", asked, got, err)
		}
	}
	n.gone["c"] = true
	if found, err := n.replicas["b"].Clients(t.Context(), ""); err != nil || len(found) != 3 {
		t.Errorf("without c: %v, %v", found, err)
	}
}

// TestAClusterThatOneReplicaKnows is known.
func TestAClusterThatOneReplicaKnows(t *testing.T) {
	n := newNetwork()
	unknown := fmt.Errorf("%w %q", api.ErrUnknownCluster, "web")
	n.own["a"].err, n.own["b"].err = unknown, unknown
	if found, err := n.replicas["b"].Clients(t.Context(), "web"); err != nil || len(found) != 1 || found[0].Replica != "c" {
		t.Errorf("%v, %v", found, err)
	}
	n.own["c"].err = unknown
	if _, err := n.replicas["b"].Clients(t.Context(), "web"); !errors.Is(err, api.ErrUnknownCluster) {
		t.Error(err)
	}
	n.own["b"].err = api.ErrStopping
	if _, err := n.replicas["b"].Clients(t.Context(), "web"); !errors.Is(err, api.ErrStopping) {
		t.Error(err)
	}
}

// TestReplicasCountTheirOwnStreams.
func TestReplicasCountTheirOwnStreams(t *testing.T) {
	n := newNetwork()
	n.gone["c"] = true
	found, epoch, err := n.replicas["b"].Replicas(t.Context())
	want := []api.Replica{
		{ID: "a", Leader: true, Address: "known to b", Version: "of a", Checkers: 10, DataPlanes: 20, Position: 30, Lag: time.Second},
		{ID: "b", Self: true, Address: "known to b", Version: "of b", Checkers: 10, DataPlanes: 20, Position: 30, Lag: time.Second},
		{ID: "c", Address: "known to b"},
	}
	if err != nil || epoch != 42 || !slices.Equal(found, want) {
		t.Errorf("%+v, %d, %v", found, epoch, err)
	}
}

// TestStatusIsThatOfAll: of its own process, of what the leader holds to be true, and what is wrong with any replica.
func TestStatusIsThatOfAll(t *testing.T) {
	n := newNetwork()
	for id, i := range map[string]int{"a": 1, "b": 2, "c": 3} {
		n.own[id].status = api.Status{
			Version: id, NotReady: id, Started: noon.Add(time.Duration(i)), Sources: []api.SourceState{{Name: id}}, History: api.HistoryState{Bytes: int64(i)},
			Planes: api.PlaneCounts{Synced: i, Behind: 10 * i, Refusing: 100 * i}, Clusters: api.ClusterCounts{OK: i}, Endpoints: api.EndpointCounts{Held: i},
			Checkers: api.CheckerCounts{Connected: i}, Zones: []api.CheckersOfZone{{Zone: id}}, Further: i,
			Attention: []api.Attention{{Kind: "NO_LEADER", Text: id}, {Kind: "CLUSTER_DOWN", Text: id}, {Kind: "REPLICA_LOST", Text: id}, {Kind: "HISTORY_FAILING", Text: id}, {Kind: "FROZEN", Text: id}},
		}
	}
	s, err := n.replicas["b"].Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, a := range s.Attention {
		kinds = append(kinds, a.Kind+" "+a.Text)
	}
	if want := []string{"NO_LEADER b", "CLUSTER_DOWN a", "REPLICA_LOST b", "HISTORY_FAILING b", "HISTORY_FAILING replica a: a", "HISTORY_FAILING replica c: c", "FROZEN a"}; !slices.Equal(kinds, want) {
		t.Errorf("attention %q", kinds)
	}
	if s.Version != "b" || s.NotReady != "b" || s.Sources[0].Name != "b" || s.History.Bytes != 2 || !s.Started.Equal(noon.Add(2)) {
		t.Errorf("its own process: %+v", s)
	}
	if s.Clusters.OK != 1 || s.Endpoints.Held != 1 || s.Checkers.Connected != 1 || s.Zones[0].Zone != "a" || s.Further != 1 {
		t.Errorf("of the leader: %+v", s)
	}
	if s.Planes != (api.PlaneCounts{Synced: 6, Behind: 60, Refusing: 600}) {
		t.Errorf("data planes %+v", s.Planes)
	}
	n.own["c"].err = api.ErrStopping
	if s, err = n.replicas["a"].Status(t.Context()); err != nil || s.Clusters.OK != 1 || !slices.ContainsFunc(s.Attention, func(a api.Attention) bool {
		return a.Kind == string(attention.ReplicaLost) && strings.Contains(a.Text, "replica c does not answer this one: ") && !strings.Contains(a.Text, "rpc error")
	}) {
		t.Errorf("of the leader, without c: %+v, %v", s, err)
	}
}

// TestQuestionsOfAnotherRelease: one that this release does not know is refused, a field is ignored.
func TestQuestionsOfAnotherRelease(t *testing.T) {
	n := newNetwork()
	n.forge = func(question []byte) []byte {
		return []byte(strings.Replace(string(question), `"checkers"`, `"moons"`, 1))
	}
	if found, err := n.replicas["b"].Checkers(t.Context()); err != nil || found[0].ID != "b" {
		t.Errorf("%v, %v", found, err)
	}
	n = newNetwork()
	n.forge = func(question []byte) []byte { return []byte(strings.Replace(string(question), `{`, `{"Moons":7,`, 1)) }
	if found, err := n.replicas["b"].Checkers(t.Context()); err != nil || found[0].ID != "a" {
		t.Errorf("%v, %v", found, err)
	}
	for _, text := range []string{"", "{", "[]", `{"Kind":"endpoints"}`, `{"Kind":"endpoints","Endpoints":{"Limit":"x"}}`, strings.Repeat(" ", MaxQuestion+1)} {
		answer, err := n.replicas["a"].Answer(t.Context(), []byte(text))
		var endpoints rows[api.EndpointHealth]
		if err == nil {
			err = decode(answer, &endpoints)
		}
		if err == nil || len(text) < 100 && len(n.own["a"].asked) > 1 {
			t.Errorf("%.40q is answered", text)
		}
	}
}

// TestLimitsOfQuestionsAreBounded, whatever another replica asks for.
func TestLimitsOfQuestionsAreBounded(t *testing.T) {
	n := newNetwork()
	for limit, want := range map[int]int{-1: 1, 0: 1, 7: 7, 1 << 40: api.MaxPageSize} {
		n.own["a"].limits = nil
		if _, _, err := n.replicas["b"].Endpoints(t.Context(), api.EndpointQuery{Limit: limit}); err != nil || !slices.Equal(n.own["a"].limits, []int{want}) {
			t.Errorf("%d: asked for %v, %v", limit, n.own["a"].limits, err)
		}
	}
}

// TestAnOverrideHasAVote beside it, though another replica does not send one: what shows it counts on that.
func TestAnOverrideHasAVote(t *testing.T) {
	n := newNetwork()
	n.own["a"].override = &api.Override{Author: "ann"}
	if found, _, err := n.replicas["b"].Endpoints(t.Context(), api.EndpointQuery{Limit: 1}); err != nil || found[0].Override.Author != "ann" || found[0].Voted == nil {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestPagesAreCutToFit, and say that there is more; other answers fail.
func TestPagesAreCutToFit(t *testing.T) {
	defer func(before int) { maxValue = before }(maxValue)
	maxValue = 4000
	n := newNetwork()
	n.own["a"].endpoints = 100
	found, more, err := n.replicas["b"].Endpoints(t.Context(), api.EndpointQuery{Limit: 1000})
	if err != nil || !more || len(found) == 0 || len(found) >= 100 || found[0].Endpoint.Cluster != "a" {
		t.Errorf("%d endpoints, more %t, %v", len(found), more, err)
	}
	n.own["a"].clients = slices.Repeat([]api.Client{{ID: "x"}}, 100)
	if found, err := n.replicas["b"].Clients(t.Context(), ""); err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
	if err := decode(make([]byte, MaxAnswer+1), new([]api.Client)); err == nil {
		t.Error("a longer answer is read")
	}
}

// TestAttentionIsBounded on its way, and the rest is counted.
func TestAttentionIsBounded(t *testing.T) {
	n := newNetwork()
	n.own["a"].status.Attention = slices.Repeat([]api.Attention{{Kind: "CLUSTER_DOWN"}}, api.MaxAttention+7)
	n.own["a"].status.Further = 3
	if s, err := n.replicas["b"].Status(t.Context()); err != nil || len(s.Attention) != api.MaxAttention || s.Further != 10 {
		t.Errorf("%d, further %d, %v", len(s.Attention), s.Further, err)
	}
}

// TestQuestionsTakeTurns: one that waits for other work leaves its turn to others, and one without a turn waits until its
// caller gives up.
func TestQuestionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		b, text := n.replicas["a"], []byte(`{"Kind":"checkers"}`)
		n.own["a"].aside = make(chan struct{})
		ended := make(chan error)
		for range 5 {
			go func() { _, err := b.Answer(t.Context(), text); ended <- err }()
		}
		synctest.Wait()
		if waiting := len(n.own["a"].asked); waiting != 5 {
			t.Errorf("%d questions of 5 wait for other work", waiting)
		}
		for range 5 {
			n.own["a"].aside <- struct{}{}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		n.own["a"].aside, n.own["a"].busy = nil, make(chan struct{})
		for range 20 {
			go func() { _, err := b.Answer(t.Context(), text); ended <- err }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Answer(ctx, text); status.Code(err) != codes.DeadlineExceeded || len(n.own["a"].asked) >= 5+20 {
			t.Errorf("%v; %d are answered at a time", err, len(n.own["a"].asked)-5)
		}
		close(n.own["a"].busy)
		for range 20 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
