package replicas

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hdsd/test/etcd"
	"hdsd/test/fleet"
)

// release is an hdsd that replicas may run.
type release struct{ name, binary string }

// TestUpgrade replaces the replicas of another release by those of this one, as docs/guides/upgrade.md says: one after
// the other, the leader last. HDSD_PREVIOUS is the binary of the other release, and make upgrades sets it. Then all
// go back, and forth again, and replicas of both releases lead each mixed fleet for a while, and are killed. Without
// HDSD_PREVIOUS, the other release is this one, and none goes back.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	previous := os.Getenv("HDSD_PREVIOUS")
	older, newer := release{"the older release", cmp.Or(previous, fleet.Plain(t))}, release{"the newer release", fleet.Plain(t)}
	u := &upgrade{lab: prepare(t, etcd.StartCluster(t, 1, quickEtcd...), shortTTL), running: map[*process]release{}}
	for _, r := range u.replicas {
		r.binary, u.running[r] = older.binary, older
	}
	u.open()
	u.operate()
	backup := filepath.Join(t.TempDir(), "before.db")
	run(t, older.binary, "backup", "--server", u.replicas[0].grpc, backup)
	u.roll(newer, func(*process) {})
	if u.mixed = previous != ""; u.mixed {
		u.roll(older, func(r *process) { run(t, older.binary, "restore", backup, "-c", r.file("hdsd.yaml")) })
		u.roll(newer, func(*process) {})
	}
	u.finish()
}

// run runs hdsd to its end.
func run(t *testing.T, binary string, arguments ...string) {
	t.Helper()
	if output, err := exec.Command(binary, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("hdsd %q: %v: %s", arguments, err, output)
	}
}

// upgrade is a fleet on its way to another release.
type upgrade struct {
	*lab
	running map[*process]release
	mixed   bool // the fleet is used while it is mixed
}

// roll replaces the replicas by those of a release. It does something while each one is stopped.
func (u *upgrade) roll(to release, stopped func(*process)) {
	u.t.Helper()
	for left := len(u.replicas); left > 0; left-- {
		if u.mixed && left < len(u.replicas) {
			u.use()
		}
		r, role := u.next(to), "a follower"
		if r.leads() {
			role = "the leader"
		}
		u.fault(role+" becomes "+to.name, func() {
			u.behind(r)
			if err := r.Stop(); err != nil {
				u.t.Error(err)
			}
			stopped(r)
		}, func() {
			r.binary, u.running[r] = to.binary, to
			r.start()
		})
		u.connected()
	}
}

// next returns a replica that does not run a release yet; the leader if it is the last one.
func (u *upgrade) next(to release) *process {
	leader := u.leader()
	for _, r := range u.replicas {
		if r != leader && u.running[r] != to {
			return r
		}
	}
	return leader
}

// connected waits until all replicas answer each other.
func (u *upgrade) connected() {
	u.t.Helper()
	for _, r := range u.replicas {
		r.until("to see three replicas that answer", func() bool {
			var answer struct {
				Replicas []struct {
					Connected bool
					Position  string
				}
			}
			if r.get("/v1/replicas", &answer) != nil || len(answer.Replicas) != len(u.replicas) {
				return false
			}
			for _, row := range answer.Replicas {
				if !row.Connected || row.Position == "0" {
					return false
				}
			}
			return true
		})
	}
}

// use lets replicas of each release lead the mixed fleet for a while, and kills them.
func (u *upgrade) use() {
	u.t.Helper()
	led := map[string]int{} // by the name of the release
	for n := 0; len(led) < 2; n++ {
		if n == 20 {
			u.t.Fatalf("of %d leaders none was of another release: %v", n, led)
		}
		leader := u.leader()
		led[u.running[leader].name]++
		time.Sleep(either(time.Second, 20*time.Second)) // of changes and orders without a fault
		u.fault("kill -9 of the leader, "+u.running[leader].name, func() {
			u.behind(leader)
			leader.Kill()
			u.t.Logf("%s leads after it", u.running[u.leader()].name)
		}, leader.start)
		u.connected()
	}
	u.t.Logf("leaders of the mixed fleet: %v", led)
}
