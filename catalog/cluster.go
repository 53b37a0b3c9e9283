package catalog

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sort"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"hdsd/envoy/rules"
	"hdsd/envoy/specifier"
	"hdsd/health"
	"hdsd/source"
)

// Cluster is a source's cluster, prepared for every stage. It is immutable.
type Cluster struct {
	Settings

	Source   *source.Cluster // the version in use
	Latest   *source.Cluster // the source's latest version; differs from Source if it is rejected
	Rejected string          // reason why Latest is rejected; empty if it is Source

	// These fields are for checkers.
	Checked *specifier.Cluster // the endpoints to check; nil if none may be checked
	Hashes  []health.Hash      // of Checked.Endpoints
	Shapes  []specifier.Shape  // of Checked.Endpoints
	HTTP    bool               // some health check is an HTTP check
	Rate    int64              // checks of one endpoint by one checker in 1,000 seconds

	// PartlyElsewhere means that some localities list their endpoints elsewhere (LEDS), so that
	// only data planes know and check them.
	PartlyElsewhere bool

	// These fields are for data planes.
	Assignment *source.Assignment // nil if the source has none, or no Envoy takes it
	Exempting  *source.Assignment // the same, with endpoints that hdsd checks exempt from Envoys' own checks; nil unless other endpoints need those
	publication

	// These fields hold the endpoints of the source's assignment.
	Endpoints    []Endpoint            // all, each once, in the order of their keys
	CheckedIndex [][]int32             // by locality and endpoint of Assignment: its index in Checked.Endpoints, or None
	Excluded     []Excluded            // endpoints that are not checked although health checks apply
	Disabled     []specifier.Exclusion // endpoints whose active health check the source disables
	refused      []specifier.Exclusion // endpoints that are not published, since clients refuse them

	listed

	rules *Rules // the rules that prepared it
}

// publication is the form of a cluster for data planes while hdsd decides, beside the
// assignment.
type publication struct {
	united map[place]bool     // endpoints whose weight is part of another endpoint in Assignment
	byEDS  *clusterv3.Cluster // the cluster with endpoints and health from hdsd; nil if it may not

	Panic   rules.PanicRules       // rules for when Envoys disregard the health of its endpoints
	weights map[health.Hash]uint32 // weights above 1, if they count for panic
}

// Endpoints refer to the data in listed.
type listed struct {
	unchecked []unchecked
	hostnames []string // of Checked.Endpoints; nil if none has one
}

// None stands for a missing index.
const None = -1

// Excluded is an endpoint that is not checked. Its last verdict is held, unless
// the source disables its check.
type Excluded struct {
	Locality, Index int // in Assignment; Index is None if it is not there
	Key             health.Endpoint
	Hash            health.Hash // of Key
	Disabled        bool        // the source disables its active health check
}

// Prepare decides which parts of a cluster are checked and published.
func Prepare(src *source.Cluster, r *Rules) *Cluster {
	c := &Cluster{Settings: r.For(src), Source: src, Latest: src, rules: r}
	c.Rate = c.rate()
	given := src.Assignment.Message()
	c.Panic = rules.PanicRulesOf(src.Config, given)
	c.PartlyElsewhere = slices.ContainsFunc(given.GetEndpoints(), specifier.ListedElsewhere)
	if src.Rejected == "" {
		c.prepareChecks(given)
		c.preparePublished(given)
	}
	c.HTTP = slices.ContainsFunc(src.HealthChecks, func(h *corev3.HealthCheck) bool { return h.GetHttpHealthCheck() != nil })
	c.listEndpoints(given)
	c.prepareExempting()
	return c
}

// PrepareRejected prepares a replacement for an invalid version of a cluster: the last valid
// version, with the reason. Without one, it is the invalid version, and nothing of it is
// checked or published.
func PrepareRejected(rejected *source.Cluster, last *Cluster, r *Rules) *Cluster {
	if last == nil || last.Source.Rejected != "" {
		return Prepare(rejected, r)
	}
	c := Prepare(last.Source, r)
	c.Latest, c.Rejected = rejected, rejected.Rejected
	return c
}

// Version returns the cluster's version in the relay; empty for the first.
func (c *Cluster) Version() string { return health.VersionOf(c.Source.Name, c.Source.Outside()) }

// Title returns the cluster's name for people.
func (c *Cluster) Title() string { return health.VersionTitle(c.Source.Outside(), c.Version()) }

// UpToDate reports whether r would prepare the cluster the same way.
func (c *Cluster) UpToDate(r *Rules) bool {
	return c.rules == r || r.For(c.Source).equal(c.Settings) && r.Options.Equal(c.rules.Options)
}

// IsChecked reports whether any endpoint of the cluster is checked.
func (c *Cluster) IsChecked() bool { return c.Checked != nil && len(c.Checked.Endpoints) > 0 }

// IsUncheckable reports whether the cluster has health checks and endpoints, and hdsd may check
// none of them.
func (c *Cluster) IsUncheckable() bool {
	wanted := len(c.Source.HealthChecks) > 0 || c.Source.Rejected != ""
	return wanted && !c.IsChecked() && len(c.Endpoints) > 0 && len(c.Exclusions()) > 0
}

// UncheckableReason returns the reason why hdsd may check no endpoint of an uncheckable
// cluster.
func (c *Cluster) UncheckableReason() string {
	exclusions := c.Exclusions()
	text := "none of its endpoints may be checked: " + exclusions[0].Reason
	if n := len(exclusions); n > 1 {
		text += fmt.Sprintf(" (and %d more)", n-1)
	}
	return text
}

// IgnoresNew reports whether endpoints get no traffic before their first verdict: the cluster
// has ignore_new_hosts_until_first_hc, or healthy addresses from earlier name resolutions.
func (c *Cluster) IgnoresNew() bool {
	return c.Source.IgnoreNew || c.Source.Config.GetCommonLbConfig().GetIgnoreNewHostsUntilFirstHc()
}

// Find returns the endpoint with a key, or nil if the cluster lacks it. The cluster may be nil.
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

// At returns the checked endpoints with an IP address, with any port. It costs the logarithm of
// the endpoints of each locality, since they are in order.
func (c *Cluster) At(address netip.Addr) (found []*Endpoint) {
	prefix := strings.TrimSuffix(netip.AddrPortFrom(address, 0).String(), "0")
	for remaining := c.Endpoints; len(remaining) > 0; {
		locality := remaining[0].Locality()
		end := sort.Search(len(remaining), func(i int) bool { return remaining[i].Locality().Compare(*locality) > 0 })
		group := remaining[:end]
		remaining = remaining[end:]
		first := sort.Search(len(group), func(i int) bool { return group[i].Address() >= prefix })
		for i := first; i < len(group) && strings.HasPrefix(group[i].Address(), prefix); i++ {
			if group[i].Checked() != None {
				found = append(found, &group[i])
			}
		}
	}
	return found
}

// Exclusions lists the endpoints and the cluster itself where they should be checked or
// published and are not. It ignores Rejected. If one is neither checked nor published, it gives
// only the reason for the latter, unless Options.Verbose asks for both.
func (c *Cluster) Exclusions() []specifier.Exclusion {
	if c.Source.Rejected != "" {
		return []specifier.Exclusion{{Reason: c.Source.Rejected}}
	}
	var list []specifier.Exclusion
	if c.Checked == nil || len(c.Checked.Excluded) == 0 {
		return append(list, c.refused...)
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
		list = append(list, q)
	}
	for _, q := range c.Checked.Excluded {
		if unchecked[q.Address] != "" {
			list = append(list, q)
		}
	}
	return list
}

// Requirements describes the requirements for checkers of the cluster's endpoints.
func (c *Cluster) Requirements() string {
	needs := make([]string, len(c.Checked.Needs))
	for i, need := range c.Checked.Needs {
		needs[i] = string(need)
	}
	text := "which takes " + strings.Join(needs, ", ")
	if c.Reach != nil {
		text += ", and allowed to by its policy (policies[].checkers)"
	}
	return text
}

// SameRequirements reports whether the same checkers may check the endpoints of another
// version. Both have endpoints to check.
func (c *Cluster) SameRequirements(other *Cluster) bool {
	return slices.Equal(c.Checked.Needs, other.Checked.Needs) && reflect.DeepEqual(c.Reach, other.Reach) &&
		c.Zones == other.Zones && c.Regions == other.Regions
}

// prepareChecks decides which endpoints checkers may get.
func (c *Cluster) prepareChecks(given *endpointv3.ClusterLoadAssignment) {
	src := c.Source
	if len(src.HealthChecks) == 0 {
		return
	}
	options := c.rules.Options
	options.NoTrafficIntervals = c.NoTraffic
	c.Checked = specifier.Translate(src.Name, src.Config, given, src.HealthChecks, options)
	c.Hashes = make([]health.Hash, len(c.Checked.Endpoints))
	for i := range c.Hashes {
		c.Hashes[i] = c.Checked.Key(i).Hash()
	}
	c.Shapes = c.Checked.Shapes()
}
