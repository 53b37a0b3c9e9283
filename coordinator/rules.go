package coordinator

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/source"
)

// rules is what the configuration says of clusters and how they are checked.
// It is not changed once made.
type rules struct {
	defaults   []source.DefaultHealthChecks
	policies   []policy
	redundancy int
	initial    health.Status // published before the first verdict
	machines   specifier.Options
}

// policy gives the clusters that its glob matches another redundancy or reach.
type policy struct {
	glob       string
	redundancy int // 0: the rules'
	reach      *health.Reach
}

func newRules(c *configv1.Config) *rules {
	r := &rules{
		redundancy: int(c.GetAssignment().GetRedundancy()),
		initial:    health.Status(c.GetVerdict().GetInitialHealth()),
		machines: specifier.Options{
			Files:      set(c.GetCheckers().GetFiles()),
			SDSSecrets: set(c.GetCheckers().GetSdsSecrets()),
		},
	}
	for _, d := range c.GetDefaultHealthChecks() {
		r.defaults = append(r.defaults, source.DefaultHealthChecks{Glob: d.GetClusterNameGlob(), HealthChecks: d.GetHealthChecks()})
	}
	for _, p := range c.GetPolicies() {
		r.policies = append(r.policies, policy{p.GetClusterNameGlob(), int(p.GetRedundancy()), reachOf(p.GetCheckers())})
	}
	return r
}

// of gives redundancy and reach of a cluster; the first policy whose glob
// matches decides.
func (r *rules) of(name string) (int, *health.Reach) {
	for _, p := range r.policies {
		if source.Match(p.glob, name) {
			if p.redundancy != 0 {
				return p.redundancy, p.reach
			}
			return r.redundancy, p.reach
		}
	}
	return r.redundancy, nil
}

func reachOf(s *configv1.CheckerSelector) *health.Reach {
	if s == nil {
		return nil
	}
	reach := &health.Reach{Metadata: s.GetMetadata()}
	for _, l := range s.GetLocalities() {
		reach.Localities = append(reach.Localities, health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()})
	}
	return reach
}

func set(names []string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

func localityOf(l *corev3.Locality) health.Locality {
	return health.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
}
