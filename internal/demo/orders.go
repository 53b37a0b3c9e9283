package demo

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/demo/upstream"
)

// author is who gives the demonstration's own orders.
const author = "demo"

// play runs a scene while nobody else's orders are in force: the README has its readers drain
// an endpoint. A scene that fails because of an order that came meanwhile proves nothing, and
// the next one goes on.
func (s *stage) play(ctx context.Context, scene func(context.Context) error) error {
	if err := s.awaitNoOrders(ctx); err != nil {
		return err
	}
	since := time.Now()
	failure := scene(ctx)
	if failure == nil || ctx.Err() != nil {
		return failure
	}
	if !s.coordinator.alive() && s.serve(ctx) != nil {
		return failure
	}
	who := s.ordered(ctx, since)
	if who == "" {
		return failure
	}
	s.event("demo", "%s has given hdsd orders (hdsd audit), so this scene says nothing: %v", who, failure)
	return s.reset(ctx)
}

// awaitNoOrders waits while an override or a freeze of somebody else is in force, and until
// all is healthy after that.
func (s *stage) awaitNoOrders(ctx context.Context) error {
	if s.orders(ctx) == "" {
		return nil
	}
	s.say("\n%s; the demonstration goes on when that is over.", s.orders(ctx))
	for s.orders(ctx) != "" {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	for _, up := range s.upstreams {
		if !await(ctx, func() bool { return s.plane.published(up.Addr()) == health.Healthy.String() || s.orders(ctx) != "" }) {
			return s.failed(ctx, "%s is not healthy at the data plane", up.Addr())
		}
	}
	return nil
}

// orders says what somebody else has ordered and is in force; "" if nothing is.
func (s *stage) orders(ctx context.Context) string {
	if all, err := s.control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{}); err == nil {
		for _, o := range all.GetOverrides() {
			if o.GetAuthor() != author {
				return "An override of " + o.GetAuthor() + " is in force"
			}
		}
	}
	if f, err := s.control.GetFreeze(ctx, &hdsdv1.GetFreezeRequest{}); err == nil && f.GetFrozen() {
		return f.GetAuthor() + " has frozen hdsd"
	}
	return ""
}

// ordered returns who else has given orders since a time; "" if nobody has.
func (s *stage) ordered(ctx context.Context, since time.Time) string {
	all, err := s.control.ListAudit(ctx, &hdsdv1.ListAuditRequest{StartTime: timestamppb.New(since)})
	if err != nil {
		return ""
	}
	for _, entry := range all.GetEntries() {
		if entry.GetAuthor() != author {
			return entry.GetAuthor()
		}
	}
	return ""
}

// reset undoes what a scene that failed may have left.
func (s *stage) reset(ctx context.Context) error {
	for _, up := range s.upstreams {
		if err := up.Set(upstream.Healthy()); err != nil {
			return err
		}
	}
	all, err := s.control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{})
	if err != nil {
		return err
	}
	for _, o := range all.GetOverrides() {
		if o.GetAuthor() != author {
			continue
		}
		if _, err := s.control.ClearOverrides(ctx, &hdsdv1.ClearOverridesRequest{Cluster: o.GetCluster(), Address: o.GetAddress(), Author: author}); err != nil {
			return err
		}
	}
	return s.writeClusters(clusters(s.upstreams))
}
