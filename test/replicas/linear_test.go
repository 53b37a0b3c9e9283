package replicas

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// access is an order about the override of an endpoint, or a look at it, at one replica.
type access struct {
	replica, endpoint int
	author            string // of an order, unique; empty: a look
	clears            bool   // the order ends the override
	acknowledged      bool   // the end of an order that the replica acknowledges
}

// value returns what an order makes of its endpoint: the author of the override, after a mark if it clears it.
func (a access) value() string {
	if a.clears {
		return cleared + a.author
	}
	return a.author
}

const cleared = "!"

// result is what an access led to.
type result struct {
	value    string // the author of the override that a look has found; empty: there was none
	answered bool   // the order was acknowledged
}

// register is the state of an endpoint: the values that replicas may show, and the first of them that each may.
type register struct {
	values string // each after a comma
	shown  [3]int
}

// after returns a register whose replica shows no value before one.
func (s register) after(replica, value int) register {
	s.shown[replica] = value
	least := min(s.shown[0], s.shown[1], s.shown[2])
	for i := range s.shown {
		s.shown[i] -= least
	}
	for range least {
		s.values = s.values[1+strings.Index(s.values[1:], ","):]
	}
	return s
}

// overrides is the model of overrides at several replicas. Orders are linearizable, whichever replica takes them. A
// look may be late, since a replica shows what it has read of the log: looks at one replica are sequentially
// consistent. They never go back, and have the orders that this replica has acknowledged.
var overrides = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, o := range history {
			endpoint := o.Input.(access).endpoint
			parts[endpoint] = append(parts[endpoint], o)
		}
		var all [][]porcupine.Operation
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() any { return register{values: ","} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(register), input.(access), output.(result)
		values := strings.Split(s.values, ",")[1:]
		first := s.shown[in.replica]
		switch later := slices.IndexFunc(values[first:], func(v string) bool { return explains(v, in, out) }); {
		case in.author != "" && !in.acknowledged:
			s.values += "," + in.value()
			return true, s
		case later >= 0:
			return true, s.after(in.replica, first+later) // the least that explains the look
		}
		return in.acknowledged, s // the replica has shown the order, or a later one, already
	},
}

// explains reports whether a value is that of an acknowledged order, or what a look has found.
func explains(value string, in access, out result) bool {
	if in.acknowledged {
		return value == in.value()
	}
	return value == out.value || out.value == "" && strings.HasPrefix(value, cleared)
}

// notes are the accesses of all.
type notes struct {
	mu   sync.Mutex
	all  []porcupine.Operation // guarded by mu
	told int                   // looks that have found an override; guarded by mu
}

// add notes an access that ended at a time; zero: it may take effect at any later time.
func (n *notes) add(client int, in access, out result, begin, end time.Time) {
	o := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: begin.UnixNano(), Return: math.MaxInt64}
	if !end.IsZero() {
		o.Return = end.UnixNano()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all = append(n.all, o); out.value != "" {
		n.told++
	}
}

// registers are the endpoints of the test, of one cluster.
var registers = []int{steady, steady + 1, steady + 2, steady + 3, steady + 4}

// accessor gives orders to a replica, or looks at what it shows, until ctx ends.
func (n *notes) accessor(ctx context.Context, r *process, o *operator, replica int, writes bool, seed uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(replica)))
	client := 2 * replica
	if writes {
		client++
	}
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(random.IntN(80)) * time.Millisecond)
		if !writes {
			n.look(ctx, client, r, o, replica)
			continue
		}
		n.order(ctx, client, o, access{
			replica: replica, endpoint: registers[random.IntN(len(registers))], author: fmt.Sprintf("%s-%d", r.id, i), clears: random.IntN(3) == 0,
		})
	}
}

// order gives an order.
func (n *notes) order(ctx context.Context, client int, o *operator, in access) {
	address := o.address(in.endpoint)
	begin := time.Now()
	call, cancel := context.WithTimeout(ctx, 9*time.Second)
	defer cancel()
	var err error
	if !in.clears {
		_, err = o.client.SetOverride(call, &hdsdv1.SetOverrideRequest{
			Cluster: o.cluster, Address: address, Health: corev3.HealthStatus_UNHEALTHY, Reason: "a fault", Author: in.author,
		})
	} else {
		_, err = o.client.ClearOverrides(call, &hdsdv1.ClearOverridesRequest{Cluster: o.cluster, Address: address, Author: in.author})
	}
	switch {
	case err == nil:
		end := time.Now()
		n.add(client, in, result{answered: true}, begin, end)
		in.acknowledged = true
		n.add(client, in, result{}, end.Add(1), end.Add(2))
	case strings.Contains(err.Error(), "is not carried out"), strings.Contains(err.Error(), "no override"):
	default:
		n.add(client, in, result{}, begin, time.Time{})
	}
}

// look looks at all registers.
func (n *notes) look(ctx context.Context, client int, r *process, o *operator, replica int) {
	if status, _ := r.readiness(); status != http.StatusOK {
		return // it has to read the log first
	}
	begin := time.Now()
	call, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := o.client.ListOverrides(call, &hdsdv1.ListOverridesRequest{})
	if err != nil {
		return
	}
	end := time.Now()
	authors := map[string]string{}
	for _, v := range answer.GetOverrides() {
		authors[v.GetAddress()] = v.GetAuthor()
	}
	for _, endpoint := range registers {
		n.add(client, access{replica: replica, endpoint: endpoint}, result{value: authors[o.address(endpoint)]}, begin, end)
	}
}

// TestOrdersAreLinearizable has operators at work at each replica while leaders are killed, and cut from etcd.
func TestOrdersAreLinearizable(t *testing.T) {
	t.Parallel()
	l, routes := cuttable(t, false)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	var n notes
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for i, r := range l.replicas {
		o := newOperator(t, r, l.judge, 0, 1)
		for _, writes := range []bool{false, true} {
			work.Go(func() { n.accessor(ctx, r, o, i, writes, seed) })
		}
	}
	for range either(1, 20) {
		for _, how := range []path{closed, silent} {
			r := l.leader()
			l.cut("etcd", r, how, routes[slices.Index(l.replicas, r)].etcd, func() { l.behind(r) })
		}
		r := l.leader()
		l.fault("kill -9 of the leader", func() { l.behind(r); r.Kill() }, r.start)
	}
	cancel()
	work.Wait()
	t.Logf("%d accesses, %d of them looks that have found an override", len(n.all), n.told)
	audit, orders := map[string]bool{}, 0
	for _, entry := range same(l, "the audit", (*process).audit) {
		audit[entry.Author] = true
	}
	n.all = slices.DeleteFunc(n.all, func(o porcupine.Operation) bool { // orders without an answer that were not carried out
		in := o.Input.(access)
		if in.author != "" && audit[in.author] {
			orders++
		}
		return in.author != "" && !o.Output.(result).answered && !in.acknowledged && !audit[in.author]
	})
	t.Logf("%d orders are in the audit", orders)
	if n.told < 500 {
		t.Error("that is too few to show anything")
	}
	if found := porcupine.CheckOperationsTimeout(overrides, n.all, time.Minute); found != porcupine.Ok {
		t.Errorf("the orders are not linearizable, or what a replica shows goes back: %v", found)
	}
}
