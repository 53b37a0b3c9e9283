package config

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source/xds"
)

// sourceChecks checks the sources.
type sourceChecks struct{ *checks }

func (c sourceChecks) checkAll(cfg *Config) {
	sources := cfg.GetSources()
	if len(sources) == 0 && cfg.GetRelay() == nil {
		c.add("sources", "at least one is required, such as {name: local, config_source: {path_config_source: {path: clusters.yaml}}}")
	}
	seen := make(map[string]int, len(sources))
	for i, source := range sources {
		field := fmt.Sprintf("sources[%d]", i)
		first, double := seen[source.GetName()]
		switch {
		case source.GetName() == "":
			c.add(field+".name", "is needed, and different from the other sources'")
		case source.GetName() == relayName && cfg.GetRelay() != nil:
			c.add(field+".name", "%q is the source of what the relay's clients have: choose another name", relayName)
		case len(source.GetName()) > maxNameLength:
			c.add(field+".name", "is longer than %d bytes", maxNameLength)
		case double:
			c.add(field+".name", "%q is the name of sources[%d] already: names must differ", source.GetName(), first)
		default:
			seen[source.GetName()] = i
		}
		c.configSource(field+".config_source", source.GetConfigSource())
		c.holdShrinkage(field+".hold_shrinkage", source.GetHoldShrinkage())
		c.node(field+".node", source)
		c.firstDeltaResponse(field+".first_delta_response_is_complete", source)
	}
}

// node checks what a management server is told of who asks.
func (c sourceChecks) node(field string, source *configv1.Source) {
	if source.GetNode() == nil {
		return
	}
	c.valid(field, source.GetNode())
	if path, _ := PathOf(source); path != "" {
		c.add(field, "means nothing for a file, which nobody is asked for: remove it")
	}
}

// firstDeltaResponse checks that what is said of delta streams is said of a source that has
// them.
func (c sourceChecks) firstDeltaResponse(field string, source *configv1.Source) {
	switch source.GetConfigSource().GetApiConfigSource().GetApiType() {
	case corev3.ApiConfigSource_DELTA_GRPC, corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC:
	default:
		if source.GetFirstDeltaResponseIsComplete() {
			c.add(field, "is for api_type DELTA_GRPC and AGGREGATED_DELTA_GRPC: remove it, or choose one of these")
		}
	}
}

func (c sourceChecks) holdShrinkage(field string, h *configv1.HoldShrinkage) {
	if share := h.GetShare(); !(share >= 0 && share <= 1) || share == 0 && c.root.Has(field+".share") {
		c.add(field+".share", "is %v: above 0 and up to 1 is possible, where 1 holds nothing", share)
	}
	c.duration(field+".for", h.GetFor(), minHold, maxHold)
}

func (c sourceChecks) configSource(field string, source *corev3.ConfigSource) {
	switch specifier := source.GetConfigSourceSpecifier().(type) {
	case nil:
		c.add(field, "is required, such as {path_config_source: {path: clusters.yaml}}")
		return
	case *corev3.ConfigSource_PathConfigSource:
	case *corev3.ConfigSource_Path:
		if specifier.Path == "" {
			c.add(field+".path", "needs the path of a file or folder")
		}
	default:
		for _, problem := range xds.Validate(field, source) {
			c.add(problem.Field, "%s", problem.Message)
		}
		return
	}
	c.valid(field, source)
	if len(source.GetAuthorities()) > 0 {
		c.add(field+".authorities", "means nothing for a file: remove it")
	}
	if source.GetResourceApiVersion() == corev3.ApiVersion_V2 { //nolint:staticcheck // to refuse it
		c.add(field+".resource_api_version", "V2 has come to its end: use V3, and resources of v3")
	}
}
