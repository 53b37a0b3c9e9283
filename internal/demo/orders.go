package demo

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// author is the author of the demonstration's own orders.
const author = "demo"

// play runs a scene while no other orders are in force: the README has its readers drain an
// endpoint. A scene that fails because of such an order proves nothing, and the next one goes
// on.
func (s *stage) play(ctx context.Context, scene func(context.Context) error) error {
	if err := s.awaitNoOrders(ctx); err != nil {
		return err
	}
	start := time.Now()
	failure := scene(ctx)
	if failure == nil || ctx.Err() != nil {
		return failure
	}
	for _, c := range s.coordinators {
		if !c.process.Alive() && serve(ctx, c) != nil {
			return failure
		}
	}
	author := s.ordered(ctx, start)
	if author == "" {
		return failure
	}
	s.event("demo", "%s has given hdsd orders (hdsd audit), so this scene says nothing: %v", author, failure)
	return s.reset(ctx)
}

// awaitNoOrders waits while another author's override or freeze is in force, and until all is
// healthy after that.
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
	for _, upstream := range s.upstreams {
		if !await(ctx, func() bool {
			return s.plane.published(upstream.address) == health.Healthy.String() || s.orders(ctx) != ""
		}) {
			return failed(ctx, "%s is not healthy at the data plane", upstream.address)
		}
	}
	return nil
}

// orders describes another author's orders in force; "" if there are none.
func (s *stage) orders(ctx context.Context) string {
	if overrides, err := s.control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{}); err == nil {
		for _, o := range overrides.GetOverrides() {
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

// ordered returns the author of other orders since start; "" if there is none.
func (s *stage) ordered(ctx context.Context, start time.Time) string {
	audit, err := s.control.ListAudit(ctx, &hdsdv1.ListAuditRequest{StartTime: timestamppb.New(start)})
	if err != nil {
		return ""
	}
	for _, entry := range audit.GetEntries() {
		if entry.GetAuthor() != author {
			return entry.GetAuthor()
		}
	}
	return ""
}

// reset undoes the effects of a failed scene.
func (s *stage) reset(ctx context.Context) error {
	for _, upstream := range s.upstreams {
		if err := upstream.set(healthy); err != nil {
			return err
		}
	}
	overrides, err := s.control.ListOverrides(ctx, &hdsdv1.ListOverridesRequest{})
	if err != nil {
		return err
	}
	for _, o := range overrides.GetOverrides() {
		if o.GetAuthor() != author {
			continue
		}
		if _, err := s.control.ClearOverrides(ctx, &hdsdv1.ClearOverridesRequest{Cluster: o.GetCluster(), Address: o.GetAddress(), Author: author}); err != nil {
			return err
		}
	}
	return s.writeClusters(clusters(s.upstreams))
}
