package config

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/yamlpb"
)

// Bounds of settings.
const (
	maxRedundancy    = 7
	minInterval      = 10 * time.Millisecond
	maxInterval      = time.Hour
	maxWait          = time.Hour
	minTTL           = time.Second
	maxTTL           = 24 * time.Hour
	minRetention     = time.Second
	maxRetention     = 100 * 365 * 24 * time.Hour
	minMessageBytes  = 1 << 20
	maxMessageBytes  = 1 << 30
	minConnectionAge = time.Second
	maxConnectionAge = 365 * 24 * time.Hour
	minConnections   = 10
	minStreams       = 10
	minSourceSize    = 10
	maxInCluster     = 1_000_000
	minHold          = 10 * time.Millisecond
	maxHold          = 24 * time.Hour
	minQueryRows     = 10_000 // the largest page of the API
	maxCount         = math.MaxUint32
	maxNameLength    = 256
)

// Bounds of history.max_bytes and recording.max_bytes.
const (
	minRecording = 1 << 20

	minHistory = 1 << 20
	maxHistory = 1 << 50
)

// config checks the whole configuration. It runs before the defaults are filled in, so
// a zero means that the file does not set the field.
func (c *checks) config(cfg *Config) {
	if len(cfg.GetNodeId()) > maxNameLength {
		c.add("node_id", "is longer than %d bytes", maxNameLength)
	}
	c.listeners(cfg)
	sourceChecks{c}.checkAll(cfg)
	c.relay(cfg.GetRelay(), cfg.GetGrpc().GetTls().GetClientCaFile())
	c.defaultHealthChecks(cfg.GetDefaultHealthChecks())
	c.redundancy("assignment.redundancy", cfg.GetAssignment().GetRedundancy())
	c.capacities("assignment.checkers", cfg.GetAssignment().GetCheckers())
	c.duration("assignment.reconnect_grace", cfg.GetAssignment().GetReconnectGrace(), 0, maxWait)
	c.duration("assignment.settle", cfg.GetAssignment().GetSettle(), 0, maxWait)
	c.duration("reporting.interval", cfg.GetReporting().GetInterval(), minInterval, maxInterval)
	redundancy := cmp.Or(cfg.GetAssignment().GetRedundancy(), defaultRedundancy)
	interval := cmp.Or(cfg.GetReporting().GetInterval().AsDuration(), defaultInterval)
	c.verdict("verdict", cfg.GetVerdict(), redundancy, interval)
	c.release("verdict", cfg.GetVerdict())
	c.policies(cfg.GetPolicies(), cfg.GetVerdict(), redundancy, interval)
	planeChecks{c}.checkAll(cfg.GetDataPlanes())
	c.duration("history.retention", cfg.GetHistory().GetRetention(), minRetention, maxRetention)
	if limit := cfg.GetHistory().GetMaxBytes(); limit > 0 && limit < minHistory || limit > maxHistory {
		c.add("history.max_bytes", "is %d: 0 (no bound) and from %d to %d is possible", limit, uint64(minHistory), uint64(maxHistory))
	}
	c.duration("checkers.probation", cfg.GetCheckers().GetProbation(), 0, maxWait)
	c.checkers(cfg.GetCheckers())
	c.limits(cfg.GetLimits())
	c.dns(cfg)
	c.access(cfg)
	c.notify(cfg.GetNotify())
	checkMetrics(c, cfg.GetMetrics())
	checkRecording(c, cfg.GetRecording())
	checkReplication(c, cfg)
}

func checkRecording(c *checks, r *configv1.Recording) {
	if r != nil && r.GetFile() == "" {
		c.add("recording.file", "is needed: write where the recording is to be, or leave recording out")
	}
	if most := r.GetMaxBytes(); c.root.Has("recording.max_bytes") && (most < minRecording || most > maxHistory) {
		c.add("recording.max_bytes", "is %d: from %d to %d is possible", most, uint64(minRecording), uint64(maxHistory))
	}
}

func (c *checks) duration(field string, d *durationpb.Duration, low, high time.Duration) {
	if d == nil {
		return
	}
	if value := d.AsDuration(); value < low || value > high {
		c.add(field, "is %s: from %s to %s is possible", durationText(d), durationText(durationpb.New(low)), durationText(durationpb.New(high)))
	}
}

// durationText formats a duration as the configuration writes it.
func durationText(d *durationpb.Duration) string {
	text, err := protojson.Marshal(d)
	if err != nil {
		return d.String()
	}
	return strings.Trim(string(text), `"`)
}

func (c *checks) redundancy(field string, value uint32) {
	if value > maxRedundancy || value == 0 && c.root.Has(field) {
		c.add(field, "is %d: each endpoint can have from 1 to %d checkers", value, maxRedundancy)
	}
}

func (c *checks) policies(policies []*configv1.Policy, common *configv1.Verdict, redundancy uint32, interval time.Duration) {
	for i, policy := range policies {
		field := fmt.Sprintf("policies[%d]", i)
		c.glob(field+".cluster_name_glob", policy.GetClusterNameGlob(), "clusters")
		c.redundancy(field+".redundancy", policy.GetRedundancy())
		c.verdict(field+".verdict", policy.GetVerdict(), cmp.Or(policy.GetRedundancy(), redundancy), interval)
		c.release(field+".verdict", InheritVerdict(policy.GetVerdict(), common))
		if policy.GetVerdict().GetInitialHealth() != corev3.HealthStatus_UNKNOWN {
			c.add(field+".verdict.initial_health", "is set for all clusters together: put it into the verdict outside policies")
		}
		alone := &configv1.Policy{ClusterNameGlob: policy.GetClusterNameGlob()}
		if proto.Equal(policy, alone) {
			c.warn(field, "changes nothing, but keeps later policies from its clusters: give it redundancy, verdict, checkers, zones, regions or mode")
		}
	}
}

func (c *checks) glob(field, glob, wildcard string) {
	if glob == "" {
		c.add(field, `is needed: write "*" for all %s`, wildcard)
	}
	if strings.ContainsAny(glob, "[]{}") {
		c.warn(field, "has brackets, which stand for themselves: only * and ? stand for others")
	}
}

func (c *checks) defaultHealthChecks(defaults []*configv1.DefaultHealthChecks) {
	for i, rule := range defaults {
		field := fmt.Sprintf("default_health_checks[%d]", i)
		c.glob(field+".cluster_name_glob", rule.GetClusterNameGlob(), "clusters")
		if len(rule.GetHealthChecks()) == 0 {
			c.add(field+".health_checks", "at least one is needed")
		}
		for j, check := range rule.GetHealthChecks() {
			c.valid(fmt.Sprintf("%s.health_checks[%d]", field, j), check)
		}
	}
}

// valid applies the validation rules of one of Envoy's messages.
func (c *checks) valid(field string, m proto.Message) {
	for _, violation := range yamlpb.Validate(m) {
		c.add(field+"."+violation.Field, "%s", violation.Reason)
	}
}

func (c *checks) checkers(checkers *configv1.Checkers) {
	for i, file := range checkers.GetFiles() {
		// Checkers may run on another system than hdsd, but Envoy's paths begin with a
		// slash.
		if !strings.HasPrefix(file, "/") && !filepath.IsAbs(file) {
			c.add(fmt.Sprintf("checkers.files[%d]", i), "%q is relative: write the absolute path that it has on the checkers' machines", file)
		}
	}
	c.admit(checkers.GetAdmit())
	checkAddresses(checkers.GetProbeTargets().GetAllow(), "checkers.probe_targets.allow", c.add)
	checkAddresses(checkers.GetProbeTargets().GetDeny(), "checkers.probe_targets.deny", c.add)
	c.duration("checkers.probe_targets.min_interval", checkers.GetProbeTargets().GetMinInterval(), time.Millisecond, maxInterval)
	c.limit("checkers.probe_targets.max_probes_per_second", checkers.GetProbeTargets().GetMaxProbesPerSecond(), 1, maxCount)
	c.sdsConfig("checkers.sds_config", checkers.GetSdsConfig())
	for i, name := range checkers.GetSdsSecrets() {
		if name == "" {
			c.add(fmt.Sprintf("checkers.sds_secrets[%d]", i), "a secret's name cannot be empty")
		}
	}
}
