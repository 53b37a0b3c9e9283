package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"hdsd/api"
	"hdsd/coordinator/catalog"
	"hdsd/coordinator/feed"
	"hdsd/coordinator/ruling"
	"hdsd/eds"
	"hdsd/hds"
	"hdsd/health"
	"hdsd/store"
)

// What a query may cost before it lets the core go on with other events: to
// look at an endpoint costs 1, to explain its verdict more.
const (
	scanStep    = 20_000
	explainCost = 10
)

// backend answers the queries of the api package.
type backend struct {
	core  *core
	store *store.Store
	hds   *hds.Server
	eds   *eds.Server
	tail  *tail

	feed *feed.Feed
}

// Endpoints implements api.Backend.
func (b *backend) Endpoints(ctx context.Context, q api.EndpointQuery) ([]api.EndpointHealth, bool, error) {
	if q.Cluster != "" {
		if err := b.known(ctx, q.Cluster); err != nil {
			return nil, false, err
		}
	}
	if !q.AsOf.IsZero() {
		return b.endpointsAsOf(ctx, q)
	}
	s := scan{query: q}
	if err := b.scan(ctx, &s); err != nil {
		return nil, false, err
	}
	return s.found, s.more, nil
}

// scan goes through the present endpoints. With an error, s may still be
// written: it must not be read.
func (b *backend) scan(ctx context.Context, s *scan) error {
	s.cluster = s.query.Cluster
	if s.query.After != nil {
		s.cluster, s.after = s.query.After.Cluster, s.query.After
	}
	for !s.finished {
		if err := b.core.ask(ctx, func() { b.core.look(s) }); err != nil {
			return err
		}
	}
	return nil
}

// scan is how far a list of endpoints has come.
type scan struct {
	query    api.EndpointQuery
	keys     bool             // without verdicts
	cluster  string           // go on with this cluster, or the next by name
	after    *health.Endpoint // and in it after this endpoint
	found    []api.EndpointHealth
	more     bool
	finished bool
	cost     int // of the present step
}

// look goes on with a scan for a step.
func (c *core) look(s *scan) {
	s.cost = 0
	at, exact := slices.BinarySearch(c.rulings.Names(), s.cluster)
	if s.query.Cluster != "" && !exact {
		s.finished = true
		return
	}
	for ; at < len(c.rulings.Names()); at++ {
		s.cluster = c.rulings.Names()[at]
		if !c.lookInto(c.rulings.Cluster(s.cluster), s) {
			return
		}
		if s.query.Cluster != "" {
			break
		}
		s.after = nil
	}
	s.finished = true
}

// lookInto takes what fits of one cluster, and tells whether it came to its
// end.
func (c *core) lookInto(k *catalog.Cluster, s *scan) bool {
	first := 0
	if s.after != nil {
		first = sort.Search(len(k.Endpoints), func(i int) bool { return k.Endpoints[i].Key.Compare(*s.after) > 0 })
	}
	for i := first; i < len(k.Endpoints); i++ {
		e := &k.Endpoints[i]
		if s.cost >= scanStep {
			s.after = &health.Endpoint{} // before all
			if i > 0 {
				s.after = &k.Endpoints[i-1].Key
			}
			return false
		}
		s.cost++
		if s.query.Address != "" && e.Key.Address != s.query.Address ||
			s.query.Health != nil && c.rulings.HealthOf(e) != *s.query.Health {
			continue
		}
		if len(s.found) == s.query.Limit {
			s.more, s.finished = true, true
			return false
		}
		if s.keys {
			s.found = append(s.found, api.EndpointHealth{Endpoint: e.Key})
			continue
		}
		s.cost += explainCost
		s.found = append(s.found, c.healthOf(k, e))
	}
	return true
}

// healthOf tells all of an endpoint.
func (c *core) healthOf(k *catalog.Cluster, e *catalog.Endpoint) api.EndpointHealth {
	out := api.EndpointHealth{Endpoint: e.Key, Verdict: c.votedOf(k, e)}
	if id, ok := c.rulings.Find(e.Hash); ok {
		ruling := c.rulings.Ruling(id)
		if o := ruling.Override; o != nil {
			out.Override, out.Voted = shownOverride(o), &health.Verdict{Status: out.Verdict.Status, Reason: out.Verdict.Reason}
			out.Verdict.Status, out.Verdict.Reason = o.Status, o.Explain()
		}
		if !ruling.Since.IsZero() {
			out.Verdict.Since = ruling.Since
		}
	}
	if p := c.rulings.Published(k, e, out.Verdict.Status); p != nil {
		out.Published = &api.Published{Status: p.Status, Reason: p.Reason}
	}
	return out
}

// healthsOf tells all of endpoints, of those that no source has any more, too.
func (c *core) healthsOf(keys []health.Endpoint) []api.EndpointHealth {
	all := make([]api.EndpointHealth, len(keys))
	for i := range keys {
		all[i] = api.EndpointHealth{Endpoint: keys[i], Verdict: health.Verdict{Reason: ruling.InNoSource}}
		if k, e := c.entryOf(&keys[i]); e != nil {
			all[i] = c.healthOf(k, e)
		}
	}
	return all
}

// entryOf finds an endpoint; nil where no source has it.
func (c *core) entryOf(key *health.Endpoint) (*catalog.Cluster, *catalog.Endpoint) {
	k := c.rulings.Cluster(key.Cluster)
	return k, k.Find(key)
}

// votedOf gives what the votes on an endpoint come to.
func (c *core) votedOf(k *catalog.Cluster, e *catalog.Endpoint) health.Verdict {
	id, ok := c.rulings.Find(e.Hash)
	if !ok {
		return health.Verdict{Reason: e.Reason}
	}
	verdict := c.judge.Verdict(id)
	if e.Checked == catalog.None && !c.rulings.Ruling(id).Judged {
		verdict.Reason = e.Reason
		return verdict
	}
	if e.Checked == catalog.None {
		verdict.Reason = "held: " + verdict.Status.String() + " was the last verdict; " + e.Reason
		return verdict
	}
	if stranded := c.fleet.Stranded(id); stranded && len(verdict.Observations) == 0 {
		verdict.Reason = strings.TrimSuffix(c.strandedReason(k, id)+"; "+verdict.Reason, "; ")
	} else if untried := c.untried(k, e.Checked, &verdict); untried != "" && !stranded {
		verdict.Reason = strings.TrimSuffix(untried+"; "+verdict.Reason, "; ")
	} else if short := c.shortReason(k, id); short != "" && !stranded {
		verdict.Reason = strings.TrimPrefix(verdict.Reason+"; "+short, "; ")
	}
	return verdict
}

// Transitions implements api.Backend.
func (b *backend) Transitions(ctx context.Context, q api.TransitionQuery) ([]health.Transition, string, error) {
	if q.Cluster != "" {
		if err := b.known(ctx, q.Cluster); err != nil {
			return nil, "", err
		}
	}
	found, next, err := b.store.Transitions(store.Query{
		Cluster: q.Cluster, Address: q.Address, Start: q.Start, End: q.End,
		NewestFirst: q.NewestFirst, Limit: q.Limit, Token: q.Token,
	})
	if errors.Is(err, store.ErrBadToken) {
		return nil, "", api.ErrBadToken
	}
	return found, next, err
}

// known tells whether a cluster is or ever was.
func (b *backend) known(ctx context.Context, name string) error {
	var present bool
	if err := b.core.ask(ctx, func() { present = b.core.rulings.Cluster(name) != nil }); err != nil || present {
		return err
	}
	if !b.store.KnownCluster(name) {
		return fmt.Errorf("%w %q", api.ErrUnknownCluster, name)
	}
	return nil
}

// Clusters implements api.Backend.
func (b *backend) Clusters(ctx context.Context, after string, limit int) (found []api.Cluster, more bool, err error) {
	s := clusterScan{after: after, limit: limit}
	for !s.finished {
		if err := b.core.ask(ctx, func() { b.core.listClusters(&s) }); err != nil {
			return nil, false, err
		}
	}
	for i := range s.found {
		s.found[i].NoEndpointsReason = b.feed.NoEndpointsReason(s.clusters[i])
	}
	return s.found, s.more, nil
}

// clusterScan is how far a list of clusters has come.
type clusterScan struct {
	after    string
	limit    int
	found    []api.Cluster
	clusters []*catalog.Cluster // that these are of
	more     bool
	finished bool
}

// listClusters goes on with a list of clusters for a step.
func (c *core) listClusters(s *clusterScan) {
	at, exact := slices.BinarySearch(c.rulings.Names(), s.after)
	if exact {
		at++
	}
	for cost := 0; at < len(c.rulings.Names()); at++ {
		if len(s.found) == s.limit {
			s.more, s.finished = true, true
			return
		}
		k := c.rulings.Cluster(c.rulings.Names()[at])
		if cost += 1 + len(k.Endpoints); cost > scanStep && cost > 1+len(k.Endpoints) {
			return
		}
		s.found, s.clusters, s.after = append(s.found, c.describe(k)), append(s.clusters, k), c.rulings.Names()[at]
	}
	s.finished = true
}

// describe counts a cluster's endpoints.
func (c *core) describe(k *catalog.Cluster) api.Cluster {
	out := api.Cluster{Name: k.Source.Name, Source: k.Source.Source, Checked: k.IsChecked(), Mode: c.modeOf(k), Endpoints: len(k.Endpoints)}
	for _, q := range k.Quarantined() {
		out.Quarantined = append(out.Quarantined, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	if c.rollout.Blocked(k.Source.Name) {
		out.Quarantined = append(out.Quarantined, api.Quarantined{Reason: c.rollout.Reason(k.Source.Name)})
	}
	for _, q := range k.Disabled {
		out.Quarantined = append(out.Quarantined, api.Quarantined{Address: q.Address, Reason: q.Reason})
	}
	var stranded []api.Quarantined
	for i := range k.Endpoints {
		e := &k.Endpoints[i]
		switch status := c.rulings.HealthOf(e); {
		case status.Up():
			out.Healthy++
		case status.Down():
			out.Unhealthy++
		case status == health.Unknown:
			out.Unknown++
		}
		if id, ok := c.rulings.Find(e.Hash); ok {
			if c.rulings.Ruling(id).Override != nil {
				out.Overridden++
			}
			if c.fleet.Stranded(id) {
				stranded = append(stranded, api.Quarantined{Address: e.Key.Address, Reason: c.strandedReason(k, id)})
			}
		}
	}
	sameReason := func(q api.Quarantined) bool { return q.Reason == stranded[0].Reason }
	if len(stranded) > 0 && len(stranded) == len(k.Endpoints) && !slices.ContainsFunc(stranded, func(q api.Quarantined) bool { return !sameReason(q) }) {
		stranded = stranded[:1]
		stranded[0].Address = ""
	}
	out.Quarantined = append(out.Quarantined, stranded...)
	return out
}

// modeOf says what becomes of the verdicts on a cluster.
func (c *core) modeOf(k *catalog.Cluster) api.Mode {
	switch {
	case k.Shadow:
		return api.Shadow
	case c.rulings.Frozen() != nil:
		return api.Frozen
	}
	return api.Publish
}

// Checkers implements api.Backend.
func (b *backend) Checkers(ctx context.Context) ([]api.Checker, error) {
	var found []api.Checker
	var doubts []string // as found
	var behind map[string]bool
	err := b.core.ask(ctx, func() {
		behind = b.core.behind()
		for known := range b.core.fleet.Checkers() {
			doubts = append(doubts, b.core.judge.DoubtReason(known.ID))
			found = append(found, api.Checker{
				Checker: known.Checker, Share: known.Plan.Share, ChecksPerSecond: float64(known.Plan.Rate) / 1000, PlanDigest: known.Plan.Digest, Connected: known.Connected, AssignedEndpoints: known.Plan.Endpoints,
				DistrustReason: b.core.fleet.SilenceReason(known.ID), LastReport: known.LastReport, Operator: shownTrust(known.ID, b.core.trust.of(known.ID)),
				BlindReason: b.core.judge.BlindReason(known.ID),
			})
			for _, cut := range b.core.judge.CutPaths(known.Locality) {
				found[len(found)-1].CutPaths = append(found[len(found)-1].CutPaths, api.CutPath{To: cut.To, Reason: cut.Reason})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range found {
		state := b.hds.State(found[i].ID)
		found[i].Specifier, found[i].StrangeReports = specifierState(&state, behind[found[i].ID]), state.StrangeReports
		if !state.LastReport.IsZero() { // else there was none on its present stream, if it has one
			found[i].LastReport = state.LastReport
		}
		if state.Silent {
			found[i].DistrustReason = strings.TrimSuffix(state.Reason+"; "+found[i].DistrustReason, "; ")
		} else {
			found[i].DistrustReason = doubts[i]
		}
		if said := found[i].Operator; said != nil && !said.Trusted {
			found[i].DistrustReason = strings.TrimSuffix(said.String()+"; "+found[i].DistrustReason, "; ")
		}
		found[i].Trusted = found[i].DistrustReason == ""
	}
	slices.SortFunc(found, func(x, y api.Checker) int { return strings.Compare(x.ID, y.ID) })
	return found, nil
}
