package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hdsd/api"
	"hdsd/coordinator/attention"
	"hdsd/coordinator/union"
	"hdsd/log/etcd"
	"hdsd/replica/clusters"
)

const (
	// lostTime is how long a replica without a session counts as lost. Later it counts as removed.
	lostTime = time.Hour

	// problemPatience is how long a problem with an etcd that answers lasts until an operator should know. Most of
	// them end with the next attempt.
	problemPatience = 3 * time.Second

	// differencePatience is how long replicas have different clusters until an operator should know. Sources do not tell
	// all replicas at once.
	differencePatience = 30 * time.Second
)

// members remembers the replicas that had a session, and since when none leads. Any goroutine may use it.
type members struct {
	mu         sync.Mutex
	leaderless time.Time            // zero: a replica leads, or etcd has not answered yet; guarded by mu
	lost       map[string]lostSince // by id; guarded by mu
	present    map[string]string    // addresses of the replicas with a session, by id; guarded by mu
}

// lostSince says when a replica lost its session, and where it was.
type lostSince struct {
	time    time.Time
	address string
}

// observe takes a change of the replicas.
func (m *members) observe(now time.Time, v *etcd.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.Leader != "" {
		m.leaderless = time.Time{}
	} else if m.leaderless.IsZero() {
		m.leaderless = now
	}
	before := m.present
	m.present = map[string]string{}
	for i := range v.Members {
		m.present[v.Members[i].ID] = v.Members[i].Address
		delete(m.lost, v.Members[i].ID)
	}
	for id, address := range before {
		if _, ok := m.present[id]; !ok {
			if m.lost == nil {
				m.lost = map[string]lostSince{}
			}
			m.lost[id] = lostSince{now, address}
		}
	}
}

// troubles returns what is wrong with the replicas.
func (m *members) troubles(now time.Time) (t attention.Replication) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.leaderless.IsZero() {
		t.NoLeader = attention.Named{Reason: "none of the replicas has been elected yet", Since: m.leaderless}
	}
	for id, lost := range m.lost {
		if now.Sub(lost.time) >= lostTime {
			delete(m.lost, id)
			continue
		}
		t.Lost = append(t.Lost, attention.Named{Name: id, Reason: "its session in etcd has ended", Since: lost.time})
	}
	slices.SortFunc(t.Lost, func(a, b attention.Named) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// troubles returns what is wrong with the replicas, as this one sees it. It is nothing for a coordinator alone.
func (r *replicas) troubles() attention.Replication {
	if r == nil {
		return attention.Replication{}
	}
	t := r.members.troubles(time.Now())
	status, _ := r.engine.Status()
	if fault := r.core.replication.state.Load().fault; fault != nil {
		t.EngineLost = attention.Named{Reason: fault.Error(), Since: status.Since}
	} else if !status.Connected {
		t.EngineLost = attention.Named{Reason: "it does not answer: see that most of its members run and that this machine reaches them", Since: status.Since}
		if len(status.Problems) > 0 {
			t.EngineLost.Reason = status.Problems[0].Err.Error()
		}
	} else {
		t.EngineLost = lasting(status.Problems, time.Now())
	}
	t.Differ = differing(r.core.replication.state.Load().differences, time.Now())
	return t
}

// differing returns the replicas that have had other clusters than the leader for a while, with their names.
func differing(all []clusters.Difference, now time.Time) (replicas []attention.Named) {
	for _, d := range all {
		if now.Sub(d.Since) < differencePatience {
			continue
		}
		text := strings.Join(d.Names, ", ")
		if further := d.Count - len(d.Names); further > 0 {
			text += fmt.Sprintf(" and %d more", further)
		}
		replicas = append(replicas, attention.Named{Name: d.Replica, Reason: text, Since: d.Since})
	}
	return replicas
}

// lasting returns the oldest of the problems that a replica has with an etcd that answers, if it does not end by itself.
func lasting(problems []etcd.Problem, now time.Time) (n attention.Named) {
	for _, p := range problems {
		if now.Sub(p.Since) >= problemPatience {
			return attention.Named{Reason: p.Err.Error(), Since: p.Since}
		}
	}
	return n
}

// list returns the rows of the replicas with a session, and of those that are lost, by id. The position is that of
// this replica.
func (r *replicas) list(context.Context) (rows []api.Replica, epoch int64, err error) {
	view, _ := r.engine.View()
	links, own := r.links.Status(), r.config.GetNodeId()
	for i := range view.Members {
		m := &view.Members[i]
		rows = append(rows, api.Replica{
			ID: m.ID, Leader: m.ID == view.Leader, Connected: links[m.ID].Connected, Address: m.Address, Version: m.Version, Since: m.Started,
		})
	}
	index := slices.IndexFunc(rows, func(row api.Replica) bool { return row.ID == own })
	if index < 0 { // without a session
		index, rows = len(rows), append(rows, api.Replica{ID: own, Address: r.listener.Addr().String(), Version: r.version, Since: r.started})
	}
	self := &rows[index]
	status, _ := r.engine.Status()
	state := r.core.replication.state.Load()
	self.Self, self.Connected, self.Position = true, status.Connected, state.position
	self.Lag = lagOf(state, r.engine.Received(), &status, time.Now())
	rows = append(rows, r.members.lostRows(own)...)
	slices.SortFunc(rows, func(a, b api.Replica) int { return cmp.Compare(a.ID, b.ID) })
	return rows, view.Epoch, nil
}

// lagOf returns how far a replica is behind the log: since etcd does not answer, or since it has published while entries
// that it has received wait.
func lagOf(s *replicaState, received uint64, e *etcd.Status, now time.Time) time.Duration {
	switch {
	case !e.Connected:
		return now.Sub(e.Since)
	case received > s.position && !s.time.IsZero():
		return now.Sub(s.time)
	}
	return 0
}

// lostRows returns the rows of the lost replicas, without one.
func (m *members) lostRows(without string) (rows []api.Replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, lost := range m.lost {
		if id != without {
			rows = append(rows, api.Replica{ID: id, Address: lost.address})
		}
	}
	return rows
}

// answer lets this replica answer questions of the others from its own backend.
func (r *replicas) answer(own api.Backend) {
	if r != nil {
		r.union = union.New(r.config.GetNodeId(), own, r)
	}
}

// backend returns the backend for questions of clients.
func (r *replicas) backend(own api.Backend) api.Backend {
	if r == nil {
		return own
	}
	return r.union
}

// Leader implements union.Peers.
func (r *replicas) Leader() (id string, ok bool) {
	view, _ := r.engine.View()
	return view.Leader, view.Leader != "" && view.Leader != r.config.GetNodeId()
}

// Others implements union.Peers.
func (r *replicas) Others() (ids []string) {
	view, _ := r.engine.View()
	for i := range view.Members {
		if id := view.Members[i].ID; id != r.config.GetNodeId() {
			ids = append(ids, id)
		}
	}
	return ids
}
