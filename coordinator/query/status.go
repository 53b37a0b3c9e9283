package query

import (
	"context"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/coordinator/feed"
	"hdsd/csds"
	"hdsd/eds"
	"hdsd/hds"
	"hdsd/source/xds"
)

// specifierType is the type of the checkers' configuration.
const specifierType = "type.googleapis.com/envoy.service.health.v3.HealthCheckSpecifier"

// StatusSources returns the client status of subscribers, of checkers, and of hdsd itself as a
// client of management servers.
func (b *Backend) StatusSources() []csds.Source {
	return []csds.Source{subscriberStatus{b.EDS}, checkerStatus{b.HDS, b.lagging}, upstreamStatus{b.Feed}}
}

// lagging asks which checkers were not sent all of their plan; none if hdsd is
// stopping.
func (b *Backend) lagging() (found map[string]bool) {
	if b.Core.Ask(context.Background(), func(s State) { found = s.Lagging() }) != nil {
		return nil
	}
	return found
}

// subscriberStatus is the client status of the data planes.
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

// configStatus is the state of the latest resource sent to a data plane.
var configStatus = map[eds.State]statusv3.ConfigStatus{
	eds.NotSent: statusv3.ConfigStatus_NOT_SENT, eds.Outdated: statusv3.ConfigStatus_STALE, eds.Outstanding: statusv3.ConfigStatus_STALE,
	eds.Accepted: statusv3.ConfigStatus_SYNCED, eds.Refused: statusv3.ConfigStatus_ERROR,
}

// clientStatus is a data plane's own view: its latest response, without later resources on
// their way.
func clientStatus(r *eds.Resource) adminv3.ClientResourceStatus {
	switch {
	case !r.Exists && r.State != eds.Refused:
		return adminv3.ClientResourceStatus_DOES_NOT_EXIST
	case r.Refusal != nil:
		return adminv3.ClientResourceStatus_NACKED
	case r.Holds:
		return adminv3.ClientResourceStatus_ACKED
	}
	return adminv3.ClientResourceStatus_REQUESTED
}

// subscribed returns the status of a resource that a data plane subscribes to.
func subscribed(r *eds.Resource) csds.Resource {
	resource := csds.Resource{
		TypeURL: r.TypeURL, Name: r.Name, Version: r.Version, Updated: r.Sent, Body: r.Body,
		Config: configStatus[r.State], Client: clientStatus(r),
	}
	if refusal := r.Refusal; refusal != nil {
		resource.Error = &csds.Error{
			Details: refusal.Text, Version: refusal.Version, Time: refusal.Time,
			Body: func() *anypb.Any { return refusal.Body(r.TypeURL) },
		}
	}
	return resource
}

// checkerStatus is the client status of the checkers.
type checkerStatus struct {
	hds     *hds.Server
	lagging func() map[string]bool // those that were not sent all of their plan
}

// Clients implements csds.Source.
func (s checkerStatus) Clients(yield func(csds.Client) bool) {
	lagging := s.lagging() // read first: a stream that catches up meanwhile only looks better
	for _, checker := range s.hds.Clients() {
		checker.State.Specifier = specifierState(&checker.State, lagging[checker.Node.GetId()])
		c := csds.Client{
			Node: checker.Node, Scope: checker.Node.GetId() + "/HDS",
			Resources: func(yield func(csds.Resource) bool) { yield(specified(&checker)) },
		}
		if !yield(c) {
			return
		}
	}
}

// specified returns the status of a checker's specifier, under the checker's name.
func specified(c *hds.Client) csds.Resource {
	resource := csds.Resource{
		TypeURL: specifierType, Name: c.Node.GetId(), Version: c.Version, Updated: c.Sent,
		Config: statusv3.ConfigStatus_NOT_SENT, Client: adminv3.ClientResourceStatus_REQUESTED,
	}
	if c.Specifier == nil {
		return resource
	}
	switch c.State.Specifier {
	case hds.Sent:
		resource.Config = statusv3.ConfigStatus_STALE
	case hds.Synced:
		resource.Config = statusv3.ConfigStatus_SYNCED
	}
	if c.State.Followed {
		resource.Client = adminv3.ClientResourceStatus_ACKED
	}
	resource.Body = func() *anypb.Any {
		value, err := c.Specifier()
		if err != nil {
			return nil // it was sent, so this does not happen
		}
		return &anypb.Any{TypeUrl: specifierType, Value: value}
	}
	return resource
}

// upstreamStatus is the client status of hdsd as a client of management servers.
type upstreamStatus struct{ feed *feed.Feed }

// Clients implements csds.Source. It yields hdsd once for each management server.
func (u upstreamStatus) Clients(yield func(csds.Client) bool) {
	ended := false
	u.feed.Upstreams(func(name string, known xds.Status) {
		ended = ended || !yield(csds.Client{Node: known.Node, Scope: name, Resources: func(yield func(csds.Resource) bool) {
			for i := range known.Types {
				for j := range known.Types[i].Resources {
					if !yield(taken(known.Types[i].TypeURL, &known.Types[i].Resources[j])) {
						return
					}
				}
			}
		}})
	})
}

// taken returns the status of a resource that hdsd gets from a management server.
func taken(typeURL string, r *xds.Resource) csds.Resource {
	resource := csds.Resource{
		TypeURL: typeURL, Name: r.Name, Version: r.Version, Updated: r.LastUpdated, Client: r.ClientStatus,
		Body: func() *anypb.Any { return r.Config },
	}
	if e := r.Error; e != nil {
		resource.Error = &csds.Error{
			Details: e.GetDetails(), Version: e.GetVersionInfo(), Time: e.GetLastUpdateAttempt().AsTime(),
			Body: e.GetFailedConfiguration,
		}
	}
	return resource
}
