package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The keys of the floor.
const (
	seatKey  = "/floor/leader"
	entryKey = "/floor/log"
)

// putter writes to etcd, and watches at each server. So it is the floor of what replicas do.
type putter struct {
	*engine
	all    []*grpc.ClientConn // by server
	seen   []chan time.Time   // by server, when a watcher saw the entry change
	gone   chan struct{}      // the first server's watcher saw that the seat has become free
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu  sync.Mutex
	err error // of a watcher; guarded by mu
}

// newPutter connects to its own cluster.
func newPutter(dir string) (*putter, error) {
	e, err := newEngine(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &putter{engine: e, cancel: cancel, gone: make(chan struct{}, 1)}
	for i, address := range e.clients {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err == nil {
			p.all, p.seen = append(p.all, conn), append(p.seen, make(chan time.Time, queued))
			err = p.watch(ctx, i)
		}
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *putter) close() {
	p.cancel()
	for _, conn := range p.all {
		_ = conn.Close()
	}
	p.tasks.Wait()
	p.engine.close()
}

// watch watches both keys at one server. It returns when the watch has begun.
func (p *putter) watch(ctx context.Context, server int) error {
	stream, err := pb.NewWatchClient(p.all[server]).Watch(ctx)
	if err == nil {
		err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("/floor/"), RangeEnd: []byte("/floor0")}}})
	}
	if err == nil {
		_, err = stream.Recv() // it has begun
	}
	if err != nil {
		return err
	}
	p.tasks.Go(func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.err = err
				return
			}
			now := time.Now()
			for _, e := range answer.GetEvents() {
				switch key := string(e.GetKv().GetKey()); {
				case key == entryKey:
					p.seen[server] <- now
				case e.GetType() == mvccpb.DELETE && server == 0:
					p.gone <- struct{}{}
				}
			}
		}
	})
	return nil
}

// put writes a value, and returns the time until the last server's watcher has seen it.
func (p *putter) put(value []byte) (time.Duration, error) {
	began := time.Now()
	if _, err := pb.NewKVClient(p.all[0]).Put(context.Background(), &pb.PutRequest{Key: []byte(entryKey), Value: value}); err != nil {
		return 0, err
	}
	return p.await(began)
}

func (p *putter) await(began time.Time) (last time.Duration, err error) {
	for _, seen := range p.seen {
		select {
		case event := <-seen:
			last = max(last, event.Sub(began))
		case <-time.After(patience):
			p.mu.Lock()
			defer p.mu.Unlock()
			return 0, fmt.Errorf("waiting for etcd's watchers: %w (%w)", errPatience, p.err)
		}
	}
	return last, nil
}

// puts is how long so many writes take, one after the other.
func (p *putter) puts(count, size int, pause func()) ([]time.Duration, error) {
	var took []time.Duration
	for range count {
		pause()
		duration, err := p.put(make([]byte, size))
		if err != nil {
			return nil, err
		}
		took = append(took, duration)
	}
	return took, nil
}

// lease asks for one.
func (p *putter) lease() (int64, error) {
	const ttl = 3
	answer, err := pb.NewLeaseClient(p.all[0]).LeaseGrant(context.Background(), &pb.LeaseGrantRequest{TTL: ttl})
	return answer.GetID(), err
}

// sit puts the leader's key under a lease.
func (p *putter) sit(lease int64) error {
	_, err := pb.NewKVClient(p.all[0]).Put(context.Background(), &pb.PutRequest{Key: []byte(seatKey), Value: []byte("replica"), Lease: lease})
	return err
}

// succeed is how long it takes to end the session of a leader, to see that, to take its place, and to commit an entry
// that all watchers see.
func (p *putter) succeed() (time.Duration, error) {
	first, err := p.lease()
	if err != nil {
		return 0, err
	}
	next, err := p.lease()
	if err == nil {
		err = p.sit(first)
	}
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := pb.NewLeaseClient(p.all[0]).LeaseRevoke(context.Background(), &pb.LeaseRevokeRequest{ID: first}); err != nil {
		return 0, err
	}
	<-p.gone
	err = p.sit(next)
	if err == nil {
		_, err = p.put([]byte("entry"))
	}
	took := time.Since(began)
	if err == nil {
		_, err = pb.NewLeaseClient(p.all[0]).LeaseRevoke(context.Background(), &pb.LeaseRevokeRequest{ID: next})
		<-p.gone
	}
	return took, err
}

// rest keeps leases alive for a time, as sessions do, and returns etcd's writes a second.
func (p *putter) rest(sessions int, d time.Duration) (float64, error) {
	stream, err := pb.NewLeaseClient(p.all[0]).LeaseKeepAlive(context.Background())
	if err != nil {
		return 0, err
	}
	defer func() { _ = stream.CloseSend() }() // the leases end by themselves
	var leases []int64
	for range sessions {
		lease, err := p.lease()
		if err != nil {
			return 0, err
		}
		leases = append(leases, lease)
	}
	before, err := p.writes()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for time.Since(began) < d {
		for _, lease := range leases {
			err := stream.Send(&pb.LeaseKeepAliveRequest{ID: lease})
			if err == nil {
				_, err = stream.Recv()
			}
			if err != nil {
				return 0, err
			}
		}
		time.Sleep(time.Second)
	}
	after, err := p.writes()
	return (after - before) / time.Since(began).Seconds(), err
}

// pause waits a random time, so that work does not come in the rhythm of commits.
func pause() { time.Sleep(rand.N(20 * time.Millisecond)) }
