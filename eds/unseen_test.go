package eds

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/peer/access"
	"hdsd/publish"
)

// put publishes a cluster and an assignment of each name.
func (b *bench) put(names ...string) {
	u := publish.Update{}
	for _, name := range names {
		u.Assignments = append(u.Assignments, assignment(name, 0, 1))
		u.Clusters = append(u.Clusters, clusters(name, "1")...)
	}
	b.server.Update(u)
}

// remove removes both.
func (b *bench) remove(names ...string) {
	b.server.Update(publish.Update{RemovedAssignments: names, RemovedClusters: names})
}

// TestResourcesThatAWildcardNeverSawAreNotWatched: a client with a wildcard that does not
// answer is sent the removal of what it was sent, and of nothing else.
func TestResourcesThatAWildcardNeverSawAreNotWatched(t *testing.T) {
	for i, name := range []string{"clusters", "assignments"} {
		for _, zone := range []string{"", "z"} {
			t.Run(name+zone, func(t *testing.T) {
				inBubble(t, Options{ZoneVariants: true, ZoneByLocality: true}, func(t *testing.T, b *bench) {
					unseen(t, b, b.server.published.tables()[i], zone)
				})
			})
		}
	}
}

func unseen(t *testing.T, b *bench, table *table, zone string) {
	b.put("stays", "sent")
	d, s := b.delta(), b.state()
	m, n := subscribe(table.typeURL, "*"), want(table.typeURL, "*")
	m.Node.Locality, n.Node.Locality = &corev3.Locality{Zone: zone}, &corev3.Locality{Zone: zone}
	d.send(m)
	s.send(n)
	r, first := d.next(), s.next()
	for i := range 2000 {
		name := fmt.Sprint("unseen-", i)
		b.put(name)
		b.remove(name)
	}
	b.remove("sent")
	b.put("comes")
	b.remove("comes")
	b.put("comes")
	synctest.Wait()
	for st := range b.server.streams.open {
		for _, u := range st.subscriptions() {
			u.mu.Lock()
			if len(u.interest.watches) != 3 || len(u.queue.watches) > 200 {
				t.Errorf("%d watched, %d in the queue", len(u.interest.watches), len(u.queue.watches))
			}
			u.mu.Unlock()
		}
	}
	equal(t, "slots", len(table.slots), 3)
	d.send(ack(r))
	if got := describe(d.next()); !strings.Contains(got, "-sent") || !strings.Contains(got, "comes=") || strings.Contains(got, "unseen") {
		t.Errorf("the delta client is told %s", got)
	}
	s.send(ackState(first, "*"))
	if got := describeState(s.next()); !strings.Contains(got, "comes=") || strings.Contains(got, "unseen") {
		t.Errorf("the other is told %s", got)
	}
	d.cancel()
	s.cancel()
}

// whileItComesAndGoes publishes and removes an assignment over and over while a client's
// subscription is put to a test.
func whileItComesAndGoes(t *testing.T, test func(u *subscription)) {
	s := NewServer(Options{})
	defer s.Close()
	u := newSubscription(&stream{server: s, permitted: access.AllClusters(), delta: true, wake: make(chan struct{}, 1)}, s.published.assignments)
	defer u.end()
	stop := make(chan struct{})
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.Update(publish.Update{Assignments: []publish.Assignment{assignment("a", 0, 1)}})
				s.Update(publish.Update{RemovedAssignments: []string{"a"}})
			}
		}
	})
	defer publisher.Wait()
	defer close(stop)
	for range rounds(20_000, 100_000) {
		if test(u); t.Failed() {
			return
		}
	}
}

// TestANameStaysWatchedWhileItsResourceComesAndGoes: a resource that goes away just when
// a client asks for its name does not take the watch with it.
func TestANameStaysWatchedWhileItsResourceComesAndGoes(t *testing.T) {
	whileItComesAndGoes(t, func(u *subscription) {
		w, err := u.subscribe("a")
		u.mu.Lock()
		known := u.interest.watches["a"]
		u.mu.Unlock()
		if err != nil || known != w {
			t.Errorf("the client asked for the resource and never learns of it (%v)", err)
		}
		u.unsubscribe("a")
	})
}

// TestAResumedResourceIsRemovedAlthoughItGoesJustThen: a client with a wildcard that has
// the resource from an earlier stream has to learn that it is gone.
func TestAResumedResourceIsRemovedAlthoughItGoesJustThen(t *testing.T) {
	whileItComesAndGoes(t, func(u *subscription) {
		u.subscribeAll(false)
		err := u.resumeVersions(map[string]string{"a": "1"})
		u.mu.Lock()
		known := u.interest.watches["a"]
		u.mu.Unlock()
		if err != nil || known == nil || known.sent == 0 {
			t.Errorf("the client keeps the resource for ever (%v)", err)
		}
		u.unsubscribeAll()
	})
}
