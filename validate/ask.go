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

// Answers are what management servers have said.
type Answers struct {
	Sets     map[string]*source.Set // by source; none for the relay
	Notes    []string               // what is worth knowing of those that answer
	Problems []source.Problem       // with those that do not
}

// Ask asks the management servers of a configuration once, as a start of hdsd as node
// would, all at the same time. It returns when each has answered or was given up: after
// its initial_fetch_timeout, 30 s at most.
func Ask(ctx context.Context, c *configv1.Config, node *corev3.Node) *Answers {
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
	lacking := lackingEndpoints(c, all)
	for _, q := range all {
		if names := lackedOutside(lacking, q.options.Name); len(names) > 0 {
			q.server.Want(names)
		}
	}
	for _, q := range all {
		q.wait(ctx)
	}
	answers := &Answers{Sets: map[string]*source.Set{}}
	for _, q := range all {
		answers.add(q, node)
	}
	return answers
}

// questions are what to ask whom, in the order of the configuration.
func questions(c *configv1.Config, node *corev3.Node) (all []*question) {
	limits := c.GetLimits()
	ask := func(name string, from *corev3.ConfigSource, as *corev3.Node) {
		if from.GetApiConfigSource() != nil {
			all = append(all, &question{options: xds.Options{
				Name: name, Node: node, As: as, ConfigSource: from, Log: zerolog.Nop(),
				MaxClusters: int(limits.GetMaxSourceClusters()), MaxEndpoints: int(limits.GetMaxSourceEndpoints()),
				MaxClusterEndpoints: int(limits.GetMaxClusterEndpoints()), MaxMessageBytes: config.LargestAnswer(limits),
			}})
		}
	}
	for _, from := range c.GetSources() {
		ask(from.GetName(), from.GetConfigSource(), from.GetNode())
	}
	ask(relayName, &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{
		ApiConfigSource: c.GetRelay().GetUpstream().GetApiConfigSource(),
	}}, nil)
	return all
}

// question is one management server that is asked.
type question struct {
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

// lackingEndpoints returns the clusters whose endpoints are in no answer so far.
func lackingEndpoints(c *configv1.Config, all []*question) (lacking []*source.Cluster) {
	e := newExaminer(c)
	var sets []*source.Set
	for _, from := range c.GetSources() {
		set := e.read(from)
		for _, q := range all {
			if q.options.Name == from.GetName() {
				set = q.server.Latest()
			}
		}
		sets = append(sets, set)
	}
	for _, one := range source.Merge(nil, sets, e.rules.DefaultHealthChecks).Clusters {
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

// add adds what a server has said, or why it has not.
func (a *Answers) add(q *question, node *corev3.Node) {
	name, set := q.options.Name, q.server.Latest()
	id := cmp.Or(q.options.As.GetId(), node.GetId())
	server, trouble := q.state()
	switch {
	case set.Answered() && name == relayName:
		a.Notes = append(a.Notes, fmt.Sprintf("the control plane behind the relay, %s, answers; what a client gets depends on its node", server))
	case set.Answered():
		a.Sets[name] = set
		a.Notes = append(a.Notes, fmt.Sprintf("source %s: %s answers, with %d clusters", name, server, len(set.Clusters)))
	case trouble == "" && name == relayName:
		a.Notes = append(a.Notes, fmt.Sprintf("the control plane behind the relay, %s, takes streams, and says nothing to node %q; what a client gets depends on its node", server, id))
	default:
		if trouble == "" {
			trouble = fmt.Sprintf("nothing came in time; does it have resources for node %q?", id)
		}
		a.Problems = append(a.Problems, source.Problem{Message: fmt.Sprintf("source %s: %s has not answered: %s", name, server, trouble)})
	}
}

// state returns whom the connections are to, and what is wrong with them, if anything.
func (q *question) state() (server, trouble string) {
	for _, t := range q.server.Status().Types {
		server = cmp.Or(server, t.Server)
		trouble = cmp.Or(trouble, t.LastError, t.Rejected)
	}
	return server, trouble
}
