package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// endpoint queries the coordinator for an endpoint; nil if it has no answer.
func (s *stage) endpoint(ctx context.Context, address string) *hdsdv1.Endpoint {
	answer, err := s.query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: clusterName, Address: address})
	if err != nil || len(answer.GetEndpoints()) == 0 {
		return nil
	}
	return answer.GetEndpoints()[0]
}

func isUp(e *hdsdv1.Endpoint) bool { return e.GetHealth() == corev3.HealthStatus_HEALTHY }

func unknown(e *hdsdv1.Endpoint) bool { return e.GetHealth() == corev3.HealthStatus_UNKNOWN }

// votes counts the checkers that report an endpoint up (or not).
func (s *stage) votes(ctx context.Context, address string, up bool) int {
	count := 0
	for _, o := range s.endpoint(ctx, address).GetObservations() {
		if (o.GetStatus() == corev3.HealthStatus_HEALTHY) == up {
			count++
		}
	}
	return count
}

// firstVotes names the checkers that have reported an endpoint up (or not) so far.
func (s *stage) firstVotes(ctx context.Context, address string, up bool) string {
	return voteText(slices.DeleteFunc(s.endpoint(ctx, address).GetObservations(), func(o *hdsdv1.Observation) bool {
		return (o.GetStatus() == corev3.HealthStatus_HEALTHY) != up
	}))
}

func voteText(observations []*hdsdv1.Observation) string {
	var votes []string
	for _, o := range observations {
		vote := fmt.Sprintf("%s %s", o.GetChecker(), o.GetStatus())
		if o.HttpStatusCode != nil {
			vote += fmt.Sprintf(" (%d)", o.GetHttpStatusCode())
		}
		votes = append(votes, vote)
	}
	return strings.Join(votes, ", ")
}

// history returns the newest transition of an endpoint since start, with the votes that decided
// it; "" before there is one.
func (s *stage) history(ctx context.Context, address string, start time.Time) string {
	answer, err := s.query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{
		Cluster: clusterName, Address: address, StartTime: timestamppb.New(start), NewestFirst: true, PageSize: 1,
	})
	if err != nil || len(answer.GetTransitions()) == 0 {
		return ""
	}
	t := answer.GetTransitions()[0]
	return fmt.Sprintf("%s → %s at %s, as %s", t.GetFrom(), t.GetTo(), t.GetTime().AsTime().Local().Format("15:04:05.000"), voteText(t.GetObservations()))
}
