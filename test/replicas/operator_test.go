package replicas

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// orderInterval is the time between two orders of an operator.
const orderInterval = 100 * time.Millisecond

// outcome is how an order ended for the operator.
type outcome uint8

const (
	unknown outcome = iota // the operator got no answer
	acknowledged
	refused
)

// order is an override that an operator has asked for.
type order struct {
	author   string // unique
	endpoint int
	health   corev3.HealthStatus
	outcome  outcome
	err      error
	took     time.Duration
}

// operator gives orders to one replica about endpoints of its own.
type operator struct {
	t         testing.TB
	replica   string
	client    hdsdv1.ControlClient
	endpoints []int
	addresses []string
	cluster   string

	mu     sync.Mutex
	orders []order // guarded by mu
}

func newOperator(t testing.TB, p *process, j *judge, turn, count int) *operator {
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1, MaxDelay: 100 * time.Millisecond}, MinConnectTimeout: time.Second,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	o := &operator{t: t, replica: p.id, client: hdsdv1.NewControlClient(conn)}
	for i := steady + turn; i < operated; i += count {
		o.endpoints, o.addresses, o.cluster = append(o.endpoints, i), append(o.addresses, j.world.Address(i)), j.world.Name(j.world.ClusterOf(i))
	}
	return o
}

// address returns the address of an endpoint.
func (o *operator) address(endpoint int) string {
	return o.addresses[slices.Index(o.endpoints, endpoint)]
}

// work gives orders until ctx ends.
func (o *operator) work(ctx context.Context, gate *sync.RWMutex) {
	tick := time.NewTicker(orderInterval)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		gate.RLock()
		o.give(ctx, n)
		gate.RUnlock()
	}
}

// give gives the n-th order.
func (o *operator) give(ctx context.Context, n int) {
	k := n % len(o.endpoints)
	next := order{author: fmt.Sprintf("%s-%d", o.replica, n), endpoint: o.endpoints[k], health: corev3.HealthStatus_UNHEALTHY}
	if n/len(o.endpoints)%2 == 1 {
		next.health = corev3.HealthStatus_HEALTHY
	}
	begin := time.Now()
	call, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	_, next.err = o.client.SetOverride(call, &hdsdv1.SetOverrideRequest{
		Cluster: o.cluster, Address: o.addresses[k], Health: next.health, Reason: "a fault", Author: next.author,
	})
	switch next.took = time.Since(begin); {
	case next.err == nil:
		next.outcome = acknowledged
	case strings.Contains(next.err.Error(), "is not carried out"):
		next.outcome = refused
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.orders = append(o.orders, next)
}

// check compares the audit with the answers. It adds the health that each endpoint got last to latest.
func (o *operator) check(audit []audited, latest map[int]corev3.HealthStatus) (summary string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	carriedOut, position := map[string]int{}, map[string]int{}
	for i := range audit {
		carriedOut[audit[i].Author]++
		position[audit[i].Author] = i
	}
	var counts [3]int
	last := map[int]int{}
	for i := range o.orders {
		k := &o.orders[i]
		counts[k.outcome]++
		switch n := carriedOut[k.author]; {
		case n > 1, n == 0 && k.outcome == acknowledged, n == 1 && k.outcome == refused:
			o.t.Errorf("the order %s is %d times in the audit, and the answer after %v was: %v", k.author, n, k.took, k.err)
		case n == 1 && position[k.author] >= last[k.endpoint]:
			last[k.endpoint] = position[k.author]
			latest[k.endpoint] = k.health
		}
	}
	return fmt.Sprintf("%s: %d acknowledged, %d refused, %d without an answer", o.replica, counts[acknowledged], counts[refused], counts[unknown])
}
