package etcd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// founding is the value of the fleet's key.
type founding struct {
	ID      string    `json:"id"`
	After   uint64    `json:"after"` // the head of the log before its first entry in etcd
	Founded time.Time `json:"founded"`

	text []byte // encoded; nil without a fleet
}

// extent is the fleet and the entries of a prefix, at one revision.
type extent struct {
	fleet    founding
	first    uint64 // the first entry; 0 without entries
	count    uint64 // entries have no gaps
	revision int64
}

// head returns the sequence of the last entry.
func (e extent) head() uint64 {
	if e.count == 0 {
		return e.fleet.After
	}
	return e.first + e.count - 1
}

// check compares the extent with the fleet and the cursor of a replica.
func (e extent) check(fleet string, cursor uint64) error {
	switch {
	case e.fleet.text == nil && fleet == "":
		return fmt.Errorf("%w (the prefix has %d entries, and not whose they are)", ErrWiped, e.count)
	case e.fleet.text == nil && cursor == 0:
		return fmt.Errorf("%w (it is fleet %s)", ErrWiped, fleet)
	case e.fleet.text == nil:
		return fmt.Errorf("%w (it is fleet %s, of which this replica has the entries up to %d)", ErrWiped, fleet, cursor)
	case e.fleet.ID != fleet:
		return fmt.Errorf("%w (it is of fleet %s, this replica of %s)", ErrOtherFleet, e.fleet.ID, fleet)
	case e.head() < cursor && e.count == 0:
		return fmt.Errorf("%w (the log is empty, and this replica has the entries up to %d)", ErrRestored, cursor)
	case e.head() < cursor:
		return fmt.Errorf("%w (the log ends with entry %d, the cursor is at %d)", ErrRestored, e.head(), cursor)
	}
	return nil
}

// begins returns the sequence of the first entry; without entries, of the next one.
func (e extent) begins() uint64 {
	if e.count == 0 {
		return e.fleet.After + 1
	}
	return e.first
}

// isTrimmed reports whether the entry after the cursor is gone.
func (e extent) isTrimmed(cursor uint64) bool { return cursor+1 < e.begins() }

// measure returns the operations that read an extent.
func (k keys) measure() []*pb.RequestOp {
	return []*pb.RequestOp{
		get(k.fleet()),
		read(&pb.RangeRequest{Key: k.log(), RangeEnd: end(k.log()), Limit: 1, KeysOnly: true}),
		read(&pb.RangeRequest{Key: k.log(), RangeEnd: end(k.log()), CountOnly: true}),
	}
}

// extent returns the extent in the responses to measure, from the i-th on.
func (k keys) extent(answer *pb.TxnResponse, i int) (e extent, err error) {
	e.revision = answer.Header.GetRevision()
	if kv := firstKey(answer, i); kv != nil {
		if e.fleet, err = parseFounding(kv); err != nil {
			return e, err
		}
	}
	if kv := firstKey(answer, i+1); kv != nil {
		e.first, err = k.sequence(kv.Key)
	}
	e.count = keyCount(answer, i+2)
	return e, err
}

func newFounding(fleet string, after uint64) (f founding, err error) {
	f = founding{ID: fleet, After: after, Founded: time.Now()}
	f.text, err = json.Marshal(f)
	return f, err
}

func parseFounding(kv *mvccpb.KeyValue) (f founding, err error) {
	if err := json.Unmarshal(kv.Value, &f); err != nil || f.ID == "" {
		return f, fmt.Errorf("%w: %s is %.200q", ErrDamaged, kv.Key, kv.Value)
	}
	f.text = kv.Value
	return f, nil
}

// extent reads the extent of the log.
func (c *Client) extent(ctx context.Context) (extent, error) {
	answer, err := c.conn.transact(ctx, "reading the extent of the log", &pb.TxnRequest{Success: c.keys.measure()})
	if err != nil {
		return extent{}, err
	}
	return c.keys.extent(answer, 0)
}

// Join returns the log, if the prefix belongs to the fleet of a replica. The replica tells the
// fleet that it knows, and up to which entry it has the log. One that knows no fleet ("") takes
// the one that it finds; where there is none, it founds one, whose log goes on after the cursor.
// Join waits for etcd until ctx ends. The errors are ErrOtherFleet, ErrWiped, ErrRestored and
// ErrDamaged.
func (c *Client) Join(ctx context.Context, fleet string, cursor uint64) (*Log, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	for n := 0; ; n++ {
		f, err := c.join(ctx, fleet, cursor)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil:
			c.board.clear(TaskJoin)
			return newLog(c, f), nil
		case isFinal(err):
			c.board.clear(TaskJoin)
			return nil, err
		}
		c.board.fail(TaskJoin, err)
		sleep(ctx, pause(n))
	}
}

func (c *Client) join(ctx context.Context, fleet string, cursor uint64) (founding, error) {
	e, err := c.extent(ctx)
	if err != nil {
		return founding{}, err
	}
	if fleet == "" && e.fleet.text == nil && e.count == 0 {
		if e, err = c.found(ctx, rand.Text(), cursor); err != nil {
			return founding{}, err
		}
	}
	if fleet == "" && e.fleet.text != nil {
		fleet = e.fleet.ID
	}
	return e.fleet, e.check(fleet, cursor)
}

// Found makes an empty prefix that of a fleet, whose log goes on after an entry. An operator
// wants this after etcd was lost, on the replica with the longest history. The error is
// ErrFounded where the prefix is not empty, unless it is by the same call.
func (c *Client) Found(ctx context.Context, fleet string, after uint64) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	e, err := retry(ctx, func(ctx context.Context) (extent, error) { return c.found(ctx, fleet, after) })
	if err == nil && (e.fleet.ID != fleet || e.head() != after) {
		err = fmt.Errorf("%w (fleet %q, %d entries)", ErrFounded, e.fleet.ID, e.count)
	}
	return err
}

// found founds a fleet in an empty prefix. It returns the extent of the prefix.
func (c *Client) found(ctx context.Context, fleet string, after uint64) (extent, error) {
	f, err := newFounding(fleet, after)
	if err != nil {
		return extent{}, err
	}
	empty := isAbsent(c.keys.log())
	empty.RangeEnd = end(c.keys.log())
	request := &pb.TxnRequest{
		Compare: []*pb.Compare{isAbsent(c.keys.fleet()), empty},
		Success: []*pb.RequestOp{put(c.keys.fleet(), f.text, 0)},
		Failure: c.keys.measure(),
	}
	answer, err := c.conn.transact(ctx, "founding the fleet", request)
	if err != nil {
		return extent{}, err
	}
	if answer.Succeeded {
		return extent{fleet: f, revision: answer.Header.GetRevision()}, nil
	}
	return c.keys.extent(answer, 0)
}
