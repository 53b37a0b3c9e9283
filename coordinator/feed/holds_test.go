package feed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	storev1 "hdsd/gen/hdsd/store/v1"
	"hdsd/source"
	"hdsd/source/hold"
	"hdsd/source/sample"
)

// taking is an Intake of one source that holds, and the names of the clusters in use.
type taking struct {
	*Intake
	by  Reader
	log bytes.Buffer
}

func newTaking(t *testing.T, first *source.Set) *taking {
	t.Helper()
	k := &taking{by: &fixed{first}}
	k.Intake = NewIntake(func(catalog.Delivery) {}, nil, zerolog.New(&k.log))
	k.Restart([]Reader{k.by}, catalog.NewRules(&configv1.Config{}), map[string]hold.Rule{first.Source: {Share: 0.5, For: time.Minute}})
	return k
}

func web(names ...string) *source.Set {
	set := &source.Set{Source: "x"}
	for _, name := range names {
		set.Clusters = append(set.Clusters, sample.Web(name, "10.0.0.1:80"))
	}
	return set
}

// TestTheClockEndsAHold although the source says nothing more.
func TestTheClockEndsAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaking(t, web("a", "b", "c"))
		c := startClock(context.Background(), k.Intake)
		defer c.stop()
		k.Take(k.by, web("a"))
		synctest.Wait()
		if held := k.Held(); len(held) != 1 || held[0].Clusters != 3 || held[0].Held.Clusters != 1 {
			t.Fatalf("held: %+v", held)
		}
		time.Sleep(time.Minute) // of the bubble
		synctest.Wait()
		if held := k.Held(); len(held) != 0 || len(k.merged.Clusters) != 1 {
			t.Errorf("held after its time: %+v, %d clusters", held, len(k.merged.Clusters))
		}
	})
}

// TestAlternatingHoldsAreLoggedOnceAMinute and their ends not more often.
func TestAlternatingHoldsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaking(t, web("a", "b", "c"))
		for range 100 {
			k.Take(k.by, web())
			k.Take(k.by, web("a", "b", "c"))
		}
		if n := strings.Count(k.log.String(), `"shrinkage_held"`); n != 1 {
			t.Errorf("%d lines in no time", n)
		}
		if n := strings.Count(k.log.String(), `"shrinkage_over"`); n != 1 {
			t.Errorf("%d lines that it is over", n)
		}
		time.Sleep(time.Minute) // of the bubble
		k.Take(k.by, web())
		if n := strings.Count(k.log.String(), `"shrinkage_held"`); n != 2 {
			t.Errorf("%d lines after a minute", n)
		}
	})
}

func TestAcceptOnlyWhatWasShown(t *testing.T) {
	k := newTaking(t, web("a", "b", "c"))
	wantCode := func(name string, since time.Time, revision string, want codes.Code) {
		t.Helper()
		if _, _, err := k.Accept(name, since, revision); status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	wantCode("x", time.Time{}, "", codes.FailedPrecondition)
	wantCode("y", time.Time{}, "", codes.NotFound)
	k.Take(k.by, web("a"))
	shown := k.Sources()[0].Held
	k.Take(k.by, web())
	wantCode("x", shown.Since, shown.Revision, codes.FailedPrecondition)
	wantCode("x", shown.Since, k.Sources()[0].Held.Revision, codes.OK)
	if len(k.merged.Clusters) != 0 {
		t.Errorf("%d clusters are in use", len(k.merged.Clusters))
	}
}

// TestWhatIsHeldIsReadAsItWasWritten for clusters and assignments of each kind.
func TestWhatIsHeldIsReadAsItWasWritten(t *testing.T) {
	lone, bare := sample.Web("lone", "10.0.0.1:80", "10.0.0.2:80"), sample.Web("bare")
	lone.Config, lone.HealthChecks, lone.Lone, bare.Assignment = nil, nil, true, nil
	at := time.Unix(1_700_000_000, 5).UTC()
	all := []hold.Saved{
		{Cluster: sample.Web("web", "10.0.0.1:80"), Taken: at, Endpoints: map[string]time.Time{"10.0.0.1:80": at.Add(1)}},
		{Cluster: lone, Endpoints: map[string]time.Time{"10.0.0.2:80": at}},
		{Cluster: bare, Taken: at, Endpoints: map[string]time.Time{}},
	}
	path := filepath.Join(t.TempDir(), "held.pb")
	if err := writeHeld(path, "local", all); err != nil {
		t.Fatal(err)
	}
	got, err := readHeld(path, "local")
	if err != nil || len(got) != len(all) {
		t.Fatal(got, err)
	}
	for i, one := range got {
		want := all[i].Cluster
		same := proto.Equal(one.Cluster.Config, want.Config) && one.Cluster.Assignment.Equal(want.Assignment) &&
			(one.Cluster.Assignment == nil) == (want.Assignment == nil) && one.Cluster.Lone == want.Lone && len(one.Cluster.HealthChecks) == len(want.HealthChecks) &&
			one.Cluster.Name == want.Name && one.Cluster.ServiceName == want.ServiceName && one.Cluster.Source == "local"
		if !same || !one.Taken.Equal(all[i].Taken) || len(one.Endpoints) != len(all[i].Endpoints) {
			t.Errorf("%s is read as %+v", want.Name, one)
		}
		for address, since := range all[i].Endpoints {
			if !one.Endpoints[address].Equal(since) {
				t.Errorf("%s: %s since %s", want.Name, address, one.Endpoints[address])
			}
		}
	}
	if _, err := readHeld(path, "other"); err == nil {
		t.Error("the file of another source is read")
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readHeld(path, "local"); err == nil {
		t.Error("a torn file is read")
	}
	if err := writeHeld(path, "local", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if got, err := readHeld(path, "local"); err != nil || got != nil {
		t.Error(got, err)
	}
}

// TestADamagedFileHoldsUpNoStart although it can be decoded.
func TestADamagedFileHoldsUpNoStart(t *testing.T) {
	zero := timestamppb.New(time.Time{})
	for what, c := range map[string]*storev1.HeldCluster{
		"nothing is held":            {Name: "a"},
		"a cluster since year 1":     {Name: "a", Taken: zero},
		"an endpoint since year 1":   {Name: "a", Endpoints: []*storev1.HeldEndpoint{{Address: "10.0.0.1:80", Taken: zero}}},
		"an endpoint since no time":  {Name: "a", Endpoints: []*storev1.HeldEndpoint{{Address: "10.0.0.1:80"}}},
		"a time that cannot be read": {Name: "a", Taken: &timestamppb.Timestamp{Nanos: -1}},
	} {
		var log bytes.Buffer
		f := &Feed{options: Options{Dir: t.TempDir(), Log: zerolog.New(&log)}, intake: NewIntake(func(catalog.Delivery) {}, nil, zerolog.Nop())}
		data, err := proto.Marshal(&storev1.HeldSource{Source: "x", Clusters: []*storev1.HeldCluster{c}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.heldFile("x"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		f.restoreHeld(time.Now(), []string{"x"})
		if !strings.Contains(log.String(), `"shrinkage_not_kept"`) || f.intake.guards.find("x").hold.Holds() {
			t.Errorf("%s: it is held, and the log has %q", what, log.String())
		}
	}
}
