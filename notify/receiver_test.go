package notify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/notify"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func down(kind notify.Kind, cluster, address string, since int) notify.Change {
	return notify.Change{Condition: notify.Condition{
		Key: notify.Key{Kind: kind, Cluster: cluster, Address: address}, Since: at(since), Text: "x", Command: "hdsd status",
	}}
}

func over(c notify.Change) notify.Change {
	c.Ended = true
	return c
}

// told is what was told, as "KIND cluster address", those that end with a "-" before.
func told(all []notify.Notice) []string {
	out := []string{}
	for _, n := range all {
		mark := ""
		if !n.Ended.IsZero() {
			mark = "-"
		}
		out = append(out, fmt.Sprintf("%s%s %s %s", mark, n.Kind, n.Cluster, n.Address))
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, got []notify.Notice, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), told(got)); diff != "" {
		t.Error(diff)
	}
}

// TestOnlyWhatLastsIsTold: nothing is told before min_duration, nor what is over by then; the
// end is told of what was told.
func TestOnlyWhatLastsIsTold(t *testing.T) {
	r := notify.NewReceiver(notify.Filter{MinDuration: 10 * time.Second}, nil)
	web, api := down(notify.ClusterDown, "web", "", 0), down(notify.ClusterDown, "api", "", 3)
	want(t, r.Apply(at(0), []notify.Change{web}))
	want(t, r.Apply(at(3), []notify.Change{api}))
	if due, ok := r.NextDeadline(); !ok || !due.Equal(at(10)) {
		t.Errorf("due at %s, %t", due, ok)
	}
	want(t, r.Apply(at(9), nil))
	begun := r.Apply(at(10), nil)
	want(t, begun, "CLUSTER_DOWN web ")
	want(t, r.Apply(at(11), []notify.Change{over(api)}))
	want(t, r.Apply(at(100), nil))
	ended := r.Apply(at(101), []notify.Change{over(web)})
	want(t, ended, "-CLUSTER_DOWN web ")
	if ended[0].ID != begun[0].ID || !ended[0].Ended.Equal(at(101)) || !ended[0].Since.Equal(at(0)) {
		t.Errorf("%+v, begun as %+v", ended[0], begun[0])
	}
	if _, ok := r.NextDeadline(); ok {
		t.Error("something is still due")
	}
}

// TestFilters: by kind, and by cluster for the kinds that are about one.
func TestFilters(t *testing.T) {
	r := notify.NewReceiver(notify.Filter{
		Kinds: map[notify.Kind]bool{notify.ClusterDown: true, notify.NoCheckers: true}, Cluster: func(name string) bool { return name == "pay" },
	}, nil)
	all := []notify.Change{down(notify.ClusterDown, "web", "", 0), down(notify.ClusterDown, "pay", "", 0), down(notify.EndpointDown, "pay", "a", 0), down(notify.NoCheckers, "", "", 0)}
	want(t, r.Apply(at(0), all), "CLUSTER_DOWN pay ", "NO_CHECKERS  ")
	wrong := []notify.Condition{all[0].Condition, all[1].Condition, all[2].Condition, all[3].Condition}
	want(t, r.SetFilter(at(1), notify.Filter{Kinds: map[notify.Kind]bool{notify.ClusterDown: true}}, wrong), "-NO_CHECKERS  ", "CLUSTER_DOWN web ")
}

// TestARestartTellsNothingTwice, and ends what ended meanwhile once all is known.
func TestARestartTellsNothingTwice(t *testing.T) {
	before := notify.NewReceiver(notify.Filter{}, nil)
	web, api := down(notify.ClusterDown, "web", "", 0), down(notify.ClusterDown, "api", "", 0)
	open := before.Apply(at(0), []notify.Change{web, api})
	r := notify.NewReceiver(notify.Filter{}, open)
	want(t, r.Apply(at(60), []notify.Change{web}))
	want(t, r.Confirm(at(61)), "-CLUSTER_DOWN api ")
	want(t, r.Confirm(at(62)))
	want(t, r.Apply(at(63), []notify.Change{over(web)}), "-CLUSTER_DOWN web ")
}

// TestWhatIsOpenIsBounded: endpoints leave room for what is worse, what does not fit is told
// as one, and moves up when there is room.
func TestWhatIsOpenIsBounded(t *testing.T) {
	r := notify.NewReceiver(notify.Filter{}, nil)
	var endpoints, clusters []notify.Change
	for i := range 3000 {
		endpoints = append(endpoints, down(notify.EndpointDown, fmt.Sprint("c", i), "a", i))
		clusters = append(clusters, down(notify.ClusterDown, fmt.Sprint("c", i), "", i))
	}
	if got := r.Apply(at(5000), endpoints); len(got) != notify.MaxEndpoints+1 || r.Open() != notify.MaxEndpoints+1 {
		t.Errorf("%d told, %d open", len(got), r.Open())
	}
	got := r.Apply(at(5001), clusters)
	if len(got) != notify.MaxOpen-notify.MaxEndpoints-1 || got[0].Cluster != "c0" || r.Open() != notify.MaxOpen {
		t.Errorf("%d told, %d open", len(got), r.Open())
	}
	want(t, r.Apply(at(5002), []notify.Change{over(clusters[0])}), "-CLUSTER_DOWN c0 ", "CLUSTER_DOWN c499 ")
	for i := range endpoints {
		endpoints[i].Ended, clusters[i].Ended = true, true
	}
	ends := append(r.Apply(at(5003), clusters), r.Apply(at(5004), endpoints)...)
	if r.Open() != 0 || !slices.Contains(told(ends), "-MORE  ") {
		t.Errorf("%d open", r.Open())
	}
}

// TestEachBeginningHasOneEnd, whatever happens in whatever order.
func TestEachBeginningHasOneEnd(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := notify.NewReceiver(notify.Filter{MinDuration: time.Duration(random.IntN(3)) * time.Second}, nil)
		open, wrong := map[notify.Key]string{}, map[notify.Key]notify.Condition{}
		for step := range 500 {
			var out []notify.Notice
			c := down([]notify.Kind{notify.ClusterDown, notify.EndpointDown}[random.IntN(2)], fmt.Sprint("c", random.IntN(5)), "", step)
			switch random.IntN(6) {
			case 0, 1:
				wrong[c.Key] = c.Condition
				out = r.Apply(at(step), []notify.Change{c})
			case 2, 3:
				delete(wrong, c.Key)
				out = r.Apply(at(step), []notify.Change{over(c)})
			case 4:
				f := notify.Filter{MinDuration: time.Duration(random.IntN(3)) * time.Second}
				if random.IntN(2) == 0 {
					f.Kinds = map[notify.Kind]bool{notify.ClusterDown: true}
				}
				var all []notify.Condition
				for _, each := range wrong {
					all = append(all, each)
				}
				out = r.SetFilter(at(step), f, all)
			default:
				out = r.Apply(at(step), nil)
			}
			for _, n := range out {
				id, was := open[n.Key]
				if was == n.Ended.IsZero() || was && id != n.ID {
					t.Fatalf("seed %d: %+v, open %t as %q", seed, n, was, id)
				}
				if open[n.Key] = n.ID; was {
					delete(open, n.Key)
				}
			}
			for key := range open {
				if _, is := wrong[key]; !is {
					t.Fatalf("seed %d: %+v is open and not wrong", seed, key)
				}
			}
			if len(open) != r.Open() {
				t.Fatalf("seed %d: %d open, told %d", seed, r.Open(), len(open))
			}
		}
	}
}
