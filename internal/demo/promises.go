package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
)

// cutOff cuts a checker off from the network, as far as others can see: it is stopped with its
// connections open.
func (s *stage) cutOff(ctx context.Context) (err error) {
	const id = "checker-1"
	s.scene("%s is cut off from the network", id)
	start := time.Now()
	if err := s.checkers[0].Pause(); err != nil {
		return err
	}
	defer func() {
		if resumed := s.checkers[0].Resume(); err == nil {
			err = resumed
		}
	}()
	if !await(ctx, func() bool { return !s.checker(ctx, id).GetConnected() }) {
		return failed(ctx, "%s is not noticed to be gone", id)
	}
	s.event("checker", "%s reports nothing, and its connection has ended; the others decide", id)
	if err := s.unharmed(ctx, start); err != nil {
		return err
	}
	if err := s.checkers[0].Resume(); err != nil {
		return err
	}
	if !await(ctx, func() bool { return s.atWork(ctx, id) }) {
		return failed(ctx, "%s is not back", id)
	}
	s.event("checker", "%s is back at work", id)
	return nil
}

// kill kills the coordinator and starts it again.
func (s *stage) kill(ctx context.Context) error {
	s.scene("kill -9: the coordinator is gone")
	start := time.Now()
	s.process.Kill()
	if err := s.stillServed(); err != nil {
		return err
	}
	if err := serve(ctx, s.coordinator); err != nil {
		return err
	}
	s.event("hdsd", "is back and ready, with the health it had")
	for i := range s.checkers {
		if !await(ctx, func() bool { return s.atWork(ctx, checkerID(i)) }) {
			return failed(ctx, "%s is not back", checkerID(i))
		}
	}
	s.event("checkers", "all three are back at work")
	return s.unharmed(ctx, start)
}

// drain takes an endpoint out of traffic by command.
func (s *stage) drain(ctx context.Context) error {
	address := s.upstreams[0].address
	s.scene("an operator drains %s%s", address, s.part)
	_, err := s.control.SetOverride(ctx, &hdsdv1.SetOverrideRequest{
		Cluster: clusterName, Address: address, Health: corev3.HealthStatus_DRAINING,
		Reason: "kernel upgrade", Author: author, Duration: durationpb.New(time.Hour),
	})
	if err != nil {
		return err
	}
	if !await(ctx, func() bool { return s.plane.published(address) == health.Draining.String() }) {
		return failed(ctx, "the data plane does not drain %s; it has it as %q", address, s.plane.published(address))
	}
	s.event("EDS", "%s now has it as DRAINING, for an hour at most", s.plane.name())
	s.showTraffic()
	if err := s.pause(ctx); err != nil {
		return err
	}
	if _, err := s.control.ClearOverrides(ctx, &hdsdv1.ClearOverridesRequest{Cluster: clusterName, Address: address, Author: author}); err != nil {
		return err
	}
	if !await(ctx, func() bool { return s.plane.published(address) == health.Healthy.String() }) {
		return failed(ctx, "the drain of %s does not end", address)
	}
	s.event("EDS", "the drain is cleared: the votes decide again")
	return nil
}

// rejected is a cluster that an Envoy would reject in silence, with all clusters sent with it.
const rejected = `- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: rejected
  type: STATIC
  connect_timeout: 1s
  health_checks: [{timeout: 0.3s, interval: 0.5s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /, method: CONNECT}}]
  load_assignment:
    cluster_name: rejected
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}]
`

// setAside adds a cluster that checkers would reject, and takes it away again.
func (s *stage) setAside(ctx context.Context) error {
	s.scene("a cluster comes that checkers would reject without a word")
	start := time.Now()
	if err := s.writeClusters(clusters(s.upstreams) + rejected); err != nil {
		return err
	}
	var reason string
	if !await(ctx, func() bool { reason = s.quarantined(ctx, "rejected"); return reason != "" }) {
		return failed(ctx, "the cluster is not set aside")
	}
	s.event("hdsd", "sends it to nobody: %s", reason)
	for i := range s.checkers {
		if !s.atWork(ctx, checkerID(i)) {
			return fmt.Errorf("%s is gone", checkerID(i))
		}
	}
	if err := s.unharmed(ctx, start); err != nil {
		return err
	}
	return s.writeClusters(clusters(s.upstreams))
}

// unharmed fails unless the cluster's health has not changed since start, and the data plane
// sends requests to all of it.
func (s *stage) unharmed(ctx context.Context, start time.Time) error {
	answer, err := s.query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: clusterName, StartTime: timestamppb.New(start)})
	if err != nil {
		return err
	}
	if transitions := answer.GetTransitions(); len(transitions) > 0 {
		return fmt.Errorf("%s changed from %s to %s: %s", transitions[0].GetAddress(), transitions[0].GetFrom(), transitions[0].GetTo(), transitions[0].GetReason())
	}
	s.event("verdict", "all %d endpoints stay HEALTHY: no change is recorded", len(s.upstreams))
	return s.stillServed()
}

// stillServed fails unless the data plane has all endpoints as healthy.
func (s *stage) stillServed() error {
	for _, upstream := range s.upstreams {
		if status := s.plane.published(upstream.address); status != health.Healthy.String() {
			return fmt.Errorf("%s has %s as %q", s.plane.name(), upstream.address, status)
		}
	}
	s.event("EDS", "%s has all of them as HEALTHY", s.plane.name())
	s.showTraffic()
	return nil
}

func (s *stage) showTraffic() {
	if sent, failed := s.plane.traffic(); sent > 0 {
		s.event("traffic", "%d requests through the data plane, %d failed", sent, failed)
	}
}

// checker queries the coordinator for a checker; nil if it has no answer.
func (s *stage) checker(ctx context.Context, id string) *hdsdv1.Checker {
	answer, err := s.query.ListCheckers(ctx, &hdsdv1.ListCheckersRequest{})
	if err != nil {
		return nil
	}
	for _, c := range answer.GetCheckers() {
		if c.GetId() == id {
			return c
		}
	}
	return nil
}

// atWork reports whether a checker is connected, follows its specifier, and is believed.
func (s *stage) atWork(ctx context.Context, id string) bool {
	c := s.checker(ctx, id)
	return c.GetConnected() && c.GetSpecifier() == "SYNCED" && c.GetTrusted()
}

// quarantined returns the reason why a cluster is set aside; "" if it is not.
func (s *stage) quarantined(ctx context.Context, name string) string {
	answer, err := s.query.ListClusters(ctx, &hdsdv1.ListClustersRequest{})
	if err != nil {
		return ""
	}
	for _, c := range answer.GetClusters() {
		if c.GetName() == name && len(c.GetQuarantined()) > 0 {
			return c.GetQuarantined()[0].GetReason()
		}
	}
	return ""
}

// writeClusters replaces the cluster file.
func (s *stage) writeClusters(text string) error {
	path := filepath.Join(s.dir, "clusters.yaml")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
