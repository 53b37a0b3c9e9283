package coordinator

import (
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/csds"
	"hdsd/eds"
	"hdsd/hds"
)

// specifierType is what checkers have as their configuration.
const specifierType = "type.googleapis.com/envoy.service.health.v3.HealthCheckSpecifier"

// subscriberStatus tells client status of the data planes.
type subscriberStatus struct{ eds *eds.Server }

// Clients implements csds.Source.
func (s subscriberStatus) Clients(yield func(csds.Client) bool) {
	for subscriber := range s.eds.Subscribers() {
		c := csds.Client{
			Node: subscriber.Node, Scope: subscriber.Node.GetId() + "/" + subscriber.Service,
			Resources: func(yield func(csds.Resource) bool) {
				for _, r := range subscriber.Resources() {
					if !yield(subscribed(&r)) {
						return
					}
				}
			},
		}
		if !yield(c) {
			return
		}
	}
}

// subscribed gives the status of what a data plane subscribed to.
func subscribed(r *eds.Resource) csds.Resource {
	out := csds.Resource{TypeURL: r.TypeURL, Name: r.Name, Version: r.Version, Updated: r.Sent, Body: r.Body}
	switch r.State {
	case eds.NotSent:
		out.Config, out.Client = statusv3.ConfigStatus_NOT_SENT, adminv3.ClientResourceStatus_REQUESTED
	case eds.Outdated:
		out.Config, out.Client = statusv3.ConfigStatus_STALE, adminv3.ClientResourceStatus_ACKED
	case eds.Outstanding:
		out.Config, out.Client = statusv3.ConfigStatus_STALE, adminv3.ClientResourceStatus_REQUESTED
	case eds.Accepted:
		out.Config, out.Client = statusv3.ConfigStatus_SYNCED, adminv3.ClientResourceStatus_ACKED
	case eds.Refused:
		out.Config, out.Client = statusv3.ConfigStatus_ERROR, adminv3.ClientResourceStatus_NACKED
	}
	if !r.Exists && r.State != eds.Refused {
		out.Client = adminv3.ClientResourceStatus_DOES_NOT_EXIST
	}
	if refusal := r.Refusal; refusal != nil {
		out.Error = &csds.Error{
			Details: refusal.Text, Version: refusal.Version, Time: refusal.Time,
			Body: func() *anypb.Any { return refusal.Body(r.TypeURL) },
		}
	}
	return out
}

// checkerStatus tells client status of the checkers.
type checkerStatus struct{ hds *hds.Server }

// Clients implements csds.Source.
func (s checkerStatus) Clients(yield func(csds.Client) bool) {
	for _, checker := range s.hds.Clients() {
		c := csds.Client{
			Node: checker.Node, Scope: checker.Node.GetId() + "/HDS",
			Resources: func(yield func(csds.Resource) bool) { yield(specified(&checker)) },
		}
		if !yield(c) {
			return
		}
	}
}

// specified gives the status of a checker's specifier, which has no name but
// the checker's.
func specified(c *hds.Client) csds.Resource {
	out := csds.Resource{
		TypeURL: specifierType, Name: c.Node.GetId(), Version: c.Version, Updated: c.Sent,
		Config: statusv3.ConfigStatus_NOT_SENT, Client: adminv3.ClientResourceStatus_REQUESTED,
	}
	if c.Specifier == nil {
		return out
	}
	out.Config = statusv3.ConfigStatus_STALE
	if c.State.Specifier == hds.Synced {
		out.Config, out.Client = statusv3.ConfigStatus_SYNCED, adminv3.ClientResourceStatus_ACKED
	}
	out.Body = func() *anypb.Any {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.Specifier)
		if err != nil {
			return nil // cannot be: it has been sent
		}
		return &anypb.Any{TypeUrl: specifierType, Value: value}
	}
	return out
}
