package replicas

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hdsd/test/envoy"
	"hdsd/test/etcd"
)

// routes are the paths around a replica.
type routes struct {
	etcd     []*proxy // to the members of etcd
	peers    *proxy   // from other replicas
	checkers *proxy   // from checkers
}

// newRoutes puts proxies around a replica that does not run yet.
func newRoutes(t testing.TB, r *process, servers []*etcd.Server) *routes {
	w := &routes{peers: newProxy(t, r.peer), checkers: newProxy(t, r.grpc)}
	var urls []string
	for _, s := range servers {
		p := newProxy(t, s.Address)
		w.etcd, urls = append(w.etcd, p), append(urls, fmt.Sprintf("%q", "http://"+p.address))
	}
	r.etcd, r.advertise, r.hds = strings.Join(urls, ", "), w.peers.address, w.checkers.address
	return w
}

// cuttable returns three replicas with proxies around each, of which the last one leads. Operators may be at work.
func cuttable(t *testing.T, operated bool) (*lab, []*routes) {
	t.Helper()
	l := prepare(t, etcd.StartCluster(t, 1, quickEtcd...), shortTTL)
	var all []*routes
	for _, r := range l.replicas {
		all = append(all, newRoutes(t, r, l.etcd))
	}
	last := l.replicas[2]
	last.launch()
	last.until("to lead", last.leads)
	l.open()
	if operated {
		l.operate()
	}
	return l, all
}

// cut cuts paths around a replica, which must be in use, for a while, and opens them again.
func (l *lab) cut(what string, r *process, how path, cut []*proxy, meanwhile func()) {
	l.t.Helper()
	role, duration := "a follower", either(2*time.Second, 10*time.Second)
	if how == silent {
		duration *= 2
	}
	if r == l.leader() {
		role = "the leader"
	}
	l.fault(fmt.Sprintf("%s cut from %s: %v", role, what, how), func() {
		envoy.Eventually(l.t, patience, "a connection to cut", func() bool { return slices.ContainsFunc(cut, (*proxy).used) })
		end := time.Now().Add(duration)
		for _, p := range cut {
			p.set(how)
		}
		meanwhile()
		time.Sleep(time.Until(end))
	}, func() {
		for _, p := range cut {
			p.set(open)
		}
	})
}

// tells waits until a replica has a text in its status.
func (l *lab) tells(r *process, text string) {
	l.t.Helper()
	r.until("to say: "+text, func() bool {
		_, status := r.ask("/v1/status")
		return strings.Contains(status, text)
	})
}

// TestAReplicaIsCutFromEtcd covers a leader and a follower that reach all but etcd.
func TestAReplicaIsCutFromEtcd(t *testing.T) {
	t.Parallel()
	l, routes := cuttable(t, true)
	for _, how := range []path{closed, silent} {
		for _, find := range []func() *process{l.leader, l.follower} {
			r := find()
			l.cut("etcd", r, how, routes[slices.Index(l.replicas, r)].etcd, func() {
				l.behind(r)
				l.tells(r, "etcd does not serve this replica")
			})
		}
	}
	l.finish()
}

// TestAReplicaIsCutFromItsPeers covers a leader and a follower that reach all but the other replicas. Those with
// smaller ids call it, so the path to the last one has all of its links. A path that is closed ends the session of the
// leader, as that of a leader that has been killed.
func TestAReplicaIsCutFromItsPeers(t *testing.T) {
	t.Parallel()
	l, routes := cuttable(t, true)
	r, links := l.replicas[2], []*proxy{routes[2].peers}
	for _, how := range []path{silent, closed} {
		l.cut("its peers", r, how, links, func() {})
	}
	if l.leader() == r {
		t.Error("a leader that refuses the others goes on leading")
	}
	for _, how := range []path{silent, closed} {
		l.cut("its peers", r, how, links, func() {})
	}
	l.finish()
}

// TestAReplicaIsCutFromItsCheckers covers a leader and a follower that reach all but checkers.
func TestAReplicaIsCutFromItsCheckers(t *testing.T) {
	t.Parallel()
	l, routes := cuttable(t, true)
	for _, how := range []path{closed, silent} {
		for _, find := range []func() *process{l.leader, l.follower} {
			r := find()
			l.cut("its checkers", r, how, []*proxy{routes[slices.Index(l.replicas, r)].checkers}, func() {})
		}
	}
	l.finish()
}
