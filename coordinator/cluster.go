package coordinator

import (
	"reflect"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/aggregate"
	"hdsd/canary"
	"hdsd/eds"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/source"
)

// cluster is a source's cluster made ready for every stage. It is not changed
// once made.
type cluster struct {
	source     *source.Cluster
	seen       *source.Cluster    // what the source says: another than source where that is no good
	trouble    string             // why it is no good
	rules      *rules             // that it was prepared by
	safe       *specifier.Cluster // what is checked; nil where nothing is
	hashes     []health.Hash      // of safe.Endpoints
	shapes     []canary.Shape     // of safe.Endpoints
	http       bool               // an HTTP check is among the checks
	redundancy int
	reach      *health.Reach
	placement  placement
	rate       int64 // checks in 1,000 seconds that an endpoint takes
	rule       aggregate.Rule
	shadow     bool                              // verdicts on it are kept from the subscribers
	upstream   configv1.UpstreamHealth           // what the source's word on its endpoints counts for
	given      *clusterv3.Cluster                // for CDS where hdsd decides nothing: as it came in
	published  *clusterv3.Cluster                // for CDS; nil for a lone assignment, and for what no Envoy takes
	message    *endpointv3.ClusterLoadAssignment // for EDS; nil where there is none, or none that an Envoy takes
	entries    []entry                           // every endpoint, by locality and address
	decides    [][]int                           // per locality and endpoint of the message: index in safe.Endpoints, or none
	leftOut    []specifier.Quarantined           // what is not checked since the source says so
	refused    []specifier.Quarantined           // endpoints that no Envoy takes, where no review for checkers says so
	aside      []setAside                        // endpoints that are not checked, where others are
}

// setAside is an endpoint in quarantine, alone or with its cluster, or one that
// its source wants spared. What was known of it is held, unless it is spared.
type setAside struct {
	locality, index int // in the message; none where it is not in there
	key             health.Endpoint
	hash            health.Hash
	spared          bool
}

// entry is one endpoint of a cluster, checked or not.
type entry struct {
	key     health.Endpoint
	checked int           // index in safe.Endpoints; none where it is not
	reason  string        // why it is not checked
	says    health.Status // what the source says of it
	sent    bool          // it is in the message
}

const notChecked = "not checked: the cluster has no health checks; give it some, or default_health_checks"

// prepare decides what of a cluster is checked and what is published.
func prepare(from *source.Cluster, r *rules) *cluster {
	c := &cluster{source: from, seen: from, rules: r}
	c.redundancy, c.reach = r.of(from.Name)
	c.placement, c.rate = r.placing(from.Name), rateOf(from.HealthChecks)
	c.rule = r.judging(from.Name)
	c.shadow = r.shadows(from.Name)
	c.upstream = r.upstream[from.EndpointSource()]
	reason := notChecked
	switch {
	case from.Quarantine != "":
		reason = from.Quarantine
	case len(from.HealthChecks) > 0:
		c.safe = specifier.Translate(from.Name, from.Config, from.Assignment, from.HealthChecks, r.machines)
		c.hashes = make([]health.Hash, len(c.safe.Endpoints))
		for i := range c.hashes {
			c.hashes[i] = c.safe.Endpoints[i].Key.Hash()
		}
		for _, shape := range c.safe.Shapes() {
			c.shapes = append(c.shapes, canary.Shape(shape))
		}
	}
	c.http = slices.ContainsFunc(from.HealthChecks, func(h *corev3.HealthCheck) bool { return h.GetHttpHealthCheck() != nil })
	if from.Quarantine == "" {
		c.message = publishable(from)
	}
	if from.Config != nil && from.Quarantine == "" {
		c.given = asItCame(from, c.message, r.edsConfig)
		c.published = c.given
		if c.checked() && !partlyElsewhere(from.Assignment) && eds.Publishable(from.Config) {
			c.published = eds.PublishCluster(from.Config, r.edsConfig)
		}
	}
	c.place(reason)
	return c
}

// goOn gives what takes the place of a cluster when its source says something
// that is no good: the last that was good, and why.
func (c *cluster) goOn(bad *source.Cluster, r *rules) *cluster {
	if c == nil || c.source.Quarantine != "" {
		return prepare(bad, r)
	}
	last := prepare(c.source, r)
	last.seen, last.trouble = bad, bad.Quarantine
	return last
}

// follows tells whether other rules would prepare the cluster just the same.
func (c *cluster) follows(r *rules) bool {
	if c.rules == r {
		return true
	}
	redundancy, reach := r.of(c.source.Name)
	return redundancy == c.redundancy && r.shadows(c.source.Name) == c.shadow && r.upstream[c.source.EndpointSource()] == c.upstream && r.judging(c.source.Name) == c.rule &&
		r.placing(c.source.Name) == c.placement && reflect.DeepEqual(reach, c.reach) && reflect.DeepEqual(r.machines, c.rules.machines)
}

// checked tells whether anything of the cluster is checked.
func (c *cluster) checked() bool { return c.safe != nil && len(c.safe.Endpoints) > 0 }

// quarantined lists what ought to be checked and is not.
func (c *cluster) quarantined() []specifier.Quarantined {
	if c.source.Quarantine != "" {
		return []specifier.Quarantined{{Reason: c.source.Quarantine}}
	}
	var all []specifier.Quarantined
	if c.trouble != "" {
		all = append(all, specifier.Quarantined{Reason: c.trouble + " (what it was before that stays in use)"})
	}
	if c.safe != nil {
		all = append(all, c.safe.Quarantined...)
	}
	return append(all, c.refused...)
}

// place says which verdict decides each endpoint of the assignment, and lists
// the endpoints in order, each once. An address that a locality holds twice is
// checked once.
func (c *cluster) place(reason string) {
	at := map[[2]int]int{}
	checked := map[health.Endpoint]int{}
	why := map[string]string{}
	if c.safe != nil {
		for i, e := range c.safe.Endpoints {
			at[[2]int{e.Locality, e.Index}] = i
			checked[e.Key] = i
		}
		for _, q := range c.safe.Quarantined {
			why[q.Address] = q.Reason
		}
		reason = firstOf(why[""], "not checked: its active health check is disabled")
	}
	for i, group := range c.source.Assignment.GetEndpoints() {
		decides := make([]int, 0, len(group.GetLbEndpoints()))
		for j, e := range group.GetLbEndpoints() {
			sent := c.message != nil && (c.message == c.source.Assignment || acceptable(c.source, e))
			unsent := ""
			if !sent && c.source.Quarantine == "" {
				unsent = c.refuse(i, j, e, why)
			}
			decide := func(index int) {
				if sent {
					decides = append(decides, index)
				}
			}
			index, ok := at[[2]int{i, j}]
			if ok {
				decide(index)
				c.entries = append(c.entries, entry{key: c.safe.Endpoints[index].Key, checked: index, says: eds.SourceStatus(e), sent: sent})
				continue
			}
			key := health.Endpoint{Cluster: c.source.Name, Locality: envoyaddr.Locality(group.GetLocality()), Address: envoyaddr.AddressOf(e, i, j)}
			if index, ok = checked[key]; ok && !e.GetEndpoint().GetHealthCheckConfig().GetDisableActiveHealthCheck() {
				decide(index) // a twin; it is listed already
				continue
			}
			position := none
			if sent {
				position = len(decides)
			}
			decide(none)
			if !ok {
				c.entries = append(c.entries, entry{
					key: key, checked: none, reason: firstOf(why[key.Address], unsent, reason), says: eds.SourceStatus(e), sent: sent,
				})
			}
			if c.source.Quarantine+why[""]+why[key.Address] != "" {
				c.aside = append(c.aside, setAside{i, position, key, key.Hash(), false})
			} else if c.safe != nil {
				c.leftOut = append(c.leftOut, specifier.Quarantined{Address: key.Address, Reason: reason})
				if !ok { // its twin is checked
					c.aside = append(c.aside, setAside{i, position, key, key.Hash(), true})
				}
			}
		}
		c.decides = append(c.decides, decides)
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return a.key.Compare(b.key) })
	c.entries = slices.CompactFunc(c.entries, func(a, b entry) bool { return a.key == b.key })
}

// refuse notes an endpoint that no Envoy takes, and says why, unless known has a
// reason for its address already.
func (c *cluster) refuse(locality, index int, e *endpointv3.LbEndpoint, known map[string]string) string {
	wrong := refusal(c.source, e)
	address := envoyaddr.AddressOf(e, locality, index)
	if wrong == "" || known[""]+known[address] != "" {
		return ""
	}
	wrong = "not published, since no Envoy takes it: " + wrong
	c.refused = append(c.refused, specifier.Quarantined{Address: address, Reason: wrong, Locality: locality, Index: index})
	return wrong
}

// partlyElsewhere tells whether there are endpoints that only data planes know,
// and can check.
func partlyElsewhere(a *endpointv3.ClusterLoadAssignment) bool {
	return slices.ContainsFunc(a.GetEndpoints(), specifier.ListedElsewhere)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
