package main

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/check"
	"hdsd/config"
	"hdsd/envoy/specifier"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
)

// extensionNames are Envoy's names of the extensions that a fleet can lack.
var extensionNames = map[configv1.CheckerGroup_Extension]string{
	configv1.CheckerGroup_GRPC:   "envoy.health_checkers.grpc",
	configv1.CheckerGroup_REDIS:  "envoy.health_checkers.redis",
	configv1.CheckerGroup_THRIFT: "envoy.health_checkers.thrift",
	configv1.CheckerGroup_TLS:    "envoy.transport_sockets.tls",
}

// checkersOf returns the checkers of a fleet as a coordinator would see them.
func checkersOf(fleet *config.Fleet) (checkers []health.Checker, problems []config.Problem) {
	for i, group := range fleet.GetCheckers() {
		request := introduction(group)
		for id := range config.Numbered(group.GetId(), group.GetCount()) {
			request.Node.Id = id
			k, err := specifier.CheckerFromNode(request.GetNode(), request.GetCapability())
			if err != nil {
				problems = append(problems, fleet.Problem(fmt.Sprintf("checkers[%d].id", i), "%s", err))
				break
			}
			checkers = append(checkers, k)
		}
	}
	return checkers, problems
}

// introduction returns the first message of a group's checkers.
func introduction(group *configv1.CheckerGroup) *healthv3.HealthCheckRequest {
	request := check.Introduction(&check.Options{Version: version})
	if release, ok := strings.CutPrefix(group.GetVersion(), "envoy/"); ok {
		request = envoyIntroduction(release, group.GetWithout())
	}
	request.Node.Locality = group.GetLocality()
	request.Node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for key, value := range group.GetMetadata() {
		request.Node.Metadata.Fields[key] = structpb.NewStringValue(value)
	}
	if group.GetWeight() != 0 {
		request.Node.Metadata.Fields["hdsd.weight"] = structpb.NewNumberValue(group.GetWeight())
	}
	return request
}

func envoyIntroduction(release string, omitted []configv1.CheckerGroup_Extension) *healthv3.HealthCheckRequest {
	node := &corev3.Node{UserAgentName: "envoy", UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: release}}
	for extension, name := range extensionNames {
		if !slices.Contains(omitted, extension) {
			node.Extensions = append(node.Extensions, &corev3.Extension{Name: name})
		}
	}
	return &healthv3.HealthCheckRequest{Node: node, Capability: &healthv3.Capability{
		HealthCheckProtocols: []healthv3.Capability_Protocol{healthv3.Capability_HTTP, healthv3.Capability_TCP},
	}}
}
