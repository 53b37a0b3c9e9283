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

// patience bounds the wait for a management server whose initial_fetch_timeout is longer.
const patience = 30 * time.Second

// Relay stands in Findings.Unread for the control plane behind the relay.
const Relay = "relay"

// ask asks the management servers of a configuration once, as a start of hdsd as node would, all
// at the same time. It adds their answers to sets, which has the content of the other sources.
// It returns when each has answered or timed out: after its initial_fetch_timeout, 30 s at most.
func (e *examiner) ask(ctx context.Context, c *configv1.Config, node *corev3.Node, sets []*source.Set) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var list []*question
	for _, q := range questions(c, node) {
		if server, err := xds.New(q.options); err == nil { // package config reports the error
			q.server, q.news = server, make(chan struct{}, 1)
			running.Go(func() { _ = server.Run(ctx, q.heard) }) // it returns nil
			list = append(list, q)
		}
	}
	for _, q := range list {
		q.wait(ctx)
	}
	for _, q := range list {
		q.fill(sets)
	}
	lacking := lackingEndpoints(source.Merge(nil, sets, e.rules.DefaultHealthChecks).Clusters)
	for _, q := range list {
		if names := lackedOutside(lacking, q.options.Name); len(names) > 0 {
			q.server.Want(names)
		}
	}
	for _, q := range list {
		q.wait(ctx)
	}
	for _, q := range list {
		q.fill(sets)
		e.addAnswer(q, node)
	}
}

// questions returns the servers to ask, in the order of the configuration.
func questions(c *configv1.Config, node *corev3.Node) (list []*question) {
	limits := c.GetLimits()
	ask := func(index int, name string, server *corev3.ConfigSource, asNode *corev3.Node) {
		if server.GetApiConfigSource() != nil {
			list = append(list, &question{index: index, options: xds.Options{
				Name: name, Node: node, As: asNode, ConfigSource: server, Log: zerolog.Nop(),
				MaxClusters: int(limits.GetMaxSourceClusters()), MaxEndpoints: int(limits.GetMaxSourceEndpoints()),
				MaxClusterEndpoints: int(limits.GetMaxClusterEndpoints()), MaxMessageBytes: config.LargestAnswer(limits),
			}})
		}
	}
	for i, src := range c.GetSources() {
		ask(i, src.GetName(), src.GetConfigSource(), src.GetNode())
	}
	ask(noSource, Relay, &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{
		ApiConfigSource: c.GetRelay().GetUpstream().GetApiConfigSource(),
	}}, nil)
	return list
}

// noSource is the index of a server that is no source.
const noSource = -1

// question is one management server to ask.
type question struct {
	index   int // of the source, among all
	options xds.Options
	server  *xds.Source
	news    chan struct{} // holds one signal
}

func (q *question) heard(*source.Set) {
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// wait waits until the server has answered or timed out.
func (q *question) wait(ctx context.Context) {
	for q.server.Latest().Awaited || q.server.Pending() {
		select {
		case <-q.news:
		case <-ctx.Done():
			return
		}
	}
}

// fill puts the server's answer in its place.
func (q *question) fill(sets []*source.Set) {
	if set := q.server.Latest(); q.index != noSource && set.Answered() {
		sets[q.index] = set
	}
}

// lackingEndpoints returns the clusters without endpoints in any answer so far.
func lackingEndpoints(clusters []*source.Cluster) (lacking []*source.Cluster) {
	for _, cluster := range clusters {
		if cluster.EDS() && cluster.Assignment == nil {
			lacking = append(lacking, cluster)
		}
	}
	return lacking
}

// lackedOutside names the endpoints that clusters of other sources lack.
func lackedOutside(lacking []*source.Cluster, name string) (names []string) {
	for _, cluster := range lacking {
		if cluster.Source != name {
			names = append(names, cluster.ServiceName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addAnswer records whether a server has answered, or the reason why not.
func (e *examiner) addAnswer(q *question, node *corev3.Node) {
	name, set := q.options.Name, q.server.Latest()
	id := cmp.Or(q.options.As.GetId(), node.GetId())
	server, trouble := q.state()
	note := func(format string, args ...any) { e.found.Notes = append(e.found.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case set.Answered() && q.index == noSource:
		note("the control plane behind the relay, %s, answers; what a client gets depends on its node", server)
	case set.Answered():
		note("source %s: %s answers; Clusters: %d", name, server, countClusters(set))
	case trouble == "" && q.index == noSource:
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
	for _, cluster := range set.Clusters {
		if !cluster.Lone {
			n++
		}
	}
	return n
}

// state returns the server of the connections, and their trouble, if any.
func (q *question) state() (server, trouble string) {
	for _, t := range q.server.Status().Types {
		server = cmp.Or(server, t.Server)
		trouble = cmp.Or(trouble, t.LastError, t.Rejected)
	}
	return server, trouble
}
