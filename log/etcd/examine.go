package etcd

import (
	"context"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// ServerStatus is the state of the server of etcd that a Prefix with one endpoint calls.
type ServerStatus struct {
	Version string
	Cluster uint64 // id of the cluster that it is a member of
	Leader  bool   // it knows the leader of that
	Full    bool   // the cluster has the alarm NOSPACE
}

// Status returns the state of the server. Like all calls of a Prefix, it repeats attempts until ctx ends.
func (p *Prefix) Status(ctx context.Context) (ServerStatus, error) {
	answer, err := retry(ctx, func(ctx context.Context) (*pb.StatusResponse, error) {
		return call(ctx, p.conn, "asking for the status of etcd", callTimeout, func(ctx context.Context, m *member) (*pb.StatusResponse, error) {
			return pb.NewMaintenanceClient(m.grpc).Status(ctx, &pb.StatusRequest{})
		})
	})
	return ServerStatus{
		Version: answer.GetVersion(), Cluster: answer.GetHeader().GetClusterId(), Leader: answer.GetLeader() != 0,
		Full: slices.ContainsFunc(answer.GetErrors(), func(alarm string) bool { return strings.Contains(alarm, pb.AlarmType_NOSPACE.String()) }),
	}, err
}

// CheckWrite reports whether the user may write below the prefix. It writes nothing.
func (p *Prefix) CheckWrite(ctx context.Context) error {
	key := p.keys.leader()
	_, err := p.conn.settle(ctx, "writing below the prefix", &pb.TxnRequest{
		Compare: []*pb.Compare{isAbsent(key), isPresent(key)}, // never both
		Success: []*pb.RequestOp{put(key, nil, 0)},
	})
	return err
}

// CheckSession opens a session with a TTL, ends it, and returns the granted TTL.
func (p *Prefix) CheckSession(ctx context.Context, ttl time.Duration) (granted time.Duration, err error) {
	request := &pb.LeaseGrantRequest{TTL: Options{TTL: ttl}.seconds()}
	answer, err := write(ctx, p.conn, "opening a session", func(ctx context.Context, m *member) (*pb.LeaseGrantResponse, error) {
		return m.lease.LeaseGrant(ctx, request)
	})
	if err != nil {
		return 0, err
	}
	_, err = write(ctx, p.conn, "ending a session", func(ctx context.Context, m *member) (*pb.LeaseRevokeResponse, error) {
		return m.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: answer.ID})
	})
	return time.Duration(answer.TTL) * time.Second, err
}

// Check compares the contents with the fleet and the cursor of a database. The errors are those of Join.
func (c *Contents) Check(fleet string, cursor uint64) error {
	e := extent{fleet: founding{ID: c.Fleet, text: c.founding, After: c.Head}, count: c.Entries}
	if e.count > 0 {
		e.first = c.Head - c.Entries + 1
	}
	return e.check(fleet, cursor)
}
