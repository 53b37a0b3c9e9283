package demo

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/demo/envoy"
)

// ensemble is the replicas on a stage, and what they share.
type ensemble struct {
	stage  *stage
	etcd   string // its address
	planes planes
}

// script is the script with replicas: the leader is killed.
func (e *ensemble) script() script {
	return script{
		title:    fmt.Sprintf("etcd, %d replicas, checkers in zones a, b and c, four upstreams, data planes", e.stage.options.Replicas),
		starts:   []func(context.Context) error{e.startEtcd, e.startReplicas},
		fleet:    e.startFleet,
		failures: failures[:1],
		promises: []func(context.Context) error{e.killLeader, e.failWithout, e.stage.drain, e.comeBack},
		commands: []string{"status", "endpoints", "history --since 5m", "checkers", "replicas"},
	}
}

// startEtcd starts an etcd of one member.
func (e *ensemble) startEtcd(context.Context) (err error) {
	s := e.stage
	if e.etcd, err = envoy.FreeAddress(); err != nil {
		return err
	}
	peer, err := envoy.FreeAddress()
	if err != nil {
		return err
	}
	client, peer := "http://"+e.etcd, "http://"+peer
	child, err := envoy.StartChild(exec.Command(s.options.Etcd,
		"--name", "demo", "--data-dir", filepath.Join(s.dir, "etcd"), "--log-level", "error",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "demo="+peer,
	), func() {})
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	s.ends = append(s.ends, child.Kill)
	s.step("etcd, one member: %s", client)
	return nil
}

// startReplicas starts all replicas, and waits until they are ready and one leads.
func (e *ensemble) startReplicas(ctx context.Context) error {
	s := e.stage
	if err := s.writeClusters(clusters(s.upstreams)); err != nil {
		return err
	}
	for n := range s.options.Replicas {
		peer, err := envoy.FreeAddress()
		if err != nil {
			return err
		}
		c, err := s.addCoordinator(fmt.Sprintf("hdsd-%d", n+1), n, replication(e.etcd, peer))
		if err != nil {
			return err
		}
		if err := launch(c); err != nil {
			return err
		}
	}
	s.coordinator = s.coordinators[0]
	for _, c := range s.coordinators {
		if err := awaitReady(ctx, c); err != nil {
			return err
		}
		s.step("%s: gRPC %s, HTTP http://%s", c.id, c.grpc, c.http)
	}
	leader, err := e.awaitLeader(ctx)
	if err == nil {
		s.step("%s leads", leader.id)
	}
	return err
}

// checkerReplica returns the replica that the checker of a zone is connected to.
func (e *ensemble) checkerReplica(zone int) *coordinator {
	s := e.stage
	return s.coordinators[zone%len(s.coordinators)]
}

// startFleet starts checkers and data planes, one each at a replica.
func (e *ensemble) startFleet(ctx context.Context, binary string) error {
	s := e.stage
	for i := range zones {
		if err := s.startChecker(ctx, binary, i, e.checkerReplica(i)); err != nil {
			return err
		}
	}
	for i, c := range s.coordinators {
		plane, err := s.startPlane(ctx, binary, fmt.Sprintf("dp-%d", i+1), c)
		if err != nil {
			return err
		}
		e.planes = append(e.planes, &replicaPlane{dataPlane: plane, replica: c})
	}
	s.plane = e.planes
	if binary == "" {
		s.step("a built-in checker and a small ADS subscriber at each replica")
	} else {
		s.step("an Envoy that checks and an Envoy that routes at each replica")
	}
	return nil
}

// leader returns the replica that leads, as the one that is asked sees it; nil if none does.
func (e *ensemble) leader(ctx context.Context) *coordinator {
	s := e.stage
	answer, err := s.query.ListReplicas(ctx, &hdsdv1.ListReplicasRequest{})
	if err != nil {
		return nil
	}
	for _, r := range answer.GetReplicas() {
		for _, c := range s.coordinators {
			if r.GetLeader() && r.GetId() == c.id {
				return c
			}
		}
	}
	return nil
}

// awaitLeader waits until a replica that runs leads.
func (e *ensemble) awaitLeader(ctx context.Context) (leader *coordinator, err error) {
	if !await(ctx, func() bool { leader = e.leader(ctx); return leader != nil && leader.process.Alive() }) {
		return nil, failed(ctx, "no replica leads")
	}
	return leader, nil
}

// askFollower asks a replica that runs and does not lead from then on.
func (e *ensemble) askFollower(leader *coordinator) {
	s := e.stage
	for _, c := range s.coordinators {
		if c != leader && c.process.Alive() {
			s.coordinator = c
			c.part = fmt.Sprintf(" at %s, which follows", c.id)
		}
	}
}

// killLeader kills the leader, and waits until another replica leads.
func (e *ensemble) killLeader(ctx context.Context) error {
	s := e.stage
	leader, err := e.awaitLeader(ctx)
	if err != nil {
		return err
	}
	e.askFollower(leader)
	s.scene("kill -9: %s, which leads, is gone", leader.id)
	start := time.Now()
	leader.process.Kill()
	if leader, err = e.awaitLeader(ctx); err != nil {
		return err
	}
	s.event("hdsd", "%s leads", leader.id)
	e.askFollower(leader)
	if err := e.awaitVotes(ctx); err != nil {
		return err
	}
	s.event("votes", "the checkers of the other replicas decide")
	return s.unharmed(ctx, start)
}

// failWithout makes an upstream fail while a replica is gone.
func (e *ensemble) failWithout(ctx context.Context) error {
	for _, plane := range e.planes {
		plane.aside = !plane.replica.process.Alive()
	}
	s := e.stage
	return s.fail(ctx, failures[0], s.upstreams[(s.round*len(failures)+1)%len(s.upstreams)])
}

// comeBack starts the killed replica again, and compares what all of them know.
func (e *ensemble) comeBack(ctx context.Context) error {
	s := e.stage
	start := time.Now()
	for _, c := range s.coordinators {
		if c.process.Alive() {
			continue
		}
		s.scene("%s comes back", c.id)
		if err := serve(ctx, c); err != nil {
			return err
		}
		s.event("hdsd", "%s is ready, with the health that the log has", c.id)
	}
	for _, plane := range e.planes {
		plane.aside = false
	}
	if err := e.awaitVotes(ctx); err != nil {
		return err
	}
	s.event("checkers", "all three are back at work")
	for _, u := range s.upstreams {
		if !await(ctx, func() bool { return s.plane.published(u.address) == health.Healthy.String() }) {
			return failed(ctx, "the data planes have %s as %q", u.address, s.plane.published(u.address))
		}
	}
	var changes, orders int
	if !await(ctx, func() bool { changes, orders = e.agreement(ctx); return changes > 0 }) {
		return failed(ctx, "the replicas do not have the same history")
	}
	s.event("history", "%s have the same: %d changes, and %d orders", e.names(), changes, orders)
	return s.unharmed(ctx, start)
}

// names lists the replicas.
func (e *ensemble) names() string {
	s := e.stage
	var ids []string
	for _, c := range s.coordinators {
		ids = append(ids, c.id)
	}
	if last := len(ids) - 1; last > 0 {
		return strings.Join(ids[:last], ", ") + " and " + ids[last]
	}
	return ids[0]
}

// awaitVotes waits until the checkers of all replicas that run, and no others, have a vote on each endpoint.
func (e *ensemble) awaitVotes(ctx context.Context) error {
	s := e.stage
	count := 0
	for i := range zones {
		if e.checkerReplica(i).process.Alive() {
			count++
		}
	}
	for _, u := range s.upstreams {
		if !await(ctx, func() bool { return len(s.endpoint(ctx, u.address).GetObservations()) == count }) {
			return failed(ctx, "%s does not have the votes of %d checkers", u.address, count)
		}
	}
	return nil
}

// agreement returns the number of transitions in the history, and of orders in the audit, if all
// replicas have the same; else zeros.
func (e *ensemble) agreement(ctx context.Context) (changes, orders int) {
	s := e.stage
	var history *hdsdv1.ListTransitionsResponse
	var audit *hdsdv1.ListAuditResponse
	for _, c := range s.coordinators {
		h, err := c.query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: clusterName})
		if err != nil {
			return 0, 0
		}
		a, err := c.control.ListAudit(ctx, &hdsdv1.ListAuditRequest{})
		if err != nil {
			return 0, 0
		}
		if history == nil {
			history, audit = h, a
		}
		if !sameRows(h.GetTransitions(), history.GetTransitions()) || !sameRows(a.GetEntries(), audit.GetEntries()) {
			return 0, 0
		}
	}
	return len(history.GetTransitions()), len(audit.GetEntries())
}

func sameRows[T proto.Message](a, b []T) bool {
	for i := range min(len(a), len(b)) {
		if !proto.Equal(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}
