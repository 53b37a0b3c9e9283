package coordinator

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hdsd/api"
	"hdsd/log"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/coordinator/query"
	"hdsd/health"
	"hdsd/machine"
)

func TestStoppedCoreAnswersAtOnce(t *testing.T) {
	l := newLab(t)
	stop := make(chan struct{})
	close(stop)
	l.core.run(stop)
	for range 2 * mailboxSize { // more than fits
		l.core.do(func() { t.Error("an event runs after the core has stopped") })
	}
	err := l.core.call(t.Context(), nil)
	if !errors.Is(err, ErrStopping) || status.Code(err) != codes.Unavailable {
		t.Errorf("ask: %v", err)
	}
	b := query.New(query.Options{Core: queryCore{l.core}})
	if _, _, err := b.Clusters(t.Context(), api.ClusterQuery{Limit: 1}); !errors.Is(err, ErrStopping) {
		t.Errorf("Clusters: %v", err)
	}
}

func TestCallEndsWithContext(t *testing.T) {
	l := newLab(t) // nobody runs its core
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := query.New(query.Options{Core: queryCore{l.core}})
	if _, err := b.Checkers(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Checkers: %v", err)
	}
}

// TestQueriesDoNotWaitForBusyCore covers a core that never finishes an event, with a full mailbox.
func TestQueriesDoNotWaitForBusyCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.serve(web("web", address1, address2))
		stop, busy := make(chan struct{}), make(chan struct{})
		go l.core.run(stop)
		b := l.backendOn(queryCore{l.core})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if now, err := b.Status(ctx); err != nil || now.Endpoints.Unknown != 2 {
			t.Fatalf("before: %+v, %v", now.Endpoints, err)
		}
		l.core.do(func() { <-busy })
		synctest.Wait()
		for range mailboxSize {
			l.core.do(func() {})
		}
		if now, err := b.Status(ctx); err != nil || now.Endpoints.Unknown != 2 {
			t.Errorf("the status is %+v, %v", now.Endpoints, err)
		}
		if found, _, err := b.Clusters(ctx, api.ClusterQuery{Cluster: "web", Limit: 1}); err != nil || len(found) != 1 || found[0].Endpoints != 2 {
			t.Errorf("the clusters are %+v, %v", found, err)
		}
		if found, err := b.Overview(ctx, 1); err != nil || len(found.Clusters) != 1 {
			t.Errorf("the overview is %+v, %v", found, err)
		}
		if _, err := b.Checkers(ctx); err != nil {
			t.Errorf("no checkers: %v", err)
		}
		close(busy)
		close(stop)
		<-l.core.done
	})
}

// TestQuerySeesAcknowledgedOrders covers a query after an acknowledged order, while many events wait.
func TestQuerySeesAcknowledgedOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.serve(web("web", address1, address2))
		stop := make(chan struct{})
		go l.core.run(stop)
		b, scope := l.backendOn(queryCore{l.core}), health.Endpoint{Cluster: "web", Address: address1}
		for n := range 10 {
			drains := n%2 == 0
			set := &machine.SetOverride{Override: log.Override{Scope: scope, Status: health.Draining, Reason: "test"}}
			cleared := &machine.ClearOverrides{Scope: scope, Author: "test"}
			var order machine.Event = cleared
			if drains {
				order = set
			}
			if err := l.core.call(t.Context(), order); err != nil || set.Err != nil || cleared.Err != nil {
				t.Fatal(err, set.Err, cleared.Err)
			}
			for range mailboxSize / 2 {
				l.core.do(func() {})
			}
			now, err := b.Status(t.Context())
			if err != nil || (now.Endpoints.Draining == 1) != drains {
				t.Fatalf("%d: drained %t, and the status is %+v, %v", n, drains, now.Endpoints, err)
			}
		}
		close(stop)
		<-l.core.done
	})
}

// TestFullMailboxDelaysTicksBriefly keeps the mailbox full.
func TestFullMailboxDelaysTicksBriefly(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1))
	l.core.Fleet.Begin(time.Now().Add(-settle))
	stop, ended := make(chan struct{}), make(chan struct{})
	var again func()
	again = func() {
		select {
		case l.core.events <- message{done: func(time.Time) { again() }}: // for each that is handled, another
		default:
		}
		if !l.core.Fleet.Settling() {
			select {
			case <-ended:
			default:
				close(ended)
			}
		}
	}
	for range 10 {
		l.core.events <- message{done: func(time.Time) { again() }}
	}
	go l.core.run(stop)
	<-ended
	close(stop)
	<-l.core.done
}

func TestNothingCheckedIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	l := newLab(t)
	l.core.eventLog.log = zerolog.New(&log)
	l.serve(web("web", address1))
	for range 2 {
		l.setClusters()
	}
	if n := strings.Count(log.String(), "nothing_checked"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
}

// TestReceivedUntil covers the time until which the core has handled all posted events: the post time of the
// latest handled event, or the present time if no event waits.
func TestReceivedUntil(t *testing.T) {
	l := newLab(t)
	before := time.Now()
	l.core.do(func() {})
	after := time.Now()
	l.core.do(func() {})
	now := after.Add(time.Hour)
	l.handleNext()
	if heard := l.core.receivedUntil(now); heard.Before(before) || heard.After(after) {
		t.Errorf("heard until %v, posted between %v and %v", heard, before, after)
	}
	l.handleNext()
	if heard := l.core.receivedUntil(now); !heard.Equal(now) {
		t.Errorf("heard until %v, and nothing waits at %v", heard, now)
	}
}

// handleNext handles the next posted event.
func (l *lab) handleNext() {
	next := <-l.core.events
	l.core.latestPost = next.posted
	l.core.handle(l.now, &next)
}

// TestEntriesComeFirst covers that entries of the log overtake what waits in the mailbox, and do not hold it up.
func TestEntriesComeFirst(t *testing.T) {
	l := newLab(t)
	stop, ended := make(chan struct{}), make(chan struct{})
	var order strings.Builder
	handled := 0
	note := func(kind string) message {
		return message{posted: l.now, done: func(time.Time) {
			order.WriteString(kind)
			if handled++; handled == mostAhead+6 {
				close(ended)
			}
		}}
	}
	for range 3 {
		l.core.events <- note("e")
	}
	for range mostAhead + 3 {
		l.core.entries <- note("L")
	}
	go l.core.run(stop)
	<-ended
	close(stop)
	<-l.core.done
	first, events := strings.Repeat("L", mostAhead), strings.Count(order.String(), "e")
	if !strings.HasPrefix(order.String(), first) || events != 3 {
		t.Errorf("handled in the order %s", order.String())
	}
}

// TestSilentReportsWaitOnce covers that a checker has one waiting report without votes. Those of other
// checkers, and reports with votes, wait beside it.
func TestSilentReportsWaitOnce(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1))
	hears := sink{l.core}
	for range 5 {
		hears.Reported("a", nil)
		hears.Reported("b", nil)
	}
	hears.Reported("a", []health.Vote{{Endpoint: 0, Status: health.Healthy}})
	if n := len(l.core.events); n != 3 {
		t.Fatalf("%d events wait, want one of each checker and that with a vote", n)
	}
	for range 3 {
		l.handleNext()
	}
	hears.Reported("a", nil)
	hears.Disconnected("b")
	hears.Reported("b", nil)
	if n := len(l.core.events); n != 3 {
		t.Errorf("%d events wait when those before were run, want 3", n)
	}
}
