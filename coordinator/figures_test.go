package coordinator

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"hdsd/coordinator/query"
	"hdsd/store"
)

// figure gives the only sample of a metric.
func figure(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			sample := family.GetMetric()[0]
			return sample.GetGauge().GetValue() + sample.GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// fakeDisk is a store that says what it is told to.
type fakeDisk struct{ stats store.Stats }

func (d *fakeDisk) Stats() store.Stats { return d.stats }

func TestHistoryMetrics(t *testing.T) {
	d := &fakeDisk{}
	registry := prometheus.NewPedanticRegistry()
	registerStore(registry, d)
	d.stats = store.Stats{Pending: 1, Committed: 2, Dropped: 3, Gaps: 6, Quota: store.Quota{Used: 7, Near: true, Pruned: 8}, Skipped: 4, Bytes: 5, Doubted: true, LastError: errors.New("full")}
	for name, want := range map[string]float64{
		"hdsd_history_pending": 1, "hdsd_history_committed_total": 2, "hdsd_history_dropped_total": 3, "hdsd_history_gaps_total": 6,
		"hdsd_history_used_bytes": 7, "hdsd_history_near_quota": 1, "hdsd_history_pruned_early_total": 8,
		"hdsd_history_skipped_total": 4, "hdsd_history_bytes": 5, "hdsd_history_failing": 1, "hdsd_clock_doubted": 1,
	} {
		if got := figure(t, registry, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

func TestMailboxMetrics(t *testing.T) {
	c := &Coordinator{registry: prometheus.NewRegistry(), core: newLab(t).core, query: query.New(query.Options{})}
	c.registerProcess("")
	for range 3 {
		c.core.do(func() {})
	}
	if got := figure(t, c.registry, "hdsd_mailbox_events"); got != 3 {
		t.Errorf("hdsd_mailbox_events is %v with 3 events waiting", got)
	}
}

// bug is a service with a bug.
type bug struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (bug) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	panic("a bug")
}

func (bug) Watch(*grpc_health_v1.HealthCheckRequest, grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	panic("another")
}

func TestPanicFailsOneCall(t *testing.T) {
	asked := newCalls(prometheus.NewRegistry(), zerolog.Nop())
	server := grpc.NewServer(asked.options()...)
	grpc_health_v1.RegisterHealthServer(server, bug{})
	listener := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() { server.Stop(); <-done }()
	connection, err := grpc.NewClient("passthrough:///bug", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := grpc_health_v1.NewHealthClient(connection)
	_, unary := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	stream, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(unary) != codes.Internal || status.Code(err) != codes.Internal {
		t.Errorf("the calls end with %v and %v", unary, err)
	}
	if got := testutil.ToFloat64(asked.panics); got != 2 {
		t.Errorf("hdsd_panics_total is %v after 2", got)
	}
}
