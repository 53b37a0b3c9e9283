package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hdsd/health"
	"hdsd/log"
	"hdsd/store"
	"hdsd/test/disk"
)

// The child finds its folder and where it goes on in the environment.
const (
	folderVariable = "HDSD_CRASH_FOLDER"
	firstVariable  = "HDSD_CRASH_FIRST"
)

func TestMain(m *testing.M) {
	disk.Main()
	if dir := os.Getenv(folderVariable); dir != "" {
		first, _ := strconv.Atoi(os.Getenv(firstVariable))
		if err := child(dir, first); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	first, _ := strconv.Atoi(os.Getenv(firstVariable))
	for variable, run := range map[string]func(dir string, first int) error{
		freezerVariable: freezer, overriderVariable: overrider, registersVariable: registers, diaristVariable: diarist, annotatorVariable: annotator,
		followerVariable: follower,
	} {
		if dir := os.Getenv(variable); dir != "" {
			fmt.Fprintln(os.Stderr, run(dir, first))
			os.Exit(1)
		}
	}
	if dir := os.Getenv(restorerVariable); dir != "" {
		fmt.Fprintln(os.Stderr, restorer(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(upgraderVariable); dir != "" {
		fmt.Fprintln(os.Stderr, upgrader(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(powerVariable); dir != "" {
		fmt.Fprintln(os.Stderr, powered(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// shown is a line of the child: what a query has shown to it.
type shown struct {
	Transitions []health.Transition
	Started     bool // before and after opening
}

// transition is the n-th of all; its reason is its number.
func transition(n int) health.Transition {
	e := health.Endpoint{
		Cluster:  fmt.Sprint("cluster-", n%7),
		Locality: health.Locality{Zone: fmt.Sprint("zone-", n%3)},
		Address:  fmt.Sprintf("10.0.0.%d:80", n%97),
	}
	at := time.Unix(1_700_000_000, int64(n)*1000).UTC()
	return health.Transition{
		Time: at, Endpoint: e, From: health.Status(n % 2), To: health.Status(1 + n%2), Reason: strconv.Itoa(n),
		Observations: []health.Observation{{Checker: "checker-1", Status: health.Status(1 + n%2), HTTPStatusCode: 503, Time: at}},
	}
}

// trialsAt is what is known of one cluster from trying it, at a number, and
// that another is gone.
func trialsAt(n int) map[string]*log.Trials {
	return map[string]*log.Trials{
		fmt.Sprint("cluster-", n%7): {
			Proven: []log.Proof{{Build: 1, Shape: uint64(n)}}, Blamed: []uint64{uint64(n)},
			Losses: []log.Loss{{Checker: "checker-1", Time: time.Unix(1_700_000_000, int64(n)).UTC()}},
		},
		fmt.Sprint("cluster-", (n+1)%7): nil,
	}
}

// child appends without end, and prints what a query shows to it.
func child(dir string, first int) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(shown{Started: true}); err != nil {
		return err
	}
	s, err := store.Open(context.Background(), dir, store.Options{Retention: 24 * 365 * 100 * time.Hour})
	if err != nil {
		return err
	}
	if err := out.Encode(shown{Started: true}); err != nil {
		return err
	}
	go func() {
		random := rand.New(rand.NewPCG(uint64(first), 0))
		for n := first; ; {
			some := make([]health.Transition, 1+random.IntN(50))
			for i := range some {
				some[i] = transition(n)
				n++
			}
			s.Apply(&log.Entry{Transitions: some, Plan: map[string][]health.Hash{"checker-1": {health.Hash(n)}}, Trials: trialsAt(n)})
			if random.IntN(4) == 0 {
				_ = s.Flush(context.Background())
			}
		}
	}()
	q := store.Query{Start: time.Unix(1_700_000_000, int64(first)*1000)}
	for {
		page, _, err := s.Transitions(q)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			continue
		}
		q.Start = page[len(page)-1].Time.Add(1)
		if err := out.Encode(shown{Transitions: page}); err != nil {
			return err
		}
	}
}

// TestKill9 kills the writer at random moments, the making of the file
// included, twenty times over the same folder (200 with SOAK): what a query has shown is
// there, what is there is a beginning of what was appended, and the current
// health is where the last transitions led to.
func TestKill9(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "data")
	next, slowest, rounds := 0, time.Duration(0), 20
	if os.Getenv("SOAK") != "" {
		rounds = 200
	}
	for round := range rounds {
		lines := 1 + random.IntN(8)
		if round < 4 {
			lines = 1 + round%2 // while the file is made or opened
		}
		delay := time.Duration(random.IntN(25_000)) * time.Microsecond // a group and its commit
		seen := runAndKill(t, dir, next, lines, delay)
		before, began := next, time.Now()
		reopen(t, dir)
		slowest = max(slowest, time.Since(began))
		next = inspect(t, dir, seen)
		if t.Failed() {
			t.Fatalf("round %d, seed %d", round, seed)
		}
		t.Logf("round %d: killed %v after %d lines: %d shown, %d there", round, delay, lines, seen-before, next-before)
	}
	if next == 0 {
		t.Error("nothing was ever written")
	}
	t.Logf("killed %d times, %d transitions; the slowest start took %v", rounds, next, slowest)
}

// reopen opens what is left and closes it: so long a start takes.
func reopen(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// runAndKill lets a child go on from a number until a moment after it has
// printed some lines. It gives the number after the last transition shown.
func runAndKill(t *testing.T, dir string, first, lines int, delay time.Duration) (seen int) {
	t.Helper()
	seen = first
	kill(t, folderVariable, dir, first, lines, delay, func(line []byte) {
		for _, tr := range decoded[shown](t, line).Transitions {
			if want := transition(seen); !reflect.DeepEqual(want, tr) {
				t.Fatalf("transition %d: %s", seen, cmp.Diff(want, tr))
			}
			seen++
		}
	})
	return seen
}

// inspect opens what is left and gives how many transitions there are.
func inspect(t *testing.T, dir string, seen int) int {
	t.Helper()
	s, err := store.Open(t.Context(), dir, store.Options{OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	want := map[health.Hash]log.Health{}
	count := 0
	for q := (store.Query{Limit: 10_000}); ; {
		page, token, err := s.Transitions(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range page {
			if expected := transition(count); tr.Reason != expected.Reason {
				t.Fatalf("transition %d is %+v", count, tr)
			}
			want[tr.Endpoint.Hash()] = log.Health{Endpoint: tr.Endpoint, Status: tr.To, Since: tr.Time, Reason: tr.Reason}
			count++
		}
		if q.Token = token; token == "" {
			break
		}
	}
	if count < seen {
		t.Errorf("%d transitions were shown, %d are there", seen, count)
	}
	stored, err := s.State()
	if diff := cmp.Diff(want, stored.Current); diff != "" || err != nil {
		t.Error("current health:", diff, err)
	}
	// The plan and the trials are in the transaction of the first transitions.
	if count > 0 && (len(stored.Plan["checker-1"]) != 1 || len(stored.Trials) == 0) {
		t.Errorf("plan: %v, trials: %v", stored.Plan, stored.Trials)
	}
	for name, found := range stored.Trials {
		n := int(found.Blamed[0])
		if diff := cmp.Diff(trialsAt(n)[name], found); diff != "" {
			t.Errorf("trials of %s: %s", name, diff)
		}
	}
	for i := range min(count, 7) {
		if !s.KnownCluster(fmt.Sprint("cluster-", i)) {
			t.Errorf("cluster-%d is not known", i)
		}
	}
	return count
}
