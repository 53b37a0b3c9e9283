package hds_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/hds"
)

func TestClientsTellWhatCheckersHave(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.open(f.dial("10.0.0.1"))
		c.send(hello(&corev3.Node{
			Id: "checker-1", UserAgentName: "envoy", Extensions: []*corev3.Extension{{Name: "envoy.health_checkers.redis"}},
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"vpc": structpb.NewStringValue("blue")}},
		}))
		f.sink.take()
		got := f.only()
		if got.Node.GetId() != "checker-1" || got.Node.GetMetadata().GetFields()["vpc"].GetStringValue() != "blue" || len(got.Node.GetExtensions()) > 0 {
			t.Errorf("node: %v", got.Node)
		}
		if got.State.Followed || got.State.Specifier != hds.NotSent || got.Specifier != nil || got.Version != "" || !got.Sent.IsZero() {
			t.Errorf("before anything was sent: %+v", got)
		}

		f.server.Assign("checker-1", assignment(checked{1, "web/a/10.1.0.1:80"}))
		c.next()
		first := f.only()
		if first.State.Specifier != hds.Sent || sentText(t, first) != "web{a:10.1.0.1:80,}" || len(first.Version) != 16 || !first.Sent.Equal(time.Now()) {
			t.Errorf("sent: %+v", first)
		}
		c.send(report(said{"web/a/10.1.0.1:80", corev3.HealthStatus_HEALTHY, 200}))
		f.sink.take()
		if got := f.only(); got.State.Specifier != hds.Synced || got.Version != first.Version {
			t.Errorf("reported: %+v", got)
		}

		time.Sleep(time.Second)
		f.server.Assign("checker-1", assignment(checked{2, "db/a/10.1.0.2:80"}))
		c.next()
		second := f.only()
		if second.State.Specifier != hds.Sent || sentText(t, second) != "db{a:10.1.0.2:80,}web{}" || second.Version == first.Version || second.Sent.Equal(first.Sent) {
			t.Errorf("sent again: %+v", second)
		}
		c.next() // without the emptied cluster
		if got := f.only(); sentText(t, got) != "db{a:10.1.0.2:80,}" || got.Version == second.Version {
			t.Errorf("emptied clusters dropped: %+v", got)
		}
		c.cancel()
		f.sink.take()
		if got := f.server.Clients(); len(got) > 0 {
			t.Errorf("disconnected: %+v", got)
		}
	})
}

// TestWhatIsNotSentYetIsNotSynced: a checker that fetches is sent nothing before
// it fetches again, and says of an empty specifier just that.
func TestWhatIsNotSentYetIsNotSynced(t *testing.T) {
	bubble(t, hds.Options{Interval: time.Second}, func(f *fixture) {
		f.assigning()
		r := f.rest()
		r.gets("", helloJSON, "")
		r.gets("a", `{}`, "")
		f.is(hds.Synced, 0)
		f.server.Assign("a", assignment(checked{1, web1}))
		f.is(hds.NotSent, 0)
		r.gets("a", `{}`, webOne)
		f.is(hds.Sent, 0)
		for range 5 {
			r.gets("a", `{}`, webOne)
			f.is(hds.Sent, 0)
		}
		if !f.only().State.Followed {
			t.Error("it followed what it was sent first")
		}
		r.gets("a", reportJSON, webOne)
		f.is(hds.Synced, 0)
	})
}

// only gives the one client there is.
func (f *fixture) only() hds.Client {
	f.Helper()
	synctest.Wait()
	all := f.server.Clients()
	if len(all) != 1 {
		f.Fatalf("%d clients", len(all))
	}
	return all[0]
}

func TestOfALargeNodeTheIdIsKept(t *testing.T) {
	bubble(t, hds.Options{}, func(f *fixture) {
		c := f.open(f.dial("10.0.0.1"))
		c.send(hello(&corev3.Node{Id: "checker-1", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			strings.Repeat("k", 100_000): structpb.NewBoolValue(true),
		}}}))
		if got := f.only().Node; got.GetId() != "checker-1" || got.GetMetadata() != nil {
			t.Errorf("kept: %.100v", got)
		}
		c.cancel()
	})
}

// sentText says what a checker was sent.
func sentText(t *testing.T, c hds.Client) string {
	t.Helper()
	encoded, err := c.Specifier()
	m := &healthv3.HealthCheckSpecifier{}
	if err != nil || proto.Unmarshal(encoded, m) != nil {
		t.Fatal(err)
	}
	return specifierText(m)
}
