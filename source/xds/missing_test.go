package xds

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
)

// TestMissingReason: why there is no assignment, in each case, until it comes.
func TestMissingReason(t *testing.T) {
	inNetwork(t, func(t *testing.T, n *network) {
		keep := func(path string) func(*Options) { return func(o *Options) { o.Snapshot = path } }(filepath.Join(t.TempDir(), "upstream.pb"))
		r := n.run(deltaSource, keep)
		equal(t, "before it is asked", r.MissingReason("web"), "it has not been asked for it yet")
		r.Want([]string{"web", "other"})
		time.Sleep(time.Second)
		synctest.Wait()
		has(t, "it is away", r.MissingReason("web"), "it cannot be asked (", "nobody is at one")

		s := newScript(t)
		stop := n.serve("one", s.register)
		p := reconnect(t, s.delta)
		synctest.Wait()
		equal(t, "it is silent", r.MissingReason("web"), "it has not answered yet")
		time.Sleep(15 * time.Second)
		equal(t, "late", r.MissingReason("web"), "it has not sent it within 15s")
		for _, step := range []struct {
			response *discoveryv3.DeltaDiscoveryResponse
			want     string
		}{
			{removal(rules.Assignment, "n1", "web"), "it has none"},
			{change(rules.Assignment, "n2", wrap("web", "1", endpoints("other"))), `what it sent is refused: it calls itself "other"`},
			{change(rules.Assignment, "n3", wrap("web", "1", endpoints("web", "10.0.0.1"))), ""},
			{removal(rules.Assignment, "n4", "web"), "it has none"},
			{&discoveryv3.DeltaDiscoveryResponse{TypeUrl: rules.Assignment, ResourceErrors: []*discoveryv3.ResourceError{{
				ResourceName: &discoveryv3.ResourceName{Name: "other"}, ErrorDetail: &statuspb.Status{Code: int32(codes.PermissionDenied), Message: "not yours"},
			}}}, "it has none"},
		} {
			p.send(step.response)
			synctest.Wait()
			equal(t, "of web", r.MissingReason("web"), step.want)
		}
		equal(t, "of other", r.MissingReason("other"), "it says: PermissionDenied: not yours")
		mortal := wrap("web", "2", endpoints("web"))
		mortal.Ttl = durationpb.New(time.Second)
		p.send(change(rules.Assignment, "n5", mortal))
		time.Sleep(2 * time.Second)
		equal(t, "lapsed", r.MissingReason("web"), "the time to live that it gave it is over")
		p.send(change(rules.Cluster, "n6", wrap("api", "1", eds("api", ""))))
		time.Sleep(15 * time.Second)
		r.stop()
		stop()

		r = n.run(deltaSource, keep)
		defer r.stop()
		time.Sleep(20 * time.Second)
		equal(t, "set", said(r.latest()), "api=none unread")
		has(t, "after a restart", r.MissingReason("api"), "it cannot be asked (")
	})
}
