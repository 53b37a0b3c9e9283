package coordinator_test

import (
	"context"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/reason"
)

// TestErrorsHaveReasons covers errors over gRPC. Package test/rest covers those over HTTP.
func TestErrorsHaveReasons(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), quick, static("web", "127.0.0.1:9"))
	s.ready()
	query, control := hdsdv1.NewQueryClient(s.dial()), hdsdv1.NewControlClient(s.dial())
	watched := func(r *hdsdv1.WatchRequest) error {
		stream, err := query.Watch(t.Context(), r)
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	for _, one := range []struct {
		want string
		code codes.Code
		ask  func(context.Context) error
	}{
		{reason.UnknownCluster, codes.NotFound, func(ctx context.Context) error {
			_, err := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: "wbe"})
			return err
		}},
		{"INVALID_ARGUMENT", codes.InvalidArgument, func(ctx context.Context) error {
			_, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: -1})
			return err
		}},
		{reason.TokenInvalid, codes.InvalidArgument, func(context.Context) error { return watched(&hdsdv1.WatchRequest{ResumeToken: "bad"}) }},
		{reason.UnknownCluster, codes.NotFound, func(context.Context) error { return watched(&hdsdv1.WatchRequest{Cluster: "wbe"}) }},
		{reason.UnknownSource, codes.NotFound, func(ctx context.Context) error {
			_, err := control.AcceptSource(ctx, &hdsdv1.AcceptSourceRequest{Name: "nowhere"})
			return err
		}},
		{reason.NothingHeld, codes.FailedPrecondition, func(ctx context.Context) error {
			_, err := control.AcceptSource(ctx, &hdsdv1.AcceptSourceRequest{Name: "local"})
			return err
		}},
		{reason.UnknownReceiver, codes.NotFound, func(ctx context.Context) error {
			_, err := control.NotifyTest(ctx, &hdsdv1.NotifyTestRequest{Name: "nobody"})
			return err
		}},
		{reason.UnknownCluster, codes.NotFound, func(ctx context.Context) error {
			_, err := control.SetOverride(ctx, &hdsdv1.SetOverrideRequest{Cluster: "wbe", Health: corev3.HealthStatus_DRAINING, Reason: "x", Author: "ann"})
			return err
		}},
		{reason.UnknownOverride, codes.NotFound, func(ctx context.Context) error {
			_, err := control.ClearOverrides(ctx, &hdsdv1.ClearOverridesRequest{Cluster: "web"})
			return err
		}},
	} {
		err := one.ask(t.Context())
		if got := reason.Of(err); got != one.want || status.Code(err) != one.code {
			t.Errorf("%v: reason %q; want %s, %q", err, got, one.code, one.want)
		}
	}
}
