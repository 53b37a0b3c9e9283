package catalog

import (
	"cmp"
	"net/http"
	"reflect"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/aggregate"
	"hdsd/assign"
	"hdsd/config"
	"hdsd/envoy"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source"
)

// Rules are the configuration's rules for clusters and their checks. They are immutable once a
// cluster was prepared by them.
type Rules struct {
	DefaultHealthChecks []source.DefaultHealthChecks
	Trust               aggregate.BeliefLimits // of votes; a zero field stands for the default
	InitialHealth       health.Status          // published before the first verdict
	Options             specifier.Options      // abilities of checkers' machines
	Probation           time.Duration          // of checkers that are new
	MaxProbes           uint32                 // per second and address; 0: any number

	settings   Settings // of clusters without a policy
	policies   []policy
	upstream   map[string]configv1.UpstreamHealth // by source
	edsConfig  *corev3.ConfigSource               // the data planes' source for the endpoints of checked clusters
	capacities []capacity

	nodeWeights bool // whether the weight claimed by a checker's node counts

	config *configv1.Config // the origin of these rules
}

// Config returns the configuration of these rules. It must not be modified.
func (r *Rules) Config() *configv1.Config {
	c := r.config
	read := &configv1.Config{
		DefaultHealthChecks: c.GetDefaultHealthChecks(), Assignment: c.GetAssignment(), Verdict: c.GetVerdict(), Mode: c.GetMode(),
		Policies: c.GetPolicies(), Checkers: c.GetCheckers(),
	}
	if interval := c.GetReporting().GetInterval(); interval != nil {
		read.Reporting = &configv1.Reporting{Interval: interval}
	}
	if by := c.GetDataPlanes().GetEdsConfigSource(); by != nil {
		read.DataPlanes = &configv1.DataPlanes{EdsConfigSource: by}
	}
	for _, s := range c.GetSources() {
		read.Sources = append(read.Sources, &configv1.Source{Name: s.GetName(), UpstreamHealth: s.GetUpstreamHealth()})
	}
	return read
}

// Settings are the rules for one cluster.
type Settings struct {
	Redundancy     int
	Reach          *health.Reach // the checkers that can reach it; nil: all
	Zones, Regions assign.Placement
	Rule           aggregate.Rule
	degradedGiven  bool                    // whether the configuration has codes for DEGRADED
	Shadow         bool                    // data planes do not get the verdicts
	NoTraffic      bool                    // the no_traffic intervals of health checks count
	UpstreamHealth configv1.UpstreamHealth // how the health from the source counts
}

// Redundancy returns the default number of checkers of an endpoint. The rules may be nil.
func (r *Rules) Redundancy() int {
	if r == nil {
		return 0
	}
	return r.settings.Redundancy
}

func (s Settings) equal(other Settings) bool {
	sameReach := reflect.DeepEqual(s.Reach, other.Reach)
	s.Reach, other.Reach = nil, nil
	return sameReach && s == other
}

// policy holds the settings of the clusters that its glob matches.
type policy struct {
	glob     string
	settings Settings
}

// capacity is the configured capacity of some checkers.
type capacity struct {
	glob            string
	weight, ceiling float64
}

// NewRules reads the rules of a configuration.
func NewRules(c *configv1.Config) *Rules {
	r := &Rules{
		Trust:         trustOf(c.GetVerdict()),
		InitialHealth: health.Status(c.GetVerdict().GetInitialHealth()),
		Options: specifier.Options{
			Files: set(c.GetCheckers().GetFiles()), SDSSecrets: set(c.GetCheckers().GetSdsSecrets()), SDSConfig: config.SDSConfig(c),
			Targets: targetsOf(c.GetCheckers().GetProbeTargets()), MinInterval: c.GetCheckers().GetProbeTargets().GetMinInterval().AsDuration(),
		},
		Probation: c.GetCheckers().GetProbation().AsDuration(),
		MaxProbes: c.GetCheckers().GetProbeTargets().GetMaxProbesPerSecond(),
		settings: Settings{
			Redundancy: int(c.GetAssignment().GetRedundancy()),
			Zones:      placements[c.GetAssignment().GetZones()],
			Regions:    assign.Anywhere,
			Rule:       ruleOf(c.GetVerdict()),

			degradedGiven: c.GetVerdict().GetDegradedWhen() != nil,
			Shadow:        c.GetMode() == configv1.Mode_SHADOW,
		},
		upstream:    map[string]configv1.UpstreamHealth{},
		edsConfig:   config.EDSSource(c),
		nodeWeights: c.GetCheckers().GetNodeWeights(),
		config:      c,
	}
	if a := c.GetAssignment(); a != nil && a.Regions != nil {
		r.settings.Regions = placements[a.GetRegions()]
	}
	for _, a := range c.GetAssignment().GetCheckers() {
		r.capacities = append(r.capacities, capacity{a.GetNodeIdGlob(), a.GetWeight(), a.GetMaxChecksPerSecond()})
	}
	for _, d := range c.GetDefaultHealthChecks() {
		r.DefaultHealthChecks = append(r.DefaultHealthChecks, source.DefaultHealthChecks{Glob: d.GetClusterNameGlob(), HealthChecks: d.GetHealthChecks()})
	}
	for _, s := range c.GetSources() {
		r.upstream[s.GetName()] = s.GetUpstreamHealth()
	}
	for _, p := range c.GetPolicies() {
		r.policies = append(r.policies, policy{p.GetClusterNameGlob(), r.settingsOf(p, c)})
	}
	return r
}

// settingsOf returns the settings of a policy. Unset fields are as for clusters without a
// policy.
func (r *Rules) settingsOf(p *configv1.Policy, c *configv1.Config) Settings {
	s := r.settings
	s.Redundancy = cmp.Or(int(p.GetRedundancy()), s.Redundancy)
	s.Reach = reachOf(p.GetCheckers())
	s.NoTraffic = p.GetNoTrafficIntervals()
	if p.Mode != nil {
		s.Shadow = p.GetMode() == configv1.Mode_SHADOW
	}
	if p.Zones != nil {
		s.Zones = placements[p.GetZones()]
	}
	if p.Regions != nil {
		s.Regions = placements[p.GetRegions()]
	}
	if p.GetVerdict() != nil {
		verdict := config.InheritVerdict(p.GetVerdict(), c.GetVerdict())
		s.Rule, s.degradedGiven = ruleOf(verdict), verdict.GetDegradedWhen() != nil
		if limits := trustOf(verdict); limits != r.Trust {
			s.Rule.Limits = WithDefaults(limits, c.GetReporting().GetInterval().AsDuration())
		}
	}
	return s
}

// For returns the settings of a cluster: those of the first policy that matches it, else the
// configuration's.
func (r *Rules) For(c *source.Cluster) Settings {
	s := r.settings
	if i := r.policyOf(c.Outside()); i != None {
		s = r.policies[i].settings
	}
	s.UpstreamHealth = r.upstream[c.EndpointSource()]
	s.Rule.Votes = s.Redundancy
	s.Rule.Passing = passingCodes(c.HealthChecks)
	if !s.degradedGiven {
		s.Rule.DegradedWhen = s.Rule.Passing
	}
	return s
}

// passingCodes returns the status codes with which a probe of a cluster passes. There
// are none if a probe with such a code may fail: for its body, its service, or by another
// check.
func passingCodes(checks []*corev3.HealthCheck) (codes aggregate.Codes) {
	if len(checks) != 1 {
		return codes
	}
	check := checks[0].GetHttpHealthCheck()
	if check == nil || len(check.GetReceive()) > 0 || check.GetServiceNameMatcher() != nil {
		return codes
	}
	for _, r := range check.GetExpectedStatuses() {
		codes.Add(int(max(r.GetStart(), 0)), int(min(r.GetEnd(), aggregate.MaxCode))-1)
	}
	if len(check.GetExpectedStatuses()) == 0 {
		codes.Add(http.StatusOK, http.StatusOK)
	}
	return codes
}

// SetCapacity sets a checker's weight and ceiling to the configured ones, else to the weight
// claimed by its node if the configuration allows that, else to 1. The rules may be nil.
func (r *Rules) SetCapacity(k *health.Checker, nodeWeight float64) {
	k.Weight, k.MaxChecksPerSecond = 1, 0
	if r == nil {
		return
	}
	if r.nodeWeights {
		k.Weight = nodeWeight
	}
	for _, c := range r.capacities {
		if source.Match(c.glob, k.ID) {
			k.Weight, k.MaxChecksPerSecond = c.weight, c.ceiling
			break
		}
	}
	if k.Weight == 0 {
		k.Weight = 1
	}
}

var placements = map[configv1.Placement]assign.Placement{
	configv1.Placement_SPREAD: assign.Spread, configv1.Placement_OWN_ONLY: assign.OwnOnly,
	configv1.Placement_OWN_FIRST: assign.OwnFirst, configv1.Placement_ANYWHERE: assign.Anywhere,
}

var ruleKinds = map[configv1.Rule]aggregate.Kind{
	configv1.Rule_MAJORITY: aggregate.Majority, configv1.Rule_ANY: aggregate.Any, configv1.Rule_ALL: aggregate.All,
	configv1.Rule_AT_LEAST: aggregate.AtLeast, configv1.Rule_SHARE: aggregate.Share, configv1.Rule_ZONE_MAJORITY: aggregate.ZoneMajority,
	configv1.Rule_SCORE: aggregate.Score,
}

var whenUnobserved = map[configv1.WhenUnobserved]aggregate.Unobserved{
	configv1.WhenUnobserved_HOLD: aggregate.Hold, configv1.WhenUnobserved_UNKNOWN: aggregate.TurnUnknown,
	configv1.WhenUnobserved_UNHEALTHY: aggregate.TurnUnhealthy,
}

// ruleOf returns the rule of a verdict, without its Trust.
func ruleOf(v *configv1.Verdict) aggregate.Rule {
	r := aggregate.Rule{
		Kind: ruleKinds[v.GetRule()], AtLeast: int(v.GetAtLeast()), Share: v.GetShare(), Unobserved: whenUnobserved[v.GetWhenUnobserved()],
		WarmUp: v.GetWarmUp().AsDuration(), Damping: dampingOf(v.GetDamping()),
	}
	for _, value := range v.GetDegradedWhen().GetHttpStatusCode() {
		if first, last, err := config.StatusCodes(value); err == nil { // validation reports an error
			r.DegradedWhen.Add(first, last)
		}
	}
	if mass := v.GetMassFailure(); mass != nil {
		r.MassHold = defaultMassHold
		if mass.GetHold() != nil {
			r.MassHold = mass.GetHold().AsDuration()
		}
	}
	r.QuorumHold = defaultQuorumHold
	if hold := v.GetQuorumHold(); hold != nil {
		r.QuorumHold = hold.AsDuration()
	}
	return r
}

// defaultQuorumHold is the default time for which a majority of the planned votes is needed
// after checkers were lost.
const defaultQuorumHold = 10 * time.Minute

// defaultMassHold is the default time for which verdicts of a mass failure are held.
const defaultMassHold = 10 * time.Second

func dampingOf(d *configv1.Damping) aggregate.Damping {
	if d == nil || d.GetDisabled() {
		return aggregate.Damping{}
	}
	usual := aggregate.DefaultDamping
	return aggregate.Damping{
		Suppress: cmp.Or(d.GetSuppress(), usual.Suppress), Reuse: cmp.Or(d.GetReuse(), usual.Reuse),
		HalfLife: cmp.Or(int(d.GetHalfLifeRounds()), usual.HalfLife),
	}
}

// trustOf returns the trust limits of a verdict; unset fields are zero.
func trustOf(v *configv1.Verdict) aggregate.BeliefLimits {
	q, p := v.GetDoubt(), v.GetPathCut()
	return aggregate.BeliefLimits{Staleness: v.GetStaleness().AsDuration(), Doubt: aggregate.Doubt{
		Disagreements: int(q.GetDisagreements()), Share: q.GetShare(), Release: q.GetRelease(), ReleaseAfter: q.GetReleaseAfter().AsDuration(),
		PathDisagreements: int(p.GetDisagreements()), PathShare: p.GetShare(),
	}}
}

// WithDefaults replaces zeros by the defaults for a report interval.
func WithDefaults(t aggregate.BeliefLimits, report time.Duration) aggregate.BeliefLimits {
	t.Staleness = cmp.Or(t.Staleness, aggregate.DefaultStaleness(report))
	t.Doubt.ReleaseAfter = cmp.Or(t.Doubt.ReleaseAfter, 3*report)
	t.Doubt = t.Doubt.WithDefaults()
	return t
}

func reachOf(s *configv1.CheckerSelector) *health.Reach {
	if s == nil {
		return nil
	}
	reach := &health.Reach{Metadata: s.GetMetadata()}
	for _, l := range s.GetLocalities() {
		reach.Localities = append(reach.Localities, envoy.Locality(l))
	}
	return reach
}

// targetsOf reads validated addresses, without an error.
func targetsOf(t *configv1.ProbeTargets) (targets specifier.Targets) {
	targets.Allow, _ = config.Prefixes(t.GetAllow())
	targets.Deny, _ = config.Prefixes(t.GetDeny())
	return targets
}

func set(names []string) map[string]bool {
	members := make(map[string]bool, len(names))
	for _, name := range names {
		members[name] = true
	}
	return members
}
