package coordinator

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/store"
)

func TestClockIsLogged(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	logClock(zerolog.New(&log), store.Clock{Doubted: true, Wall: now.AddDate(1, 0, 0), Steady: now})
	logClock(zerolog.New(&log), store.Clock{Wall: now, Steady: now, Reason: "ann says that it is right"})
	for _, want := range []string{
		`"event":"clock_doubted","clock":"2027-01-02T03:04:05Z","steady":"2026-01-02T03:04:05Z","ahead":"8760h0m0s"`,
		`"event":"clock_believed","clock":"2026-01-02T03:04:05Z","why":"ann says that it is right"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("not told: %s in %s", want, log.String())
		}
	}
}

func TestDiskIsLogged(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	logDisk(zerolog.New(&log), errors.New("full"))
	logDisk(zerolog.New(&log), nil)
	logQuota(zerolog.New(&log), &store.Quota{Used: 8, Max: 10, Near: true})
	logQuota(zerolog.New(&log), &store.Quota{Used: 8, Max: 10, Near: true, Pruned: 3, Oldest: now})
	logQuota(zerolog.New(&log), &store.Quota{Used: 1, Max: 10, Oldest: now})
	logGap(zerolog.New(&log), &store.Gap{Start: now, End: now.Add(time.Minute), Transitions: 7})
	logAuditGap(zerolog.New(&log), &store.AuditGap{Start: now, End: now.Add(time.Minute), Entries: 7})
	for _, want := range []string{
		`"event":"history_failing","error":"full"`, `"event":"history_recovered"`,
		`"event":"history_quota","used":8,"max":10`, `"event":"history_quota_over","used":1,"max":10`,
		`"event":"history_pruned_early","used":8,"max":10,"count":3,"oldest":"2026-01-02T03:04:05Z"`,
		`"event":"history_gap","start":"2026-01-02T03:04:05Z","end":"2026-01-02T03:05:05Z","count":7`,
		`"event":"audit_gap","start":"2026-01-02T03:04:05Z","end":"2026-01-02T03:05:05Z","count":7`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("not told: %s in %s", want, log.String())
		}
	}
}

func TestConfirmClock(t *testing.T) {
	stored, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &control{store: stored}
	before, err := c.ConfirmClock(t.Context(), "ann")
	if err != nil || before.Doubted || c.Clock().Doubted || before.Wall.IsZero() {
		t.Errorf("a clock that nobody doubts: %+v, %v", before, err)
	}
	if err := stored.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.ConfirmClock(t.Context(), "ann"); !errors.Is(err, ErrStopping) {
		t.Error("after the end:", err)
	}
}
