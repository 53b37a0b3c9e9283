package replicas

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hdsd/test/etcd"
)

// TestKill9OfReplicas kills each replica in turn at random moments under load, 200 times with SOAK. Sessions last for
// longer than a leader may be missed: a follower whose connection is refused ends the session of a killed leader.
func TestKill9OfReplicas(t *testing.T) {
	t.Parallel()
	const ttl, limit = "60s", 20 * time.Second
	l := newLab(t, etcd.StartCluster(t, 1, quickEtcd...), ttl)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 2))
	t.Logf("seed %d", seed)
	var elections []time.Duration
	for n := range either(5, 200) {
		r := l.replicas[n%3]
		if n == 0 {
			r = l.leader()
		}
		l.fault("kill -9 of "+r.id, func() {
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			led := r.leads()
			l.behind(r)
			r.Kill()
			if killed := time.Now(); led {
				l.leader() // before the replica runs again, which would end its previous session
				elections = append(elections, time.Since(killed))
			}
		}, r.start)
	}
	slices.Sort(elections)
	if len(elections) == 0 || elections[len(elections)-1] > limit {
		t.Errorf("the next leader came after %v, with sessions of %s", elections, ttl)
	}
	t.Logf("%d leaders killed; the next one led %v (median) to %v later", len(elections), elections[len(elections)/2].Round(time.Millisecond), elections[len(elections)-1].Round(time.Millisecond))
	l.finish()
}
