package catalog

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/eds"
	"hdsd/internal/envoyrules"
	"hdsd/source"
)

// preparePublished makes what data planes get, given the endpoints of the source.
func (c *Cluster) preparePublished(given *endpointv3.ClusterLoadAssignment) {
	from := c.Source
	c.Assignment = publishableAssignment(from, given)
	if from.Config == nil || !c.IsChecked() || c.PartlyElsewhere {
		return
	}
	whole := from.Config
	if !from.EDS() {
		whole = from.MessageWith(given)
	}
	if eds.Publishable(whole) {
		c.byEDS = eds.PublishCluster(whole, c.rules.edsConfig)
	}
	if c.hasDuplicates(given) {
		if united, others := unite(from.Config, given); others != nil {
			c.Assignment, c.united = source.EncodeAssignment(publishable(from.Config, united)), others
		}
	}
}

// prepareExempting makes Exempting, once it is known which endpoints are checked.
func (c *Cluster) prepareExempting() {
	left := func(e Excluded) bool { return !e.Disabled && e.Index != None }
	if !c.HasOwnChecks() || !slices.ContainsFunc(c.Excluded, left) {
		return
	}
	message := c.Assignment.Message()
	for i, indices := range c.CheckedIndex {
		for j, index := range indices {
			if index == None {
				continue
			}
			e := message.GetEndpoints()[i].GetLbEndpoints()[j].GetEndpoint()
			if e.HealthCheckConfig == nil {
				e.HealthCheckConfig = &endpointv3.Endpoint_HealthCheckConfig{}
			}
			e.HealthCheckConfig.DisableActiveHealthCheck = true
		}
	}
	c.Exempting = source.EncodeAssignment(message)
}

// ByEDS tells whether data planes take the cluster's endpoints, and their health, from hdsd
// while it decides.
func (c *Cluster) ByEDS() bool { return c.byEDS != nil }

// HasOwnChecks tells whether such a cluster has health checks of its own, by which data
// planes check what hdsd does not.
func (c *Cluster) HasOwnChecks() bool {
	return c.byEDS != nil && len(c.Source.Config.GetHealthChecks()) > 0
}

// IsPublished tells whether data planes get the cluster. They do not get a lone assignment,
// and none that no Envoy takes.
func (c *Cluster) IsPublished() bool { return c.byEDS != nil || c.hasOriginal() }

// Published gives the cluster as data planes get it while hdsd decides; nil if they do not.
// If they go on checking, its own health checks stay.
func (c *Cluster) Published(goOn bool) *clusterv3.Cluster {
	switch {
	case c.byEDS == nil:
		return c.Original()
	case goOn && c.HasOwnChecks():
		return eds.WithHealthChecks(c.byEDS, c.Source.Config.GetHealthChecks())
	}
	return c.byEDS
}

// hasOriginal tells whether an Envoy takes the cluster as its source gave it.
func (c *Cluster) hasOriginal() bool {
	from := c.Source
	return from.Rejected == "" && from.Config != nil && (from.EDS() || from.Assignment == nil || c.Assignment != nil)
}

// Original gives the cluster as the source gave it, except for two things: endpoints for
// which an Envoy would refuse it are left out, and one that names no source of its
// endpoints takes them from hdsd. It returns nil if an Envoy would still refuse it.
func (c *Cluster) Original() *clusterv3.Cluster {
	from := c.Source
	switch {
	case !c.hasOriginal():
		return nil
	case from.EDS() && from.Config.GetEdsClusterConfig().GetEdsConfig().GetConfigSourceSpecifier() == nil:
		return takeEDSFrom(from.Config, c.rules.edsConfig)
	case from.EDS() || from.Assignment == nil:
		return from.Config
	}
	if c.united == nil {
		return from.MessageWith(c.Assignment.Message())
	}
	return from.MessageWith(publishable(from.Config, from.Assignment.Message())) // an Envoy counts each entry
}

// publishableAssignment gives the assignment of a cluster as its source gave it, without the
// endpoints for which a client would refuse the whole response, and without its lease
// (policy.endpoint_stale_after), which is between hdsd and the source. It returns nil if a
// client would still refuse it.
func publishableAssignment(from *source.Cluster, given *endpointv3.ClusterLoadAssignment) *source.Assignment {
	message := publishable(from.Config, given)
	if message == given {
		return from.Assignment
	}
	return source.EncodeAssignment(message)
}

// publishable gives an assignment without its lease and the endpoints that clients refuse, and
// itself if it has neither. It returns nil if a client would still refuse it.
func publishable(config *clusterv3.Cluster, given *endpointv3.ClusterLoadAssignment) *endpointv3.ClusterLoadAssignment {
	refused := func(e *endpointv3.LbEndpoint) bool { return !acceptable(config, e) }
	message := given
	if given.GetPolicy().GetEndpointStaleAfter() != nil {
		message = proto.CloneOf(given)
		message.Policy.EndpointStaleAfter = nil
	}
	for i, group := range given.GetEndpoints() {
		if !slices.ContainsFunc(group.GetLbEndpoints(), refused) {
			continue
		}
		if message == given {
			message = proto.CloneOf(given)
		}
		kept := message.GetEndpoints()[i]
		kept.LbEndpoints = slices.DeleteFunc(kept.GetLbEndpoints(), refused)
	}
	for _, group := range message.GetEndpoints() {
		if group.ValidateAll() != nil {
			return nil
		}
	}
	return message
}

// takeEDSFrom makes an EDS cluster take its endpoints from a config source.
func takeEDSFrom(c *clusterv3.Cluster, by *corev3.ConfigSource) *clusterv3.Cluster {
	given := proto.CloneOf(c)
	if given.EdsClusterConfig == nil {
		given.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{}
	}
	given.EdsClusterConfig.EdsConfig = by
	return given
}

// acceptable tells whether clients take an endpoint.
func acceptable(config *clusterv3.Cluster, e *endpointv3.LbEndpoint) bool {
	return envoyrules.Refusal(config, e) == ""
}
