package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/config/yamlpb"
	configv1 "hdsd/gen/hdsd/config/v1"
)

// Bounds of what can be set.
const (
	maxRedundancy   = 7
	minInterval     = 10 * time.Millisecond
	maxInterval     = time.Hour
	maxWait         = time.Hour
	minRetention    = time.Second
	maxRetention    = 100 * 365 * 24 * time.Hour
	minMessageBytes = 1 << 20
	maxMessageBytes = 1 << 30
	maxNameLength   = 256
)

// config checks the whole. It runs before the defaults are filled in, so that
// a zero stands for what the file does not say.
func (c *checks) config(cfg *Config) {
	if len(cfg.GetNodeId()) > maxNameLength {
		c.add("node_id", "is longer than %d bytes", maxNameLength)
	}
	c.listeners(cfg)
	c.sources(cfg.GetSources())
	c.defaultHealthChecks(cfg.GetDefaultHealthChecks())
	c.redundancy("assignment.redundancy", cfg.GetAssignment().GetRedundancy())
	c.duration("assignment.reconnect_grace", cfg.GetAssignment().GetReconnectGrace(), 0, maxWait)
	c.duration("assignment.settle", cfg.GetAssignment().GetSettle(), 0, maxWait)
	c.duration("reporting.interval", cfg.GetReporting().GetInterval(), minInterval, maxInterval)
	c.verdict(cfg.GetVerdict())
	c.mode("mode", cfg.GetMode())
	c.policies(cfg.GetPolicies())
	c.duration("history.retention", cfg.GetHistory().GetRetention(), minRetention, maxRetention)
	c.checkers(cfg.GetCheckers())
	c.maxMessageBytes(cfg.GetLimits().GetMaxMessageBytes())
}

func (c *checks) duration(field string, d *durationpb.Duration, low, high time.Duration) {
	if d == nil {
		return
	}
	if value := d.AsDuration(); value < low || value > high {
		c.add(field, "is %s: from %s to %s is possible", written(d), written(durationpb.New(low)), written(durationpb.New(high)))
	}
}

// written is a duration as the configuration has it.
func written(d *durationpb.Duration) string {
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

func (c *checks) maxMessageBytes(value uint32) {
	const field = "limits.max_message_bytes"
	if c.root.Has(field) && (value < minMessageBytes || value > maxMessageBytes) {
		c.add(field, "is %d: from %d to %d is possible", value, minMessageBytes, maxMessageBytes)
	}
}

func (c *checks) verdict(verdict *configv1.Verdict) {
	if rule := verdict.GetRule(); rule != configv1.Rule_MAJORITY {
		c.add("verdict.rule", "%s %s: use MAJORITY", rule, notYet)
	}
	if verdict.GetAtLeast() != 0 {
		c.add("verdict.at_least", "is the parameter of AT_LEAST, which %s: remove it", notYet)
	}
	if verdict.GetShare() != 0 {
		c.add("verdict.share", "is the parameter of SHARE, which %s: remove it", notYet)
	}
	if when := verdict.GetWhenUnobserved(); when != configv1.WhenUnobserved_HOLD {
		c.add("verdict.when_unobserved", "%s %s: use HOLD", when, notYet)
	}
	switch initial := verdict.GetInitialHealth(); initial {
	case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_UNHEALTHY:
	default:
		c.add("verdict.initial_health", "cannot be %s: use UNKNOWN (Envoy sends traffic) or UNHEALTHY", initial)
	}
}

func (c *checks) mode(field string, mode configv1.Mode) {
	if mode != configv1.Mode_PUBLISH {
		c.add(field, "%s %s: use PUBLISH", mode, notYet)
	}
}

func (c *checks) policies(policies []*configv1.Policy) {
	for i, policy := range policies {
		field := fmt.Sprintf("policies[%d]", i)
		c.glob(field+".cluster_name_glob", policy.GetClusterNameGlob())
		c.redundancy(field+".redundancy", policy.GetRedundancy())
		c.mode(field+".mode", policy.GetMode())
		if policy.Verdict != nil {
			c.add(field+".verdict", "a verdict of some clusters' own %s: remove it", notYet)
		}
		alone := &configv1.Policy{ClusterNameGlob: policy.GetClusterNameGlob()}
		if proto.Equal(policy, alone) {
			c.warn(field, "changes nothing, but keeps later policies from its clusters: give it redundancy or checkers")
		}
	}
}

func (c *checks) glob(field, glob string) {
	if glob == "" {
		c.add(field, `is needed: write "*" for all clusters`)
	}
}

func (c *checks) defaultHealthChecks(defaults []*configv1.DefaultHealthChecks) {
	for i, each := range defaults {
		field := fmt.Sprintf("default_health_checks[%d]", i)
		c.glob(field+".cluster_name_glob", each.GetClusterNameGlob())
		if len(each.GetHealthChecks()) == 0 {
			c.add(field+".health_checks", "at least one is needed")
		}
		for j, check := range each.GetHealthChecks() {
			c.valid(fmt.Sprintf("%s.health_checks[%d]", field, j), check)
		}
	}
}

// valid applies the rules of one of Envoy's messages.
func (c *checks) valid(field string, m proto.Message) {
	for _, violation := range yamlpb.Validate(m) {
		c.add(field+"."+violation.Field, "%s", violation.Reason)
	}
}

func (c *checks) checkers(checkers *configv1.Checkers) {
	for i, file := range checkers.GetFiles() {
		// The checkers' machines need not be of this one's kind, but Envoy's
		// paths begin with a slash.
		if !strings.HasPrefix(file, "/") && !filepath.IsAbs(file) {
			c.add(fmt.Sprintf("checkers.files[%d]", i), "%q is relative: write the absolute path that it has on the checkers' machines", file)
		}
	}
	for i, name := range checkers.GetSdsSecrets() {
		if name == "" {
			c.add(fmt.Sprintf("checkers.sds_secrets[%d]", i), "a secret's name cannot be empty")
		}
	}
}
