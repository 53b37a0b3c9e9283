package coordinator

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"

	"hdsd/api"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/log"
	"hdsd/store"
)

// TestVersionsForOperators covers versions of clusters: a grant for a cluster includes them. Overrides have
// the own name, for programs, and the version beside it; the audit and the log have the outside name and the
// version.
func TestVersionsForOperators(t *testing.T) {
	const own, real = "web#1111111111111111", "web#2222222222222222"
	l := newLab(t)
	var logged strings.Builder
	l.core.log, l.core.eventLog.log = zerolog.New(&logged), zerolog.New(&logged)
	l.core.eventLog.transitions.bounded = zerolog.New(&logged)
	second := web("web", address1)
	second.Name, second.ServiceName = own, own
	l.serve(web("web", address1), second, web(real, address1))
	stored, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	stored.Apply(&log.Entry{Clusters: []string{"web", own, real}})
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case next := <-l.core.events:
				l.core.handle(l.now, &next)
			case <-done:
				return
			}
		}
	}()
	ctx, c := grantedWeb(t), api.NewControl(&control{core: l.core, store: stored})
	order := func(cluster string) *hdsdv1.SetOverrideRequest {
		return &hdsdv1.SetOverrideRequest{Cluster: cluster, Address: address1, Health: corev3.HealthStatus_DRAINING, Reason: "kernel", Author: "ann"}
	}
	is := func(what string, o *hdsdv1.Override, err error, cluster string, version string) {
		t.Helper()
		if err != nil || o.GetCluster() != cluster || o.GetVersion() != version || (o.Version != nil) != (version != "") {
			t.Errorf("%s: %v, %v", what, o, err)
		}
	}
	set, err := c.SetOverride(ctx, order(own))
	is("the override", set.GetOverride(), err, own, "1111111111111111")
	would, err := c.PreviewOverride(ctx, order(own))
	is("the preview", would.GetOverride(), err, own, "1111111111111111")
	is("what it would replace", would.GetReplaced(), err, own, "1111111111111111")
	set, err = c.SetOverride(ctx, order("web"))
	is("that of all versions", set.GetOverride(), err, "web", "")
	if _, err := c.Annotate(ctx, &hdsdv1.AnnotateRequest{Cluster: own, Text: "moved", Author: "ann"}); err != nil {
		t.Error(err)
	}
	if _, err := c.SetOverride(ctx, order(real)); err == nil {
		t.Error("it overrides another cluster")
	}
	if _, err := c.SetOverride(t.Context(), order(real)); err != nil {
		t.Error(err)
	}
	all, err := c.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{})
	if len(all.GetOverrides()) != 2 {
		t.Fatalf("it sees %v, %v", all, err)
	}
	is("the first of the list", all.GetOverrides()[0], err, "web", "")
	is("the second of the list", all.GetOverrides()[1], err, own, "1111111111111111")
	if o := l.queryEndpoint(own, address1).Override; o == nil || o.Version != "1111111111111111" {
		t.Errorf("the endpoint has %+v", o)
	}
	ended, err := c.ClearOverrides(ctx, &hdsdv1.ClearOverridesRequest{Cluster: "web", All: true, Author: "bob"})
	if len(ended.GetEnded()) != 2 {
		t.Fatalf("ended are %v, %v", ended, err)
	}
	is("one that ended", ended.GetEnded()[1], err, own, "1111111111111111")
	audit, err := c.ListAudit(t.Context(), &hdsdv1.ListAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range audit.GetEntries() {
		lines = append(lines, e.GetAction()+" "+e.GetTarget()+" "+e.GetVersion())
	}
	want := []string{
		"SetOverride web " + address1 + " 1111111111111111", "SetOverride web " + address1 + " ", "Annotate web 1111111111111111", "SetOverride " + real + " " + address1 + " ",
		"ClearOverrides web " + address1 + " ", "ClearOverrides web " + address1 + " 1111111111111111",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the audit has\n%s", got)
	}
	for _, line := range []string{
		`"event":"override_set","kind":"drain","cluster":"web","cluster_version":"1111111111111111","address"`,
		`"event":"override_cleared","kind":"drain","cluster":"web","cluster_version":"1111111111111111","address"`,
		`"action":"SetOverride","target":"web ` + address1 + `","cluster_version":"1111111111111111","before"`,
	} {
		if !strings.Contains(logged.String(), line) {
			t.Errorf("the log has no %s", line)
		}
	}
	if strings.Contains(logged.String(), own) {
		t.Errorf("the log has hdsd's own name: %s", logged.String())
	}
}
