package etcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Prefix gives an operator the keys of a fleet. It has no session, and no goroutine.
type Prefix struct {
	keys keys
	conn *connection
}

// OpenPrefix prepares connections to etcd. It does not wait for etcd. An error is about the options.
func OpenPrefix(o Options) (*Prefix, error) {
	o, err := o.checked()
	if err != nil {
		return nil, fmt.Errorf("replication.etcd: %w", err)
	}
	conn, err := dial(o)
	if err != nil {
		return nil, fmt.Errorf("replication.etcd: %w", err)
	}
	return &Prefix{keys{o.Prefix}, conn}, nil
}

// Close closes the connections.
func (p *Prefix) Close() error { return p.conn.close() }

// Contents are the keys of a fleet at one moment.
type Contents struct {
	Fleet   string    // empty: the prefix belongs to none
	Founded time.Time // the fleet
	Head    uint64    // sequence of the last entry; without entries, of that before the first one
	Entries uint64
	Members []Member // replicas with a session, by id
	Leader  string   // id; empty without one
	Others  uint64   // keys that are not of hdsd

	founding []byte // value of the fleet's key; nil without one
}

// Read reads the contents. It waits for etcd until ctx ends.
func (p *Prefix) Read(ctx context.Context) (c Contents, err error) {
	all, replicas := []byte(p.keys.prefix+"/"), p.keys.replicas()
	answer, err := p.conn.settle(ctx, "reading the prefix", &pb.TxnRequest{Success: append(p.keys.measure(),
		get(p.keys.leader()),
		read(&pb.RangeRequest{Key: replicas, RangeEnd: end(replicas)}),
		read(&pb.RangeRequest{Key: all, RangeEnd: end(all), CountOnly: true}),
	)})
	if err != nil {
		return c, err
	}
	e, err := p.keys.extent(answer, 0)
	if err != nil {
		return c, err
	}
	var view View
	for _, i := range []int{3, 4} {
		for _, kv := range answer.Responses[i].GetResponseRange().GetKvs() {
			view.put(p.keys, kv)
		}
	}
	c = Contents{Fleet: e.fleet.ID, Founded: e.fleet.Founded, Head: e.head(), Entries: e.count, Members: view.Members, Leader: view.Leader, founding: e.fleet.text}
	c.Others = keyCount(answer, 5) - e.count - uint64(len(view.Members))
	for _, there := range []bool{e.fleet.text != nil, view.Epoch != 0} {
		if there {
			c.Others--
		}
	}
	return c, nil
}

// Found removes the log that an operator has seen, and makes the prefix that of a new fleet, whose log goes on after an entry.
// It changes nothing while a replica has a session, or when the prefix is of another fleet since: the error is
// ErrChanged. If it ends before that, a repetition goes on. It keeps keys that are not of hdsd.
func (p *Prefix) Found(ctx context.Context, seen Contents, fleet string, after uint64) error {
	f, err := newFounding(fleet, after)
	if err != nil {
		return err
	}
	log, replicas := p.keys.log(), p.keys.replicas()
	none := isAbsent(replicas)
	none.RangeEnd = end(replicas)
	unchanged := []*pb.Compare{none, isAbsent(p.keys.leader()), isAbsent(p.keys.fleet())}
	if seen.founding != nil {
		unchanged[2] = hasValue(p.keys.fleet(), seen.founding)
	}
	for more := true; more; {
		page := read(&pb.RangeRequest{Key: log, RangeEnd: end(log), Limit: trimEntries + 1, KeysOnly: true})
		answer, err := p.conn.settle(ctx, "reading the log", &pb.TxnRequest{Success: []*pb.RequestOp{page}})
		if err != nil {
			return err
		}
		present := answer.Responses[0].GetResponseRange().GetKvs()
		until, change := end(log), []*pb.RequestOp{}
		if more = len(present) > trimEntries; more {
			until = present[trimEntries].Key
		} else {
			change = append(change, put(p.keys.fleet(), f.text, 0))
		}
		answer, err = p.conn.settle(ctx, "founding the fleet", &pb.TxnRequest{
			Compare: unchanged,
			Success: append(change, remove(log, until)),
			Failure: []*pb.RequestOp{get(p.keys.fleet())},
		})
		switch {
		case err != nil:
			return err
		case answer.Succeeded:
		case !more && firstKey(answer, 0) != nil && string(firstKey(answer, 0).Value) == string(f.text): // the answer of an attempt before was lost
		default:
			return ErrChanged
		}
	}
	return nil
}
