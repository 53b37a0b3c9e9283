package coordinator

import (
	"cmp"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/aggregate"
	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/hds/specifier"
	"hdsd/health"
	"hdsd/internal/envoyaddr"
	"hdsd/source"
)

// rules is what the configuration says of clusters and how they are checked.
// It is not changed once made.
type rules struct {
	defaults   []source.DefaultHealthChecks
	policies   []policy
	redundancy int
	rule       aggregate.Rule
	trust      aggregate.Trust                    // of votes; a zero field is the default
	initial    health.Status                      // published before the first verdict
	shadow     bool                               // verdicts are kept from the subscribers
	upstream   map[string]configv1.UpstreamHealth // by source: what its word counts for
	machines   specifier.Options
	edsConfig  *corev3.ConfigSource // where data planes take the endpoints of what is checked
	placement  placement
	capacities []capacity
}

// policy gives the clusters that its glob matches another redundancy, reach,
// rule or mode.
type policy struct {
	glob       string
	redundancy int // 0: the rules'
	reach      *health.Reach
	rule       *aggregate.Rule // nil: the rules'
	mode       *configv1.Mode  // nil: the rules'

	zones, regions *configv1.Placement // nil: the rules'
}

func newRules(c *configv1.Config) *rules {
	r := &rules{
		redundancy: int(c.GetAssignment().GetRedundancy()),
		rule:       ruleOf(c.GetVerdict()),
		trust:      trustOf(c.GetVerdict()),
		initial:    health.Status(c.GetVerdict().GetInitialHealth()),
		shadow:     c.GetMode() == configv1.Mode_SHADOW,
		upstream:   map[string]configv1.UpstreamHealth{},
		machines: specifier.Options{
			Files:      set(c.GetCheckers().GetFiles()),
			SDSSecrets: set(c.GetCheckers().GetSdsSecrets()),
		},
		edsConfig:  config.EDSSource(c),
		placement:  placementOf(c.GetAssignment()),
		capacities: capacitiesOf(c.GetAssignment()),
	}
	for _, d := range c.GetDefaultHealthChecks() {
		r.defaults = append(r.defaults, source.DefaultHealthChecks{Glob: d.GetClusterNameGlob(), HealthChecks: d.GetHealthChecks()})
	}
	for _, s := range c.GetSources() {
		r.upstream[s.GetName()] = s.GetUpstreamHealth()
	}
	for _, p := range c.GetPolicies() {
		each := policy{glob: p.GetClusterNameGlob(), redundancy: int(p.GetRedundancy()), reach: reachOf(p.GetCheckers()), mode: p.Mode, zones: p.Zones, regions: p.Regions}
		if p.GetVerdict() != nil {
			verdict := config.InheritVerdict(p.GetVerdict(), c.GetVerdict())
			rule := ruleOf(verdict)
			if own := trustOf(verdict); own != r.trust {
				rule.Trust = timing{report: c.GetReporting().GetInterval().AsDuration()}.explicit(own)
			}
			each.rule = &rule
		}
		r.policies = append(r.policies, each)
	}
	return r
}

// policyOf gives the policy of a cluster: the first whose glob matches, else one
// that changes nothing.
func (r *rules) policyOf(name string) *policy {
	for i := range r.policies {
		if p := &r.policies[i]; source.Match(p.glob, name) {
			return p
		}
	}
	return &policy{}
}

// of gives redundancy and reach of a cluster.
func (r *rules) of(name string) (int, *health.Reach) {
	p := r.policyOf(name)
	return cmp.Or(p.redundancy, r.redundancy), p.reach
}

// judging gives the rule of a cluster.
func (r *rules) judging(name string) aggregate.Rule {
	if own := r.policyOf(name).rule; own != nil {
		return *own
	}
	return r.rule
}

// kinds are the rules that can be configured.
var kinds = map[configv1.Rule]aggregate.Kind{
	configv1.Rule_MAJORITY: aggregate.Majority, configv1.Rule_ANY: aggregate.Any, configv1.Rule_ALL: aggregate.All,
	configv1.Rule_AT_LEAST: aggregate.AtLeast, configv1.Rule_SHARE: aggregate.Share, configv1.Rule_ZONE_MAJORITY: aggregate.ZoneMajority,
	configv1.Rule_SCORE: aggregate.Score,
}

// unobserved are what can be configured for when nobody knows.
var unobserved = map[configv1.WhenUnobserved]aggregate.Unobserved{
	configv1.WhenUnobserved_HOLD: aggregate.Hold, configv1.WhenUnobserved_UNKNOWN: aggregate.TurnUnknown,
	configv1.WhenUnobserved_UNHEALTHY: aggregate.TurnUnhealthy,
}

// ruleOf gives the rule of a verdict, without whom to trust.
func ruleOf(v *configv1.Verdict) aggregate.Rule {
	r := aggregate.Rule{
		Kind: kinds[v.GetRule()], AtLeast: int(v.GetAtLeast()), Share: v.GetShare(), Unobserved: unobserved[v.GetWhenUnobserved()],
		WarmUp: v.GetWarmUp().AsDuration(), Damping: dampingOf(v.GetDamping()),
	}
	for _, value := range v.GetDegradedWhen().GetHttpStatusCode() {
		if first, last, err := config.StatusCodes(value); err == nil { // as it was checked
			r.DegradedWhen.Add(first, last)
		}
	}
	if mass := v.GetMassFailure(); mass != nil {
		r.MassHold = defaultMassHold
		if mass.GetHold() != nil {
			r.MassHold = mass.GetHold().AsDuration()
		}
	}
	return r
}

// defaultMassHold is how long a mass failure waits where it does.
const defaultMassHold = 10 * time.Second

func dampingOf(d *configv1.Damping) aggregate.Damping {
	if d == nil || d.GetDisabled() {
		return aggregate.Damping{}
	}
	usual := aggregate.UsualDamping
	return aggregate.Damping{
		Suppress: cmp.Or(d.GetSuppress(), usual.Suppress), Reuse: cmp.Or(d.GetReuse(), usual.Reuse),
		HalfLife: cmp.Or(int(d.GetHalfLifeRounds()), usual.HalfLife),
	}
}

// trustOf gives whom to trust, as far as the verdict says.
func trustOf(v *configv1.Verdict) aggregate.Trust {
	q, p := v.GetQuarantine(), v.GetPathCut()
	return aggregate.Trust{Staleness: v.GetStaleness().AsDuration(), Doubt: aggregate.Doubt{
		Disagreements: int(q.GetDisagreements()), Share: q.GetShare(), Release: q.GetRelease(), ReleaseAfter: q.GetReleaseAfter().AsDuration(),
		PathDisagreements: int(p.GetDisagreements()), PathShare: p.GetShare(),
	}}
}

// explicit puts the defaults in place of zeros.
func (t timing) explicit(trust aggregate.Trust) aggregate.Trust {
	trust.Staleness = cmp.Or(trust.Staleness, aggregate.DefaultStaleness(t.report))
	trust.Doubt.ReleaseAfter = cmp.Or(trust.Doubt.ReleaseAfter, 3*t.report)
	trust.Doubt = trust.Doubt.WithDefaults()
	return trust
}

// judging gives the aggregator's options.
func (t timing) judging(trust aggregate.Trust) aggregate.Options {
	trust = t.explicit(trust)
	return aggregate.Options{Staleness: trust.Staleness, Doubt: trust.Doubt, Settle: t.settle + 2*t.report, ZoneViews: t.zoneViews}
}

func reachOf(s *configv1.CheckerSelector) *health.Reach {
	if s == nil {
		return nil
	}
	reach := &health.Reach{Metadata: s.GetMetadata()}
	for _, l := range s.GetLocalities() {
		reach.Localities = append(reach.Localities, envoyaddr.Locality(l))
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
