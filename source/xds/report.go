package xds

import (
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Status returns the known resources, and the state of the conversation with the server.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return Status{Node: s.node, Types: []TypeStatus{s.statusOf(s.clusters, now), s.statusOf(s.assignments, now)}, Fullness: s.stock.fullness()}
}

func (s *Source) statusOf(t *table, now time.Time) TypeStatus {
	k := s.shown(t)
	status := TypeStatus{
		TypeURL: t.typeURL, Server: k.server, Connected: s.answered(t), Since: k.start,
		Version: k.version, LastUpdate: k.updated, LastAck: k.acked,
		LastError: k.failure, LastErrorTime: k.failed,
		Rejected: k.rejected, RejectedVersion: k.rejectedAs,
		Resources: make([]Resource, 0, len(t.entries)),
	}
	for _, name := range t.names(everyName) {
		status.Resources = append(status.Resources, s.resource(t.entries[name], now))
	}
	return status
}

func (s *Source) resource(e *entry, now time.Time) Resource {
	r := Resource{Name: e.name, ClientStatus: adminv3.ClientResourceStatus_ACKED, ConfigStatus: statusv3.ConfigStatus_SYNCED}
	if e.good != nil {
		r.Version, r.Config, r.LastUpdated = e.good.version, e.good.packed, e.good.updated
	}
	switch {
	case e.refused != nil:
		r.ClientStatus, r.ConfigStatus = adminv3.ClientResourceStatus_NACKED, statusv3.ConfigStatus_ERROR
		r.Error = &adminv3.UpdateFailureState{
			FailedConfiguration: e.refused.packed, LastUpdateAttempt: timestamppb.New(e.refused.time),
			Details: e.refused.reason, VersionInfo: e.refused.version,
		}
	case e.report != "":
		r.ClientStatus, r.ConfigStatus = adminv3.ClientResourceStatus_RECEIVED_ERROR, statusv3.ConfigStatus_ERROR
		r.Error = &adminv3.UpdateFailureState{Details: e.report}
	case e.good != nil:
	case e.gone, e.lapsed:
		r.ClientStatus, r.ConfigStatus = adminv3.ClientResourceStatus_DOES_NOT_EXIST, statusv3.ConfigStatus_NOT_SENT
	case e.waiting(now, s.settings.fetchTimeout):
		r.ClientStatus, r.ConfigStatus = adminv3.ClientResourceStatus_REQUESTED, statusv3.ConfigStatus_NOT_SENT
	default:
		r.ClientStatus, r.ConfigStatus = adminv3.ClientResourceStatus_TIMEOUT, statusv3.ConfigStatus_NOT_SENT
	}
	return r
}
