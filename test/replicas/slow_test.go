package replicas

import (
	"fmt"
	"testing"
	"time"

	"hdsd/test/etcd"
)

// TestEtcdIsSlow covers an etcd whose disk takes 10 ms for each sync, and one whose disk takes a second. Decisions take
// longer, and nobody loses the lead: a session lasts for 3 s, as by default.
func TestEtcdIsSlow(t *testing.T) {
	t.Parallel()
	servers, setDelay := etcd.StartSlow(t, 1)
	l := newLab(t, servers, "3s")
	for _, delay := range []time.Duration{10 * time.Millisecond, time.Second} {
		leader := l.leader()
		epoch := leader.metric("hdsd_replica_epoch")
		l.fault(fmt.Sprintf("a sync of etcd takes %v", delay), func() {
			setDelay(delay)
			for range either(3, 30) {
				position := leader.metric("hdsd_replica_position")
				leader.until("to decide while etcd is slow", func() bool { return leader.metric("hdsd_replica_position") != position })
			}
		}, func() { setDelay(0) })
		if now := leader.metric("hdsd_replica_epoch"); now != epoch || leader.metric("hdsd_replica_leads") != "1" {
			t.Errorf("while syncs took %v, the leader of epoch %s has lost the lead, in epoch %s", delay, epoch, now)
		}
	}
	l.finish()
}
