package coordinator

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/aggregate"
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
	rule       aggregate.Rule
	initial    health.Status // published before the first verdict
	shadow     bool          // verdicts are kept from the subscribers
	machines   specifier.Options
}

// policy gives the clusters that its glob matches another redundancy, reach,
// rule or mode.
type policy struct {
	glob       string
	redundancy int // 0: the rules'
	reach      *health.Reach
	rule       *aggregate.Rule // nil: the rules'
	mode       *configv1.Mode  // nil: the rules'
}

func newRules(c *configv1.Config) *rules {
	r := &rules{
		redundancy: int(c.GetAssignment().GetRedundancy()),
		rule:       ruleOf(c.GetVerdict()),
		initial:    health.Status(c.GetVerdict().GetInitialHealth()),
		shadow:     c.GetMode() == configv1.Mode_SHADOW,
		machines: specifier.Options{
			Files:      set(c.GetCheckers().GetFiles()),
			SDSSecrets: set(c.GetCheckers().GetSdsSecrets()),
		},
	}
	for _, d := range c.GetDefaultHealthChecks() {
		r.defaults = append(r.defaults, source.DefaultHealthChecks{Glob: d.GetClusterNameGlob(), HealthChecks: d.GetHealthChecks()})
	}
	for _, p := range c.GetPolicies() {
		each := policy{glob: p.GetClusterNameGlob(), redundancy: int(p.GetRedundancy()), reach: reachOf(p.GetCheckers()), mode: p.Mode}
		if p.GetVerdict() != nil {
			rule := ruleOf(p.GetVerdict())
			each.rule = &rule
		}
		r.policies = append(r.policies, each)
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

// judging gives the rule of a cluster; the first policy whose glob matches
// decides.
func (r *rules) judging(name string) aggregate.Rule {
	for _, p := range r.policies {
		if source.Match(p.glob, name) {
			if p.rule != nil {
				return *p.rule
			}
			break
		}
	}
	return r.rule
}

// kinds are the rules that can be configured.
var kinds = map[configv1.Rule]aggregate.Kind{
	configv1.Rule_MAJORITY: aggregate.Majority, configv1.Rule_ANY: aggregate.Any, configv1.Rule_ALL: aggregate.All,
	configv1.Rule_AT_LEAST: aggregate.AtLeast, configv1.Rule_SHARE: aggregate.Share, configv1.Rule_ZONE_MAJORITY: aggregate.ZoneMajority,
}

// unobserved are what can be configured for when nobody knows.
var unobserved = map[configv1.WhenUnobserved]aggregate.Unobserved{
	configv1.WhenUnobserved_HOLD: aggregate.Hold, configv1.WhenUnobserved_UNKNOWN: aggregate.TurnUnknown,
	configv1.WhenUnobserved_UNHEALTHY: aggregate.TurnUnhealthy,
}

func ruleOf(v *configv1.Verdict) aggregate.Rule {
	return aggregate.Rule{
		Kind: kinds[v.GetRule()], AtLeast: int(v.GetAtLeast()), Share: v.GetShare(), Unobserved: unobserved[v.GetWhenUnobserved()],
	}
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
