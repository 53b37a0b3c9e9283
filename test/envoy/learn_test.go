package envoy

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/hds/specifier"
)

// trial is one hostile value in one field of one source.
type trial struct {
	root, field, value string
	source             *source
	options            specifier.Options // what hdsd is told of the checkers
}

func (c *trial) name() string { return c.root + "." + c.field + " = " + c.value }

// trials enumerates them all, in a fixed order.
func (l *lab) trials(t testing.TB) []*trial {
	t.Helper()
	var all []*trial
	for _, r := range l.roots() {
		for m := range mutants(r.base.ProtoReflect()) {
			s := l.plain(fmt.Sprintf("case-%d", len(all)))
			r.place(s, m.message)
			all = append(all, &trial{root: r.name, field: m.field, value: m.value, source: s})
		}
	}
	return slices.Concat(all, l.composed(len(all)), l.answerTrials(t))
}

// raw puts what a source says into a specifier as it stands.
func (s *source) raw() *healthv3.ClusterHealthCheck {
	c := &healthv3.ClusterHealthCheck{
		ClusterName: s.name, TransportSocketMatches: s.config.GetTransportSocketMatches(),
		UpstreamBindConfig: s.config.GetUpstreamBindConfig(),
	}
	for _, check := range s.checks {
		check = proto.Clone(check).(*corev3.HealthCheck)
		if s.config.GetTransportSocket() != nil {
			check.TransportSocketMatchCriteria = criteria()
		}
		c.HealthChecks = append(c.HealthChecks, check)
	}
	if socket := s.config.GetTransportSocket(); socket != nil {
		c.TransportSocketMatches = append(slices.Clone(c.TransportSocketMatches),
			&clusterv3.Cluster_TransportSocketMatch{Name: "x", Match: criteria(), TransportSocket: socket})
	}
	for _, l := range s.assignment.GetEndpoints() {
		out := &healthv3.LocalityEndpoints{Locality: l.GetLocality()}
		for _, e := range l.GetLbEndpoints() {
			out.Endpoints = append(out.Endpoints, e.GetEndpoint())
		}
		c.LocalityEndpoints = append(c.LocalityEndpoints, out)
	}
	return c
}

// workers is how many Envoys are tried at the same time.
const workers = 6

// learn tells what each trial does to a real Envoy. Groups say which are sent
// together; those of a group that does harm are told apart by halving it. What
// is not as known is measured twice, the second time on an Envoy of its own.
func (l *lab) learn(t *testing.T, version string, known map[string]effect, groups [][]*trial, raw func(*trial) []*healthv3.ClusterHealthCheck) map[*trial]effect {
	t.Helper()
	var mu sync.Mutex
	effects := map[*trial]effect{}
	queue := make(chan []*trial, len(groups))
	for _, group := range groups {
		queue <- group
	}
	close(queue)
	t.Run("envoys", func(t *testing.T) {
		for range workers {
			t.Run("envoy", func(t *testing.T) {
				t.Parallel()
				w := &worker{t: t, lab: l, version: version, clusters: raw, known: known, tell: func(group []*trial, e effect) {
					mu.Lock()
					defer mu.Unlock()
					for _, c := range group {
						effects[c] = e
					}
				}}
				for group := range queue {
					w.bisect(group)
				}
			})
		}
	})
	return effects
}

// worker tries groups of cases on its Envoy, which it replaces when it died.
type worker struct {
	t        *testing.T
	lab      *lab
	version  string
	subject  *subject
	clusters func(*trial) []*healthv3.ClusterHealthCheck
	known    map[string]effect // what was measured before, by name; nil: nothing
	tell     func(group []*trial, e effect)
}

func (w *worker) bisect(group []*trial) {
	var clusters []*healthv3.ClusterHealthCheck
	for _, c := range group {
		clusters = append(clusters, w.clusters(c)...)
	}
	used := w.ready()
	e := w.subject.try(w.t, clusters)
	if e != fine && used && (len(group) > 1 || w.known[group[0].name()] != e) {
		w.subject.Kill() // what others left behind must not count
		w.ready()
		e = w.subject.try(w.t, clusters)
	}
	if e == fine || len(group) == 1 {
		w.tell(group, e)
		return
	}
	w.bisect(group[:len(group)/2])
	w.bisect(group[len(group)/2:])
}

// ready sees that there is an Envoy, and tells whether it was used before.
func (w *worker) ready() bool {
	if w.subject != nil && w.subject.Alive() {
		return true
	}
	w.subject = w.lab.subject(w.t, w.version)
	return false
}
