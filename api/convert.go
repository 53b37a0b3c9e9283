package api

import (
	"fmt"
	"math"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"hdsd/envoy"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/redact"
)

func endpointsMessage(p *endpointPage) *hdsdv1.ListEndpointsResponse {
	return &hdsdv1.ListEndpointsResponse{Endpoints: convertList(p.rows, endpointMessage), NextPageToken: p.next, HistoryBegins: timeMessage(p.begins)}
}

func transitionsMessage(p *transitionPage) *hdsdv1.ListTransitionsResponse {
	m := &hdsdv1.ListTransitionsResponse{Transitions: convertList(p.rows, transitionMessage), NextPageToken: p.next}
	if len(p.gaps) > 0 {
		m.Missing = &hdsdv1.Missing{Gaps: convertList(p.gaps, gapMessage)}
	}
	if p.failing != "" {
		m.Failing = &p.failing
	}
	return m
}

// unlessEmpty returns nil for an empty text.
func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func endpointMessage(e EndpointHealth) *hdsdv1.Endpoint {
	m := &hdsdv1.Endpoint{
		Cluster:      e.Endpoint.Cluster,
		Version:      unlessEmpty(e.Version),
		Address:      e.Endpoint.Address,
		Locality:     envoy.LocalityMessage(e.Endpoint.Locality),
		Health:       statusMessage(e.Verdict.Status),
		Since:        timeMessage(e.Verdict.Since),
		Reason:       e.Verdict.Reason,
		Observations: convertList(e.Verdict.Observations, observationMessage),
		Zones:        convertList(shownZones(e.Verdict.Zones), zoneMessage),
		Hostname:     unlessEmpty(e.Hostname),
	}
	if !e.HeldSince.IsZero() {
		m.Held, m.HeldSince = true, timeMessage(e.HeldSince)
	}
	if e.Published != nil {
		m.Published, m.PublishedReason = statusMessage(e.Published.Status).Enum(), &e.Published.Reason
	}
	if e.Override != nil {
		m.Override = overrideMessage(*e.Override)
		m.Voted, m.VotedReason = statusMessage(e.Voted.Status).Enum(), &e.Voted.Reason
	}
	return m
}

func transitionMessage(t health.Transition) *hdsdv1.Transition {
	return &hdsdv1.Transition{
		Time:         timeMessage(t.Time),
		Cluster:      t.Endpoint.Cluster,
		Address:      t.Endpoint.Address,
		Locality:     envoy.LocalityMessage(t.Endpoint.Locality),
		From:         statusMessage(t.From),
		To:           statusMessage(t.To),
		Reason:       t.Reason,
		Observations: convertList(t.Observations, observationMessage),
	}
}

func gapMessage(g Gap) *hdsdv1.Gap {
	return &hdsdv1.Gap{Start: timeMessage(g.Start), End: timeMessage(g.End), Transitions: uint32(min(g.Transitions, math.MaxUint32))}
}

func observationMessage(o health.Observation) *hdsdv1.Observation {
	m := &hdsdv1.Observation{
		Checker:     o.Checker,
		Status:      statusMessage(o.Status),
		Time:        timeMessage(o.Time),
		Disbelieved: o.Disbelieved,
	}
	if o.HTTPStatusCode != 0 {
		m.HttpStatusCode = new(uint32(o.HTTPStatusCode))
	}
	return m
}

func zoneMessage(z health.ZoneVerdict) *hdsdv1.ZoneHealth {
	return &hdsdv1.ZoneHealth{Region: z.Region, Zone: z.Zone, Health: statusMessage(z.Status), Up: uint32(z.Up), Down: uint32(z.Down)}
}

func availabilityMessage(a Availability) *hdsdv1.Availability {
	m := &hdsdv1.Availability{
		Cluster:          a.Endpoint.Cluster,
		Address:          a.Endpoint.Address,
		Locality:         envoy.LocalityMessage(a.Endpoint.Locality),
		HealthySeconds:   a.Durations[health.Healthy].Seconds(),
		UnhealthySeconds: (a.Durations[health.Unhealthy] + a.Durations[health.Timeout]).Seconds(),
		UnknownSeconds:   a.Durations[health.Unknown].Seconds(),
		DegradedSeconds:  a.Durations[health.Degraded].Seconds(),
		DrainingSeconds:  a.Durations[health.Draining].Seconds(),
		Transitions:      uint32(a.Transitions),
	}
	if a.Checker != "" {
		m.Checker = &a.Checker
	}
	if observed := m.HealthySeconds + m.UnhealthySeconds; observed > 0 {
		m.HealthyRatio = new(m.HealthySeconds / observed)
	}
	return m
}

func clientMessage(c Client) *hdsdv1.Client {
	m := &hdsdv1.Client{
		Id:        c.ID,
		Kind:      c.Kind,
		Connected: c.Connected,
		TypeUrl:   c.TypeURL,
		Resources: uint32(c.Resources),
		Synced:    uint32(c.Synced),
		Stale:     uint32(c.Stale),
		Error:     uint32(c.Error),
		LastAck:   timeMessage(c.LastAck),
		LastError: c.LastError,
		Poll:      pollMessage(c.Poll),
		Replica:   unlessEmpty(c.Replica),
	}
	if c.Unasked > 0 {
		m.Unasked = new(uint32(c.Unasked))
	}
	return m
}

func pollMessage(p *Poll) *hdsdv1.Poll {
	if p == nil {
		return nil
	}
	return &hdsdv1.Poll{By: p.Protocol, Time: timeMessage(p.Time), Given: p.Served, Held: p.Held}
}

func clusterMessage(c Cluster) *hdsdv1.Cluster {
	return &hdsdv1.Cluster{
		Name:       c.Name,
		Version:    unlessEmpty(c.Version),
		Source:     c.Source,
		Checked:    c.Checked,
		Overridden: uint32(c.Overridden),
		Mode:       hdsdv1.Cluster_Mode(c.Mode),
		Endpoints:  uint32(c.Endpoints),
		Healthy:    uint32(c.Healthy),
		Unhealthy:  uint32(c.Unhealthy),
		Unknown:    uint32(c.Unknown),
		Quarantined: convertList(c.Quarantined, func(q Quarantined) *hdsdv1.Quarantine {
			return &hdsdv1.Quarantine{Address: q.Address, Reason: q.Reason}
		}),
		NoEndpointsReason: c.NoEndpointsReason, RejectedReason: c.RejectedReason,
		PanicReason: c.Panic, PanicSince: timeMessage(c.PanicSince),
		Timeout:      uint32(c.Timeout),
		Degraded:     uint32(c.Degraded),
		Draining:     uint32(c.Draining),
		Held:         uint32(c.Held),
		HealthChecks: convertList(c.HealthChecks, healthCheckMessage),
	}
}

// healthCheckMessage returns a health check as in proto3 JSON, without its secrets.
func healthCheckMessage(check *corev3.HealthCheck) *structpb.Struct {
	shown := proto.CloneOf(check)
	redact.Message(shown)
	message := new(structpb.Struct)
	text, err := protojson.Marshal(shown)
	if err == nil {
		err = protojson.Unmarshal(text, message)
	}
	if err != nil { // an extension that is not linked
		return &structpb.Struct{Fields: map[string]*structpb.Value{"error": structpb.NewStringValue(err.Error())}}
	}
	return message
}

func checkerMessage(c Checker) *hdsdv1.Checker {
	m := &hdsdv1.Checker{
		Id:                c.ID,
		Locality:          envoy.LocalityMessage(c.Locality),
		Version:           c.Version,
		Connected:         c.Connected,
		AssignedEndpoints: uint32(c.AssignedEndpoints),
		Specifier:         c.Specifier,
		LastReport:        timeMessage(c.LastReport),
		Trusted:           c.Trusted,
		DistrustReason:    c.DistrustReason,
		BlindReason:       c.BlindReason,
		Probation:         c.Probation != nil,
		StrangeReports:    c.StrangeReports,
		Weight:            c.Weight,
		Share:             uint32(c.Share),
		ChecksPerSecond:   c.ChecksPerSecond,
		PlanDigest:        DigestText(c.PlanDigest),
		Replica:           unlessEmpty(c.Replica),
	}
	if l := c.Lost; l != nil {
		m.LostSince, m.LostReason = timeMessage(l.Since), l.Reason
	}
	if p := c.Probation; p != nil {
		m.ProbationSince, m.ProbationReason = timeMessage(p.Since), p.Reason
	}
	if c.MaxChecksPerSecond > 0 {
		m.MaxChecksPerSecond = &c.MaxChecksPerSecond
	}
	for _, p := range c.CutPaths {
		m.CutPaths = append(m.CutPaths, &hdsdv1.CutPath{To: p.To, Reason: p.Reason})
	}
	if c.Operator != nil {
		m.Operator = trustMessage(*c.Operator)
	}
	for _, kind := range health.Kinds {
		if c.Abilities.Has(kind) {
			m.Abilities = append(m.Abilities, string(kind))
		}
	}
	return m
}

// DigestText formats a digest.
func DigestText(digest uint64) string { return fmt.Sprintf("%016x", digest) }

func statusMessage(s health.Status) corev3.HealthStatus { return corev3.HealthStatus(s) }

func timeMessage(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func convertList[From, To any](list []From, convert func(From) To) []To {
	converted := make([]To, len(list))
	for i := range list {
		converted[i] = convert(list[i])
	}
	return converted
}
