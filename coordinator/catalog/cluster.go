package catalog

import (
	"net/netip"
	"reflect"
	"slices"
	"sort"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/coordinator/rollout/canary"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/envoyrules"
	"hdsd/source"
)

// Cluster is a source's cluster, prepared for every stage. It does not change
// once made.
type Cluster struct {
	Settings

	Source   *source.Cluster // the version in use
	Latest   *source.Cluster // the version that the source gave last; not Source where that is rejected
	Rejected string          // why Latest is rejected; empty where it is Source

	// What checkers get.
	Checked *specifier.Cluster // the endpoints to check; nil if none may be checked
	Hashes  []health.Hash      // of Checked.Endpoints
	Shapes  []canary.Shape     // of Checked.Endpoints
	HTTP    bool               // some health check is an HTTP check
	Rate    int64              // checks of one endpoint by one checker in 1,000 seconds

	// Some localities list their endpoints elsewhere (LEDS), so that only data planes know
	// and can check them.
	PartlyElsewhere bool

	// What data planes get.
	Assignment *source.Assignment // nil if the source has none, or none that an Envoy takes
	Exempting  *source.Assignment // the same, exempting from Envoys' own checks what hdsd checks; nil unless something else is left to them
	publication

	// The endpoints of the source's assignment.
	Endpoints    []Endpoint            // all, each once, in the order of their keys
	CheckedIndex [][]int32             // by locality and endpoint of Assignment: its index in Checked.Endpoints, or None
	Excluded     []Excluded            // those that are not checked although health checks apply
	Disabled     []specifier.Exclusion // those whose active health check the source disables
	refused      []specifier.Exclusion // those that are not published, since clients refuse them

	listed

	rules *Rules // that prepared it
}

// publication is what data planes get while hdsd decides, beside the assignment.
type publication struct {
	united map[place]bool     // endpoints whose weight others of Assignment have
	byEDS  *clusterv3.Cluster // the cluster, taking its endpoints and their health from hdsd; nil if it may not

	Panic   envoyrules.PanicRules  // when Envoys disregard the health of its endpoints
	weights map[health.Hash]uint32 // those above 1, if they count for panic
}

// listed holds the data to which Endpoints refer.
type listed struct {
	unchecked []unchecked
	hostnames []string // of Checked.Endpoints; nil if none has one
}

// None stands for an index where there is none.
const None = -1

// Excluded is an endpoint that is not checked. Its last verdict is held, unless
// the source disables its check.
type Excluded struct {
	Locality, Index int // in Assignment; Index is None if it is not there
	Key             health.Endpoint
	Hash            health.Hash // of Key
	Disabled        bool        // the source disables its active health check
}

// Prepare decides what of a cluster is checked and what is published.
func Prepare(from *source.Cluster, r *Rules) *Cluster {
	c := &Cluster{Settings: r.For(from), Source: from, Latest: from, rules: r}
	c.Rate = c.rate()
	given := from.Assignment.Message()
	c.Panic = envoyrules.PanicRulesOf(from.Config, given)
	c.PartlyElsewhere = slices.ContainsFunc(given.GetEndpoints(), specifier.ListedElsewhere)
	if from.Rejected == "" {
		c.prepareChecks(given)
		c.preparePublished(given)
	}
	c.HTTP = slices.ContainsFunc(from.HealthChecks, func(h *corev3.HealthCheck) bool { return h.GetHttpHealthCheck() != nil })
	c.listEndpoints(given)
	c.prepareExempting()
	return c
}

// PrepareRejected prepares what takes the place of a cluster whose source gives
// a version that is invalid: the last valid version, with the reason. If there
// is none, it is the invalid one, of which nothing is checked or published.
func PrepareRejected(rejected *source.Cluster, last *Cluster, r *Rules) *Cluster {
	if last == nil || last.Source.Rejected != "" {
		return Prepare(rejected, r)
	}
	c := Prepare(last.Source, r)
	c.Latest, c.Rejected = rejected, rejected.Rejected
	return c
}

// UpToDate tells whether r would prepare the cluster the same way.
func (c *Cluster) UpToDate(r *Rules) bool {
	return c.rules == r || r.For(c.Source).equal(c.Settings) && r.Options.Equal(c.rules.Options)
}

// IsChecked tells whether any endpoint of the cluster is checked.
func (c *Cluster) IsChecked() bool { return c.Checked != nil && len(c.Checked.Endpoints) > 0 }

// IsUncheckable reports whether the cluster has health checks and endpoints, and hdsd may check none
// of them.
func (c *Cluster) IsUncheckable() bool {
	wanted := len(c.Source.HealthChecks) > 0 || c.Source.Rejected != ""
	return wanted && !c.IsChecked() && len(c.Endpoints) > 0 && len(c.Exclusions()) > 0
}

// IgnoresNew tells whether endpoints get no traffic before their first verdict: the cluster asks
// for that (ignore_new_hosts_until_first_hc), or addresses that its names had are healthy.
func (c *Cluster) IgnoresNew() bool {
	return c.Source.IgnoreNew || c.Source.Config.GetCommonLbConfig().GetIgnoreNewHostsUntilFirstHc()
}

// Find gives the endpoint with a key, or nil if the cluster lacks it. The
// cluster may be nil.
func (c *Cluster) Find(key *health.Endpoint) *Endpoint {
	if index := c.Index(key); index != None {
		return &c.Endpoints[index]
	}
	return nil
}

// Index returns the index in Endpoints of the endpoint with a key, or None. The cluster may be nil.
func (c *Cluster) Index(key *health.Endpoint) int {
	if c == nil {
		return None
	}
	index, found := slices.BinarySearchFunc(c.Endpoints, *key, func(e Endpoint, key health.Endpoint) int { return e.Key().Compare(key) })
	if !found {
		return None
	}
	return index
}

// At returns the checked endpoints that have an IP address, whatever their ports. It costs the
// logarithm of the endpoints of each locality, since they are in order.
func (c *Cluster) At(address netip.Addr) (all []*Endpoint) {
	prefix := strings.TrimSuffix(netip.AddrPortFrom(address, 0).String(), "0")
	for rest := c.Endpoints; len(rest) > 0; {
		locality := rest[0].Locality()
		end := sort.Search(len(rest), func(i int) bool { return rest[i].Locality().Compare(*locality) > 0 })
		group := rest[:end]
		rest = rest[end:]
		first := sort.Search(len(group), func(i int) bool { return group[i].Address() >= prefix })
		for i := first; i < len(group) && strings.HasPrefix(group[i].Address(), prefix); i++ {
			if group[i].Checked() != None {
				all = append(all, &group[i])
			}
		}
	}
	return all
}

// Exclusions lists what ought to be checked or published and is not. It ignores Rejected. If a thing
// is neither checked nor published, it gives the reason of the latter alone, unless Options.Verbose
// asks for both.
func (c *Cluster) Exclusions() []specifier.Exclusion {
	if c.Source.Rejected != "" {
		return []specifier.Exclusion{{Reason: c.Source.Rejected}}
	}
	var all []specifier.Exclusion
	if c.Checked == nil || len(c.Checked.Excluded) == 0 {
		return append(all, c.refused...)
	}
	unchecked := make(map[string]string, len(c.Checked.Excluded)) // reasons by address
	for _, q := range c.Checked.Excluded {
		unchecked[q.Address] = q.Reason
	}
	for _, q := range c.refused {
		if reason := unchecked[q.Address]; reason != "" && c.rules.Options.Verbose {
			q.Reason += "; not checked: " + reason
		}
		delete(unchecked, q.Address)
		all = append(all, q)
	}
	for _, q := range c.Checked.Excluded {
		if unchecked[q.Address] != "" {
			all = append(all, q)
		}
	}
	return all
}

// Requirements says what a checker needs to check the cluster's endpoints.
func (c *Cluster) Requirements() string {
	needs := make([]string, len(c.Checked.Needs))
	for i, need := range c.Checked.Needs {
		needs[i] = string(need)
	}
	text := "which takes " + strings.Join(needs, ", ")
	if c.Reach != nil {
		text += ", and is among those that its policy says can reach it"
	}
	return text
}

// SameRequirements tells whether the same checkers may check the endpoints of another
// version. Both have endpoints to check.
func (c *Cluster) SameRequirements(other *Cluster) bool {
	return slices.Equal(c.Checked.Needs, other.Checked.Needs) && reflect.DeepEqual(c.Reach, other.Reach) &&
		c.Zones == other.Zones && c.Regions == other.Regions
}

// prepareChecks decides which endpoints checkers may be sent.
func (c *Cluster) prepareChecks(given *endpointv3.ClusterLoadAssignment) {
	from := c.Source
	if len(from.HealthChecks) == 0 {
		return
	}
	options := c.rules.Options
	options.NoTrafficIntervals = c.NoTraffic
	c.Checked = specifier.Translate(from.Name, from.Config, given, from.HealthChecks, options)
	c.Hashes = make([]health.Hash, len(c.Checked.Endpoints))
	for i := range c.Hashes {
		c.Hashes[i] = c.Checked.Key(i).Hash()
	}
	c.Shapes = make([]canary.Shape, 0, len(c.Hashes))
	for _, shape := range c.Checked.Shapes() {
		c.Shapes = append(c.Shapes, canary.Shape(shape))
	}
}
