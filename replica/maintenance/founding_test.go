package maintenance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
	log_etcd "hdsd/log/etcd"
	"hdsd/store"
	"hdsd/test/etcd"
)

// configOf is the configuration of a replica with a history up to an entry of a fleet.
func configOf(t *testing.T, server *etcd.Server, fleet string, sequence uint64) *configv1.Config {
	t.Helper()
	c := &configv1.Config{NodeId: "r1", DataDir: t.TempDir(), Replication: &configv1.Replication{
		Etcd: &configv1.Replication_Etcd{Endpoints: []string{server.URL}, Prefix: "/hdsd"}, SessionTtl: durationpb.New(time.Second),
	}}
	database, err := store.Open(t.Context(), c.GetDataDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := database.SetFleet(t.Context(), fleet, sequence-1); err != nil {
		t.Fatal(err)
	}
	database.Follow([]*log.Entry{{Transitions: []health.Transition{{Time: time.Now(), Endpoint: health.Endpoint{Cluster: "web", Address: "10.0.0.1:80"}, From: health.Unknown, To: health.Healthy, Reason: "a test"}}}}, sequence, store.Records{})
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

func begin(t *testing.T, c *configv1.Config) *Founding {
	t.Helper()
	f, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func wantDoubt(t *testing.T, f *Founding, text string) {
	t.Helper()
	if err := f.Doubt(); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("the doubt is %v, want %q", err, text)
	}
}

// TestFounding covers a log that is not the one of the database any more: it goes in parts, while no replica has a session. A founding
// that ends halfway is repeated.
func TestFounding(t *testing.T) {
	server := etcd.Start(t)
	options, err := Options(configOf(t, server, "ours", 7))
	if err != nil {
		t.Fatal(err)
	}
	options.Address = "10.0.0.2:18100"
	client, err := log_etcd.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	written, err := client.Join(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := written.Campaign(t.Context())
	const entries = 2500 // more than etcd removes at a time
	for sequence := uint64(1); err == nil && sequence <= entries; sequence++ {
		err = written.Commit(t.Context(), epoch, sequence, []byte("an entry"))
	}
	if err != nil {
		t.Fatal(err)
	}
	running := begin(t, configOf(t, server, "ours", 7))
	if err := running.Running(); err == nil || !strings.Contains(err.Error(), "r1 (10.0.0.2:18100)") {
		t.Errorf("while a replica has a session: %v", err)
	}
	if _, err := running.Found(t.Context()); !errors.Is(err, log_etcd.ErrChanged) {
		t.Errorf("a founding beside it: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}

	wantDoubt(t, begin(t, configOf(t, server, "ours", 7)), "belongs to fleet "+written.Fleet()+", with 2500 entries")
	wantDoubt(t, begin(t, configOf(t, server, written.Fleet(), entries)), "goes on with it")
	wantDoubt(t, begin(t, configOf(t, server, written.Fleet(), entries-1)), "a start of the replica reads them")
	c := configOf(t, server, written.Fleet(), entries+10)
	halfway := begin(t, c)
	wantDoubt(t, halfway, "") // etcd was restored from an old snapshot
	if err := halfway.prefix.Found(t.Context(), halfway.Etcd, "halfway", halfway.After); err != nil {
		t.Fatal(err)
	}
	if err := halfway.Close(); err != nil {
		t.Fatal(err)
	}
	wantDoubt(t, begin(t, configOf(t, server, "ours", 7)), "begins with a longer history")
	again := begin(t, c)
	wantDoubt(t, again, "")
	fleet, err := again.Found(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	done := begin(t, c)
	wantDoubt(t, done, "founded from this database already")
	if want := (store.Cursor{Fleet: fleet, Sequence: entries + 11}); done.Database != want || done.Etcd.Fleet != fleet || done.Etcd.Head != want.Sequence || done.Etcd.Entries+done.Etcd.Others != 0 {
		t.Errorf("%+v, %+v", done.Database, done.Etcd)
	}
}
