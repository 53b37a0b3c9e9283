package catalog

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
	"hdsd/health"
	"hdsd/publish"
	"hdsd/source"
)

// preparePublished makes the form for data planes, given the endpoints of the source.
func (c *Cluster) preparePublished(given *endpointv3.ClusterLoadAssignment) {
	src := c.Source
	c.Assignment = publishableAssignment(src, given)
	if src.Config == nil || !c.IsChecked() || c.PartlyElsewhere {
		return
	}
	whole := src.Config
	if !src.EDS() {
		whole = src.MessageWith(given)
	}
	if publish.CanTakeOver(whole) {
		c.byEDS = publish.TakeOver(whole, c.rules.edsConfig)
	}
	if c.hasDuplicates(given) {
		if united, merged := unite(src.Config, given); merged != nil {
			c.Assignment, c.united = source.EncodeAssignment(publishable(src.Config, united)), merged
		}
	}
}

// prepareExempting makes Exempting, once the checked endpoints are known.
func (c *Cluster) prepareExempting() {
	isLeft := func(e Excluded) bool { return !e.Disabled && e.Index != None }
	if !c.HasOwnChecks() || !slices.ContainsFunc(c.Excluded, isLeft) {
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

// ByEDS reports whether data planes take the cluster's endpoints, and their health, from hdsd
// while it decides.
func (c *Cluster) ByEDS() bool { return c.byEDS != nil }

// HasOwnChecks reports whether such a cluster has health checks of its own, by which data
// planes check the endpoints that hdsd does not.
func (c *Cluster) HasOwnChecks() bool {
	return c.byEDS != nil && len(c.Source.Config.GetHealthChecks()) > 0 && !rules.LacksHTTP2(c.Source.Config)
}

// IsPublished reports whether data planes get the cluster. They do not get a lone assignment,
// or a cluster that no Envoy takes.
func (c *Cluster) IsPublished() bool { return c.byEDS != nil || c.hasOriginal() }

// Published returns the cluster's form for data planes while hdsd decides; nil if they do not
// get it. With goOn, its own health checks stay.
func (c *Cluster) Published(goOn bool) *clusterv3.Cluster {
	switch {
	case c.byEDS == nil:
		return c.Original()
	case goOn && c.HasOwnChecks():
		return publish.WithHealthChecks(c.byEDS, c.Source.Config.GetHealthChecks())
	}
	return c.byEDS
}

// hasOriginal reports whether an Envoy takes the cluster in its source's form.
func (c *Cluster) hasOriginal() bool {
	src := c.Source
	return src.Rejected == "" && src.Config != nil && (src.EDS() || src.Assignment == nil || c.Assignment != nil)
}

// Original returns the cluster in its source's form, without parts that an Envoy would refuse:
// some endpoints, and health checks by gRPC without HTTP/2. An EDS cluster does not list
// endpoints, and takes them from hdsd if it names no source, or self. It returns nil if an
// Envoy would still refuse it.
func (c *Cluster) Original() *clusterv3.Cluster {
	src := c.Source
	switch {
	case !c.hasOriginal():
		return nil
	case src.EDS():
		return c.originalByEDS()
	case src.Assignment == nil:
		return src.Config
	}
	given := c.Assignment.Message()
	if c.united != nil {
		given = publishable(src.Config, src.Assignment.Message()) // an Envoy counts each entry
	}
	original := src.MessageWith(given)
	if rules.LacksHTTP2(original) {
		original.HealthChecks = nil
	}
	return original
}

func (c *Cluster) originalByEDS() *clusterv3.Cluster {
	given := c.Source.Config
	eds := given.GetEdsClusterConfig().GetEdsConfig()
	sourceless := eds.GetConfigSourceSpecifier() == nil || eds.GetSelf() != nil // an Envoy does not know such a source
	lacking := rules.LacksHTTP2(given)
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

// ExplainPanic returns the reason why Envoys would be in panic for the cluster; empty if they
// would not. It takes the published health of each endpoint that data planes get.
func (c *Cluster) ExplainPanic(published func(*Endpoint) health.Status) string {
	var priorities []rules.Hosts
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		if !e.InAssignment {
			continue
		}
		for int(e.Priority) >= len(priorities) {
			priorities = append(priorities, rules.Hosts{})
		}
		priorities[e.Priority].Add(int32(published(e)), e.Weight(), 1)
	}
	return c.Panic.Explain(priorities, true)
}

// publishableAssignment returns the source's assignment of a cluster, without endpoints for
// which a client would refuse the whole response, and without its lease
// (policy.endpoint_stale_after), which is between hdsd and the source. It returns nil if a
// client would still refuse it.
func publishableAssignment(src *source.Cluster, given *endpointv3.ClusterLoadAssignment) *source.Assignment {
	message := publishable(src.Config, given)
	if message == given {
		return src.Assignment
	}
	return source.EncodeAssignment(message)
}

// publishable returns an assignment without its lease and the endpoints that clients refuse,
// and with priorities that skip none; itself if there is nothing to change. It returns nil if a
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
		group := message.GetEndpoints()[i]
		group.LbEndpoints = slices.DeleteFunc(group.GetLbEndpoints(), refused)
	}
	for _, group := range message.GetEndpoints() {
		empty := config.GetType() == clusterv3.Cluster_LOGICAL_DNS && len(group.GetLbEndpoints()) == 0
		if group.ValidateAll() != nil || empty {
			return nil
		}
	}
	if rules.Overweight(message) { // addresses of a name have its weight each
		return nil
	}
	return message
}

// prioritiesOf returns the priorities of an assignment, each once, in order.
func prioritiesOf(a *endpointv3.ClusterLoadAssignment) []uint32 {
	var priorities []uint32
	for _, group := range a.GetEndpoints() {
		if i, found := slices.BinarySearch(priorities, group.GetPriority()); !found {
			priorities = slices.Insert(priorities, i, group.GetPriority())
		}
	}
	return priorities
}

// acceptable reports whether clients take an endpoint.
func acceptable(config *clusterv3.Cluster, e *endpointv3.LbEndpoint) bool {
	return rules.Refusal(config, e) == ""
}
