package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Member is a replica with a session.
type Member struct {
	ID      string    `json:"-"`
	Address string    `json:"address"`
	Version string    `json:"version"`
	Started time.Time `json:"started"` // the process, by its own clock
	Since   time.Time `json:"since"`   // the session, by its own clock

	lease int64
}

// View is the latest known list of replicas, and their leader. It may be stale unless Status is
// Connected.
type View struct {
	Known   bool     // etcd has answered at least once
	Members []Member // by id
	Leader  string   // id of the leader; empty without one
	Epoch   int64    // epoch of the leader; 0 without one
	Since   time.Time

	lease    int64 // of the leader
	revision int64 // of etcd, up to which the view has all
}

// leaderValue is the value of the leader's key.
type leaderValue struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

// member returns the member with an id, if there is one.
func (v View) member(id string) (Member, bool) {
	i, found := v.find(id)
	if !found {
		return Member{}, false
	}
	return v.Members[i], true
}

// find returns the place of an id among the members, and reports whether there is such a member.
func (v View) find(id string) (i int, found bool) {
	return slices.BinarySearchFunc(v.Members, id, func(m Member, id string) int { return cmp.Compare(m.ID, id) })
}

// clone returns a view with a list of its own.
func (v View) clone() View {
	v.Members = slices.Clone(v.Members)
	return v
}

// put changes the view after a put of a key. A value that cannot be decoded counts, since its key
// exists.
func (v *View) put(k keys, kv *mvccpb.KeyValue) {
	v.revision = max(v.revision, kv.ModRevision)
	if string(kv.Key) == string(k.leader()) {
		var value leaderValue
		_ = json.Unmarshal(kv.Value, &value)
		v.Leader, v.Epoch, v.Since, v.lease = value.ID, kv.CreateRevision, value.Since, kv.Lease
		return
	}
	id, ok := k.replicaID(kv.Key)
	if !ok {
		return
	}
	var m Member
	if len(kv.Value) <= maxMember {
		_ = json.Unmarshal(kv.Value, &m)
	}
	m.ID, m.lease = id, kv.Lease
	if i, found := v.find(id); found {
		v.Members[i] = m
	} else {
		v.Members = slices.Insert(v.Members, i, m)
	}
}

// deleted changes the view after a deletion of a key.
func (v *View) deleted(k keys, kv *mvccpb.KeyValue) {
	v.revision = max(v.revision, kv.ModRevision)
	if string(kv.Key) == string(k.leader()) {
		v.Leader, v.Epoch, v.Since, v.lease = "", 0, time.Time{}, 0
	} else if id, ok := k.replicaID(kv.Key); ok {
		if i, found := v.find(id); found {
			v.Members = slices.Delete(v.Members, i, i+1)
		}
	}
}

// watchView updates the view until the context ends.
func (c *Client) watchView(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		after, err := c.readView(ctx)
		if err == nil {
			n = 0
			c.board.clear(TaskView)
			intervals := []interval{{key: c.keys.leader()}, {c.keys.replicas(), end(c.keys.replicas())}}
			err = c.watch(ctx, "watching the replicas", after, intervals, nil, c.applyEvents)
		}
		if ctx.Err() == nil {
			c.board.fail(TaskView, err)
			sleep(ctx, pause(n))
		}
	}
}

// readView reads the whole view at one revision.
func (c *Client) readView(ctx context.Context) (revision int64, err error) {
	replicas := c.keys.replicas()
	answer, err := c.conn.transact(ctx, "reading the replicas", &pb.TxnRequest{Success: []*pb.RequestOp{
		get(c.keys.leader()),
		read(&pb.RangeRequest{Key: replicas, RangeEnd: end(replicas)}),
	}})
	if err != nil {
		return 0, err
	}
	view := View{Known: true, revision: answer.Header.GetRevision()}
	for _, r := range answer.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			view.put(c.keys, kv)
		}
	}
	c.view.set(view)
	return view.revision, nil
}

// applyEvents applies the events of a watch to the view.
func (c *Client) applyEvents(response *pb.WatchResponse) error {
	if len(response.Events) == 0 {
		return nil
	}
	c.view.update(func(v View) (View, bool) {
		v = v.clone() // others read the present one
		for _, event := range response.Events {
			if event.Type == mvccpb.Event_DELETE {
				v.deleted(c.keys, event.Kv)
			} else {
				v.put(c.keys, event.Kv)
			}
		}
		return v, true
	})
	return nil
}
