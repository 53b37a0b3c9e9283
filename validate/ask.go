package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/rs/zerolog"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/xds"
)

// patience is how long a management server has to answer if initial_fetch_timeout allows
// it more.
const patience = 30 * time.Second

// relayName is what the control plane behind the relay is called.
const relayName = "relay"

// ask asks the management servers of a configuration once, as a start of hdsd as node would,
// all at the same time. It puts what they say into sets, which has what was read of the other
// sources. It returns when each has answered or was given up: after its
// initial_fetch_timeout, 30 s at most.
func (e *examiner) ask(ctx context.Context, c *configv1.Config, node *corev3.Node, sets []*source.Set) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var all []*question
	for _, q := range questions(c, node) {
		if server, err := xds.New(q.options); err == nil { // package config reports what is wrong
			q.server, q.news = server, make(chan struct{}, 1)
			running.Go(func() { _ = server.Run(ctx, q.heard) }) // it returns nil
			all = append(all, q)
		}
	}
	for _, q := range all {
		q.wait(ctx)
	}
	for _, q := range all {
		q.take(sets)
	}
	lacking := lackingEndpoints(source.Merge(nil, sets, e.rules.DefaultHealthChecks).Clusters)
	for _, q := range all {
		if names := lackedOutside(lacking, q.options.Name); len(names) > 0 {
			q.server.Want(names)
		}
	}
	for _, q := range all {
		q.wait(ctx)
	}
	for _, q := range all {
		q.take(sets)
		e.addAnswer(q, node)
	}
}

// questions are what to ask whom, in the order of the configuration.
func questions(c *configv1.Config, node *corev3.Node) (all []*question) {
	limits := c.GetLimits()
	ask := func(at int, name string, from *corev3.ConfigSource, as *corev3.Node) {
		if from.GetApiConfigSource() != nil {
			all = append(all, &question{at: at, options: xds.Options{
				Name: name, Node: node, As: as, ConfigSource: from, Log: zerolog.Nop(),
				MaxClusters: int(limits.GetMaxSourceClusters()), MaxEndpoints: int(limits.GetMaxSourceEndpoints()),
				MaxClusterEndpoints: int(limits.GetMaxClusterEndpoints()), MaxMessageBytes: config.LargestAnswer(limits),
			}})
		}
	}
	for i, from := range c.GetSources() {
		ask(i, from.GetName(), from.GetConfigSource(), from.GetNode())
	}
	ask(noSource, relayName, &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{
		ApiConfigSource: c.GetRelay().GetUpstream().GetApiConfigSource(),
	}}, nil)
	return all
}

// noSource is the place of what is no source.
const noSource = -1

// question is one management server that is asked.
type question struct {
	at      int // of the source, among all
	options xds.Options
	server  *xds.Source
	news    chan struct{} // holds one
}

func (q *question) heard(*source.Set) {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// wait waits until the server has answered, or was given up.
func (q *question) wait(ctx context.Context) {
	for q.server.Latest().Awaited || q.server.Pending() {
		select {
		case <-q.news:
		case <-ctx.Done():
			return
		}
	}
}

// take puts what the server has said in its place.
func (q *question) take(sets []*source.Set) {
	if set := q.server.Latest(); q.at != noSource && set.Answered() {
		sets[q.at] = set
	}
}

// lackingEndpoints returns the clusters whose endpoints are in no answer so far.
func lackingEndpoints(all []*source.Cluster) (lacking []*source.Cluster) {
	for _, one := range all {
		if one.EDS() && one.Assignment == nil {
			lacking = append(lacking, one)
		}
	}
	return lacking
}

// lackedOutside names the endpoints that clusters of other sources lack.
func lackedOutside(lacking []*source.Cluster, name string) (names []string) {
	for _, one := range lacking {
		if one.Source != name {
			names = append(names, one.ServiceName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addAnswer notes whether a server has answered, or why it has not.
func (e *examiner) addAnswer(q *question, node *corev3.Node) {
	name, set := q.options.Name, q.server.Latest()
	id := cmp.Or(q.options.As.GetId(), node.GetId())
	server, trouble := q.state()
	note := func(format string, args ...any) { e.found.Notes = append(e.found.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case set.Answered() && q.at == noSource:
		note("the control plane behind the relay, %s, answers; what a client gets depends on its node", server)
	case set.Answered():
		note("source %s: %s answers; Clusters: %d", name, server, countClusters(set))
	case trouble == "" && q.at == noSource:
		note("the control plane behind the relay, %s, takes streams, and says nothing to node %q; what a client gets depends on its node", server, id)
	default:
		if trouble == "" {
			trouble = fmt.Sprintf("nothing came in time; does it have resources for node %q?", id)
		}
		e.add(source.Problem{Message: fmt.Sprintf("source %s: %s has not answered: %s", name, server, trouble)})
	}
}

// countClusters counts clusters, not lone assignments.
func countClusters(set *source.Set) (n int) {
	for _, one := range set.Clusters {
		if !one.Lone {
			n++
		}
	}
	return n
}

// state returns whom the connections are to, and what is wrong with them, if anything.
func (q *question) state() (server, trouble string) {
	for _, t := range q.server.Status().Types {
		server = cmp.Or(server, t.Server)
		trouble = cmp.Or(trouble, t.LastError, t.Rejected)
	}
	return server, trouble
}
