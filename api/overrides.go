package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy"
	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/reason"
	"hdsd/peer/access"
)

const (
	// OverridesPath is the REST path for overrides.
	OverridesPath = "/v1/overrides"

	// PreviewPath is the REST path for the effect of an override.
	PreviewPath = "/v1/overrides/preview"

	// maxName is the size limit of a name in a scope, in bytes.
	maxName = 1000

	// longest is the maximum duration of an override.
	longest = 10 * 365 * 24 * time.Hour
)

// Preview is the effect of an override that is not set yet.
type Preview struct {
	Override Override  // Endpoints counts those that it applies to
	Replaced *Override // nil: none
	Total    int       // endpoints of all clusters visible to the caller
	Panics   []string  // a text for each cluster with Envoys in panic
}

// Override is a health that an operator sets in place of verdicts.
type Override struct {
	Scope          health.Endpoint // an empty part matches all
	Version        string          // of the cluster; empty: the first, or all
	Status         health.Status   // DRAINING, HEALTHY or UNHEALTHY
	Reason, Author string
	Since          time.Time
	Until          time.Time // zero: until it is cleared
	Endpoints      int       // endpoints that it applies to at present
}

// SetOverride sets a health in place of verdicts.
func (c *Control) SetOverride(ctx context.Context, r *hdsdv1.SetOverrideRequest) (*hdsdv1.SetOverrideResponse, error) {
	requested, err := c.requestedOverride(ctx, r)
	if err != nil {
		return nil, err
	}
	now, replaced, err := c.controller.SetOverride(ctx, requested)
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	answer := &hdsdv1.SetOverrideResponse{Override: overrideMessage(now), NotDurable: notDurable}
	if replaced != nil {
		answer.Replaced = overrideMessage(*replaced)
	}
	return answer, nil
}

// PreviewOverride returns the effect of an override.
func (c *Control) PreviewOverride(ctx context.Context, r *hdsdv1.SetOverrideRequest) (*hdsdv1.PreviewOverrideResponse, error) {
	requested, err := c.requestedOverride(ctx, r)
	if err != nil {
		return nil, err
	}
	p, err := c.controller.PreviewOverride(ctx, requested)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.PreviewOverrideResponse{Override: overrideMessage(p.Override), TotalEndpoints: uint32(p.Total), Panics: p.Panics}
	if p.Replaced != nil {
		answer.Replaced = overrideMessage(*p.Replaced)
	}
	return answer, nil
}

func (c *Control) requestedOverride(ctx context.Context, r *hdsdv1.SetOverrideRequest) (o Override, err error) {
	l := r.GetLocality()
	if o.Scope, err = scopeOf(r.GetCluster(), r.GetAddress(), l.GetRegion(), l.GetZone(), l.GetSubZone()); err != nil {
		return o, err
	}
	if err := mayChange(c.controller.Clusters(ctx), &o.Scope); err != nil {
		return o, err
	}
	if o.Scope == (health.Endpoint{}) {
		return o, status.Error(codes.InvalidArgument, "name a target: a cluster, an address in it, or a locality")
	}
	switch r.GetHealth() {
	case corev3.HealthStatus_DRAINING, corev3.HealthStatus_HEALTHY, corev3.HealthStatus_UNHEALTHY:
		o.Status = health.Status(r.GetHealth())
	default:
		return o, status.Errorf(codes.InvalidArgument, "health: %s is not one of DRAINING, HEALTHY, UNHEALTHY", r.GetHealth())
	}
	if o.Reason, err = reasonOf(r.GetReason()); err != nil {
		return o, err
	}
	if o.Author, err = authorOf(ctx, r.GetAuthor()); err != nil {
		return o, err
	}
	lasts, err := durationOf(r.GetDuration())
	if lasts > 0 {
		o.Until = time.Now().Add(lasts)
	}
	return o, err
}

// mayChange returns the reason why a caller may not override a scope, or nil. A caller with
// grants for some clusters may name only these.
func mayChange(permitted access.Clusters, scope *health.Endpoint) error {
	switch {
	case permitted.All() || scope.Cluster != "" && permitted.Has(scope.Cluster):
		return nil
	case scope.Cluster == "":
		return reason.New(codes.PermissionDenied, reason.OtherClusters, fmt.Sprintf("the caller's grants are for clusters %s only: name one of them", permitted))
	}
	return reason.New(codes.NotFound, reason.UnknownCluster, fmt.Sprintf("%v %q", ErrUnknownCluster, scope.Cluster))
}

// durationOf reads the duration of an override, 0 if it has no end.
func durationOf(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if lasts := d.AsDuration(); d.IsValid() && lasts > 0 && lasts <= longest {
		return lasts, nil
	}
	return 0, status.Errorf(codes.InvalidArgument, "duration: is not between 1 ns and %.0f h: leave it out to have no end", longest.Hours())
}

// scopeOf reads the scope of an override. It checks names, because logs and terminals show them.
func scopeOf(cluster, address, region, zone, subZone string) (scope health.Endpoint, err error) {
	for _, part := range []struct {
		field, text string
		target      *string
	}{
		{"cluster", cluster, &scope.Cluster},
		{"address", address, &scope.Address},
		{"locality.region", region, &scope.Locality.Region},
		{"locality.zone", zone, &scope.Locality.Zone},
		{"locality.sub_zone", subZone, &scope.Locality.SubZone},
	} {
		if _, err := oneLine(part.field, part.text, maxName); err != nil {
			return scope, err
		}
		*part.target = part.text
	}
	if address != "" && cluster == "" {
		return scope, status.Error(codes.InvalidArgument, "address: needs its cluster")
	}
	return scope, nil
}

// ClearOverrides ends overrides.
func (c *Control) ClearOverrides(ctx context.Context, r *hdsdv1.ClearOverridesRequest) (*hdsdv1.ClearOverridesResponse, error) {
	scope, err := scopeOf(r.GetCluster(), r.GetAddress(), r.GetRegion(), r.GetZone(), r.GetSubZone())
	if err != nil {
		return nil, err
	}
	if scope == (health.Endpoint{}) && !r.GetAll() {
		return nil, status.Error(codes.InvalidArgument, "name the override's target as it was set, or ask for all")
	}
	if err := mayChange(c.controller.Clusters(ctx), &scope); err != nil {
		return nil, err
	}
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	ended, err := c.controller.ClearOverrides(ctx, scope, r.GetAll(), author)
	notDurable, err := durability(err)
	if err != nil {
		return nil, err
	}
	return &hdsdv1.ClearOverridesResponse{Ended: convertList(ended, overrideMessage), NotDurable: notDurable}, nil
}

// ListOverrides returns the overrides in force.
func (c *Control) ListOverrides(ctx context.Context, r *hdsdv1.ListOverridesRequest) (*hdsdv1.ListOverridesResponse, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	var after health.Endpoint
	if r.GetPageToken() != "" {
		if err := decodeToken("overrides", r.GetPageToken(), &after); err != nil {
			return nil, grpcError(err)
		}
	}
	overrides, err := c.controller.Overrides(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	permitted := c.controller.Clusters(ctx)
	overrides = slices.DeleteFunc(overrides, func(o Override) bool { return o.Scope.Compare(after) <= 0 || mayChange(permitted, &o.Scope) != nil })
	shown := overrides[:min(limit, len(overrides))]
	answer := &hdsdv1.ListOverridesResponse{Overrides: convertList(shown, overrideMessage)}
	if len(shown) < len(overrides) {
		answer.NextPageToken, err = encodeToken("overrides", shown[len(shown)-1].Scope)
	}
	return answer, grpcError(err)
}

func overrideMessage(o Override) *hdsdv1.Override {
	return &hdsdv1.Override{
		Cluster:   o.Scope.Cluster,
		Address:   o.Scope.Address,
		Locality:  envoy.LocalityMessage(o.Scope.Locality),
		Health:    statusMessage(o.Status),
		Reason:    o.Reason,
		Author:    o.Author,
		Since:     timeMessage(o.Since),
		Until:     timeMessage(o.Until),
		Endpoints: uint32(o.Endpoints),
		Version:   unlessEmpty(o.Version),
	}
}
