package catalog

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/eds"
	"hdsd/health"
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
	return c.byEDS != nil && len(c.Source.Config.GetHealthChecks()) > 0 && !envoyrules.LacksHTTP2(c.Source.Config)
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

// Original gives the cluster as the source gave it, except for what an Envoy would refuse it
// for: endpoints are left out, and health checks by gRPC without HTTP/2; an EDS cluster does not
// list endpoints, and takes them from hdsd if it names no source, or self. It returns nil if an Envoy
// would still refuse it.
func (c *Cluster) Original() *clusterv3.Cluster {
	from := c.Source
	switch {
	case !c.hasOriginal():
		return nil
	case from.EDS():
		return c.originalByEDS()
	case from.Assignment == nil:
		return from.Config
	}
	given := c.Assignment.Message()
	if c.united != nil {
		given = publishable(from.Config, from.Assignment.Message()) // an Envoy counts each entry
	}
	original := from.MessageWith(given)
	if envoyrules.LacksHTTP2(original) {
		original.HealthChecks = nil
	}
	return original
}

func (c *Cluster) originalByEDS() *clusterv3.Cluster {
	given := c.Source.Config
	by := given.GetEdsClusterConfig().GetEdsConfig()
	sourceless := by.GetConfigSourceSpecifier() == nil || by.GetSelf() != nil // which an Envoy does not know
	lacking := envoyrules.LacksHTTP2(given)
	if !sourceless && !lacking && given.GetLoadAssignment() == nil {
		return given
	}
	original := proto.CloneOf(given)
	original.LoadAssignment = nil
	if lacking {
		original.HealthChecks = nil
	}
	if sourceless {
		if original.EdsClusterConfig == nil {
			original.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{}
		}
		original.EdsClusterConfig.EdsConfig = c.rules.edsConfig
	}
	return original
}

// ExplainPanic says why Envoys would be in panic for the cluster; empty if they would not. It takes the
// published health of each endpoint that data planes get.
func (c *Cluster) ExplainPanic(published func(*Endpoint) health.Status) string {
	var priorities []envoyrules.Hosts
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		if !e.InAssignment {
			continue
		}
		for int(e.Priority) >= len(priorities) {
			priorities = append(priorities, envoyrules.Hosts{})
		}
		priorities[e.Priority].Add(int32(published(e)), e.Weight(), 1)
	}
	return c.Panic.Explain(priorities, true)
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
// with priorities that skip none; itself if there is nothing to change. It returns nil if a
// client would still refuse it.
func publishable(config *clusterv3.Cluster, given *endpointv3.ClusterLoadAssignment) *endpointv3.ClusterLoadAssignment {
	refused := func(e *endpointv3.LbEndpoint) bool { return !acceptable(config, e) }
	message := given
	if given.GetPolicy().GetEndpointStaleAfter() != nil {
		message = proto.CloneOf(given)
		message.Policy.EndpointStaleAfter = nil
	}
	if numbers := prioritiesOf(given); len(numbers) > 0 && int(numbers[len(numbers)-1]) >= len(numbers) {
		if message == given {
			message = proto.CloneOf(given)
		}
		for _, group := range message.GetEndpoints() {
			index, _ := slices.BinarySearch(numbers, group.GetPriority())
			group.Priority = uint32(index)
		}
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
		empty := config.GetType() == clusterv3.Cluster_LOGICAL_DNS && len(group.GetLbEndpoints()) == 0
		if group.ValidateAll() != nil || empty {
			return nil
		}
	}
	if envoyrules.Overweight(message) { // addresses of a name have its weight each
		return nil
	}
	return message
}

// prioritiesOf gives the priorities of an assignment, each once, in order.
func prioritiesOf(a *endpointv3.ClusterLoadAssignment) []uint32 {
	var all []uint32
	for _, group := range a.GetEndpoints() {
		if i, found := slices.BinarySearch(all, group.GetPriority()); !found {
			all = slices.Insert(all, i, group.GetPriority())
		}
	}
	return all
}

// acceptable tells whether clients take an endpoint.
func acceptable(config *clusterv3.Cluster, e *endpointv3.LbEndpoint) bool {
	return envoyrules.Refusal(config, e) == ""
}
