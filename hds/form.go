package hds

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	redisv2 "github.com/envoyproxy/go-control-plane/envoy/config/health_checker/redis/v2"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	discoveryv2 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v2"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/fields"
	"hdsd/envoy/specifier"
)

// form converts specifiers to the version that one checker understands, v3 or v2. It belongs to
// the goroutine that sends.
type form struct {
	session *session
	logged  map[string]bool // omitted clusters
}

func (f *form) convert(spec *specifier.Specifier) *specifier.Specifier {
	if !f.session.v2 {
		return spec
	}
	s := f.session.server
	converted := formV2(spec, func(cluster string, err error) {
		s.metrics.noForm.Inc()
		if f.logged[cluster] {
			return
		}
		if f.logged == nil {
			f.logged = map[string]bool{}
		}
		f.logged[cluster] = true
		s.options.Log.Warn().Str("event", "cluster_not_sent_v2").Str("checker", f.session.checker.ID).EmbedObject(s.options.Named(cluster)).Err(err).
			Msg("a cluster is not sent to a checker that speaks v2, which cannot say how to check it")
	})
	f.session.progress.partial.Store(len(converted.Clusters) < len(spec.Clusters))
	return converted
}

// formV2 returns spec in a form that v2 reads as v3 does, without clusters that have none.
func formV2(spec *specifier.Specifier, leftOut func(cluster string, err error)) *specifier.Specifier {
	converted := &specifier.Specifier{Interval: spec.Interval, Serial: spec.Serial, Retell: spec.Retell}
	next := 0
	for i, cluster := range spec.Message().GetClusterHealthChecks() {
		start := next
		for _, l := range cluster.GetLocalityEndpoints() {
			next += len(l.GetEndpoints())
		}
		head, err := clusterV2(cluster)
		if err != nil {
			leftOut(cluster.GetClusterName(), err)
			continue
		}
		converted.Append(specifier.Part{Head: head, Localities: spec.Clusters[i].Localities}, spec, start)
	}
	return converted
}

// clusterV2 returns a cluster, without its localities, whose wire form is its v2 form. It checks
// all of it by v2's own rules.
func clusterV2(c *healthv3.ClusterHealthCheck) (*healthv3.ClusterHealthCheck, error) {
	converted := &healthv3.ClusterHealthCheck{
		ClusterName: c.GetClusterName(), LocalityEndpoints: c.GetLocalityEndpoints(),
		TransportSocketMatches: c.GetTransportSocketMatches(),
	}
	converted.HealthChecks = make([]*corev3.HealthCheck, len(c.GetHealthChecks()))
	for i, check := range c.GetHealthChecks() {
		converted.HealthChecks[i] = proto.CloneOf(check)
		if err := checkV2(converted.HealthChecks[i]); err != nil {
			return nil, err
		}
	}
	var read discoveryv2.ClusterHealthCheck
	if err := rewrite(converted, &read); err != nil {
		return nil, err
	}
	if err := checkKnown(read.ProtoReflect()); err != nil {
		return nil, err
	}
	if err := read.ValidateAll(); err != nil {
		return nil, fmt.Errorf("v2 does not allow it: %w", err)
	}
	converted.LocalityEndpoints = nil
	return converted, nil
}

var errNoBodies = errors.New("v2 has no bodies of HTTP requests and responses; take send and receive out of http_health_check")

// checkV2 changes the fields that v2 expresses differently.
func checkV2(c *corev3.HealthCheck) error {
	if proto.Equal(c.GetNoTrafficHealthyInterval(), c.GetNoTrafficInterval()) {
		c.NoTrafficHealthyInterval = nil // the other one serves for both
	}
	if custom := c.GetCustomHealthCheck(); custom.GetTypedConfig() != nil {
		return redisV2(custom)
	}
	if h := c.GetHttpHealthCheck(); h != nil {
		if h.GetSend() != nil || len(h.GetReceive()) > 0 {
			return errNoBodies // the fields exist, but were never read
		}
		if h.GetMethod() == corev3.RequestMethod_GET {
			h.Method = corev3.RequestMethod_METHOD_UNSPECIFIED
		}
		if regex := h.GetServiceNameMatcher().GetSafeRegex(); regex != nil && regex.GetEngineType() == nil {
			regex.EngineType = &matcherv3.RegexMatcher_GoogleRe2{GoogleRe2: &matcherv3.RegexMatcher_GoogleRE2{}}
		}
	}
	return nil
}

// redisV2 converts the configuration of a Redis check to v2. No other custom check has one.
func redisV2(custom *corev3.HealthCheck_CustomHealthCheck) error {
	var configV3 redisv3.Redis
	if err := custom.GetTypedConfig().UnmarshalTo(&configV3); err != nil {
		return fmt.Errorf("v2 has no %q: %w", custom.GetName(), err)
	}
	var configV2 redisv2.Redis
	if err := rewrite(&configV3, &configV2); err != nil {
		return err
	}
	if err := checkKnown(configV2.ProtoReflect()); err != nil {
		return err
	}
	packed, err := anypb.New(&configV2)
	if err != nil {
		return fmt.Errorf("encoding a check of Redis: %w", err)
	}
	custom.ConfigType = &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: packed}
	return nil
}

// checkKnown returns an error if a message has, at any depth, unknown fields or values.
func checkKnown(m protoreflect.Message) error {
	name := m.Descriptor().FullName()
	if unknown, err := fields.Next(m.GetUnknown()); err == nil {
		return fmt.Errorf("%s has no field %d, which v3 has", name, unknown.Number)
	}
	if packed, ok := m.Interface().(*anypb.Any); ok && !packed.MessageIs((*redisv2.Redis)(nil)) {
		return fmt.Errorf("v2 does not know what %q is", packed.GetTypeUrl())
	}
	var err error
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range value.List().Len() {
				err = errors.Join(err, knownValue(field, value.List().Get(i)))
			}
		case field.IsMap():
			value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				err = errors.Join(err, knownValue(field.MapValue(), v))
				return err == nil
			})
		default:
			err = knownValue(field, value)
		}
		return err == nil
	})
	return err
}

func knownValue(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	switch {
	case field.Message() != nil:
		return checkKnown(value.Message())
	case field.Enum() != nil && field.Enum().Values().ByNumber(value.Enum()) == nil:
		return fmt.Errorf("%s has no value %d in v2", field.FullName(), value.Enum())
	}
	return nil
}
