package link

import (
	"errors"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"

	"hdsd/envoy/rules"
	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/replica/clusters"
	"hdsd/source"
)

// encodeClusters returns nil for nil.
func encodeClusters(u *clusters.Update) (*replicav1.Clusters, error) {
	if u == nil {
		return nil, nil
	}
	e := &replicav1.Clusters{
		Begin: u.Begin, Changed: make([]*replicav1.Cluster, len(u.Changed)), Removed: u.Removed, End: u.End, Answered: u.Answered, Complete: u.Complete,
	}
	for i := range u.Changed {
		listing := &u.Changed[i]
		e.Changed[i] = &replicav1.Cluster{Name: listing.Name, Digest: uint64(listing.Digest)}
		if listing.Cluster == nil {
			continue
		}
		var err error
		if e.Changed[i].Content, err = encodeContent(listing.Cluster); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", listing.Name, err)
		}
	}
	return e, nil
}

func encodeContent(c *source.Cluster) (*replicav1.ClusterContent, error) {
	e := &replicav1.ClusterContent{
		Source: c.Source, ServiceName: c.ServiceName, Lone: c.Lone, AssignmentSource: c.AssignmentSource, Stale: c.Stale,
		Names: c.Names, IgnoreNew: c.IgnoreNew, HealthChecks: make([][]byte, len(c.HealthChecks)),
	}
	var err error
	if c.Config != nil {
		if e.Config, err = deterministic.MarshalAppend([]byte{}, c.Config); err != nil {
			return nil, err
		}
	}
	if c.Assignment != nil {
		e.Assignment = append([]byte{}, c.Assignment.Wire()...)
	}
	for i, check := range c.HealthChecks {
		if e.HealthChecks[i], err = deterministic.Marshal(check); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// decodeClusters returns nil for nil.
func decodeClusters(e *replicav1.Clusters) (*clusters.Update, error) {
	if e == nil {
		return nil, nil
	}
	u := &clusters.Update{Begin: e.GetBegin(), Removed: e.GetRemoved(), End: e.GetEnd(), Answered: e.GetAnswered(), Complete: e.GetComplete()}
	if len(e.GetChanged()) > 0 {
		u.Changed = make([]clusters.Listing, len(e.GetChanged()))
	}
	for i, c := range e.GetChanged() {
		if c.GetName() == "" {
			return nil, fmt.Errorf("cluster %d has no name", i)
		}
		listing := &u.Changed[i]
		listing.Name, listing.Digest = c.GetName(), clusters.Digest(c.GetDigest())
		if c.Content != nil {
			var err error
			if listing.Cluster, err = decodeContent(c.GetName(), c.GetContent()); err != nil {
				return nil, fmt.Errorf("cluster %s: %w", c.GetName(), err)
			}
		}
	}
	return u, nil
}

// decodeContent decodes a cluster of another replica. One that this release refuses is rejected, and does not end the
// link: the other replica may be of another release.
func decodeContent(name string, e *replicav1.ClusterContent) (*source.Cluster, error) {
	c := &source.Cluster{
		Source: e.GetSource(), Name: name, ServiceName: e.GetServiceName(), Lone: e.GetLone(), AssignmentSource: e.GetAssignmentSource(), Stale: e.GetStale(),
		Names: e.GetNames(), IgnoreNew: e.GetIgnoreNew(),
	}
	if len(e.GetHealthChecks()) == 0 {
		return nil, errors.New("no health check")
	}
	if e.Config != nil {
		c.Config = new(clusterv3.Cluster)
		if err := unmarshal(e.Config, c.Config, c); err != nil {
			return nil, err
		}
	}
	if e.Assignment != nil {
		assignment := new(endpointv3.ClusterLoadAssignment)
		if err := unmarshal(e.Assignment, assignment, c); err != nil {
			return nil, err
		}
		c.Assignment = source.EncodeAssignmentAs(e.Assignment, assignment)
	}
	for _, encoded := range e.GetHealthChecks() {
		check := new(corev3.HealthCheck)
		if err := unmarshal(encoded, check, c); err != nil {
			return nil, err
		}
		c.HealthChecks = append(c.HealthChecks, check)
	}
	return c, nil
}

// unmarshal decodes a part of a cluster, and rejects the cluster if this release refuses the part.
func unmarshal(encoded []byte, m proto.Message, c *source.Cluster) error {
	if err := proto.Unmarshal(encoded, m); err != nil {
		return err
	}
	if violations := rules.Violations(m); len(violations) > 0 && c.Rejected == "" {
		c.Rejected = fmt.Sprintf("another replica has it, and this one refuses it: %s: %s", violations[0].Field, violations[0].Reason)
	}
	return nil
}
